"""What one private column says, whatever its dtype; a value is read without regard to others.

Without pyarrow no column has one of its dtypes.
"""

try:
    import pyarrow as pa
    from pyarrow import compute, ipc
except ImportError:  # an optional dependency
    pa = compute = ipc = None

__all__ = ["compute", "ipc", "pa"]
