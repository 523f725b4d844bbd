"""Frames of Dask: `import dpframe.dask` registers `.dp` on `dask.dataframe.DataFrame`."""

try:
    from dask.dataframe.extensions import register_dataframe_accessor
except ImportError as error:
    raise ImportError("dpframe.dask needs Dask: pip install 'dpframe[dask]'.") from error

from dpframe.accessors.private import PrivateAccessor
from dpframe.engines import register
from dpframe.engines.dask import DaskEngine

register(DaskEngine())
register_dataframe_accessor("dp")(PrivateAccessor)
