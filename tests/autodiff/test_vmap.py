"""vmap: axes, trees, control flow, custom rules, keys, derivatives, named axes, messages. Batches of each op are in
test_vmap_ops.py.

A function is mapped outside of jit and within it, and compared with a Python loop over the elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax
from hloom.custom_batching import custom_vmap, sequential_vmap

RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 1.5, (3, 4)).astype(np.float32)
V = X[:, 0].copy()
M = RNG.uniform(-1, 1, (5, 4)).astype(np.float32)
I = np.array([2, 0, 5], np.int32)  # noqa: E741


def looped(fun: Callable[..., Any], args: tuple[Any, ...], axes: tuple[int | None, ...], out: Any = 0) -> Any:
    """The expected result of vmap, by one call for each element."""
    size = next(np.shape(a)[k] for a, k in zip(args, axes, strict=True) if k is not None)
    rows = [
        fun(*[jnp.asarray(a) if k is None else jnp.asarray(np.take(a, n, k)) for a, k in zip(args, axes, strict=True)])
        for n in range(size)
    ]
    return hloom.tree.map(lambda *leaves: np.stack([np.asarray(jnp.asarray(leaf)) for leaf in leaves], out), *rows)


def close(found: Any, expected: Any) -> None:
    got, wanted = hloom.tree.leaves(found), hloom.tree.leaves(expected)
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=3e-5, atol=1e-6)


def mean_field(x: Any) -> Any:
    return {"softmax": hloom.nn.softmax(x), "rest": (jnp.var(x), jnp.argmax(x), jnp.cumsum(x)[::-1], x[1:3] @ x[1:3])}


@hloom.custom_jvp
def scaled(x: Any, y: Any) -> Any:
    return x * y


@scaled.defjvp
def _scaled_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (s, t) = primals, tangents
    return scaled(x, y), 3 * y * s + 5 * x * t  # not the true derivative: it shows which rule is used


@hloom.custom_vjp
def weighted(x: Any, w: Any) -> Any:
    return x * w.sum()


def _weighted_forward(x: Any, w: Any) -> Any:
    return weighted(x, w), (x, w)


def _weighted_backward(kept: Any, ct: Any) -> Any:
    x, w = kept
    return 3 * ct * w.sum(), 5 * ct * x * jnp.ones_like(w)


weighted.defvjp(_weighted_forward, _weighted_backward)
checkpointed = hloom.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())


def row_sums(x: Any) -> Any:
    return lax.scan(lambda c, y: (c * jnp.cos(y) + y, c), 1.0, x)


def by_bisection(a: Any) -> Any:
    """The root of t**3 = a: a loop that ends when each element is precise enough."""

    def body(state: Any) -> Any:
        low, high, steps = state
        middle = (low + high) / 2
        above = middle**3 > a
        return jnp.where(above, low, middle), jnp.where(above, middle, high), steps + 1

    return lax.while_loop(lambda s: s[1] - s[0] > 1e-3 * a, body, (0.0 * a, a + 1, 0))


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[int | None, ...]]] = {
    "elementwise and reductions": (mean_field, (X,), (0,)),
    "matrix times vector": (lambda x, m: (jnp.dot(m, x), jnp.dot(x, m.T), jnp.outer(x, m[0])), (X, M), (0, None)),
    "matrix of batch": (lambda m, x: jnp.dot(m, x), (RNG.normal(size=(3, 5, 4)).astype(np.float32), X), (0, 0)),
    "batch at the end": (lambda x: x * jnp.arange(3.0), (X.copy(),), (1,)),
    "negative axis": (lambda x: x.sum(0), (RNG.normal(size=(2, 4, 3)).astype(np.float32),), (-1,)),
    "constant result": (lambda x: (x, jnp.ones(2), 3), (V,), (0,)),
    "slice at an index": (lambda x, i: (lax.dynamic_slice(x, (i,), (2,)), x[i]), (X, I), (0, 0)),
    "slice of a shared array": (lambda m, i: lax.dynamic_slice(m, (i, 1), (2, 2)), (M, I), (None, 0)),
    "update at an index": (lambda x, i: lax.dynamic_update_slice(x, -x[:2], (i,)), (X, I), (0, 0)),
    "update of a shared array": (lambda x, i: lax.dynamic_update_slice(jnp.zeros(4), x[:2], (i,)), (X, I), (0, 0)),
    "at set": (lambda x, i: x.at[i % 4].set(9.0), (X, I), (0, 0)),
    "where": (lambda x: jnp.where(x[0] > 0.5, x, -x), (X,), (0,)),
    "scan": (row_sums, (X,), (0,)),
    "scan in reverse": (lambda x: lax.scan(lambda c, y: (c + y, c * y), 0.0, x, reverse=True), (X,), (0,)),
    "scan of shared xs": (lambda a, x: lax.scan(lambda c, y: (c * a + y, y), 0.0, x), (V, X[0]), (0, None)),
    "fori_loop": (lambda x: lax.fori_loop(0, 4, lambda i, c: (c[0] + x[i] * c[1], c[1] * 0.9), (0.0, 1.0)), (X,), (0,)),
    "bound of a loop": (lambda n: lax.fori_loop(0, n, lambda i, c: c + i, 0), (I,), (0,)),
    "while, all decide": (by_bisection, (V,), (0,)),
    "while, one decides": (
        lambda x: lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 0.5 + x), (0, x)),
        (X,),
        (0,),
    ),
    "cond, each its own": (lambda x: lax.cond(x[0] > 0.8, lambda y: (y * 2, 1), lambda y: (y - 1, 2), x), (X,), (0,)),
    "cond, one for all": (lambda x, p: lax.cond(p, jnp.sin, lambda y: y * 3, x), (X, np.array(True)), (0, None)),
    "switch": (lambda x, i: lax.switch(i, [jnp.sin, jnp.cos, lambda y: y * y], x), (X, I), (0, 0)),
    "switch of closures": (lambda x, i: lax.switch(i, [lambda: x[0], lambda: x[1], lambda: 7.0]), (X, I), (0, 0)),
    "nested jit": (hloom.jit(mean_field), (X,), (0,)),
    "nested vmap": (hloom.vmap(lambda a: a * a + 1), (X,), (0,)),
    "custom_jvp": (scaled, (X, V), (0, 0)),
    "custom_vjp": (weighted, (V, X[0]), (0, None)),
    "library primitive": (lax.erf_inv, (X / 2,), (0,)),
    "grad": (hloom.grad(lambda x: jnp.sum(jnp.tanh(x) ** 3)), (X,), (0,)),
    "grad of scan": (hloom.grad(lambda x: row_sums(x)[0]), (X,), (0,)),
    "grad of cond": (
        hloom.grad(lambda x: lax.cond(x[0] > 0.8, lambda y: (y * y).sum(), lambda y: jnp.sin(y).sum(), x)),
        (X,),
        (0,),
    ),
    "grad of custom_jvp": (hloom.grad(lambda x: scaled(x, 2.0).sum()), (X,), (0,)),
    "grad of custom_vjp": (hloom.grad(weighted, (0, 1)), (V, X[0]), (0, None)),
    "grad of checkpoint": (hloom.grad(checkpointed), (X,), (0,)),
    "jvp": (lambda x, t: hloom.jvp(lambda y: row_sums(y)[0], (x,), (t,)), (X, -X), (0, 0)),
    "jvp of while": (lambda x: hloom.jvp(lambda y: by_bisection(y)[1], (x,), (1.0,)), (V,), (0,)),
    "hessian": (hloom.hessian(lambda x: jnp.sum(jnp.sin(x) * x[0])), (X,), (0,)),
    "linearize": (lambda x: hloom.linearize(lambda y: row_sums(y)[0], x)[1](x), (X,), (0,)),
    "optimization barrier": (lambda x: lax.optimization_barrier(x) + 1, (X,), (0,)),
    "stop_gradient": (hloom.grad(lambda x: x * lax.stop_gradient(x)), (V,), (0,)),
}


@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("name", CASES)
def test_against_a_loop(name: str) -> None:
    fun, args, axes = CASES[name]
    expected = looped(fun, args, axes)
    close(hloom.vmap(fun, in_axes=axes)(*args), expected)
    close(hloom.jit(hloom.vmap(fun, in_axes=axes))(*args), expected)


GRADIENTS = [
    name
    for name, (_, args, _) in CASES.items()
    if all(np.asarray(a).dtype == np.float32 for a in args) and "while" not in name
]


@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient_of_a_batch(name: str) -> None:
    """grad of a sum of vmap against the sum of gradients of elements."""
    fun, args, axes = CASES[name]

    def total(result: Any) -> Any:
        leaves = [leaf for leaf in hloom.tree.leaves(result) if jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.floating)]
        return sum(jnp.sum(jnp.sin(leaf)) for leaf in leaves)

    numbers = tuple(range(len(args)))
    found = hloom.jit(hloom.grad(lambda *a: total(hloom.vmap(fun, in_axes=axes)(*a)), numbers))(*args)
    every = hloom.vmap(hloom.grad(lambda *a: total(fun(*a)), numbers), in_axes=axes)(*args)
    for got, each, axis in zip(found, every, axes, strict=True):
        wanted = np.asarray(each).sum(0) if axis is None else np.moveaxis(np.asarray(each), 0, axis)
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=2e-4, atol=1e-5)


def test_out_axes() -> None:
    fun = lambda x: (x, {"sum": x.sum(), "two": jnp.ones((2, 3))})  # noqa: E731
    first, rest = hloom.vmap(fun, out_axes=(1, {"sum": 0, "two": -1}))(X)
    assert first.shape == (4, 3) and rest["sum"].shape == (3,) and rest["two"].shape == (2, 3, 3)
    np.testing.assert_array_equal(first, X.T)
    assert hloom.vmap(lambda x: (x.sum(), 5.0), out_axes=(0, None))(X)[1] == 5.0


def test_in_axes_are_prefixes_of_trees() -> None:
    tree = {"a": X, "b": (V, np.float32(2))}
    found = hloom.vmap(lambda t, y: t["a"].sum() + t["b"][0] * t["b"][1] + y, in_axes=({"a": 0, "b": (0, None)}, None))(
        tree, 1.0
    )
    np.testing.assert_allclose(found, X.sum(1) + 2 * V + 1, rtol=1e-6)
    assert hloom.vmap(lambda x, none: x, in_axes=(0, None))(V, None).shape == (3,)
    assert hloom.vmap(lambda t: t["b"][0], in_axes=({"a": None, "b": 0},))({"a": 1.0, "b": (V, None)}).shape == (3,)


def test_what_all_elements_share_may_be_no_array() -> None:
    np.testing.assert_array_equal(hloom.vmap(lambda f, x: f(x), (None, 0))(lambda x: x + 1, V), V + 1)


def test_what_all_elements_share_stays_what_it_is() -> None:
    seen: list[type] = []

    def part(x: Any, size: Any, rest: Any) -> Any:
        seen.extend(map(type, (size, *rest.values())))
        return x[:size] + rest["b"][0]

    given = 2, {"a": 2.5, "b": np.ones(2, np.float32), "c": True, "d": np.int16(3)}
    batched = hloom.vmap(part, (0, None, None))
    for wrap in (lambda f: f, hloom.jit, hloom.grad):
        assert wrap(lambda x: batched(x, *given).sum() * 1.0)(X).shape in ((), X.shape)
    assert batched(X, *given).shape == (len(X), 2)
    assert seen == [int, float, np.ndarray, bool, np.int16] * 4
    assert hloom.vmap(lambda x, y: (x, y), (0, None), (0, None))(V, 3)[1] == 3
    keyed = hloom.vmap(lambda x, k: x + k, (0, None))(V, hloom.random.uniform(hloom.random.key(0)))
    assert keyed.shape == V.shape


def test_float0() -> None:
    zeros = np.zeros((3, 4), hloom.float0)
    assert hloom.vmap(lambda z: (z, z.shape[0]))(zeros)[0].shape == (3, 4)
    assert hloom.vmap(lambda z: z, 1, 0)(zeros).shape == (4, 3)
    gradient = hloom.grad(lambda x, i: (x * i).sum(), (0, 1), allow_int=True)
    for function in (hloom.vmap(gradient), hloom.jit(hloom.vmap(gradient))):
        found = function(X, np.ones(X.shape, np.int32))[1]
        assert found.dtype == hloom.float0 and found.shape == X.shape
    with pytest.raises(ValueError, match=r"axis 0 of argument a of type float0\[3, 4\]"):
        hloom.vmap(lambda a, b: b)(zeros, X[:1])


def test_keyword_arguments_have_the_batch_in_front() -> None:
    np.testing.assert_array_equal(hloom.vmap(lambda x, *, y: x + y.sum(), in_axes=(None,))(1.0, y=X), 1 + X.sum(1))


def test_axis_size_without_a_batch() -> None:
    np.testing.assert_array_equal(hloom.vmap(lambda x: x + 1, in_axes=None, axis_size=3)(1.0), [2, 2, 2])
    assert hloom.vmap(lambda: 1.0, axis_size=4)().shape == (4,)


def test_no_elements() -> None:
    assert hloom.vmap(row_sums)(X[:0])[1].shape == (0, 4)
    assert hloom.jit(hloom.vmap(mean_field))(X[:0])["softmax"].shape == (0, 4)


def test_weak_types_and_dtypes_are_kept() -> None:
    assert hloom.vmap(lambda x: x * 2.0)(jnp.arange(3, dtype=jnp.bfloat16)).dtype == jnp.bfloat16
    assert hloom.vmap(lambda x: 2.0, axis_size=3, in_axes=None)(1.0).aval.weak_type


def test_keys() -> None:
    keys = hloom.random.split(hloom.random.key(1), 3)
    normal = lambda k: hloom.random.normal(k, (4,))  # noqa: E731
    for vmapped in (hloom.vmap(normal), hloom.jit(hloom.vmap(normal))):
        np.testing.assert_array_equal(vmapped(keys), np.stack([normal(k) for k in keys]))
    split = hloom.vmap(hloom.random.split)(keys)
    assert split.shape == (3, 2) and split.dtype == keys.dtype
    np.testing.assert_array_equal(
        hloom.random.key_data(split), np.stack([hloom.random.key_data(hloom.random.split(k)) for k in keys])
    )
    chosen = hloom.vmap(lambda k, i: lax.cond(i > 1, lambda: k, lambda: hloom.random.split(k)[0]))(keys, jnp.arange(3))
    assert chosen.dtype == keys.dtype and bool(chosen[2] == keys[2])


def test_a_batch_of_a_loop_is_one_native_loop() -> None:
    """1,000 ODEs: the loop over the batch is inside of one kernel, not a program for each."""
    step = lambda y, _: (y + 0.01 * jnp.stack([y[1], -y[0]]), None)  # noqa: E731
    solve = hloom.jit(hloom.vmap(lambda y: lax.scan(step, y, None, length=50)[0]))
    entry = solve.lower(np.ones((1000, 2), np.float32)).compile().as_text().partition("ENTRY")[2]
    assert "calls=%native_loop" in entry and " while(" not in entry


# --- rules of users


def test_custom_vmap() -> None:
    seen: list[Any] = []

    @custom_vmap
    def multiply(x: Any, y: Any) -> Any:
        return x * y

    @multiply.def_vmap
    def _(size: int, batched: list[bool], x: Any, y: Any) -> Any:
        seen.append((size, batched))
        return 10 * x * y, True

    np.testing.assert_array_equal(multiply(V, 2.0), V * 2)
    np.testing.assert_array_equal(hloom.vmap(multiply, (0, None))(V, 2.0), 10 * V * 2)
    np.testing.assert_array_equal(hloom.jit(hloom.vmap(multiply, (None, 0)))(2.0, V), 10 * V * 2)
    assert seen == [(3, [True, False]), (3, [False, True])]
    outer = hloom.vmap(hloom.vmap(multiply, (None, 0)), (0, None))(V, V)
    np.testing.assert_allclose(outer, 10 * np.outer(V, V), rtol=1e-6)
    assert hloom.grad(multiply)(2.0, 3.0) == 3.0


@pytest.mark.parametrize(
    "rule, words",
    [
        (lambda n, b, x: x, "must return a pair"),
        (lambda n, b, x: ((x, x), (True, True)), "does not match that of original custom-vmapped"),
        (lambda n, b, x: (x, (True, True)), "structure of output value and output batching specification"),
        (lambda n, b, x: (x[0], True), r"returned float32\[\] where float32\[3\] must be"),
    ],
)
def test_custom_vmap_rules_that_are_wrong(rule: Any, words: str) -> None:
    fun = custom_vmap(lambda x: x + 1)
    fun.def_vmap(rule)
    with pytest.raises(ValueError, match=words):
        hloom.vmap(fun)(V)


def test_custom_vmap_without_a_rule() -> None:
    with pytest.raises(AttributeError, match="No batching rule defined"):
        custom_vmap(lambda x: x)(1.0)


def test_sequential_vmap() -> None:
    fun = sequential_vmap(lambda x, y: {"sin": jnp.sin(x) * y, "sum": x.sum()})
    found = hloom.vmap(fun, in_axes=(0, None))(X, 2.0)
    np.testing.assert_allclose(found["sin"], np.sin(X) * 2, rtol=1e-6)
    np.testing.assert_allclose(found["sum"], X.sum(1), rtol=1e-6)


# --- errors


def _raises(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "sizes": (
        lambda: hloom.vmap(lambda x, y: x)(X, np.ones(5)),
        ValueError,
        r"inconsistent sizes for array axes to be mapped:\n.*axis 0 of argument x of type float32\[3,4\]",
    ),
    "rank": (lambda: hloom.vmap(lambda x: x, in_axes=1)(V), ValueError, "rank should be at least 2, but is only 1"),
    "nothing is mapped": (
        lambda: hloom.vmap(lambda x: x, in_axes=None)(V), ValueError, "at least one non-None value in in_axes",
    ),
    "number of in_axes": (lambda: hloom.vmap(lambda x: x, in_axes=(0, 0))(V), ValueError, r"len\(in_axes\)=2"),
    "type of in_axes": (lambda: hloom.vmap(lambda x: x, in_axes="a"), TypeError, "vmap in_axes must be an int"),
    "a dictionary of in_axes": (
        lambda: hloom.vmap(lambda x: x["a"], in_axes={"a": 0}), TypeError, r"positional .*, but got \{'a': 0\}\.",
    ),
    "a bool in in_axes": (lambda: hloom.vmap(lambda x: x, in_axes=False)(V), TypeError, "vmap in_axes must be an int"),
    "an array in out_axes": (
        lambda: hloom.vmap(lambda x: x, out_axes=(jnp.ones(2),))(V), TypeError, "vmap out_axes must be an int",
    ),
    "in_axes are no prefix": (
        lambda: hloom.vmap(lambda x: x, in_axes=((0, 0),))((V, V, V)), ValueError, "must be a tree prefix",
    ),
    "out_axes are no prefix": (
        lambda: hloom.vmap(lambda x: x, out_axes=(0, 0))(V), ValueError, "out_axes specification must be a tree prefix",
    ),
    "out_axes out of range": (lambda: hloom.vmap(lambda x: x, out_axes=3)(V), ValueError, "axis 3 is out of bounds"),
    "out_axes None": (lambda: hloom.vmap(lambda x: x, out_axes=None)(V), ValueError, "got axis spec None but output"),
    "out_axes None, of a named axis": (
        lambda: hloom.vmap(lambda x: x, out_axes=None, axis_name="i")(V), ValueError, r"output \(axis_name=i\) but",
    ),
    "axis_size": (lambda: hloom.vmap(lambda x: x, axis_size=4)(V), ValueError, "the `axis_size` argument was 4"),
    "Python control flow": (
        lambda: hloom.vmap(lambda x: 1 if x > 0 else 2)(V),
        hloom.errors.TracerBoolConversionError,
        "is traced while it is batched by vmap",
    ),
    "unbound axis": (lambda: lax.psum(1.0, "i"), NameError, "unbound axis name: i"),
    "axis bound elsewhere": (
        lambda: hloom.vmap(lambda x: lax.psum(x, "j"), axis_name="i")(V), NameError, "mapped over here: 'i'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    _raises(*ERRORS[name])


def test_a_leaked_element_is_named() -> None:
    leaked: list[Any] = []
    hloom.vmap(lambda x: leaked.append(x) or x)(V)  # type: ignore[func-returns-value]
    with pytest.raises(hloom.errors.UnexpectedTracerError, match="batched by vmap"):
        _ = leaked[0] + 1


# --- primitives of libraries


def _twice() -> Any:
    primitive = hloom.extend.core.Primitive("twice", lambda x, y, *, by: (x * y * by, x.sum()))

    @primitive.def_jvp
    def _(primals: Any, tangents: Any, *, by: Any) -> Any:
        return primitive.bind(*primals, by=by), (100.0 * tangents[0], tangents[0].sum())  # shows which rule is used

    return primitive


def test_rules_of_a_primitive_are_batched() -> None:
    twice = _twice()
    fun = lambda x, y: twice.bind(x, y, by=3.0)  # noqa: E731
    close(hloom.vmap(fun, (0, None))(X, 2.0), looped(fun, (X, np.float32(2)), (0, None)))
    gradient = hloom.grad(lambda x: hloom.vmap(fun, (0, None))(x, 2.0)[0].sum())(X)
    np.testing.assert_array_equal(gradient, np.full_like(X, 100))


def test_batching_rule_of_a_primitive() -> None:
    twice = _twice()
    seen = []

    @twice.def_batch
    def _(size: int, batched: tuple[bool, ...], x: Any, y: Any, *, by: float) -> Any:
        seen.append((size, batched, by))
        return (x * y * by, x.sum(1)), (True, True)

    found = hloom.vmap(lambda x, y: twice.bind(x, y, by=3.0), (0, None))(X, 2.0)
    close(found, (X * 6, X.sum(1)))
    assert seen == [(3, (True, False), 3.0)]


@pytest.mark.parametrize("answer", [lambda x: x, lambda x: ((x[0], x.sum(1)), (True, True))])
def test_batching_rules_that_are_wrong(answer: Any) -> None:
    twice = _twice()
    twice.def_batch(lambda size, batched, x, y, *, by: answer(x))
    with pytest.raises(TypeError, match="the batch rule of twice"):
        hloom.vmap(lambda x: twice.bind(x, 2.0, by=3.0))(X)


SAFE: dict[str, tuple[Callable[..., Any], list[float], list[float], float]] = {
    "operand": (lambda x, y: lax.cond(x < 1, lambda x: 2 * x, lambda x: jnp.sqrt(x), x), [0, 4], [2, 0.25], 0),
    "closed over": (lambda x, y: lax.cond(x < 1, lambda: 2 * x, lambda: jnp.sqrt(x)), [0, 4], [2, 0.25], 0),
    "switch": (lambda x, y: lax.switch(jnp.int32(x), [jnp.sin, jnp.sqrt, jnp.log], x), [0, 1, 4], [1, 0.5, 0.25], 0),
    "shared": (lambda x, y: x + lax.cond(x < 9, lambda y: 3 * y, lambda y: jnp.sqrt(y), y), [0, 4], [1, 1], 6),
}
"""Functions of an element and of a number that all share, 0; the elements; the derivatives of the sum."""


@pytest.mark.parametrize("name", SAFE)
def test_no_derivative_comes_from_a_branch_that_an_element_does_not_take(name: str) -> None:
    """It may be infinite there, and 0 times infinity is not a number."""
    fun, xs, of_elements, of_shared = SAFE[name]
    given = np.array(xs, np.float32)
    for batched in (hloom.vmap(fun, (0, None)), hloom.jit(hloom.vmap(fun, (0, None)))):
        for transform in (hloom.grad, hloom.jacfwd):
            found = transform(lambda x, y, run=batched: run(x, y).sum(), (0, 1))(given, np.float32(0))
            np.testing.assert_allclose(found[0], of_elements, rtol=1e-6)
            np.testing.assert_allclose(found[1], of_shared)


def test_what_all_branches_return_as_they_got_it_remains_the_same_for_all() -> None:
    def run(x: Any, y: Any) -> Any:
        return lax.cond(x < 3, lambda x, y: (x * 2, y), lambda x, y: (x * 3, y), x, y)

    found = hloom.vmap(run, in_axes=(0, None), out_axes=(0, None))(jnp.arange(5), 3.0)
    np.testing.assert_array_equal(found[0], [0, 2, 4, 9, 12])
    assert found[1].shape == () and found[1] == 3


UNCHANGED: dict[str, Callable[[Any, Any], Any]] = {
    "scan": lambda x, y: lax.scan(lambda c, _: (c, x), y, None, length=2)[0],
    "while": lambda x, y: lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1], x), (0, y, x))[1],
    "fori_loop": lambda x, y: lax.fori_loop(0, 2, lambda i, s: (s[0] + x, s[1]), (x, y))[1],
}


@pytest.mark.parametrize("loop", UNCHANGED)
def test_a_loop_hands_on_what_it_does_not_change(loop: str) -> None:
    """It is the value from before the loop, though the loop runs in branches that elements choose."""
    loop_of = UNCHANGED[loop]

    def f(x: Any, y: Any) -> Any:
        return lax.cond(x < 0, loop_of, loop_of, x, y)

    assert hloom.vmap(f, (0, None), None)(V, 3.0) == 3
    assert hloom.jit(hloom.vmap(f, (0, None), None))(V, 3.0) == 3
    assert hloom.grad(f, 1)(1.0, 3.0) == 1
