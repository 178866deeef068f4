"""Objects that stand for an array: `__jax_array__` says which; functions and operators take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp


class Held:
    """Holds an array. It cannot be hashed, and NumPy's protocol would fail for a traced array."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: Any) -> None:
        self.array = array

    def __jax_array__(self) -> Any:
        return self.array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.array)


X = np.array([0.5, -1.25, 2.0], np.float32)
Y = np.array([3.0, 1.0, -2.0], np.float32)
USES: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "radd": lambda x, y: y + x,
    "multiply": lambda x, y: x * y,
    "rsub": lambda x, y: y - x,
    "matmul": lambda x, y: x @ y,
    "less": lambda x, y: x < y,
    "equal": lambda x, y: x == y,
    "power": lambda x, y: abs(x) ** y,
    "jnp.add": lambda x, y: jnp.add(x, y),
    "jnp.dot": lambda x, y: jnp.dot(x, y),
    "jnp.where": lambda x, y: jnp.where(x > 0, x, y),
    "jnp.concatenate": lambda x, y: jnp.concatenate([x, y]),
    "jnp.asarray": lambda x, y: jnp.asarray(y, jnp.float16) + x,
    "jnp.array": lambda x, y: jnp.array([y, y]) + jnp.array(y),
    "jnp.shape": lambda x, y: jnp.ones(jnp.shape(y)),
    "jnp.clip": lambda x, y: jnp.clip(y, 0, 1),
    "norm": lambda x, y: jnp.linalg.norm(y),
}


@pytest.mark.parametrize("name", USES)
def test_an_object_that_stands_for_an_array(name: str) -> None:
    use = USES[name]
    wanted = use(jnp.asarray(X), jnp.asarray(Y))
    for found in (use(jnp.asarray(X), Held(jnp.asarray(Y))), hloom.jit(lambda x, y: use(x, Held(y)))(X, Y)):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_other_objects_are_no_operands() -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        jnp.asarray(X) + object()
    assert (jnp.asarray(X) == "x") is False


def test_the_type_of_a_reference_is_the_references() -> None:
    ref = hloom.new_ref(jnp.asarray(X))
    assert hloom.typeof(ref) is ref.aval


def test_a_linear_function_captures_as_many_values_whatever_is_known_of_them() -> None:
    """As a jaxpr shows it: libraries compare the numbers of constants of two traces of one function."""

    def constants(factor: Any) -> int:
        count = 0

        def outer(x: Any, y: Any) -> Any:
            nonlocal count
            _, linear = hloom.linearize(lambda v: v * factor(y) * 2.0, x)
            count = len(hloom.make_jaxpr(linear)(x).consts)
            return linear(x)

        np.testing.assert_allclose(hloom.jit(outer)(X, Y), 2 * X * np.asarray(factor(Y)), rtol=1e-6)
        return count

    assert constants(lambda y: jnp.zeros(3)) == constants(lambda y: y) == 2


def test_segments_of_one_number_for_all_rows() -> None:
    ids = jnp.array([0, 2, 0])
    np.testing.assert_array_equal(hloom.ops.segment_sum(2.0, ids, 4), [4, 0, 2, 0])
    np.testing.assert_array_equal(hloom.jit(lambda x: hloom.ops.segment_max(x, ids, 3))(1.5), [1.5, -np.inf, 1.5])
