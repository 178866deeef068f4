"""Vector quantization. Names and semantics follow jax.scipy.cluster.vq."""

from __future__ import annotations

from typing import Any

from .... import numpy as jnp
from ....numpy.promotion import check_arraylike, promote_dtypes_inexact
from ....tracer.arrays.operators import ArrayLike
from ....tracer.compound import compound
from ....tracer.core import Value
from ....tracer.errors import OperandError


@compound(static=("check_finite",))
def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Value, Value]:
    """(index of the nearest code, distance to it) of each observation.

    obs: [m, n], code_book: [k, n], or both vectors, of observations with one feature. `check_finite` is ignored.

    >>> import hloom
    >>> from hloom import numpy as jnp
    >>> from hloom.scipy.cluster import vq
    >>> observations, codes = jnp.array([[0.0, 0.0], [5.0, 4.0]]), jnp.array([[1.0, 0.0], [5.0, 5.0]])
    >>> vq.vq(observations, codes)
    (Array([0, 1], dtype=int32), Array([1., 1.], dtype=float32))
    """
    check_arraylike("vq", obs, code_book)
    points: Any
    codes: Any
    points, codes = promote_dtypes_inexact(obs, code_book)
    if points.ndim != codes.ndim:
        raise OperandError("Observation and code_book should have the same rank", "vq_rank")
    if points.ndim == 1:
        points, codes = points[:, None], codes[:, None]
    if points.ndim != 2 or points.shape[1] != codes.shape[1]:
        raise OperandError(
            f"vq of {points.aval.str_short()} and {codes.aval.str_short()}: both must have one or two dimensions, and "
            "as many features",
            "vq_shape",
        )
    squares = jnp.sum(jnp.abs(points[:, None] - codes) ** 2, -1)
    return jnp.argmin(squares, -1), jnp.sqrt(jnp.min(squares, -1))
