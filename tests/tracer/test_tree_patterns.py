"""Calls with containers: the quick way of taking them apart finds the same leaves, and notices each other structure."""

from __future__ import annotations

import threading
from collections import OrderedDict, namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hloom.tracer.trees import patterns as tree_patterns
from hloom.tracer.trees.patterns import Pattern, pattern_of

import hloom
import hloom.numpy as jnp
from hloom import tree

Pair = namedtuple("Pair", "a b")


@tree.register_dataclass
@dataclass
class Layer:
    w: Any
    b: Any
    name: Any = tree.static(default="layer")  # noqa: RUF009


@tree.register_dataclass
@dataclass
class Nothing:
    pass


A, B = np.arange(3, dtype=np.float32), np.ones(2, np.float32)

KNOWN = [
    ([A, B],),
    ({"b": A, "a": B},),
    ({"layer": {"w": A, "b": B}, "x": [A, (B,)]}, [], None, {}),
    (A, [None, {1: A, 0: B}], ()),
    (Pair(A, B),),
    ([A, Pair(B, None)],),
    (Layer(A, {"x": B}), Nothing()),
    (Layer(A, B, 2), Layer(B, None, None)),
    (Layer(A, B, 3), Layer(B, None, None)),
    ({"it's": A, 'say "no"': B, "\n": A},),
]
NOT_KNOWN = [
    (OrderedDict(a=A),), ({"a": A, 1: B},), ([OrderedDict()],), (Pair(A, OrderedDict(b=A)),), (Layer(A, B, (1, 2)),),
]  # fmt: skip


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    tree_patterns._found.clear()
    yield
    tree_patterns._found.clear()


def known(root: Any) -> Pattern | None:
    """The pattern after the structure has come often."""
    treedef = tree.structure(root)
    for _ in range(tree_patterns._AFTER + 1):
        assert pattern_of(treedef, root) is None
    return pattern_of(treedef, root)


@pytest.mark.parametrize("root", KNOWN)
def test_a_pattern_has_the_leaves_in_order_and_refuses_other_structures(root: Any) -> None:
    pattern = known(root)
    assert pattern is not None and pattern_of(tree.structure(root), root) is pattern
    assert [*map(id, pattern.leaves(root) or ())] == [*map(id, tree.leaves(root))]
    for other in KNOWN + NOT_KNOWN:
        found = pattern.leaves(other)  # what stands at the place of a leaf is the caller's matter
        if found is not None and all(type(leaf) is np.ndarray for leaf in found):
            assert tree.structure(other) == tree.structure(root)


@pytest.mark.parametrize("root", NOT_KNOWN)
def test_other_containers_have_no_function(root: Any) -> None:
    pattern = known(root)
    assert pattern is not None and pattern.leaves(root) is None
    assert pattern_of(tree.structure(root), root) is pattern


def test_large_and_deep_trees_have_no_function() -> None:
    deep: Any = A
    for _ in range(300):
        deep = [deep]
    for root, has_function in (((deep,), False), (([A] * 3000,), False), (([A] * 500,), True)):
        pattern = known(root)
        assert pattern is not None and (pattern.leaves(root) is not None) == has_function
    assert hloom.jit(lambda x: x)([[[A]]])[0][0][0].shape == (3,)


def test_the_order_in_which_a_dictionary_was_filled_does_not_matter() -> None:
    pattern = known(({"a": A, "b": B},))
    assert pattern is not None
    found = pattern.leaves(({"b": B, "a": A},))
    assert found is not None and found[0] is A and found[1] is B


def described(x: Any) -> Any:
    """A result that depends on the structure, though the leaves may be the same."""
    leaves, treedef = tree.flatten(x)
    return sum(leaf.sum() for leaf in leaves) + len(str(treedef)), x


@pytest.mark.parametrize("between", [1, 30])
def test_calls_of_changing_structures_give_what_python_gives(between: int) -> None:
    """Each structure often enough to have a pattern, then the next: in turns, and in long runs."""
    x = jnp.asarray(A)
    structures: list[Any] = [
        {"a": x, "b": x}, [x, x], (x, x), {"a": x, "c": x}, {"a": [x], "b": x}, {"a": OrderedDict(z=x), "b": x},
        Pair(x, x), {"a": x, "b": None}, {"a": x, "b": 2.0}, {"a": A, "b": np.float32(2)}, {"a": None, "b": x},
        [x, [x]], Layer(x, x), Layer(x, x, "other"), Layer(x, x, (1,)), Layer(x, [x]),
    ]  # fmt: skip
    f = hloom.jit(described)
    for turn in range(40 if between == 1 else 3):
        for given in structures:
            for _ in range(between if turn else 1):
                value, back = f(given)
                assert tree.structure(back) == tree.structure(given)
            expected = described(tree.map(jnp.asarray, given))[0]
            np.testing.assert_allclose(value, expected, rtol=1e-6)
    assert isinstance(f._pattern, Pattern) or between == 1


def test_with_keywords_static_arguments_and_errors() -> None:
    f = hloom.jit(lambda n, x, *, y: x["a"] * n + y[0], static_argnums=0)
    for k in range(30):
        np.testing.assert_array_equal(f(k % 3, {"a": A}, y=[A, B]), A * (k % 3) + A)
    for wrong in ({"a": "text"}, {"a": object()}):
        with pytest.raises(TypeError, match="a"):
            f(1, wrong, y=[A, B])
    np.testing.assert_array_equal(f(1, {"a": A}, y=[A, B]), A + A)
    hloom.clear_caches()
    np.testing.assert_array_equal(f(1, {"a": A}, y=[A, B]), A + A)


def test_in_several_threads() -> None:
    f = hloom.jit(lambda x: x["a"] + x["b"][0])
    wrong: list[Any] = []

    def work(number: int) -> None:
        given = {"a": A + number, "b": (A,)} if number % 2 else {"b": [A], "a": A + number}
        for _ in range(200):
            found = f(given)
            if not np.array_equal(found, A + number + A):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
