"""Functions of real numbers that HLO has no opcode for, as primitives: the common base of all of them.

    _lgamma = ElementwiseFunction("lgamma", meaning, [lambda y, x: digamma(x)])

A meaning gets float64 and gives float64, for all types of operands: the result is rounded once, so that narrower types
are right to their last place without coefficients, iteration counts and branches of their own. Only the number of
terms of a polynomial follows the type of the result (`series.py`).

A derivative that is not given is itself such a function, named after its operand: its meaning is the derivative of the
meaning, by forward mode. So each has derivatives of all orders, in both modes, although meanings contain while loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..autodiff.api import jvp
from ..extend.primitive import Primitive
from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.control_flow.branches import while_loop
from ..tracer.core import Value
from ..tracer.errors import OperandError
from ..tracer.ops import convert
from ..tracer.settings.config import enable_x64
from .elementwise import RoundingMethod, round
from .instructions import abs, exp, expm1, log1p, matched, select, sin
from .movement import broadcast_in_dim, full_like
from .reduce import reduce_or
from .series import horner, rounded_to

Partial = Callable[..., Any]
"""partial(result, *operands): the derivative with respect to one operand."""


class ElementwiseFunction:
    """A function of floating-point arrays of one type and shape.

    Args:
      name: the primitive's name.
      meaning: a function of float64 arrays.
      partials: the derivative with respect to each operand; None for the derivative of the meaning.
      shown: how users call it, if that is not the primitive's name.
      short: whether its series may be as short as the type of the result allows. The meaning must not lose leading
        bits after them, in a difference of two close values or in a derivative.
    """

    def __init__(
        self, name: str, meaning: Callable[..., Any], partials: Sequence[Partial | None], *, shown: str | None = None,
        short: bool = False,
    ) -> None:  # fmt: skip
        self.name = name
        self.shown: str = shown or name
        self._meaning = meaning
        self._short = short
        self._partials = list(partials)
        self._derived: dict[int, ElementwiseFunction] = {}
        self.primitive: Primitive = Primitive(name)
        self.primitive.def_meaning(self._in_double)
        self.primitive.def_jvp(self._jvp, symbolic_zeros=True)
        self.primitive.def_batch(self._batch)

    def __call__(self, *operands: Any) -> Value:
        values = tuple([as_value(o) for o in operands])
        for position, v in enumerate(values):
            if not dtypes.is_floating(v.aval.dtype):
                raise OperandError(
                    f"lax.{self.shown} does not accept dtype {v.aval.dtype.name} at position {position}: its operands "
                    "are floating-point numbers\n  Convert them with astype; functions in hloom.scipy.special "
                    "convert integers themselves.",
                    f"{self.shown}_dtypes",
                )
        if len(values) > 1:
            values = matched(self.shown, *values)
        result: Value = self.primitive.bind(*values)
        return result

    def _in_double(self, *operands: Any) -> Any:
        dtype = operands[0].aval.dtype
        weak = all(o.aval.weak_type for o in operands)
        with enable_x64(True), rounded_to(dtype if self._short else dtypes.float64):
            result = self._meaning(*[convert(o, dtypes.float64, False) for o in operands])
        return convert(result, dtype, weak)

    def partial(self, position: int) -> Partial:
        """The derivative with respect to the operand at `position`."""
        given = self._partials[position]
        if given is not None:
            return given
        derived = self._derived.get(position)
        if derived is None:

            def derivative(*operands: Any) -> Any:
                ones = full_like(operands[position], 1.0)

                def of_one(x: Any) -> Any:
                    return self._meaning(*operands[:position], x, *operands[position + 1 :])

                return jvp(of_one, (operands[position],), (ones,))[1]

            derived = ElementwiseFunction(f"{self.name}_d{position}", derivative, [None] * len(self._partials))
            self._derived[position] = derived
        of: ElementwiseFunction = derived
        return lambda _, *operands: of(*operands)

    def _jvp(self, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        result = self.primitive.bind(*primals)
        total = None
        for position, t in enumerate(tangents):
            if t is not None:
                term = t * self.partial(position)(result, *primals)
                total = term if total is None else total + term
        return result, total

    def _batch(self, size: int, batched: tuple[bool, ...], *operands: Any) -> tuple[Any, bool]:
        shape = next(o.aval.shape for o, b in zip(operands, batched) if b)
        rows = [o if b else broadcast_in_dim(o, shape, range(1, len(shape))) for o, b in zip(operands, batched)]
        return self.primitive.bind(*rows), True


# ---- building blocks of meanings


def horner_with_derivative(coefficients: Sequence[float], t: Any) -> tuple[Any, Any]:
    """The polynomial and its derivative."""
    p: Any = full_like(t, coefficients[-1])
    d: Any = full_like(t, 0.0)
    for c in reversed(coefficients[:-1]):
        d = d * t + p
        p = p * t + c
    return p, d


_ATANH_TAIL = [1.0 / (2 * k + 3) for k in range(16)]


def log1p_minus(u: Any) -> Any:
    """log(1 + u) - u, accurate near 0.

    Near 0 by log(1 + u) = 2 atanh(r), where r = u / (2 + u): the remainder of 2 r - u is -r u. Source: Loader, "Fast
    and accurate computation of binomial probabilities" (2000), where the deviance needs it.
    """
    return log1p_minus_of(u, log1p(u))


def log1p_minus_of(u: Any, logarithm: Any) -> Any:
    """`log1p_minus` of u and log(1 + u), for callers that need both."""
    r = u / (2.0 + u)
    z = r * r
    near = r * (2.0 * z * horner(_ATANH_TAIL, z) - u)
    return select(abs(u) < 0.5, near, logarithm - u)


_complement_of_exp = Primitive("complement_of_exp", lambda x: -expm1(x))


@_complement_of_exp.def_jvp
def _complement_of_exp_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    return _complement_of_exp.bind(x), -t * exp(x)


def complement_of_exp(x: Any) -> Any:
    """1 - exp(x). Its derivative is not computed from the value, which is 1 for x far below 0."""
    return _complement_of_exp.bind(x)


def sin_pi(x: Any) -> Any:
    """|sin(pi x)|, exactly 0 for integers."""
    return abs(sin(math.pi * (x - round_to_even(x))))


def round_to_even(x: Any) -> Any:
    """The nearest integer."""
    return round(x, RoundingMethod.TO_NEAREST_EVEN)


def holds_somewhere(mask: Any) -> Any:
    """Whether a boolean array has a true element, as a scalar."""
    return reduce_or(mask, tuple(range(mask.aval.ndim)))


def repeat_while(active: Callable[[Any], Any], step: Callable[[Any], Any], state: Any, limit: int, stride: int) -> Any:
    """`step` of the state until `active` of it is false for all elements, `stride` steps between the looks.

    The first entry of the state is the number of the step, a scalar that `step` moves on; `limit` bounds it.
    """

    def condition(state: Any) -> Any:
        return (state[0] < limit) & holds_somewhere(active(state))

    def body(state: Any) -> Any:
        for _ in range(stride):
            state = step(state)
        return state

    return while_loop(condition, body, state)


def first_of(*cases: Any) -> Any:
    """first_of(c1, v1, c2, v2, ..., otherwise): the value of the first condition that holds."""
    *pairs, result = cases
    for condition, value in reversed(list(zip(pairs[::2], pairs[1::2]))):
        result = select(condition, value if hasattr(value, "aval") else full_like(result, value), result)
    return result


def scalar_value(number: float) -> Value:
    """A float64 scalar, for counters of loops."""
    return convert(as_value(number), dtypes.float64, False)
