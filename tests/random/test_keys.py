"""Arrays of keys: each operation does the same to keys as to their numbers, concrete, traced and in control flow."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo.opcode import Opcode
from hloom.hlo.ops.indexing import GatherAttributes, ScatterAttributes
from hloom.tracer.arrays.array import as_value
from hloom.tracer.aval import ShapedArray
from hloom.tracer.core import bind
from hloom.tracer.recording import returns_element, trace_to_computation

import hloom
import hloom.numpy as jnp
from hloom import dtypes, lax, random
from hloom.errors import OperandError
from hloom.random.implementations import PRNGImpl, implementation, register_implementation

Op = Callable[[Any, Any, Any, Any], Any]
"""op(numpy namespace, lax namespace, array of shape (2, 3), scalar of its dtype)"""

MOVES: dict[str, Op] = {
    "item": lambda jnp, lax, x, one: x[1, -1],
    "row": lambda jnp, lax, x, one: x[-1],
    "column": lambda jnp, lax, x, one: x[..., 0],
    "range": lambda jnp, lax, x, one: x[:, 1:],
    "backwards": lambda jnp, lax, x, one: x[::-1, ::-2],
    "new axis": lambda jnp, lax, x, one: x[None, 0, :, None],
    "empty": lambda jnp, lax, x, one: x[:, 3:],
    "computed item": lambda jnp, lax, x, one: x[jnp.asarray(1), jnp.asarray(-1)],
    "out of bounds": lambda jnp, lax, x, one: x[7],
    "iteration": lambda jnp, lax, x, one: jnp.stack([row[0] for row in x]),
    "stack": lambda jnp, lax, x, one: jnp.stack([x, x[::-1]], 1),
    "stack scalars": lambda jnp, lax, x, one: jnp.stack([one, x[0, 0]]),
    "array of scalars": lambda jnp, lax, x, one: jnp.array([[one, x[0, 0]]]),
    "concatenate": lambda jnp, lax, x, one: jnp.concatenate([x, x[:1]]),
    "concatenate flat": lambda jnp, lax, x, one: jnp.concatenate([x, x[:1]], None),
    "hstack": lambda jnp, lax, x, one: jnp.hstack([x, x]),
    "append": lambda jnp, lax, x, one: jnp.append(x, x, 1),
    "reshape": lambda jnp, lax, x, one: jnp.reshape(x, (3, -1)),
    "reshape F": lambda jnp, lax, x, one: jnp.reshape(x, (3, 2), order="F"),
    "method reshape": lambda jnp, lax, x, one: x.reshape(6),
    "ravel": lambda jnp, lax, x, one: x.ravel(),
    "transpose": lambda jnp, lax, x, one: jnp.transpose(x),
    "T": lambda jnp, lax, x, one: x.T,
    "moveaxis": lambda jnp, lax, x, one: jnp.moveaxis(x[None], 0, -1),
    "broadcast_to": lambda jnp, lax, x, one: jnp.broadcast_to(x, (2, 2, 3)),
    "broadcast size 1": lambda jnp, lax, x, one: jnp.broadcast_to(x[:, :1], (4, 2, 3)),
    "squeeze": lambda jnp, lax, x, one: jnp.squeeze(x[:1]),
    "expand_dims": lambda jnp, lax, x, one: jnp.expand_dims(x, (0, 2)),
    "atleast_2d": lambda jnp, lax, x, one: jnp.atleast_2d(one),
    "flip": lambda jnp, lax, x, one: jnp.flip(x),
    "flip axis": lambda jnp, lax, x, one: jnp.flip(x, 1),
    "roll": lambda jnp, lax, x, one: jnp.roll(x, 2),
    "roll axis": lambda jnp, lax, x, one: jnp.roll(x, 1, 1),
    "tile": lambda jnp, lax, x, one: jnp.tile(x, (2, 2)),
    "repeat": lambda jnp, lax, x, one: jnp.repeat(x, 2, 1),
    "split": lambda jnp, lax, x, one: jnp.split(x, 3, 1)[2],
    "diagonal": lambda jnp, lax, x, one: jnp.diagonal(x, 1),
    "full": lambda jnp, lax, x, one: jnp.full((2, 2), one),
    "full_like": lambda jnp, lax, x, one: jnp.full_like(x, one),
    "where": lambda jnp, lax, x, one: jnp.where(np.array([True, False, True]), x, x[::-1]),
    "where scalar": lambda jnp, lax, x, one: jnp.where(True, x, one),
    "where broadcast": lambda jnp, lax, x, one: jnp.where(np.array([[True], [False]]), x, one),
    "select": lambda jnp, lax, x, one: jnp.select([np.array([True, False, False])], [x], one),
    "lax.select": lambda jnp, lax, x, one: lax.select(np.array([[True, False, True]] * 2), x, x[::-1]),
    "lax.select_n": lambda jnp, lax, x, one: lax.select_n(np.array(False), x, x[::-1]),
    "set item": lambda jnp, lax, x, one: x.at[0, 1].set(one),
    "set row": lambda jnp, lax, x, one: x.at[0].set(x[1]),
    "set broadcast": lambda jnp, lax, x, one: x.at[:, 1:].set(one),
    "set steps": lambda jnp, lax, x, one: x.at[:, ::2].set(one),
    "set computed": lambda jnp, lax, x, one: x.at[jnp.asarray(1)].set(one),
    "set out of bounds": lambda jnp, lax, x, one: x.at[9].set(one),
    "at get": lambda jnp, lax, x, one: x.at[1].get(),
    "lax.slice": lambda jnp, lax, x, one: lax.slice(x, (0, 0), (2, 3), (1, 2)),
    "lax.rev": lambda jnp, lax, x, one: lax.rev(x, (0,)),
    "lax.pad": lambda jnp, lax, x, one: lax.pad(x, one, ((1, 0, 1), (0, -1, 0))),
    "lax.dynamic_slice": lambda jnp, lax, x, one: lax.dynamic_slice(x, (jnp.asarray(5), 1), (1, 2)),
    "lax.dynamic_index": lambda jnp, lax, x, one: lax.dynamic_index_in_dim(x, jnp.asarray(1), 1, False),
    "lax.dynamic_update_slice": lambda jnp, lax, x, one: lax.dynamic_update_slice(x, x[:1, :2], (1, jnp.asarray(1))),
    "lax.stop_gradient": lambda jnp, lax, x, one: lax.stop_gradient(x),
    "lax.optimization_barrier": lambda jnp, lax, x, one: lax.optimization_barrier(x),
    "copy": lambda jnp, lax, x, one: x.copy(),
    "asarray": lambda jnp, lax, x, one: jnp.asarray(x),
    "astype itself": lambda jnp, lax, x, one: x.astype(x.dtype),
}
COMPARISONS: dict[str, Op] = {
    "equal": lambda jnp, lax, x, one: x == one,
    "equal arrays": lambda jnp, lax, x, one: x == x[::-1],
    "different": lambda jnp, lax, x, one: x != one,
    "jnp.equal": lambda jnp, lax, x, one: jnp.equal(one, x),
    "lax.ne": lambda jnp, lax, x, one: lax.ne(x, x[:, ::-1]),
    "array_equal": lambda jnp, lax, x, one: jnp.array_equal(x, x),
}
NOT_IN_JAX = {"repeat", "lax.pad", "astype itself", "reshape F"}
"""JAX has no such method of keys, or fails at it."""


def numbered() -> tuple[Any, Any, Any]:
    """Six distinct keys, and six numbers: each operation on the numbers must be applied to the keys."""
    return random.split(random.key(0), (2, 3)), jnp.arange(6).reshape(2, 3), np.asarray(_words(6))


def _words(count: int) -> Any:
    return random.key_data(random.split(random.key(0), (count,)))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("traced", [False, True], ids=["concrete", "traced"])
def test_moves(name: str, traced: bool) -> None:
    keys, numbers, words = numbered()

    def run(x: Any, one: Any) -> Any:
        return MOVES[name](jnp, lax, x, one)

    f = hloom.jit(run) if traced else run
    found, expected = f(keys, keys[1, 1]), np.asarray(f(numbers, numbers[1, 1]))
    assert isinstance(found, hloom.Array)
    assert found.dtype is keys.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(np.asarray(random.key_data(found)), words[expected])


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name: str) -> None:
    keys, numbers, _ = numbered()
    op = COMPARISONS[name]
    expected = np.asarray(op(jnp, lax, numbers, numbers[1, 1]))
    for f in (op, hloom.jit(op, static_argnums=(0, 1))):
        found = f(jnp, lax, keys, keys[1, 1])
        assert found.dtype == np.bool_
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_equality_looks_at_all_words() -> None:
    a, b = (random.wrap_key_data(np.array(words, np.uint32)) for words in ([[1, 2], [3, 4]], [[1, 3], [4, 4]]))
    assert np.asarray(a == b).tolist() == [False, False]
    assert np.asarray(a != b).tolist() == [True, True]


@pytest.mark.parametrize("name", [*MOVES, *COMPARISONS])
def test_live_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    if name in NOT_IN_JAX:
        return
    op = {**MOVES, **COMPARISONS}[name]
    keys = jax.random.split(jax.random.key(0), (2, 3))
    theirs, ours = op(jax.numpy, jax.lax, keys, keys[1, 1]), op(jnp, lax, numbered()[0], numbered()[0][1, 1])
    assert ours.shape == theirs.shape
    assert str(ours.dtype) == str(theirs.dtype)
    if name in MOVES:
        ours, theirs = random.key_data(ours), jax.random.key_data(theirs)
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


@pytest.mark.parametrize("name", ["gather", "gather collapsed", "scatter"])
def test_gather_and_scatter(name: str) -> None:
    """By `bind`: `hloom.numpy` has no indexing by arrays yet."""
    keys, numbers, words = numbered()
    indices = as_value(np.array([[1, 0], [0, 2], [1, 1]], np.int32))

    def run(x: Any) -> Any:
        if name == "gather":
            attributes = GatherAttributes((1,), (0,), (0,), 1, (1, 3))
            return bind(Opcode.GATHER, (x, indices[:, :1]), attributes)
        if name == "gather collapsed":
            return bind(Opcode.GATHER, (x, indices), GatherAttributes((), (0, 1), (0, 1), 1, (1, 1)))
        scalar = ShapedArray((), x.aval.storage.dtype)
        second = trace_to_computation(lambda v: [v[1]], [scalar, scalar]).computation
        second = returns_element(second)
        return bind(Opcode.SCATTER, (x, indices, x[0]), ScatterAttributes((), (0, 1), (0, 1), 1, second))

    for f in (run, hloom.jit(run)):
        np.testing.assert_array_equal(np.asarray(random.key_data(f(keys))), words[np.asarray(f(numbers))])


# ---- control flow and transformations


def expected_chain(length: int) -> Any:
    key = random.key(7)
    for _ in range(length):
        key = random.split(key)[0]
    return key


@pytest.mark.parametrize("around", [lambda f: f, hloom.jit, hloom.checkpoint], ids=["concrete", "jit", "checkpoint"])
@pytest.mark.parametrize("loop", ["while", "fori", "fori of a traced length", "scan"])
def test_keys_in_carries(loop: str, around: Any) -> None:
    def step(_: Any, key: Any) -> Any:
        return random.split(key)[0]

    def run(key: Any) -> Any:
        match loop:
            case "while":
                return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, step(0, c[1])), (0, key))[1]
            case "fori":
                return lax.fori_loop(0, 3, step, key)
            case "fori of a traced length":
                return hloom.jit(lambda n, k: lax.fori_loop(0, n, step, k))(3, key)
            case _:
                return lax.scan(lambda k, _: (step(0, k), None), key, None, 3)[0]

    found = around(run)(random.key(7))
    assert found.aval is random.key(0).aval
    assert bool(found == expected_chain(3))


@pytest.mark.parametrize("around", [lambda f: f, hloom.jit], ids=["concrete", "jit"])
def test_keys_scanned_over_and_stacked(around: Any) -> None:
    keys = random.split(random.key(1), (4, 2))

    def run(keys: Any) -> Any:
        last, (seen, draws) = lax.scan(lambda c, k: (k, (k[::-1], random.uniform(k[0]))), keys[0], keys, reverse=True)
        return last, seen, draws, lax.map(lambda k: k[1], keys)

    last, seen, draws, mapped = around(run)(keys)
    assert seen.shape == (4, 2)
    assert bool(jnp.all(last == keys[0]))
    assert bool(jnp.all(seen == keys[:, ::-1]))
    assert bool(jnp.all(mapped == keys[:, 1]))
    np.testing.assert_array_equal(np.asarray(draws), [float(random.uniform(k)) for k in keys[:, 0]])


@pytest.mark.parametrize("traced", [False, True])
def test_keys_in_branches(traced: bool) -> None:
    a, b = random.split(random.key(2))

    def run(p: Any, i: Any, a: Any, b: Any) -> Any:
        captured = lax.cond(p, lambda: a, lambda: b)
        first, second = (lambda x, y: x), (lambda x, y: y)
        return captured, lax.cond(p, first, second, a, b), lax.switch(i, [first, first, second], a, b)

    f = hloom.jit(run) if traced else run
    for p, i in ((True, 0), (False, 5)):
        for found in f(p, i, a, b):
            assert bool(found == (a if p else b))


def test_keys_in_pytrees_and_arguments() -> None:
    key = random.key(3)
    assert hloom.tree.leaves({"a": key, "b": (key,)}) == [key, key]
    state = {"key": random.split(key, 2), "n": jnp.ones(2)}

    @hloom.jit
    def step(state: Any, *, extra: Any) -> Any:
        return {"key": state["key"][::-1], "n": state["n"] + random.uniform(extra)}

    new = step(state, extra=key)
    assert bool(jnp.all(new["key"] == state["key"][::-1]))
    assert hloom.jit(lambda: key)().aval is key.aval  # captured
    assert bool(hloom.jit(hloom.jit(lambda k: random.split(k)[1]))(key) == random.split(key)[1])
    assert hloom.jit(lambda k: k).lower(key).out_info == hloom.ShapeDtypeStruct((), key.dtype)
    lowered = hloom.jit(random.split).lower(hloom.ShapeDtypeStruct((), key.dtype))
    assert bool(jnp.all(lowered.compile()(key) == random.split(key)))
    assert repr(hloom.eval_shape(lambda k: random.split(k, 3), key)) == "ShapeDtypeStruct(shape=(3,), dtype=key<fry>)"


def test_a_captured_key_is_one_parameter() -> None:
    key = random.key(3)
    module = hloom.make_hlo(lambda x: x + random.uniform(key) + random.normal(key) + random.bits(key))(1.0)
    assert len(module.entry.parameters) == 2


def test_donated_keys() -> None:
    keys = random.split(random.key(3), 3)
    wanted = np.asarray(random.key_data(keys[::-1]))
    found = hloom.jit(lambda k: k[::-1], donate_argnums=0)(keys)
    np.testing.assert_array_equal(np.asarray(random.key_data(found)), wanted)
    assert keys.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        random.key_data(keys)


# ---- chosen and replaced by arrays of indices

FOUR, GRID = random.split(random.key(0), 4), random.split(random.key(1), (3, 4))
SOME = jnp.array([0, 2])
BY_ARRAYS: dict[str, tuple[Callable[[Any, Any], Any], Any, Any]] = {
    "set": (lambda k, v: k.at[SOME].set(v[3]), FOUR, FOUR),
    "set each": (lambda k, v: k.at[SOME].set(v[2:]), FOUR, FOUR),
    "set from the end": (lambda k, v: k.at[jnp.array([-1])].set(v[0]), FOUR, FOUR),
    "set by a mask": (lambda k, v: k.at[np.array([True, False, True, False])].set(v[3]), FOUR, FOUR),
    "set nothing": (lambda k, v: k.at[np.array([], int)].set(v[3]), FOUR, FOUR),
    "set beyond the end": (lambda k, v: k.at[jnp.array([1, 9])].set(v[3], mode="drop"), FOUR, FOUR),
    "set clipped": (lambda k, v: k.at[jnp.array([1, 9])].set(v[3], mode="clip"), FOUR, FOUR),
    "set rows": (lambda k, v: k.at[SOME].set(v), GRID, FOUR),
    "set columns": (lambda k, v: k.at[:, SOME].set(v[1]), GRID, FOUR),
    "set reversed": (lambda k, v: k.at[::-1, SOME].set(v[1]), GRID, FOUR),
    "set elements": (lambda k, v: k.at[SOME, np.array([1, 3])].set(v[1]), GRID, FOUR),
    "put": (lambda k, v: jnp.put(k, SOME, v[1], inplace=False), FOUR, FOUR),
    "take": (lambda k, v: jnp.take(k, SOME), FOUR, FOUR),
    "take_along_axis": (lambda k, v: jnp.take_along_axis(k, SOME, 0), FOUR, FOUR),
}


def _on_storage(change: Callable[[Any, Any], Any], keys: Any, values: Any) -> Any:
    """The same of each word of the keys."""
    columns = [change(random.key_data(keys)[..., w], random.key_data(values)[..., w]) for w in range(2)]
    return np.stack(columns, -1)


@pytest.mark.parametrize("how", ["plain", "jit", "scan"])
@pytest.mark.parametrize("name", BY_ARRAYS)
def test_keys_by_arrays_of_indices(name: str, how: str) -> None:
    change, keys, values = BY_ARRAYS[name]
    wanted = _on_storage(change, keys, values)
    wrapped: dict[str, Callable[..., Any]] = {
        "plain": change,
        "jit": hloom.jit(change),
        "scan": lambda k, v: lax.scan(lambda c, x: (c, change(x, v)), 0, k[None])[1][0],
    }
    np.testing.assert_array_equal(random.key_data(wrapped[how](keys, values)), wanted)


GRID_INDEX = (SOME, np.array([1, 3]))
APPLIED: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "some": (FOUR, SOME, {}),
    "twice": (FOUR, jnp.array([1, 1, 3]), {}),
    "from the end": (FOUR, jnp.array([-1]), {}),
    "beyond the end": (FOUR, jnp.array([1, 9]), {"mode": "drop"}),
    "clipped": (FOUR, jnp.array([1, 9]), {"mode": "clip"}),
    "nothing": (FOUR, np.array([], int), {}),
    "rows": (GRID, SOME, {}),
    "elements": (GRID, GRID_INDEX, {}),
    "columns": (GRID, (slice(None), SOME), {}),
    "mask": (FOUR, np.array([True, False, True, False]), {}),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", APPLIED)
def test_apply_to_keys(name: str) -> None:
    """As often as an index occurs, in the places that the same index changes of numbers."""
    keys, index, options = APPLIED[name]
    numbers = jnp.zeros(keys.shape, jnp.int32)
    times = np.asarray(numbers.at[index].apply(lambda n: n + 1, **options))
    wanted = keys.reshape(-1)
    for place, count in enumerate(times.reshape(-1)):
        for _ in range(count):
            wanted = wanted.at[place].set(random.fold_in(wanted[place], 7))
    change = hloom.jit(lambda k: k.at[index].apply(lambda one: random.fold_in(one, 7), **options))
    assert bool(jnp.all(change(keys) == wanted.reshape(keys.shape)))


def test_what_apply_refuses() -> None:
    for change in (random.split, random.key_data):
        with pytest.raises(TypeError, match="scatter_apply"):
            FOUR.at[SOME].apply(change)


def test_keys_out_of_bounds_have_all_bits() -> None:
    found = random.key_data(FOUR.at[jnp.array([1, 9])].get(mode="fill"))
    assert found.tolist() == [random.key_data(FOUR[1]).tolist(), [2**32 - 1] * 2]
    given = FOUR.at[jnp.array([1, 9])].get(mode="fill", fill_value=FOUR[2])
    assert bool(jnp.all(given == FOUR[1:3]))


@pytest.mark.parametrize("name", ["add", "multiply", "min", "max", "subtract"])
def test_keys_are_not_combined(name: str) -> None:
    with pytest.raises(TypeError, match="key<fry>"):
        getattr(FOUR.at[SOME], name)(FOUR[0])


# ---- derivatives: keys are arguments that do not move


def noisy(x: Any, key: Any) -> Any:
    return jnp.sum(x * random.normal(key, x.shape))


TANGENT = np.zeros((), dtypes.float0)
AROUND = {
    "plain": lambda f: f,
    "jit": hloom.jit,
    "checkpoint": hloom.checkpoint,
    "jit of checkpoint": lambda f: hloom.jit(hloom.checkpoint(f)),
    "cond": lambda f: lambda x, k: lax.cond(True, f, lambda x, k: x.sum(), x, k),
    "scan": lambda f: lambda x, k: lax.scan(lambda c, s: (c + f(x, s), s), 0.0, k[None])[0],
    "carry": lambda f: lambda x, k: lax.fori_loop(0, 1, lambda _, c: (c[0] + f(x, c[1]), c[1]), (0.0, k))[0],
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", AROUND)
def test_derivatives_beside_keys(name: str) -> None:
    f, x, key = AROUND[name](noisy), jnp.arange(3.0), random.key(5)
    noise = np.asarray(random.normal(key, (3,)))
    np.testing.assert_allclose(np.asarray(hloom.grad(f)(x, key)), noise, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(hloom.jit(hloom.grad(f))(x, key)), noise, rtol=1e-6)
    _, tangent = hloom.jvp(f, (x, key), (jnp.ones(3), TANGENT))
    np.testing.assert_allclose(float(tangent), noise.sum(), rtol=1e-5)
    to_x, to_key = hloom.vjp(f, x, key)[1](1.0)
    np.testing.assert_allclose(np.asarray(to_x), noise, rtol=1e-6)
    assert to_key.dtype == dtypes.float0
    assert to_key.shape == ()


def test_keys_in_results_of_differentiated_functions() -> None:
    key = random.key(5)
    out, tangents = hloom.jvp(lambda x, k: (x * 2, random.split(k, 3)), (1.0, key), (1.0, TANGENT))
    assert out[1].shape == (3,)
    assert tangents[1].dtype == dtypes.float0
    assert tangents[1].shape == (3,)
    gradient, aux = hloom.grad(lambda x: (x * 2, key), has_aux=True)(1.0)
    assert float(gradient) == 2
    assert bool(aux == key)


@pytest.mark.parametrize("traced", [False, True])
def test_keys_in_custom_derivatives(traced: bool) -> None:
    x, key = jnp.arange(3.0), random.key(6)
    seen = []

    @hloom.custom_jvp
    def f(x: Any, key: Any) -> Any:
        return noisy(x, key), random.split(key)

    @f.defjvp
    def f_jvp(primals: Any, tangents: Any) -> Any:
        (x, key), (t, key_t) = primals, tangents
        seen.append((key.dtype, key_t.dtype, key_t.shape))
        return f(x, key), (3 * noisy(t, key), np.zeros((2,), dtypes.float0))

    @hloom.custom_vjp
    def g(x: Any, key: Any) -> Any:
        return noisy(x, key), random.split(key)

    def g_fwd(x: Any, key: Any) -> Any:
        return g(x, key), key

    def g_bwd(key: Any, ct: Any) -> Any:
        seen.append((key.dtype, ct[1].dtype, ct[1].shape))
        return 3 * random.normal(key, x.shape) * ct[0], None

    g.defvjp(g_fwd, g_bwd)
    around = hloom.jit if traced else lambda h: h
    for h in (f, g):
        value, keys = around(h)(x, key)
        assert keys.shape == (2,)
        assert bool(jnp.all(keys == random.split(key)))
        first = around(lambda x, k, h=h: h(x, k)[0])
        np.testing.assert_allclose(float(value), float(noisy(x, key)), rtol=1e-6)
        np.testing.assert_allclose(
            np.asarray(hloom.grad(first)(x, key)), 3 * np.asarray(random.normal(key, (3,))), rtol=1e-6
        )
    assert {dtype for dtype, _, _ in seen} == {key.dtype}
    assert {dtype for _, dtype, _ in seen} == {dtypes.float0}
    assert {shape for _, _, shape in seen} == {(), (2,)}


@pytest.mark.parametrize("rule", ["none", "evaluate", "jvp"])
def test_keys_in_primitives_of_users(rule: str) -> None:
    noise = hloom.extend.core.Primitive("noise", lambda x, key, *, factor: (factor * noisy(x, key), random.split(key)))
    seen = []

    def evaluate(x: Any, key: Any, *, factor: float) -> Any:
        seen.append(key.dtype)
        return factor * noisy(x, key), random.split(key)

    def jvp(primals: Any, tangents: Any, *, factor: float) -> Any:
        (x, key), (t, key_t) = primals, tangents
        assert key_t.dtype == dtypes.float0
        assert key_t.shape == ()
        return evaluate(x, key, factor=factor), (factor * noisy(t, key), None)

    if rule != "none":
        (noise.def_evaluate if rule == "evaluate" else noise.def_jvp)(evaluate if rule == "evaluate" else jvp)
    x, key = jnp.arange(3.0), random.key(8)
    expected = 2 * np.asarray(random.normal(key, (3,)))
    for around in (lambda f: f, hloom.jit):
        value, keys = around(lambda x, k: noise.bind(x, k, factor=2.0))(x, key)
        np.testing.assert_allclose(float(value), (np.asarray(x) * expected).sum(), rtol=1e-6)
        assert bool(jnp.all(keys == random.split(key)))
        gradient = hloom.grad(around(lambda x, k: noise.bind(x, k, factor=2.0)[0]))(x, key)
        np.testing.assert_allclose(np.asarray(gradient), expected, rtol=1e-6)
    assert set(seen) == (set() if rule == "none" else {key.dtype})


# ---- what an array of keys says of itself, and what it refuses


def test_types() -> None:
    keys = random.split(random.key(0), 3)
    assert str(keys.dtype) == keys.dtype.name == "key<fry>"
    assert keys.dtype == random.key(1).dtype
    assert hash(keys.dtype) == hash(random.key(1).dtype)
    assert (keys.dtype.itemsize, keys.nbytes, keys.size, keys.ndim, len(keys)) == (8, 24, 3, 1, 3)
    assert keys.aval.str_short() == "key<fry>[3]"
    assert repr(random.key(2**33 + 5)).startswith("Array((), dtype=key<fry>) overlaying:\n[")
    assert f"{keys}" == str(keys) == repr(keys)
    shown = []
    hloom.jit(lambda k: (shown.append((repr(k), k.shape, k.dtype)), k)[1])(keys)
    assert shown == [("JitTracer(key<fry>[3])", (3,), keys.dtype)]


def test_dtypes_module() -> None:
    dtype = random.key(0).dtype
    for kind, expected in (
        (dtypes.prng_key, True), (dtypes.extended, True), (np.generic, True), (dtype, True),
        (np.number, False), (np.integer, False), (np.inexact, False), (np.uint32, False), (np.bool_, False),
    ):  # fmt: skip
        assert jnp.issubdtype(dtype, kind) is expected, kind
    assert dtypes.issubdtype(dtypes.prng_key, dtypes.extended)
    for plain in (np.uint32, "float32", dtypes.bfloat16, np.dtype(np.int8), dtypes.extended):
        assert not dtypes.issubdtype(plain, dtypes.prng_key)
    assert dtypes.canonicalize_dtype("float64") == np.float32
    assert dtypes.canonicalize_dtype(dtype, allow_extended_dtype=True) is dtype
    assert dtypes.result_type(dtype, dtype) is dtype
    with pytest.raises(ValueError, match="key<fry>"):
        dtypes.canonicalize_dtype(dtype)
    assert set(dtypes.__all__) <= set(dir(dtypes))


def test_zero_keys() -> None:
    key = random.key(9)
    for made in (jnp.zeros((2,), key.dtype), jnp.zeros_like(random.split(key)), jnp.empty((2,), key.dtype)):
        assert made.dtype is key.dtype
        assert np.asarray(random.key_data(made)).tolist() == [[0, 0], [0, 0]]


def test_copies() -> None:
    keys = random.split(random.key(4), 3)
    for again in (copy.copy(keys), copy.deepcopy(keys), pickle.loads(pickle.dumps(keys)), hloom.device_get(keys)):
        assert again.aval is keys.aval
        assert bool(jnp.all(again == keys))


def test_words_and_keys() -> None:
    old, new = random.PRNGKey(11), random.key(11)
    assert old.aval.str_short() == "uint32[2]"
    assert random.key_data(old) is old
    assert random.key_impl(old) == random.key_impl(new) == "threefry2x32"
    assert bool(random.wrap_key_data(old) == new)
    assert random.split(old, (2, 3)).shape == (2, 3, 2)
    assert random.split(new, (2, 3)).shape == (2, 3)
    assert random.fold_in(old, 1).dtype == np.uint32
    assert random.fold_in(new, 1).dtype is new.dtype
    assert bool(random.clone(new) == new) and random.clone(new) is not new
    for name in ("normal", "uniform", "bits", "gumbel"):
        draw = getattr(random, name)
        assert np.asarray(draw(old, (3,))).tolist() == np.asarray(draw(new, (3,))).tolist()
        assert np.asarray(draw(np.asarray(old), (3,))).tolist() == np.asarray(draw(new, (3,))).tolist()


def test_another_generator() -> None:
    """A new generator needs an object with its functions."""

    def mixed(words: Any) -> Any:
        return words * np.uint32(2654435761) + np.uint32(1)

    counting = register_implementation(
        PRNGImpl(
            name="counting",
            tag="cnt",
            key_shape=(3,),
            seed=lambda seed: jnp.full((3,), seed, np.uint32),
            split=lambda key, shape: jnp.broadcast_to(mixed(key), (*shape, 3)),
            random_bits=lambda key, width, shape: jnp.full(shape, key[0]).astype(f"uint{width}"),
            fold_in=lambda key, data: key + data,
        )
    )
    with pytest.raises(ValueError, match="exists already"):
        register_implementation(counting)
    key = random.key(5, impl="counting")
    assert (str(key.dtype), random.key_impl(key), random.key_data(key).shape) == ("key<cnt>", "counting", (3,))
    assert random.key(5, impl=counting).dtype is key.dtype
    keys = hloom.jit(lambda k: random.split(k, (2, 2))[1])(key)
    assert keys.shape == (2,)
    assert random.uniform(keys[0], (4,)).shape == (4,)
    assert np.asarray(random.key_data(random.fold_in(key, 2))).tolist() == [7, 7, 7]
    other = random.key(0)
    for wrong in (lambda: jnp.stack([key, other]), lambda: key == other, lambda: jnp.where(True, key, other)):
        with pytest.raises((TypeError, ValueError), match="key<cnt>"):
            wrong()


REFUSED: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "add": (lambda k: k + 1, TypeError, "key<fry>"),
    "add from the left": (lambda k: 1 + k, TypeError, "key<fry>"),
    "add keys": (lambda k: k + k, TypeError, "add does not accept key<fry>"),
    "negate": (lambda k: -k, TypeError, "negate does not accept key<fry>"),
    "sin": (jnp.sin, TypeError, "key<fry>"),
    "invert": (lambda k: ~k, TypeError, "key<fry>"),
    "order": (lambda k: k < k, TypeError, "no order"),
    "max": (lambda k: jnp.max(k[None]), TypeError, "key<fry>"),
    "sum": (lambda k: jnp.sum(k[None]), TypeError, "key<fry>"),
    "any": (lambda k: jnp.any(k), ValueError, "key<fry>"),
    "reduce": (lambda k: lax.reduce(k[None], k, lambda a, b: a, (0,)), TypeError, "key<fry>"),
    "clamp": (lambda k: lax.clamp(k, k, k), TypeError, "key<fry>"),
    "iota": (lambda k: lax.iota(k.dtype, 3), TypeError, "key<fry>"),
    "equal to a number": (lambda k: k == 1, TypeError, "key<fry>"),
    "equal to words": (lambda k: k == random.key_data(k), TypeError, "uint32"),
    "where with numbers": (lambda k: jnp.where(True, k, 0), ValueError, "key<fry>"),
    "as a condition": (lambda k: jnp.where(k, 1, 0), ValueError, "key<fry>"),
    "concatenate with words": (lambda k: jnp.concatenate([k[None], jnp.ones(2, np.uint32)]), ValueError, "uint32"),
    "lax.concatenate": (lambda k: lax.concatenate([k[None], jnp.ones(2, np.uint32)], 0), TypeError, "uint32"),
    "set to a number": (lambda k: k[None].at[0].set(1), TypeError, "key<fry>"),
    "add in place": (lambda k: k[None].at[0].add(k), TypeError, "key<fry>"),
    "update by words": (lambda k: lax.dynamic_update_slice(k[None], jnp.ones(1, np.uint32), (0,)), TypeError, "uint32"),
    "astype": (lambda k: k.astype(np.uint32), ValueError, "Cannot convert"),
    "from a number": (lambda k: jnp.asarray(1, k.dtype), ValueError, "Cannot convert"),
    "bitcast": (lambda k: lax.bitcast_convert_type(k, np.uint32), ValueError, "key<fry>"),
    "too many indices": (lambda k: k[0], IndexError, "Too many indices"),
    "length": (len, TypeError, "unsized"),
    "iteration": (list, TypeError, "without dimensions"),
    "hash": (hash, TypeError, "unhashable"),
    "as seed": (random.key, TypeError, "seed"),
    "several keys": (lambda k: random.normal(k[None]), ValueError, "normal accepts a single key"),
    "split of several": (lambda k: random.split(k[None]), ValueError, "split accepts a single key"),
    "wrapped twice": (random.wrap_key_data, TypeError, "key<fry>"),
    "carry": (lambda k: lax.while_loop(lambda c: True, random.key_data, k), TypeError, "carry"),
    "branches": (lambda k: lax.cond(True, lambda: k, lambda: random.key_data(k)), TypeError, "branches"),
    "derivative": (lambda k: hloom.grad(lambda k: 1.0)(k), TypeError, "key<fry>"),
    "tangent": (lambda k: hloom.jvp(lambda k: k, (k,), (k,)), TypeError, "float0"),
}
REFUSED_CONCRETE: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "asarray": (np.asarray, TypeError, "key_data"),
    "np.add": (lambda k: np.add(k, k), TypeError, "key_data"),
    "bool": (bool, TypeError, "key<fry>"),
    "int": (int, TypeError, "key<fry>"),
    "float": (float, TypeError, "key<fry>"),
    "index": (lambda k: [1, 2][k], TypeError, "key<fry>"),
    "tolist": (lambda k: k.tolist(), TypeError, "key_data"),
    "dlpack": (np.from_dlpack, TypeError, "key_data"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("traced", [False, True], ids=["concrete", "traced"])
def test_refused(name: str, traced: bool) -> None:
    function, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        (hloom.jit(function) if traced else function)(random.key(0))


@pytest.mark.parametrize("name", REFUSED_CONCRETE)
def test_refused_concrete(name: str) -> None:
    function, error, message = REFUSED_CONCRETE[name]
    with pytest.raises(error, match=message):
        function(random.key(0))


def test_other_wrong_arguments() -> None:
    for call, error, message in (
        (lambda: random.key(0, impl="nonsense"), ValueError, "nonsense"),
        (lambda: implementation(3), TypeError, "name"),
        (lambda: random.wrap_key_data(np.zeros((3, 3), np.uint32)), TypeError, "uint32\\[3,3\\]"),
        (lambda: random.wrap_key_data(np.zeros(2, np.float32)), TypeError, "float32"),
        (lambda: random.normal(np.zeros((3, 2), np.uint32), (2,)), ValueError, "single key"),
        (lambda: random.normal(3, (2,)), TypeError, "int32"),
        (lambda: random.key(jnp.arange(3)), TypeError, "seed"),
        (lambda: random.fold_in(random.key(0), jnp.arange(2)), TypeError, "scalar"),
        (lambda: random.key_data(1.0), OperandError, "float32"),
    ):
        with pytest.raises(error, match=message):
            call()
