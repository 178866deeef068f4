"""Arguments and results of control flow functions: outside of jit, under jit, as plain Python, and in JAX."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax

Program = Callable[[Any, Any, Any], Any]
"""program(package, its lax, its numpy) -> a pytree."""


class Pair(NamedTuple):
    first: Any
    second: Any


def clipped(low: int, high: int) -> Program:
    return lambda j, lax, np_: lax.switch(low, [lambda x: x, lambda x: x + high], 3.0)


VALUES: dict[str, tuple[Program, Any]] = {
    # cond: every form of predicate and of operands
    "cond of a NumPy bool": (lambda j, lax, xp: lax.cond(np.bool_(False), lambda: 1.0, lambda: 2.0), 2.0),
    "cond of an array": (lambda j, lax, xp: lax.cond(np.array(True), lambda: 1.0, lambda: 2.0), 1.0),
    "cond of a number": (lambda j, lax, xp: lax.cond(0.0, lambda: 1.0, lambda: 2.0), 2.0),
    "cond with an operand": (lambda j, lax, xp: lax.cond(True, lambda x: x + 1, lambda x: x, 3.0), 4.0),
    "cond with the keyword": (lambda j, lax, xp: lax.cond(True, lambda x: x + 1, lambda x: x, operand=3.0), 4.0),
    "cond with operand=None": (lambda j, lax, xp: lax.cond(True, lambda _: 1.0, lambda _: 2.0, operand=None), 1.0),
    "cond with None": (lambda j, lax, xp: lax.cond(False, lambda _: 1.0, lambda _: 2.0, None), 2.0),
    "cond with an operand each": (
        lambda j, lax, xp: lax.cond(False, 3.0, lambda x: x + 1, xp.float32(4.0), lambda x: x - 1),
        3.0,
    ),
    "cond of trees": (
        lambda j, lax, xp: lax.cond(
            True,
            lambda d: Pair(d["a"], None),
            lambda d: Pair(d["b"], None),
            {"a": 1.0, "b": 2.0},
        ),
        Pair(1.0, None),
    ),
    "cond that returns nothing": (lambda j, lax, xp: lax.cond(True, lambda x: None, lambda x: None, 3.0), None),
    "cond of many operations": (
        lambda j, lax, xp: lax.cond(
            True, lambda x: sum([x * k + k for k in range(9)]) / 4, lambda x: x, xp.arange(3.0)
        ),
        [9.0, 18.0, 27.0],
    ),
    # switch
    "switch": (clipped(1, 1), 4.0),
    "switch above": (clipped(7, 1), 4.0),
    "switch below": (clipped(-7, 1), 3.0),
    "switch of a large index": (
        lambda j, lax, xp: lax.switch(np.uint32(2**32 - 1), [lambda x: x, lambda x: x + 1], 3.0),
        3.0,
    ),
    "switch of uint8": (lambda j, lax, xp: lax.switch(np.uint8(1), (lambda x: x, lambda x: x + 1), operand=3.0), 4.0),
    "switch of one": (lambda j, lax, xp: lax.switch(5, [lambda x: x * 2], 3.0), 6.0),
    # while_loop
    "while of trees": (
        lambda j, lax, xp: lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, None, {"a": c[2]["a"] * 2}), (0, None, {"a": 1.0})
        ),
        (3, None, {"a": 8.0}),
    ),
    "while that starts weakly typed": (lambda j, lax, xp: lax.while_loop(lambda c: c < 3, lambda c: c + 1.5, 0), 3.0),
    "while of nothing": (lambda j, lax, xp: lax.while_loop(lambda c: False, lambda c: None, None), None),
    # scan
    "scan": (
        lambda j, lax, xp: lax.scan(lambda c, x: (c + x, c * x), 0.0, xp.arange(4.0)),
        (6.0, [0.0, 0.0, 2.0, 9.0]),
    ),
    "scan in reverse": (
        lambda j, lax, xp: lax.scan(lambda c, x: (c + x, c), 0.0, xp.arange(3.0), reverse=True),
        (3.0, [3.0, 2.0, 0.0]),
    ),
    "scan without arrays": (lambda j, lax, xp: lax.scan(lambda c, _: (c * 2, c), 1, None, 3), (8, [1, 2, 4])),
    "scan of an exact length": (
        lambda j, lax, xp: lax.scan(lambda c, _: (c * 2, c), 1, None, length=np.int32(3), unroll=9),
        (8, [1, 2, 4]),
    ),
    "scan unrolled": (
        lambda j, lax, xp: lax.scan(lambda c, _: (c * 2, c), 1, None, length=3, unroll=True, _split_transpose=True),
        (8, [1, 2, 4]),
    ),
    "scan with a list for a pair": (
        lambda j, lax, xp: lax.scan(lambda c, x: [c + x, x], xp.float32(0), xp.arange(3.0)),
        [3.0, [0.0, 1.0, 2.0]],
    ),
    "scan of trees": (
        lambda j, lax, xp: lax.scan(
            lambda c, x: (Pair(c.second, c.first), {"y": x["x"] + 1, "n": None}),
            Pair(xp.float32(1), xp.float32(2)),
            {"x": xp.arange(3.0), "unused": np.ones((3, 2), np.float32)},
        ),
        (Pair(2.0, 1.0), {"y": [1.0, 2.0, 3.0], "n": None}),
    ),
    "scan over keys": (
        lambda j, lax, xp: (
            j.random.key_data(lax.scan(lambda c, k: (c, k), None, j.random.split(j.random.key(0), 2))[1]).shape
        ),
        (2, 2),
    ),
    "scan that carries a key": (
        lambda j, lax, xp: (
            j.random.key_data(lax.scan(lambda k, _: (j.random.split(k)[0], None), j.random.key(0), None, 2)[0]).shape
        ),
        (2,),
    ),
    # fori_loop, map
    "fori_loop": (lambda j, lax, xp: lax.fori_loop(0, 5, lambda i, c: c + i, 0.0), 10.0),
    "fori_loop from below": (lambda j, lax, xp: lax.fori_loop(-3, 2, lambda i, c: c + i, 0.0, unroll=2), -5.0),
    "fori_loop of no step": (lambda j, lax, xp: lax.fori_loop(5, 0, lambda i, c: c + i, 0.0), 0.0),
    "map of trees": (
        lambda j, lax, xp: lax.map(lambda d: (d["a"] * 2, None), {"a": xp.arange(3.0)}),
        ([0.0, 2.0, 4.0], None),
    ),
    # select
    "select of a scalar": (lambda j, lax, xp: lax.select(True, xp.ones(2), xp.zeros(2)), [1.0, 1.0]),
    "select of integers": (
        lambda j, lax, xp: lax.select(xp.array([1, 0, -1, 5]), xp.ones(4), xp.zeros(4)),
        [1, 0, 0, 1],
    ),
    "select_n": (
        lambda j, lax, xp: lax.select_n(xp.array([0, 1, 2, -1, 7]), *[xp.full(5, v) for v in (1.0, 2.0, 3.0)]),
        [1, 2, 3, 1, 3],
    ),
    "select_n of a scalar": (
        lambda j, lax, xp: lax.select_n(xp.int32(2), *[xp.full(2, v) for v in (1.0, 2.0, 3.0)]),
        [3.0, 3.0],
    ),
    # platforms
    "platform_dependent": (lambda j, lax, xp: lax.platform_dependent(3.0, cpu=lambda x: x + 1, tpu=lambda x: x), 4.0),
    "platform_dependent by default": (
        lambda j, lax, xp: lax.platform_dependent(3.0, cuda=lambda x: x + 1, default=lambda x: x - 1),
        2.0,
    ),
}
NOT_IN_PYTHON = {"scan over keys", "scan that carries a key", "scan with a list for a pair"}
"""Keys are not stacked, and the loop in Python returns a tuple."""


def flat(tree: Any) -> list[Any]:
    if tree is None:
        return [None]
    if isinstance(tree, dict):
        return [x for key in sorted(tree) for x in flat(tree[key])]
    if isinstance(tree, (tuple, list)):
        return [type(tree).__name__, *[x for part in tree for x in flat(part)]]
    array = np.asarray(tree)
    return array.tolist() if array.ndim else [array.item()]


def expected_leaves(tree: Any) -> list[Any]:
    """As `flat`, where a list of numbers stands for an array."""
    if isinstance(tree, list) and all(isinstance(x, (int, float)) for x in tree):
        return tree
    if isinstance(tree, dict):
        return [x for key in sorted(tree) for x in expected_leaves(tree[key])]
    if isinstance(tree, (tuple, list)):
        return [type(tree).__name__, *[x for part in tree for x in expected_leaves(part)]]
    return [tree]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    program, expected = VALUES[name]
    wanted = expected_leaves(expected)
    assert flat(program(hloom, lax, jnp)) == wanted
    assert flat(program(hloom, lax, jnp)) == wanted  # the second call runs what the first has made
    assert flat(hloom.jit(lambda: program(hloom, lax, jnp))()) == wanted
    if name not in NOT_IN_PYTHON:
        with hloom.disable_jit():
            assert flat(program(hloom, lax, jnp)) == wanted


@pytest.mark.parametrize("name", VALUES)
def test_values_of_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    program, expected = VALUES[name]
    found = program(jax, jax.lax, importlib.import_module("jax.numpy"))
    assert flat(found) == expected_leaves(expected)


# ---- types


def weak(value: Any) -> tuple[str, bool]:
    return str(value.dtype), bool(value.weak_type)


TYPES: dict[str, tuple[Program, list[tuple[str, bool]]]] = {
    # A carry that only becomes strong stays as it is inside, and the result has the type that the body returns.
    "scan": (
        lambda j, lax, xp: lax.scan(lambda c, x: (c + x, c), 0, np.arange(3)),
        [("int32", False), ("int32", True)],
    ),
    "while": (
        lambda j, lax, xp: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + np.float32(1), c[1] * 2), (0.0, 1.0)),
        [("float32", False), ("float32", True)],
    ),
    # A state with a dtype that changes takes the dtype of the body's result.
    "promoted": (
        lambda j, lax, xp: lax.scan(lambda c, x: (c + x, c), 0, np.arange(3, dtype=np.float32)),
        [("float32", False), ("float32", False)],
    ),
}


@pytest.mark.parametrize("name", TYPES)
def test_weak_types(name: str) -> None:
    program, expected = TYPES[name]
    for package in ["hloom"] + ["jax"] * (importlib.util.find_spec("jax") is not None):
        modules = [importlib.import_module(package + part) for part in ("", ".lax", ".numpy")]
        assert [weak(x) for x in program(*modules)] == expected, package


# ---- what is traced, and how often


def nested(depth: int, calls: list[int]) -> Callable[[Any, Any], Any]:
    def body(c: Any, x: Any) -> Any:
        calls[depth] += 1
        if depth == 0:
            return c + x, None
        return lax.scan(nested(depth - 1, calls), 0.0, x[None])[0] + c, None

    return body


@pytest.mark.parametrize("depth", [3, 6])
def test_a_body_is_traced_once_however_deep(depth: int) -> None:
    """Weakly typed carries that become strong do not make every level trace the next one twice."""
    calls = [0] * (depth + 1)
    total, _ = hloom.jit(lambda x: lax.scan(nested(depth, calls), 0.0, x))(jnp.ones(3))
    assert float(total) == 3.0
    assert calls == [1] * (depth + 1)


@pytest.mark.parametrize("dtype", ["int2", "uint2", "int4", "uint4", "int8", "uint8", "int16", "uint16", "uint32"])
def test_integers_of_any_width_choose(dtype: str) -> None:
    x = jnp.arange(3.0)
    which, twice = jnp.array([0, 1, 1], dtype), jnp.array([0, 1, 2], dtype if dtype != "int2" else "int4")
    for wrap in (lambda f: f, hloom.jit, lambda f: hloom.vmap(f)):
        np.testing.assert_array_equal(wrap(lax.select_n)(which, x, x + 10), [0, 11, 12])
        np.testing.assert_array_equal(wrap(lax.select)(which, x + 10, x), [0, 11, 12])
        many = [x + 10 * k for k in range(9)]  # more than small integers count
        np.testing.assert_array_equal(wrap(lax.select_n)(twice, *many), [0, 11, 22])
        if not dtype.startswith("u"):
            np.testing.assert_array_equal(wrap(lax.select_n)(-which, x, x + 10), x)
    np.testing.assert_array_equal(hloom.grad(lambda x: lax.select_n(which, x, 10 * x).sum())(x), [1, 10, 10])
    with pytest.raises(TypeError, match="bool or an integer"):
        lax.select_n(jnp.zeros(3), x, x)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 9, None])
def test_map_in_batches(size: int | None) -> None:
    """So many at once, the rest as one more batch; 0 is all at once. Trees, keys, and values that are not batched."""
    shapes: list[Any] = []
    keys = hloom.random.split(hloom.random.key(0), 7)
    scale = jnp.float32(2)

    def f(x: Any) -> Any:
        shapes.append(x["v"].shape)
        return {"w": x["v"].sum() * scale, "k": hloom.random.bits(x["k"]), "one": 1.0}

    xs = {"v": jnp.arange(21.0).reshape(7, 3), "k": keys}
    found = lax.map(f, xs, batch_size=size)
    np.testing.assert_array_equal(found["w"], np.arange(21.0).reshape(7, 3).sum(1) * 2)
    np.testing.assert_array_equal(found["k"], [hloom.random.bits(k) for k in keys])
    np.testing.assert_array_equal(found["one"], np.ones(7))
    assert set(shapes) == {(3,)}
    assert len(shapes) == (2 if size in (2, 3) else 1)
    np.testing.assert_array_equal(hloom.jit(lambda xs: lax.map(f, xs, batch_size=size))(xs)["w"], found["w"])


def test_map_in_batches_differentiates() -> None:
    x = jnp.arange(1.0, 6.0)
    for size in (None, 0, 2, 5):
        gradient = hloom.grad(lambda x, size=size: lax.map(jnp.sin, x, batch_size=size).sum())(x)
        np.testing.assert_allclose(gradient, np.cos(x), rtol=1e-6)
    assert lax.map(lambda x: x * 2, jnp.zeros((0, 3)), batch_size=2).shape == (0, 3)


def test_branches_capture_a_value_once_and_a_function_is_traced_once() -> None:
    traced = []

    def twice(y: Any) -> Any:
        traced.append(y)
        return 2 * y

    x = jnp.arange(3.0)
    assert hloom.jit(lambda x: lax.cond(x[0] > 1, twice, twice, x))(x).tolist() == [0, 2, 4]
    assert hloom.jit(lambda k, x: lax.switch(k, [twice, jnp.sin, twice], x))(2, x).tolist() == [0, 2, 4]
    assert len(traced) == 2

    def either(p: Any, u: Any, v: Any) -> Any:
        return lax.cond(p, lambda y: y * u + v, lambda y: y - u, x)

    arguments = True, x, 2 * x
    (equation,) = [e for e in hloom.make_jaxpr(either)(*arguments).eqns if e.primitive.name == "cond"]
    assert [len(b.jaxpr.invars) for b in equation.params["branches"]] == [3, 3]
    np.testing.assert_array_equal(hloom.jit(either)(*arguments), x * x + 2 * x)
    np.testing.assert_array_equal(hloom.jacfwd(either, 1)(*arguments), jnp.diag(x))
    np.testing.assert_array_equal(hloom.jacrev(either, 2)(*arguments), jnp.eye(3))
    np.testing.assert_array_equal(hloom.vmap(either, (0, None, None))(jnp.array([True, False]), x, 2 * x)[1], x - x)
