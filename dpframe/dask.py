"""Frames of Dask: `import dpframe.dask` registers `.dp` on `dask.dataframe.DataFrame`."""

from dpframe.errors import pip_install

try:
    from dask.dataframe.extensions import register_dataframe_accessor
except ImportError as error:
    raise ImportError(f"dpframe.dask needs Dask: {pip_install('dask')}.") from error

from dpframe.accessors.private import PrivateAccessor
from dpframe.engines import register
from dpframe.engines.dask import DaskEngine

register(DaskEngine())
register_dataframe_accessor("dp")(PrivateAccessor)
