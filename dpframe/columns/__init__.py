"""What one private column says, whatever its dtype; a value is read without regard to others.

Without pyarrow no column has one of its dtypes.
"""

try:
    import pyarrow as pa
    from pyarrow import compute, ipc
except ImportError:  # an optional dependency
    pa = compute = ipc = None

from dpframe.errors import DPFrameError, pip_install

__all__ = ["compute", "ipc", "pa", "require_arrow"]


def require_arrow(purpose: str, way_out: str = "") -> None:
    """Say how to install pyarrow where it is missing, before anything is made of it."""
    if pa is None:
        text = f"{purpose} needs pyarrow: {pip_install('parquet')}. {way_out}"
        raise DPFrameError(text.rstrip())
