"""Functions without an HLO opcode that are more than one line of other functions, such as polynomials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..extend.primitive import Primitive
from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError
from ..tracer.ops import convert
from .elementwise import bitcast_convert_type
from .instructions import abs, exp, log, log1p, select, sqrt
from .movement import broadcast_in_dim, broadcast_shapes, full_like

# Giles, "Approximating the erfinv function" (GPU Computing Gems, Jade edition, 2011): erfinv(x) = x * p(w), where
# w = -log(1 - x**2), and p is a polynomial in w - center, or in sqrt(w) - center further out. Highest power first.
_CENTRAL_32 = (
    *(2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503),
    *(-0.00417768164, 0.246640727, 1.50140941),
)
_TAIL_32 = (
    *(-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613),
    *(0.00943887047, 1.00167406, 2.83297682),
)
_CENTRAL_64 = (
    *(-3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18, 1.115787767802518096e-17),
    *(-1.333171662854620906e-16, 2.0972767875968561637e-17, 6.6376381343583238325e-15, -4.0545662729752068639e-14),
    *(-8.1519341976054721522e-14, 2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11),
    *(1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07),
    *(-1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352, -0.00074070253416626697512),
    *(-0.0060336708714301490533, 0.24015818242558961693, 1.6536545626831027356),
)
_MIDDLE_64 = (
    *(2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08),
    *(1.5027403968909827627e-06, -4.013867526981545969e-06, 2.9234449089955446044e-06, 1.2475304481671778723e-05),
    *(-4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796),
    *(0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066, -0.0037512085075692412107),
    *(0.005370914553590063617, 1.0052589676941592334, 3.0838856104922207635),
)
_TAIL_64 = (
    *(-2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09, -3.7894654401267369937e-09),
    *(7.6157012080783393804e-09, -1.4960026627149240478e-08, 2.9147953450901080826e-08, -6.7711997758452339498e-08),
    *(2.2900482228026654717e-07, -9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05),
    *(7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026, 1.0103004648645343977),
    *(4.8499064014085844221,),
)


def _require_floats(name: str, *values: Value) -> None:
    for position, v in enumerate(values):
        if not dtypes.is_floating(v.aval.dtype) or v.aval.dtype is not values[0].aval.dtype:
            found = ", ".join([v.aval.dtype.name for v in values])
            raise OperandError(
                f"lax.{name} does not accept {found}: position {position} is to have the floating-point dtype that "
                "all operands have\n  Convert the operands with astype.",
                f"{name}_dtypes",
            )


@compound()
def erf_inv(x: Any) -> Value:
    """The inverse of erf on [-1, 1]; infinite at the ends, NaN outside. Narrow floats are computed in float32.

    Element by element, of floating-point arrays of any shape; shape and dtype remain.

    >>> jnp.round(lax.erf_inv(jnp.array([0.0, 0.5, 1.0])), 3)
    Array([0.   , 0.477,   inf], dtype=float32)
    """
    x = as_value(x)
    _require_floats("erf_inv", x)
    dtype = x.aval.dtype
    if dtype.itemsize < 4:
        return convert(erf_inv(convert(x, dtypes.float32, x.aval.weak_type)), dtype, x.aval.weak_type)
    result: Value = _erf_inv.bind(x)
    return result


_erf_inv = Primitive("erf_inv")


@_erf_inv.def_jvp
def _erf_inv_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    """1 / erf'(y), where y is the result."""
    (x,), (t,) = primals, tangents
    y = erf_inv(x)
    return y, t * (math.sqrt(math.pi) / 2 * exp(y * y))


@_erf_inv.def_meaning
def _erf_inv_meaning(x: Any) -> Any:
    if x.dtype == dtypes.float64:
        w = -log((1.0 - x) * (1.0 + x))  # 1 - x is exact near 1, x * x is not
        p = select(
            w < 6.25,
            _polynomial(_CENTRAL_64, w - 3.125),
            select(w < 16.0, _polynomial(_MIDDLE_64, sqrt(w) - 3.25), _polynomial(_TAIL_64, sqrt(w) - 5.0)),
        )
    else:
        w = -log1p(-(x * x))
        p = select(w < 5.0, _polynomial(_CENTRAL_32, w - 2.5), _polynomial(_TAIL_32, sqrt(w) - 3.0))
    return select(abs(x) == 1.0, x * math.inf, p * x)


def _polynomial(coefficients: tuple[float, ...], t: Value) -> Value:
    """By Horner's rule, highest power first."""
    p = full_like(t, coefficients[0])
    for c in coefficients[1:]:
        p = c + p * t
    return p


@compound()
def nextafter(x1: Any, x2: Any) -> Value:
    """The float next to x1 in the direction of x2; NaN if one is NaN.

    Floats of one sign have the order of their bits, so the neighbour away from zero has the next higher bits.

    >>> float(lax.nextafter(jnp.float32(1.0), jnp.float32(2.0)) - 1) == 2.0**-23
    True
    """
    x, target = as_value(x1), as_value(x2)
    _require_floats("nextafter", x, target)
    shape = broadcast_shapes(x.aval.shape, target.aval.shape)
    x, target = (broadcast_in_dim(v, shape, range(len(shape) - v.aval.ndim, len(shape))) for v in (x, target))
    result: Value = _nextafter.bind(x, target)
    return result


_nextafter = Primitive("nextafter")


@_nextafter.def_jvp
def _nextafter_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    """It moves with x1: the distance is constant between powers of two."""
    return nextafter(*primals), tangents[0]


@_nextafter.def_meaning
def _nextafter_meaning(x: Any, target: Any) -> Any:
    integers = np.dtype(f"uint{8 * x.aval.dtype.itemsize}")
    bits = bitcast_convert_type(x, integers)
    one = full_like(bits, 1)
    zero = full_like(x, 0)
    away = (x < target) == (x > zero)
    step = select(away, bits + one, bits - one)
    sign = bitcast_convert_type(select(target < zero, full_like(x, -0.0), zero), integers)
    smallest = sign | one  # the step from either zero
    moved = bitcast_convert_type(select(x == zero, smallest, step), x.dtype)
    result = select(x == target, target, moved)
    result = select((x != x) | (target != target), full_like(x, math.nan), result)
    return convert(result, result.aval.dtype, x.aval.weak_type and target.aval.weak_type)
