"""`gcd` and `lcm`. Names and semantics follow NumPy."""

from __future__ import annotations

from .. import lax
from ..tracer import dtypes
from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError
from .promotion import promote, to_dtype
from .unary_ufuncs import abs


def _integers(name: str, x1: ArrayLike, x2: ArrayLike) -> tuple[Value, Value]:
    x, y = promote(name, x1, x2)
    if not dtypes.is_integer(x.aval.dtype):
        raise OperandError(f"Arguments to {name} must be integers, not {x.aval.str_short()}", name)
    return x, y


@compound()
def gcd(x1: ArrayLike, x2: ArrayLike) -> Value:
    """The greatest common divisor of integers, element by element; of 0 and 0 it is 0. Shapes broadcast.

    >>> jnp.gcd(jnp.array([12, 18, 0]), 8)
    Array([4, 2, 8], dtype=int32)
    """
    x, y = _integers("gcd", x1, x2)
    weak = x.aval.weak_type and not x.aval.shape

    def turn(state: tuple[Value, Value]) -> tuple[Value, Value]:
        a, b = state
        done = b == 0
        safe = lax.select(done, lax.full_like(b, 1), b)
        return lax.select(done, a, b), lax.select(done, b, lax.rem(a, safe))

    def unfinished(state: tuple[Value, Value]) -> Value:
        left = state[1] != 0
        return lax.reduce_or(left, range(left.aval.ndim))

    start = tuple([to_dtype(abs(v), v.aval.dtype, False) for v in (x, y)])
    found, _ = lax.while_loop(unfinished, turn, start)
    return to_dtype(found, x.aval.dtype, weak)


@compound()
def lcm(x1: ArrayLike, x2: ArrayLike) -> Value:
    """The least common multiple of integers, element by element; 0 if one is 0. Shapes broadcast.

    >>> jnp.lcm(jnp.array([12, 18, 0]), 8)
    Array([24, 72,  0], dtype=int32)
    """
    x, y = _integers("lcm", x1, x2)
    divisor = gcd(x, y)
    safe = lax.select(divisor == 0, lax.full_like(divisor, 1), divisor)
    found = abs(x) * lax.div(abs(y), safe)  # of each, so that too large a result wraps as in NumPy
    return to_dtype(found, x.aval.dtype, x.aval.weak_type and not x.aval.shape)
