"""The errors when code needs the numbers of traced values, or when a traced value leaks: the class, the user's line,
and what to do."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom.errors import (
    ConcretizationTypeError,
    HloError,
    NonConcreteBooleanIndexError,
    NonConcreteSliceError,
    OperandError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)
from support.evaluator_fixture import on_the_evaluator  # noqa: F401  # a fixture

X = np.arange(3, dtype=np.float32)
SOURCE = Path(__file__).read_text().splitlines()


def marked_line(start: int) -> int:
    """The first line from `start` on that is marked."""
    return next(k for k in range(start, len(SOURCE)) if SOURCE[k - 1].endswith("# LINE"))


def python_if(x: Any) -> Any:
    if x.sum() > 0:  # LINE
        return x
    return -x


def python_while(x: Any) -> Any:
    while x[0] < 3:  # LINE
        x = x + 1
    return x


def python_and(x: Any) -> Any:
    return x[0] > 0 and x[1] > 0  # LINE


def python_max(x: Any) -> Any:
    return max(x[0], x[1])  # LINE


def to_float(x: Any) -> Any:
    return float(x[0])  # LINE


def to_int(x: Any) -> Any:
    return int(x[0])  # LINE


def math_function(x: Any) -> Any:
    return math.sin(x[0])  # LINE


def to_item(x: Any) -> Any:
    return x[0].item()  # LINE


def to_list(x: Any) -> Any:
    return x.tolist()  # LINE


def numpy_function(x: Any) -> Any:
    return np.sin(x)  # LINE


def numpy_array(x: Any) -> Any:
    return np.asarray(x)  # LINE


def as_index(x: Any) -> Any:
    return [1, 2, 3][x[0].astype(int)]  # LINE


def as_range(x: Any) -> Any:
    return list(range(x[0].astype(int)))  # LINE


def as_size(x: Any) -> Any:
    return jnp.zeros(x[0].astype(int))  # LINE


def as_slice_bound(x: Any) -> Any:
    return x[: x[0].astype(int)]  # LINE


def formatted(x: Any) -> Any:
    return f"{x[0]:.2f}"  # LINE


def boolean_mask(x: Any) -> Any:
    return x[x > 0]  # LINE


CASES: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (python_if, TracerBoolConversionError, "hloom.lax.cond"),
    (python_while, TracerBoolConversionError, "while_loop"),
    (python_and, TracerBoolConversionError, "instead of and"),
    (python_max, TracerBoolConversionError, "bool[]"),
    (to_float, ConcretizationTypeError, "float"),
    (to_int, ConcretizationTypeError, "static"),
    (math_function, ConcretizationTypeError, "hloom.numpy"),
    (to_item, ConcretizationTypeError, "item"),
    (to_list, ConcretizationTypeError, "tolist"),
    (numpy_function, TracerArrayConversionError, "same name in hloom.numpy"),
    (numpy_array, TracerArrayConversionError, "float32[3]"),
    (as_index, TracerIntegerConversionError, "dynamic_slice"),
    (as_range, TracerIntegerConversionError, "fori_loop"),
    (as_size, TracerIntegerConversionError, "static"),
    (as_slice_bound, NonConcreteSliceError, "dynamic_slice"),
    (formatted, ConcretizationTypeError, "formatted"),
    (boolean_mask, NonConcreteBooleanIndexError, "where"),
]


@pytest.mark.parametrize(("function", "error", "advice"), CASES, ids=[f.__name__ for f, _, _ in CASES])
def test_numbers_asked_of_traced_values(function: Callable[[Any], Any], error: type[Exception], advice: str) -> None:
    start = function.__code__.co_firstlineno
    line = marked_line(start)
    with pytest.raises(error) as caught:
        hloom.jit(function)(X)
    message = str(caught.value)
    assert type(caught.value) is error
    assert isinstance(caught.value, TypeError)
    assert f"{__file__}:{line} (in {function.__name__})" in message
    assert advice in message
    if error is not NonConcreteBooleanIndexError:
        assert f"while tracing {function.__name__} at {__file__}:{start}" in message


def test_concrete_values_under_grad_are_concrete() -> None:
    def f(x: Any) -> Any:
        return x**2 if x > 0 else -x

    assert float(hloom.grad(f)(3.0)) == 6
    assert float(hloom.grad(f)(-3.0)) == -1
    with pytest.raises(TracerBoolConversionError):
        hloom.jit(hloom.grad(f))(3.0)


# ---- leaks

stored: list[Any] = []


def keep(x: Any) -> Any:
    stored.append(x * 2)
    return x


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t + 1,
        lambda t: jnp.sum(t),
        lambda t: t[0],
        lambda t: hloom.jit(lambda v: v)(t),
        lambda t: hloom.jit(lambda v: v + t)(X),
        lambda t: hloom.jit(lambda v, w: v)(t, X),
        lambda t: hloom.grad(lambda v: (v * t).sum())(X),
        lambda t: hloom.lax.fori_loop(0, 3, lambda i, v: v + t, X),
        lambda t: hloom.lax.cond(True, lambda: t, lambda: t),
    ],
    ids=[str(k) for k in range(9)],
)
def test_leaked_tracers(use: Callable[[Any], Any]) -> None:
    stored.clear()
    hloom.clear_caches()  # else `keep` is not traced again
    hloom.jit(keep)(X)
    line = keep.__code__.co_firstlineno + 1
    with pytest.raises(UnexpectedTracerError) as caught:
        use(stored[0])
    message = str(caught.value)
    assert f"was created on line {__file__}:{line}" in message
    assert f"used at {__file__}" in message
    assert "keep at" in message
    assert "Return it" in message


def test_a_tracer_of_an_earlier_call_within_a_later_one() -> None:
    stored.clear()
    f = hloom.jit(lambda x: (stored.append(x), x + stored[0])[1])
    f(X)
    with pytest.raises(UnexpectedTracerError):
        f(np.ones(3, np.int32))


def test_tracers_cannot_be_pickled_or_hashed() -> None:
    def f(x: Any) -> Any:
        with pytest.raises(ConcretizationTypeError, match="pickled"):
            pickle.dumps(x)
        assert copy.copy(x) is x and copy.deepcopy(x) is x
        with pytest.raises(TypeError, match="unhashable"):
            hash(x)
        assert repr(x) == "JitTracer(float32[3])"
        return x

    hloom.jit(f)(X)


# ---- shapes and dtypes: the rule, the types, the line


def wrong_matmul(x: Any) -> Any:
    return x @ jnp.ones((4, 2))  # LINE


def wrong_broadcast(x: Any) -> Any:
    return x + jnp.ones(4)  # LINE


def wrong_reshape(x: Any) -> Any:
    return x.reshape(2, 2)  # LINE


def wrong_dtype(x: Any) -> Any:
    return jnp.bitwise_and(x, 1)  # LINE


def wrong_einsum(x: Any) -> Any:
    return jnp.einsum("ij,j", x, x)  # LINE


def wrong_concatenate(x: Any) -> Any:
    return jnp.concatenate([x, jnp.ones((2, 2))])  # LINE


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (wrong_matmul, ["float32 (3,)", "float32 (4, 2)"]),
        (wrong_broadcast, ["(3,)", "(4,)"]),
        (wrong_reshape, ["3 elements", "(2, 2)"]),
        (wrong_dtype, ["float32 (3,)", "booleans and integers"]),
        (wrong_einsum, ["2 labels", "each dimension of float32[3]"]),
        (wrong_concatenate, ["float32 (3,)", "float32 (2, 2)"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.parametrize("compiled", [False, True])
def test_wrong_shapes_and_dtypes(function: Callable[[Any], Any], words: list[str], compiled: bool) -> None:
    start = function.__code__.co_firstlineno
    line = marked_line(start)
    with pytest.raises(OperandError) as caught:
        (hloom.jit(function) if compiled else function)(jnp.asarray(X))
    for word in [*words, f"{__file__}:{line} (in {function.__name__})"]:
        assert word in str(caught.value)
    assert caught.value.label
    assert isinstance(caught.value, HloError)


def test_unknown_settings() -> None:
    with pytest.raises(AttributeError, match=r"did you mean.*jax_enable_x64"):
        hloom.config.update("jax_enable_x32", 1)
    with pytest.raises(TypeError, match="bool"):
        hloom.config.update("jax_enable_x64", "yes")
    with pytest.raises(ValueError, match="threefry2x32"):
        hloom.config.update("jax_default_prng_impl", "mt19937")
    assert "jax_enable_x64=False" in repr(hloom.config)


def test_unknown_backend() -> None:
    hloom.config.update("hloom_backend", "none")
    with pytest.raises(hloom.errors.UnsupportedError, match="evaluator"):
        hloom.jit(lambda x: x)(X)


def test_unknown_names_of_the_package() -> None:
    with pytest.raises(AttributeError, match="no attribute 'vmapp'"):
        _ = hloom.vmapp
