"""The contents of values that are not constant: `cur_qdd`, for types that `hijax.py` lets libraries declare."""

from __future__ import annotations

from typing import Any

from ..hlo.errors import UnsupportedError
from ..tracer.core import EVAL, current_trace


def cur_qdd(x: Any) -> Any:
    """The current contents of a value of a library's own type (`hijax.MutableHiType`): ``x.cur_qdd()``.

    UnsupportedError within a transformation, where such values are not traced.

    >>> from hloom import experimental
    >>> class Held:
    ...     def cur_qdd(self):
    ...         return "float32[3]"
    >>> experimental.cur_qdd(Held())
    'float32[3]'
    """
    if current_trace() is not EVAL:
        raise UnsupportedError(
            f"cur_qdd: a {type(x).__name__} can be used outside of jit, grad and vmap only: pass the arrays that it "
            "holds into the transformed function"
        )
    return x.cur_qdd()
