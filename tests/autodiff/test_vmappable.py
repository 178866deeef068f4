"""Classes with rules of their own for vmap, as libraries register them with jax.interpreters.batching."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom.errors import UnsupportedError
from hloom.interpreters import batching

pytestmark = pytest.mark.usefixtures("evaluator")


class Named:
    """An array with names for its dimensions: a pytree, too."""

    def __init__(self, names: tuple[str, ...], data: Any) -> None:
        self.names, self.data = names, data


hloom.tree.register_pytree_node(Named, lambda x: ((x.data,), x.names), lambda names, data: Named(names, data[0]))


class Dimension:
    """An entry of in_axes."""

    def __init__(self, name: str, axis: int) -> None:
        self.name, self.axis = name, axis


def _to_element(cont: Callable[..., Any], index: Callable[[], Any], x: Named, spec: Dimension) -> Named:
    names = list(x.names)
    assert names.pop(spec.axis) == spec.name
    return Named(tuple(names), cont(x.data, spec.axis))


def _from_element(cont: Callable[..., Any], size: int, x: Named, spec: Dimension) -> Named:
    names = [*x.names]
    names.insert(spec.axis, spec.name)
    return Named(tuple(names), cont(size, x.data, spec.axis))


@pytest.fixture
def registered() -> Iterator[Callable[..., None]]:
    kinds: list[type] = []

    def register(kind: type, *rules: Any, spec: type = int) -> None:
        batching.register_vmappable(kind, spec, int, *rules, None)
        kinds.append(kind)

    yield register
    for kind in kinds:
        batching.unregister_vmappable(kind)


@pytest.mark.parametrize("wrap", [lambda f: f, hloom.jit], ids=["plain", "jit"])
def test_specs_of_a_class_of_their_own(registered: Callable[..., None], wrap: Callable[..., Any]) -> None:
    registered(Named, _to_element, _from_element, spec=Dimension)
    square = wrap(lambda x: Named(x.names, x.data * x.data))
    mapped = hloom.vmap(square, in_axes=Dimension("i", 0), out_axes=Dimension("i", 1), axis_size=3)
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    found = mapped(Named(("i", "j"), jnp.array(x)))
    assert found.names == ("j", "i")
    np.testing.assert_array_equal(found.data, x.T**2)


class Box:
    """No pytree."""

    def __init__(self, data: Any, label: str = "") -> None:
        self.data, self.label = data, label


def test_rules_may_compute_and_ask_for_the_index(registered: Callable[..., None]) -> None:
    registered(
        Box,
        lambda cont, index, box, axis: Box((cont(box.data * 10 + 10, axis), index()), box.label),
        lambda cont, size, box, axis: Box(cont(size, sum(box.data) * 2, axis), f"{box.label} {size}"),
    )
    found = hloom.jit(lambda d: hloom.vmap(lambda b: b, axis_size=3)(Box(d, "a")).data)(jnp.arange(3.0))
    np.testing.assert_array_equal(found, [20, 42, 64])
    box, total = hloom.vmap(lambda b, x: (b, sum(b.data) + x), in_axes=(0, -1), out_axes=(0, 0))(
        Box(jnp.arange(3.0), "a"), jnp.ones((2, 3))
    )
    assert box.label == "a 3"
    np.testing.assert_array_equal(total, np.array([10, 21, 32])[:, None] + np.ones((3, 2)))
    squares = hloom.vmap(lambda b: b.data[0] ** 2, axis_size=2)
    assert hloom.grad(lambda d: squares(Box(d)).sum())(jnp.ones(2)).tolist() == [400, 400]


def test_parts_may_be_such_objects_and_axes_prefixes(registered: Callable[..., None]) -> None:
    registered(
        Box,
        lambda cont, index, box, axis: Box(cont(box.data, axis)),
        lambda cont, size, box, axis: Box(cont(size, box.data, axis)),
    )
    tree = {"a": Box(Box(jnp.arange(6).reshape(2, 3))), "b": jnp.arange(4).reshape(2, 2)}
    found = hloom.vmap(lambda t: {"a": t["a"], "b": t["b"].sum() + t["a"].data.data}, in_axes=({"a": 1, "b": None},),
                       axis_size=3)(tree)  # fmt: skip
    np.testing.assert_array_equal(found["a"].data.data, np.arange(6).reshape(2, 3).T)
    np.testing.assert_array_equal(found["b"], 6 + np.arange(6).reshape(2, 3).T)


def test_the_shape_says_the_number_of_elements(registered: Callable[..., None]) -> None:
    class Sized(Box):
        shape = property(lambda self: self.data.shape)

    rules = (
        lambda cont, index, box, axis: cont(box.data, axis),
        lambda cont, size, box, axis: Sized(cont(size, box.data, axis)),
    )
    registered(Sized, *rules)
    registered(Box, *rules)
    assert hloom.vmap(lambda x: x + 1)(Sized(jnp.arange(3))).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match=r"inconsistent sizes .*\n.*axis 0 of argument x of type Sized\[3\]"):
        hloom.vmap(lambda x, y: x + y)(Sized(jnp.arange(3)), jnp.arange(2))
    with pytest.raises(ValueError, match="at least one non-None value in in_axes"):
        hloom.vmap(lambda x: x + 1)(Box(jnp.arange(3)))


def test_other_classes_are_refused_as_before(registered: Callable[..., None]) -> None:
    with pytest.raises(TypeError, match="not a valid JAX type"):
        hloom.vmap(lambda x: x)(Box(jnp.ones(2)))
    with pytest.raises(TypeError, match="in_axes must be an int"):
        hloom.vmap(lambda x: x, in_axes=Box(0))
    with pytest.raises(UnsupportedError, match="the number of elements is an int"):
        batching.register_vmappable(Box, int, float, None, None, None)  # type: ignore[arg-type]
    assert not batching.is_vmappable(Box(1))
    registered(Box, None, None)
    assert batching.is_vmappable(Box(1))
    batching.unregister_vmappable(Box)
    assert not batching.is_vmappable(Box(1))
