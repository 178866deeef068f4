"""Numbers of Python beside arrays, outside of jit: each number becomes a scalar once, and results stay the same."""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any

import numpy as np
import pytest
from hloom.tracer.errors import TypePromotionError
from hloom.tracer.layers import LAYERS

import hloom
import hloom.numpy as jnp
from hloom.numpy.promotion import scalar_beside

OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.lt,
    operator.ge, operator.eq, operator.and_, jnp.maximum, jnp.arctan2, jnp.logaddexp, jnp.copysign,
]  # fmt: skip
NUMBERS: list[Any] = [0, 1, -3, 300, 2**31 - 1, 0.0, -0.0, 2.5, 1e39, math.inf, math.nan, True, 1j]
DTYPES = ["bool", "int8", "uint8", "int32", "float16", "bfloat16", "float32", "complex64"]


def outcome(function: Any, *arguments: Any) -> Any:
    try:
        with np.errstate(all="ignore"):
            result = function(*arguments)
    except (TypeError, OverflowError, ValueError) as error:
        return type(error), str(error).partition("\n")[0]
    return str(result.dtype), result.weak_type, result.shape, np.asarray(result).tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", OPERATORS, ids=lambda f: f.__name__)
def test_a_number_is_promoted_as_a_scalar_is(function: Any, dtype: str) -> None:
    """With a number twice, so that the second call has the scalar of the first one, and with the same scalar array."""
    x = jnp.asarray([0, 1, 2, 3]).astype(dtype)
    for number in NUMBERS:
        try:
            scalar = jnp.asarray(number)
        except OverflowError:
            continue
        for swap in (False, True):
            given, other = ((number, x), (scalar, x)) if swap else ((x, number), (x, scalar))
            first = outcome(function, *given)
            assert first == outcome(function, *given)
            if abs(number) <= 1e38 or not math.isfinite(abs(number)):  # larger ones are rounded once
                assert first == outcome(function, *other), (number, swap)


def test_zeros_of_both_signs() -> None:
    x = jnp.asarray([1.0])
    for zero in (0.0, -0.0, 0.0):
        assert math.copysign(1, (x / zero)[0]) == math.copysign(1, zero)
        assert math.copysign(1, jnp.copysign(x, zero)[0]) == math.copysign(1, zero)


def test_a_number_becomes_a_scalar_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LAYERS, "top", None)  # a layer that an earlier test turned on stays on
    aval = jnp.ones(3).aval
    assert scalar_beside(aval, 2.5) is scalar_beside(aval, 2.5)
    assert scalar_beside(aval, 0.0) is not scalar_beside(aval, -0.0)
    assert scalar_beside(aval, 1) is not scalar_beside(jnp.ones(3, "int32").aval, 1)
    assert scalar_beside(jnp.ones(3, "int32").aval, 1.5) is None  # both promote to float32
    assert scalar_beside(aval, True) is None and scalar_beside(aval, np.float32(2)) is None


def test_numbers_of_traced_programs_are_their_own() -> None:
    def f(x: Any) -> Any:
        assert scalar_beside(x.aval, 2.5) is None
        return (x + 2.5) * 2.5

    jnp.ones(3) + 2.5
    constants = [i for i in hloom.make_hlo(f)(jnp.ones(3)).entry.instructions if i.opcode.value == "constant"]
    assert len(constants) == 2


def test_a_number_that_does_not_fit() -> None:
    for _ in range(2):
        with pytest.raises(OverflowError):
            jnp.ones(3, "int32") + 2**40


def test_another_mode_of_promotion() -> None:
    x = jnp.ones(3, "int32")
    assert (x + 1.5).dtype == "float32"
    with hloom.numpy_dtype_promotion("strict"), pytest.raises(TypePromotionError):
        x + 1.5
    with hloom.enable_x64(True):
        weak = [hloom.lax.full_like(jnp.asarray(1.0), 2.0) + number for number in (1, 1.0)]
        assert all(w.dtype == "float64" for w in weak)
    for number, dtype in itertools.product((1, 2.0), ("float16", "bfloat16")):
        assert (jnp.ones(2, dtype) + number).dtype == dtype
