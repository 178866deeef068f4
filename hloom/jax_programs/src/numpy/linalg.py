"""jax._src.numpy.linalg."""

from typing import Any as _Any

from .... import Array as _Array
from ....numpy import conj as _conj
from ....numpy import matrix_transpose as _matrix_transpose

__all__ = ["_H"]


def _H(x: _Any) -> _Array:
    """The conjugate transposes of matrices."""
    return _conj(_matrix_transpose(x))
