"""Mutable arrays: programs, their results (JAX's), and errors."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax

PROGRAMS: dict[str, tuple[Callable[..., Any], Any]] = {}
"""A function of the library and of `wrap`, which is jit or nothing, and its result as lists of numbers."""


def program(expected: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = function, expected
        return function

    return add


@program([[2, 6, 1], [0, 2, 0]])
def arguments_and_closures(jax: Any, wrap: Any) -> Any:
    x, y = jax.new_ref(jax.numpy.zeros(3)), jax.new_ref(jax.numpy.zeros(3))

    def f(x: Any) -> None:
        x[...] += 1.0
        x[0] += 1
        x[1] += 5

    def g() -> None:
        y[1] += 1.0

    wrap(f)(x)
    both = wrap(g)
    both()
    both()
    return x[...], y[...]


@program([[2, 0, 1], 2.0, 3.0])
def inside(jax: Any, wrap: Any) -> Any:
    def f() -> Any:
        x = jax.new_ref(jax.numpy.zeros(3))
        x[0] += 1
        x[0] += 1
        x[2] += 1
        return x[...]

    def frozen(x: float) -> Any:
        ref = jax.new_ref(x)
        ref[...] = ref[...] + ref[...]
        return jax.freeze(ref)

    def emptied(x: float) -> Any:
        ref = jax.empty_ref(jax.ShapeDtypeStruct((), "float32"))
        ref[...] = 3.0 * x
        found = ref[...]
        jax.free_ref(ref)
        return found

    return wrap(f)(), wrap(frozen)(1.0), wrap(emptied)(1.0)


@program([[8, 8], 9, 10, [2, 4, 6, 8, 10]])
def several_programs(jax: Any, wrap: Any) -> Any:
    """A jitted function that calls another one, with references from outside and as arguments."""
    x, y = jax.new_ref(jax.numpy.ones(2)), jax.new_ref(0)

    @jax.jit
    def inner(r: Any, z: Any) -> Any:
        y[...] += z
        r[...] *= 2
        return r[0] + 1

    def outer(r: Any) -> Any:
        inner(r, 4)
        r[...] *= 2
        return inner(r, 6)

    found = wrap(outer)(x)
    return x[...], found, y[...], jax.lax.scan(lambda c, v: (c, v * 2), 0, jax.numpy.arange(1, 6))[1]


@program([10, [2, 4, 6, 8, 10], 6.0, 4, [1, 3, 5, 7, 9]])
def loops(jax: Any, wrap: Any) -> Any:
    x, y = jax.new_ref(0), jax.new_ref(0.0)

    def body(_: Any, v: Any) -> Any:
        x[...] += 2
        return (), x[...]

    def turn(c: Any) -> Any:
        y[...] += 1.5
        return c + 1

    _, ys = wrap(lambda: jax.lax.scan(body, (), np.arange(5)))()
    count = wrap(lambda: jax.lax.while_loop(lambda c: c < 4, turn, 0))()
    z = jax.new_ref(np.arange(5))

    def each(_: Any, pair: Any) -> Any:
        index, row = pair
        row[...] += index + 1
        return (), row[...]

    wrap(lambda: jax.lax.scan(each, (), (np.arange(5), z)))()
    return x[...], ys, y[...], count, z[...]


@program([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0], 7])
def branches(jax: Any, wrap: Any) -> Any:
    x, y, z = jax.new_ref(0.0), jax.new_ref(0.0), jax.new_ref(0)

    def one() -> None:
        x[()] = 1.0
        y[()] = 5.0

    def two() -> None:
        x[()] = 2.0

    f = wrap(lambda p: jax.lax.cond(p, one, two))
    found = []
    for p in (True, False):
        f(p)
        found.append([float(x[...]), float(y[...])])
    wrap(lambda k: jax.lax.switch(k, [one, two, lambda: x.__setitem__((), 4.0)]))(2)
    wrap(lambda p: jax.lax.cond(p, lambda r: r.__setitem__((), 7), lambda r: r.__setitem__((), 8), z))(True)
    return *found, [x[...], y[...]], z[...]


@program([12.0, 6.0])
def counted_loops(jax: Any, wrap: Any) -> Any:
    x = jax.new_ref(jax.numpy.float32(0))

    def turn(i: Any, c: Any) -> Any:
        x[...] += c
        return c + 1.0

    total = wrap(lambda n: jax.lax.fori_loop(0, n, turn, 0.0))(4)
    last = x[...]
    wrap(lambda: jax.lax.fori_loop(0, 4, turn, 0.0))()
    return x[...], total + last - 4.0


@program([2.0, 2.0, 0.0, 2.0, [0.0, 1.0, 1.0], [2.0, 4.0, 6.0]])
def gradients(jax: Any, wrap: Any) -> Any:
    def doubled(x: Any) -> Any:
        ref = jax.new_ref(x)
        ref[...] = ref[...] + ref[...]
        return ref[...]

    def constant(x: Any) -> Any:
        ref = jax.new_ref(x)
        ref[...] = 2.0
        return jax.freeze(ref)

    def product(x: Any) -> Any:
        ref = jax.new_ref(x)
        y = ref[...]
        ref[...] = 2.0
        return y * jax.freeze(ref)

    def element(x: Any) -> Any:
        ref = jax.new_ref(x)
        ref[0] = 2.0
        return jax.freeze(ref).sum()

    def squares(x: Any) -> Any:
        ref = jax.new_ref(jax.numpy.zeros(3))
        ref[...] += x
        ref[...] *= ref[...]
        return ref[...].sum()

    grad = jax.grad
    return (
        grad(wrap(doubled))(3.0),
        wrap(grad(doubled))(3.0),
        grad(wrap(constant))(1.0),
        grad(wrap(product))(3.0),
        grad(wrap(element))(jax.numpy.arange(3.0)),
        grad(wrap(squares))(jax.numpy.arange(1.0, 4.0)),
    )


@program([95.565431, 3, 12])
def gradients_of_loops(jax: Any, wrap: Any) -> Any:
    def loss(x: Any) -> Any:
        ref = jax.new_ref(0.0)

        def body(c: Any, v: Any) -> Any:
            ref[...] += jax.numpy.sin(v) * x
            return c * ref[...], ref[...]

        c, ys = jax.lax.scan(body, x, jax.numpy.arange(3.0) + 1)
        return c + ys.sum() + ref[...]

    counter, other, const = jax.new_ref(0), jax.new_ref(0), jax.numpy.arange(3)

    def plumbed(x: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            counter[...] += 1
            return c, ()

        return jax.lax.scan(body, x, (), length=3)[0]

    def plumbed_with_constants(x: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            other[...] += const.sum()
            return c + const.sum(), ()

        return jax.lax.scan(body, x, (), length=4)[0]

    found = jax.grad(wrap(loss))(2.0)
    wrap(jax.grad(plumbed))(1.0)
    jax.grad(wrap(plumbed_with_constants))(1.0)
    return found, counter[...], other[...]


@program([4.0, 4.0, 104.0, -0.7568025, 0.9092974, [0, 0, 0, 2, 0, 1, 0, 0, 0, 0], [1, 2, 3], 0.5403023])
def gradient_references(jax: Any, wrap: Any) -> Any:
    def square(ref: Any) -> Any:
        return ref[...] ** 2

    def changed(ref: Any) -> Any:
        ref[...] = jax.numpy.sin(ref[...])
        return ref[...] ** 2

    _, pull = jax.vjp(wrap(square), jax.new_ref(2.0))
    first, second = jax.new_ref(0.0), jax.new_ref(100.0)
    pull.with_refs(first)(1.0)
    pull.with_refs(second)(1.0)
    x = jax.new_ref(2.0)
    _, pull = jax.vjp(wrap(changed), x)
    third = jax.new_ref(0.0)
    pull.with_refs(third)(1.0)
    total = jax.new_ref(jax.numpy.zeros(10))
    for i in (3, 5, 3):
        _, pull = jax.vjp(wrap(lambda x, i: x[i]), jax.numpy.arange(10.0), i)
        pull.with_refs(total, jax.ad.GradValue())(1.0)
    _, pull = jax.vjp(lambda a, b: (a * b).sum(), jax.numpy.ones(3), jax.numpy.arange(1.0, 4.0))
    one, other = pull.with_refs(jax.ad.GradValue(), jax.ad.DontWant())(1.0)
    assert isinstance(other, jax.ad.DidntWant)
    _, pull = jax.vjp(jax.numpy.sin, 1.0)
    fourth = jax.new_ref(0.0)
    (nothing,) = pull.with_refs(fourth)(1.0)
    assert isinstance(nothing, jax.ad.GradRef)
    return first[...], first[...], second[...], third[...], x[...], total[...], one, fourth[...]


@program([[[0.0625, 0.0625], [0.0625, 0.0625]], True])
def microbatches(jax: Any, wrap: Any) -> Any:
    np_ = jax.numpy

    def loss(w: Any, x: Any) -> Any:
        return np_.mean(np_.dot(x, w) ** 2)

    def process(w: Any, batch: Any) -> Any:
        total = jax.new_ref(np_.zeros_like(w))

        def one(_: Any, x: Any) -> Any:
            value, pull = jax.vjp(lambda w: loss(w, x), w)
            pull.with_refs(total)(np_.ones_like(value))
            return (), value

        _, values = jax.lax.scan(one, (), batch)
        return jax.freeze(total), values

    w, batch = np_.ones((2, 2)) / 16, np_.ones((2, 3, 2)) / 2
    found, _ = wrap(process)(w, batch)
    plain = jax.grad(lambda w: sum(loss(w, x) for x in batch))(w)
    return found, bool(np_.allclose(found, plain))


@program([[0, 2, 4], [[1, 1, 1], [1, 1, 1]], [2, 2, 2], [1, 2, 3, 4], [[0, 64, 256], [64, 0, 64], [256, 64, 0]]])
def batches(jax: Any, wrap: Any) -> Any:
    np_ = jax.numpy

    def twice(ref: Any, v: Any) -> None:
        ref[...] += v
        ref[...] += v

    def put(ref: Any, v: Any) -> None:
        ref[...] = v

    a = jax.new_ref(np_.array([0, 0, 0]))
    wrap(jax.vmap(twice))(a, np_.arange(3))
    b = jax.new_ref(np_.zeros((2, 3)))
    wrap(jax.vmap(put, in_axes=(1, 0)))(b, np_.ones((3, 2)))
    c, shared = jax.new_ref(np_.array([0, 0, 0])), jax.new_ref(1)
    wrap(jax.vmap(lambda ref: twice(ref, shared[...])))(c)

    @jax.jit
    def pure(x: Any) -> Any:
        ref = jax.new_ref(1.0)
        ref[...] += x
        return ref[...]

    def distance(x: Any, y: Any, out: Any) -> None:
        out[...] = np_.sum((x - y) ** 2)

    rows, out = np_.arange(12.0).reshape(3, 4), jax.new_ref(np_.zeros((3, 3)))
    wrap(jax.vmap(jax.vmap(distance, (0, None, 0)), (None, 0, 0)))(rows, rows, out)
    return a[...], b[...], c[...], jax.vmap(pure)(np_.arange(4.0)), out[...]


@program([0.5403023, 0.5403023])
def gradients_in_between(jax: Any, wrap: Any) -> Any:
    @jax.custom_vjp
    def stash(ref: Any, x: Any) -> Any:
        return x

    def backward(ref: Any, g: Any) -> Any:
        ref[...] = g
        return None, g

    stash.defvjp(lambda ref, x: (x, ref), backward)
    ref = jax.new_ref(0.0)
    found = jax.grad(wrap(lambda x, ref: jax.numpy.sin(stash(ref, x))))(1.0, ref)
    return found, ref[...]


@program([3, 10, [0, 1, 2, 10, 4], [0, 1, 2, 17, 4], [[1, 2], [17, 4]], [0, 11, 12, 17, 4], 5, [0, 1, 2, 0]])
def functions(jax: Any, wrap: Any) -> Any:
    np_, R = jax.numpy, jax.ref
    ref = R.new_ref(np_.arange(5))
    before = R.swap(ref, 3, 10)
    after = R.get(ref, 3)
    whole = ref[...]
    R.addupdate(ref, 3, 7)
    more = ref[...]
    parts = np_.stack([R.get(ref, slice(1, 3)), ref[np_.array([3, 4])]])
    ref.at[1:3][...] += 10
    last = ref[...]
    R.set(ref, 0, 9)
    small = jax.new_ref(np_.arange(4))
    small[-1] = 0
    return before, after, whole, more, parts, last, len(ref), small[...]


@program([[3.0, 2.0], [6.0, 4.0], 45])
def reads_and_order(jax: Any, wrap: Any) -> Any:
    """Values that were read stay; all later operations see a write."""
    x = jax.new_ref(jax.numpy.array([3.0, 2.0]))

    def f() -> Any:
        before = x[...]
        x[...] = before * 2
        return before

    first = wrap(f)()
    total = jax.new_ref(0)

    def add(_: Any, v: Any) -> Any:
        total[...] += v
        return None, v * 2

    jax.lax.scan(add, None, jax.numpy.arange(10))
    return first, x[...], total[...]


def numbers(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [numbers(v) for v in value]
    return np.asarray(value).tolist()


def assert_close(found: Any, expected: Any) -> None:
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for f, e in zip(found, expected, strict=True):
            assert_close(f, e)
    else:
        assert math.isclose(found, expected, rel_tol=1e-5)


@program([12, 5, 12.1875])
def written_by_a_condition(jax: Any, wrap: Any) -> Any:
    @wrap
    def f(x: Any, y: Any, z: Any) -> Any:
        ref = jax.new_ref(x)

        def go_on(i: Any) -> Any:
            ref[...] += z
            return i < y

        n = jax.lax.while_loop(go_on, lambda i: i + 1, 0)
        return ref[...], n

    @wrap
    def g(x: Any) -> Any:
        ref = jax.new_ref(x)

        def go_on(i: Any) -> Any:
            ref[...] *= 1.5
            return i < 3

        def body(i: Any) -> Any:
            ref[...] += 1.0
            return i + 1

        jax.lax.while_loop(go_on, body, 0)
        return ref[...]

    return *f(0, 5, 2), g(1.0)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, compiled: bool) -> None:
    run, expected = PROGRAMS[name]
    assert_close(numbers(run(hloom, hloom.jit if compiled else lambda f: f)), expected)


JAX_FAILS = {
    "batches": "references along another axis than the first",
    "functions": "parts of references outside of jit",
    "gradient_references": "gradients by references of jitted functions",
    "gradients": "gradients of constants that are written",
    "written_by_a_condition": "the last evaluation of a condition is lost; both in cond and body are refused",
}
"""Programs that JAX 0.10.2 refuses, or fails in."""


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in JAX_FAILS])
def test_jax_gives_the_same(name: str) -> None:
    jax = pytest.importorskip("jax")
    if jax.__version__ != "0.10.2":
        pytest.skip("the results are those of JAX 0.10.2")
    run, expected = PROGRAMS[name]
    assert_close(numbers(run(jax, jax.jit)), expected)


# ---- errors


def ref(value: Any = 0.0) -> hloom.Ref:
    return hloom.new_ref(value)


def with_one(f: Callable[[Any], Any]) -> Any:
    return f(ref(jnp.zeros(3)))


def passed_and_closed_over(what: str) -> Any:
    x = ref()
    if what == "jit":
        return hloom.jit(lambda y_ref: x[...] + y_ref[...])(x)
    return hloom.lax.cond(True, lambda y_ref: x[...] + y_ref[...], lambda y_ref: x[...] + y_ref[...], x)


def used_afterwards(end: Callable[[Any], Any]) -> Any:
    x = ref()
    end(x)
    return x[...]


def leaked() -> Any:
    kept = []
    hloom.jit(lambda v: kept.append(ref(v)))(1.0)
    return kept[0][...]


def fwd_returns_new() -> Any:
    f = hloom.custom_vjp(lambda x, r: x)
    f.defvjp(lambda x, r: (x, ref()), lambda res, g: (g, None))
    return hloom.vjp(f, 3.0, ref())


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a reference is returned": (
        lambda: hloom.jit(lambda v: hloom.new_ref(v))(jnp.arange(3)),
        ValueError,
        r"(?s)traced for jit returned a mutable array reference of type Ref\{int32\[3\]\}.*\n\n.*was created on line",
    ),
    "an argument is returned": (
        lambda: with_one(hloom.jit(lambda x_ref: {"hi": x_ref})),
        ValueError,
        "(?s)traced for jit returned a mutable array reference.*was passed in as the argument x_ref",
    ),
    "a loop returns one": (
        lambda: hloom.lax.scan(lambda c, x: (hloom.new_ref(c), x), 0, jnp.arange(3)),
        ValueError,
        "traced for scan returned a mutable array reference of type",
    ),
    "a branch returns one": (
        lambda: hloom.lax.cond(True, lambda: ref(), lambda: ref()),
        ValueError,
        "traced for cond returned a mutable array reference of type",
    ),
    "vmap returns one": (lambda: with_one(hloom.vmap(lambda r: r)), ValueError, "returned a mutable array reference"),
    "twice in jit": (
        lambda: with_one(lambda r: hloom.jit(lambda x_ref, y_ref: x_ref[...] + y_ref[...])(r, r)),
        ValueError,
        "appeared at both x_ref and y_ref",
    ),
    "twice in cond": (
        lambda: with_one(lambda r: hloom.lax.cond(True, lambda a, b: 0, lambda a, b: 0, r, r)),
        ValueError,
        "for cond.*at both x1 and x2",
    ),
    "twice in vmap": (
        lambda: with_one(lambda r: hloom.vmap(lambda a, b: None)(r, r)),
        ValueError,
        "only one reference to a mutable array may be passed as an argument",
    ),
    "passed and closed over": (
        lambda: passed_and_closed_over("jit"),
        ValueError,
        "closed over and passed as the argument y_ref",
    ),
    "passed to a branch and closed over": (
        lambda: passed_and_closed_over("cond"),
        ValueError,
        "closed over and passed as the argument x1",
    ),
    "frozen elsewhere": (
        lambda: with_one(hloom.jit(lambda r: hloom.freeze(r))),
        ValueError,
        "only be frozen where it was made",
    ),
    "used when frozen": (lambda: used_afterwards(hloom.freeze), ValueError, "was frozen"),
    "used when freed": (lambda: used_afterwards(hloom.free_ref), ValueError, "was freed"),
    "leaked": (leaked, ValueError, "outside of the function that made it"),
    "computed with": (lambda: jnp.sin(ref()), TypeError, "got Ref"),
    "a reference to a reference": (lambda: hloom.new_ref(ref()), ValueError, "references to references"),
    "a value of another dtype": (
        lambda: hloom.new_ref(jnp.array([0, 0])).__setitem__(..., 1.5),
        ValueError,
        "Invalid dtype.*int32.*float32",
    ),
    "a value of another shape": (
        lambda: with_one(lambda r: r.__setitem__(..., jnp.ones(2))),
        ValueError,
        r"Invalid shape.*\(3,\).*\(2,\)",
    ),
    "written by a batch": (
        lambda: with_one(lambda r: hloom.vmap(lambda v: r.__setitem__(0, v))(jnp.arange(3.0))),
        ValueError,
        "unbatched array reference",
    ),
    "written by a derivative": (
        lambda: with_one(lambda r: hloom.jvp(lambda v: r.__setitem__(0, v), (1.0,), (1.0,))),
        ValueError,
        "Move the array reference",
    ),
    "a gradient without a place": (lambda: hloom.vjp(lambda r: r[...] * 2, ref())[1](1.0), ValueError, "with_refs"),
    "too few places": (
        lambda: hloom.vjp(lambda a, b: a * b, 1.0, 2.0)[1].with_refs(ref()),
        ValueError,
        "an entry for each argument",
    ),
    "no place": (lambda: hloom.vjp(lambda a: a, 1.0)[1].with_refs(3), ValueError, "with_refs takes references"),
    "grad of a reference": (
        lambda: hloom.grad(lambda r: r[...])(ref()),
        TypeError,
        "Attempting to pass a Ref Ref{float32",
    ),
    "a new one as a residual": (fwd_returns_new, ValueError, "custom_vjp fwd function"),
    "pickled": (lambda: pickle.dumps(ref()), TypeError, "pickle"),
    "as a truth value": (lambda: bool(ref()), TypeError, "truth"),
    "iterated": (lambda: with_one(list), TypeError, "iterated"),
    "without dimensions": (lambda: len(ref()), TypeError, "unsized"),
    "get of an array": (lambda: hloom.ref.get(jnp.ones(3), 0), ValueError, "Can only call `ref_get` on a reference"),
    "of no type": (lambda: hloom.empty_ref(3), TypeError, "a type is needed"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        call()


# ---- what references are


def test_kinds() -> None:
    x = hloom.new_ref(1.0)
    assert isinstance(x, hloom.Ref) and not isinstance(x, hloom.Array) and not isinstance(jnp.ones(3), hloom.Ref)
    seen: list[bool] = []
    hloom.jit(lambda r: seen.append(isinstance(r, hloom.Ref)))(x)
    assert seen == [True]
    assert repr(x) == "Ref(1., dtype=float32, weak_type=True)" and repr(x.aval) == "Ref{float32[]}"  # as in JAX
    assert (x.shape, x.dtype, x.ndim, x.size) == ((), np.float32, 0, 1)
    assert hloom.new_ref(jnp.array([1, 2, 3]))[None].shape == (1, 3)


def test_a_jitted_function_is_traced_once_for_references_of_one_type() -> None:
    traced = []

    @hloom.jit
    def f(r: Any) -> None:
        traced.append(1)
        r[0] += 1.0

    first, second = ref(jnp.zeros(3)), ref(jnp.ones(3))
    for _ in range(3):
        f(first)
        f(second)
    assert (first[...].tolist(), second[...].tolist()) == ([3, 0, 0], [4, 1, 1])
    assert len(traced) == 1


def test_what_was_read_or_given_is_not_overwritten() -> None:
    x = jnp.zeros(1000)
    r = hloom.new_ref(x)
    before = r[...]
    f = hloom.jit(lambda r: r.__setitem__(0, 1.0))
    f(r)
    f(r)
    assert x[0] == 0 and before[0] == 0 and r[0] == 1


def test_programs_write_in_place() -> None:
    r = hloom.new_ref(jnp.zeros(100_000))
    f = hloom.jit(lambda r, i: r.__setitem__(i, 1.0))
    f(r, 0)
    place = r.unsafe_buffer_pointer()
    for i in range(1, 5):
        f(r, i)
    assert r.unsafe_buffer_pointer() == place and r[:5].tolist() == [1] * 5


def test_ahead_of_time() -> None:
    r, outside = hloom.new_ref(5.0), hloom.new_ref(0)

    def f(r: Any, x: Any) -> Any:
        r[...] += x
        outside[...] += 1
        return r[...] * 2

    compiled = hloom.jit(f).lower(r, 2.0).compile()
    assert compiled(r, 2.0) == 14 and compiled(r, 1.0) == 16
    assert (r[...], outside[...]) == (8, 2)


def test_keys() -> None:
    r = hloom.new_ref(hloom.random.key(0))
    hloom.jit(lambda: r.__setitem__(..., hloom.random.fold_in(r[...], 1)))()
    expected = hloom.random.fold_in(hloom.random.key(0), 1)
    assert hloom.random.key_data(r[...]).tolist() == hloom.random.key_data(expected).tolist()


def test_slices_from_traced_starts() -> None:
    r = hloom.new_ref(jnp.arange(6))

    @hloom.jit
    def f(i: Any) -> Any:
        r[hloom.ds(i, 2)] = jnp.array([10, 20])
        return r[hloom.ds(i, 3)]

    assert f(2).tolist() == [10, 20, 4]
    assert r[hloom.ds(0, 3, 2)].tolist() == [0, 10, 4] and r[hloom.ds(2)].tolist() == [0, 1]


@pytest.mark.parametrize(
    "index",
    [1, slice(1, 4), (Ellipsis, 0), (slice(None), 1), (np.arange(2), np.arange(2)), (np.arange(2), ..., np.arange(2))],
)
def test_indices(index: Any) -> None:
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    r = hloom.new_ref(x)
    assert np.array_equal(r[index], x[index])
    r[index] = jnp.asarray(x[index]) * 2
    x[index] *= 2
    assert np.array_equal(r[...], x)


def test_disable_jit() -> None:
    r = ref()
    with hloom.disable_jit():
        hloom.jit(lambda: hloom.lax.fori_loop(0, 3, lambda i, c: (r.addupdate(2.0), c)[1], 0))()
    assert r[...] == 6


def test_custom_jvp_reads_references() -> None:
    factor = hloom.new_ref(3.0)
    f = hloom.custom_jvp(lambda x: x * factor[...])
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * 7.0))
    assert f(2.0) == 6 and hloom.jit(f)(2.0) == 6 and hloom.grad(f)(1.0) == 7


def test_derivatives_of_functions_with_references_are_taken_operation_by_operation() -> None:
    r = ref()
    assert hloom.grad(hloom.jit(lambda x, r: (r.__setitem__(..., hloom.lax.stop_gradient(x)), x * 2)[1]))(3.0, r) == 2
    assert r[...] == 3


def test_the_type_of_a_reference() -> None:
    found = hloom.typeof(hloom.new_ref(jnp.zeros(3)))
    assert (str(found), found.shape, found.dtype) == ("Ref{float32[3]}", (3,), jnp.float32)
    seen: list[str] = []
    hloom.jit(lambda x: seen.append(str(hloom.typeof(hloom.new_ref(x)))))(jnp.zeros(2))
    assert seen == ["Ref{float32[2]}"]


def _checkpointed_argument(wrap: Any) -> Any:
    ref = hloom.new_ref(1.0)

    @hloom.checkpoint
    def f(y: Any, r: Any) -> Any:
        out = y * r[...]
        r[...] += 1.0
        return out

    return [wrap(f)(2.0, ref), wrap(hloom.grad(f))(2.0, ref), ref[...]]


def _checkpointed_closure(wrap: Any) -> Any:
    ref = hloom.new_ref(1.0)

    @hloom.checkpoint
    def f(y: Any) -> Any:
        ref[...] += 1.0
        return y * y * ref[...]

    return [wrap(f)(2.0), wrap(hloom.grad(f))(2.0), ref[...]]


def _checkpointed_state(wrap: Any) -> Any:
    def f(y: Any) -> Any:
        ref = hloom.new_ref(y)
        hloom.checkpoint(lambda z: ref.__setitem__(..., ref[...] * z))(y)
        return ref[...]

    return [wrap(f)(3.0), wrap(hloom.grad(f))(3.0), wrap(hloom.hessian(f))(3.0), *wrap(hloom.vmap(f))(jnp.arange(3.0))]


def _parts_as_arguments(wrap: Any) -> Any:
    ref = hloom.new_ref(jnp.zeros((2, 3)))

    def add(part: Any, x: Any) -> Any:
        part[...] += x
        return part[...].sum()

    found = [
        wrap(add)(ref.at[1], 1.0),
        wrap(add)(ref.at[0, hloom.ds(jnp.int32(1), 2)], 2.0),
        wrap(lambda p: hloom.lax.cond(True, lambda q: add(q, 3.0), lambda q: 0.0, p))(ref.at[:, 0]),
        wrap(hloom.checkpoint(add))(ref.at[jnp.array([1, 1])].at[0, ::2], 0.0),
    ]
    return [*found, *ref[...].ravel()]


@pytest.mark.parametrize("wrap", [lambda f: f, hloom.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (_checkpointed_argument, [2, 2, 3]),
        (_checkpointed_closure, [8, 12, 3]),
        (_checkpointed_state, [9, 6, 2, 0, 1, 4]),
        (_parts_as_arguments, [3, 4, 7, 5, 3, 2, 2, 4, 1, 1]),
    ],
)
def test_references_in_checkpoints_and_parts_as_arguments(use: Any, expected: list[float], wrap: Any) -> None:
    assert [float(x) for x in use(wrap)] == expected


def test_references_that_checkpoint_and_vmap_refuse() -> None:
    ref = hloom.new_ref(jnp.zeros(3))
    with pytest.raises(ValueError, match="only one reference"):
        hloom.checkpoint(lambda a, b: None)(ref, ref)
    with pytest.raises(ValueError, match="cannot be returned"):
        hloom.checkpoint(lambda a: a)(ref)
    with pytest.raises(ValueError, match="TransformedRefs are not allowed"):
        hloom.vmap(lambda p: p[...])(ref.at[:2])


# ---- references with writes that are constants to derivatives


def _square_added(r: Any, y: Any) -> Any:
    out = y * y
    r[...] += out
    return out


def _read_inside(r: Any, y: Any) -> Any:
    own = hloom.new_ref(0.0, kind="no_grad_no_remat")
    own[...] = y * y
    r[...] = own[...]
    return own[...] * y


def _initial(r: Any, y: Any) -> Any:
    r[...] = 1.0
    return hloom.new_ref(y, kind="no_grad_no_remat")[...] * y


def _in_a_loop(r: Any, y: Any) -> Any:
    def body(c: Any, x: Any) -> Any:
        r[...] += c
        return c * x, None

    return lax.scan(body, y, jnp.array([2.0, 3.0]))[0]


WITHOUT_GRADIENT: dict[str, tuple[Any, float, float]] = {
    "written": (_square_added, 6.0, 10.0),
    "read": (lambda r, y: (r[...] * y, r.__setitem__(..., y))[0], 1.0, 3.0),
    "made inside": (_read_inside, 9.0, 9.0),
    "initial value": (_initial, 3.0, 1.0),
    "loop": (_in_a_loop, 6.0, 10.0),
}
WRAPPED: dict[str, Any] = {
    "plain": lambda f: f,
    "jit": hloom.jit,
    "remat": hloom.remat,
    "jit of remat": lambda f: hloom.jit(hloom.remat(f)),
}


@pytest.mark.parametrize("wrap", WRAPPED)
@pytest.mark.parametrize("given", ["argument", "closure"])
@pytest.mark.parametrize("name", WITHOUT_GRADIENT)
def test_writes_without_gradient(name: str, given: str, wrap: str) -> None:
    fun, gradient, left = WITHOUT_GRADIENT[name]
    ref = hloom.new_ref(1.0, kind="no_grad_no_remat")
    if given == "argument":
        found = hloom.grad(lambda y: WRAPPED[wrap](fun)(ref, y))(3.0)
    else:
        found = hloom.grad(WRAPPED[wrap](lambda y: fun(ref, y)))(3.0)
    assert (float(found), float(ref[...])) == (gradient, left)


def test_kinds_of_references_are_known() -> None:
    with pytest.raises(ValueError, match="kind of a reference"):
        hloom.new_ref(1.0, kind="other")
    assert hloom.typeof(hloom.new_ref(1.0, kind="no_grad_no_remat")) is not hloom.typeof(hloom.new_ref(1.0))


# ---- rules of users that write to references


@hloom.custom_vjp
def _stashed(ref: Any, x: Any) -> Any:
    return x


def _stash(ref: Any, g: Any) -> Any:
    ref[...] = g
    return None, g


_stashed.defvjp(lambda ref, x: (x, ref), _stash)


def _sines(ref: Any, x: Any) -> Any:
    return jnp.sin(_stashed(ref, jnp.sin(x)))


def _scanned(ref: Any, x: Any) -> Any:
    return lax.scan(lambda c, _: (_sines(ref, c), ()), x, None, length=1)[0]


STASHING: dict[str, Any] = {
    "plain": _sines,
    "jit": hloom.jit(_sines),
    "remat": hloom.remat(_sines),
    "jit of remat": hloom.jit(hloom.remat(_sines)),
    "scan": _scanned,
    "jit of scan": hloom.jit(_scanned),
    "scan of remat": lambda ref, x: lax.scan(hloom.remat(lambda c, _: (_sines(ref, c), ())), x, None, length=1)[0],
    "jit, closed over": lambda ref, x: hloom.jit(lambda x: _sines(ref, x))(x),
    "jit of jit, closed over": lambda ref, x: hloom.jit(lambda x: hloom.jit(lambda x: _sines(ref, x))(x))(x),
}


@pytest.mark.parametrize("name", STASHING)
def test_rules_write_to_references(name: str) -> None:
    ref, fun = hloom.new_ref(jnp.float32(0)), STASHING[name]
    assert abs(fun(ref, 1.0) - np.sin(np.sin(1.0))) < 1e-6 and ref[...] == 0
    gradient = hloom.grad(fun, argnums=1)(ref, 1.0)
    assert abs(ref[...] - np.cos(np.sin(1.0))) < 1e-6
    assert abs(gradient - np.cos(np.sin(1.0)) * np.cos(1.0)) < 1e-6
    ref[...] = 0.0
    _, pull = hloom.vjp(lambda x: fun(ref, x), 1.0)
    assert ref[...] == 0
    assert abs(pull(1.0)[0] - gradient) < 1e-6 and abs(ref[...] - np.cos(np.sin(1.0))) < 1e-6


# ---- references that the differentiated function makes, as arguments of functions with a rule


@hloom.custom_vjp
def seven_sines(ref: Any) -> Any:
    return jnp.sin(ref[...])


seven_sines.defvjp(lambda r: (seven_sines(r), jnp.cos(r[...])), lambda cos, ct: (7 * ct * cos,))


@hloom.custom_vjp
def scaled_by(x: Any, ref: Any) -> Any:
    return x * ref[...]


scaled_by.defvjp(lambda x, r: (scaled_by(x, r), (x, r[...])), lambda kept, ct: (ct * kept[1], ct * kept[0]))


@hloom.custom_vjp
def keeps_ref(ref: Any) -> Any:
    return ref[...]


keeps_ref.defvjp(lambda r: (r[...], r), lambda r, ct: (ct * r[...],))


def of_new(x: Any) -> Any:
    return seven_sines(hloom.new_ref(x))


def _in_a_loop(x: Any) -> Any:
    ref = hloom.new_ref(x)
    return lax.fori_loop(0, 2, lambda i, c: c + seven_sines(ref), 0.0)


def _in_a_branch(x: Any) -> Any:
    ref = hloom.new_ref(x)
    return lax.cond(x > 0, lambda: seven_sines(ref), lambda: 0.0)


def _written_between(x: Any) -> Any:
    ref = hloom.new_ref(x)
    first = seven_sines(ref)
    ref[...] = 2 * first
    return seven_sines(ref) + ref[...]


COS, SIN = float(np.cos(0.5)), float(np.sin(0.5))
TWICE = 7 * COS * 7 * float(np.cos(SIN))
BY_VALUE: dict[str, tuple[Any, float]] = {
    "plain": (of_new, 7 * COS),
    "jitted inside": (lambda x: hloom.jit(seven_sines)(hloom.new_ref(x)), 7 * COS),
    "kept": (lambda x: keeps_ref(hloom.new_ref(3 * x)), 4.5),
    "with a value": (lambda x: scaled_by(3 * x, hloom.new_ref(x)), 3.0),
    "checkpoint": (hloom.checkpoint(of_new), 7 * COS),
    "fori_loop": (lambda x: lax.fori_loop(0, 2, lambda i, c: of_new(c), x), TWICE),
    "scan": (lambda x: lax.scan(lambda c, _: (of_new(c), c), x, None, length=2)[0], TWICE),
    "cond": (lambda x: lax.cond(x > 0, of_new, lambda x: x, x), 7 * COS),
    "around a loop": (_in_a_loop, 14 * COS),
    "around a branch": (_in_a_branch, 7 * COS),
    "written between": (_written_between, 7 * COS * 2 * (7 * float(np.cos(2 * SIN)) + 1)),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("how", ["plain", "jit", "jit inside", "vmap", "vmap inside"])
@pytest.mark.parametrize("name", BY_VALUE)
def test_rules_of_references_by_value(name: str, how: str) -> None:
    f, wanted = BY_VALUE[name]
    gradients: dict[str, Any] = {
        "plain": hloom.grad(f),
        "jit": hloom.jit(hloom.grad(f)),
        "jit inside": hloom.grad(hloom.jit(f)),
        "vmap": lambda x: hloom.vmap(hloom.grad(f))(x[None])[0],
        "vmap inside": hloom.grad(lambda x: hloom.vmap(f)(x[None])[0]),
    }
    np.testing.assert_allclose(gradients[how](jnp.float32(0.5)), wanted, rtol=1e-5)


@hloom.custom_vjp
def incremented(ref: Any) -> Any:
    ref[...] += 1
    return ref[...]


incremented.defvjp(lambda r: (incremented(r), None), lambda _, ct: (ct,))


@hloom.custom_vjp
def stashes(ref: Any) -> Any:
    return ref[...]


def _stash(ref: Any, ct: Any) -> Any:
    ref[...] = ct
    return (ct,)


stashes.defvjp(lambda r: (r[...], r), _stash)
BY_VALUE_ERRORS: dict[str, tuple[Any, type[Exception], str]] = {
    "writes": (lambda x: incremented(hloom.new_ref(x)), hloom.errors.UnsupportedError, r"(?s)writes to Ref.*test_ref"),
    "stashes": (lambda x: stashes(hloom.new_ref(x)), hloom.errors.UnsupportedError, "bwd function .*writes to Ref"),
    "twice": (lambda x: (lambda r: scaled_by(r, r))(hloom.new_ref(x)), ValueError, "both x and ref"),
}


@pytest.mark.parametrize("name", BY_VALUE_ERRORS)
def test_what_rules_cannot_do_with_references_by_value(name: str) -> None:
    f, error, text = BY_VALUE_ERRORS[name]
    for gradient in (hloom.grad(f), hloom.jit(hloom.grad(f))):
        with pytest.raises(error, match=text):
            gradient(0.5)


def test_gradients_written_by_a_function_differentiated_inside() -> None:
    """A reference of the outer function takes the gradients of the inner one."""

    @hloom.custom_vjp
    def stash(ref: Any, x: Any) -> Any:
        return x

    def stash_bwd(ref: Any, ct: Any) -> Any:
        ref[...] = ct
        return None, ct

    stash.defvjp(lambda ref, x: (x, ref), stash_bwd)

    def outer(x: Any) -> Any:
        ref = hloom.new_ref(jnp.float32(0))
        hloom.grad(lambda y: jnp.sin(stash(ref, jnp.sin(y))))(lax.stop_gradient(x))
        return x * ref[...]

    wanted = float(np.cos(np.sin(0.5)))
    for run in (hloom.grad(outer), hloom.jit(hloom.grad(outer))):
        np.testing.assert_allclose(run(0.5), wanted, rtol=1e-5)
    np.testing.assert_allclose(hloom.jit(outer)(0.5), 0.5 * wanted, rtol=1e-5)


def test_vjp_of_one_reference_twice() -> None:
    ref = hloom.new_ref(1.0)
    with pytest.raises(ValueError, match="both a and b"):
        hloom.vjp(lambda a, b: a[...] + b[...], ref, ref)


def _written(init: Any) -> Any:
    ref = hloom.new_ref(init)
    before = ref[...]
    ref[...] = np.float32(1)
    return before, ref[...], hloom.freeze(ref)


def _argument(init: Any) -> Any:
    ref = hloom.new_ref(init)
    inside = hloom.jit(lambda r: (r[...], r.__setitem__(..., np.float32(1)), r[...]))(ref)
    return inside, ref[...]


def _summed(init: Any) -> Any:
    ref = hloom.new_ref(init)

    def step(c: Any, _: Any) -> Any:
        ref[...] += c
        return c, ref[...]

    return lax.scan(step, 1.0, None, length=2)[1], ref[...]


WEAK: list[tuple[Callable[[Any], Any], list[bool], list[bool]]] = [
    (_written, [True, True, True], [True, False, False]),
    (_argument, [True, False, True], [True, False, False]),
    (_summed, [False, True], [False, False]),
]
"""Of a Python number: which results are weakly typed in JAX 0.10.2, outside of jit and under it."""


@pytest.mark.parametrize(("f", "outside", "inside"), WEAK)
def test_a_reference_is_as_weak_as_its_first_value(f: Any, outside: list[bool], inside: list[bool]) -> None:
    for function, weak in ((f, outside), (hloom.jit(f), inside)):
        assert [x.weak_type for x in hloom.tree.leaves(function(2.0))] == weak
        assert not any(x.weak_type for x in hloom.tree.leaves(function(np.float32(2))))
    ref = hloom.new_ref(2.0)
    assert hloom.typeof(ref).weak_type
    assert repr(ref) == "Ref(2., dtype=float32, weak_type=True)"


def test_a_compiled_stage_takes_references_beside_numbers() -> None:
    """A reference must not be compared with None, which computes."""

    @hloom.jit
    def f(ref: Any, x: Any) -> Any:
        ref[...] += x
        return ref[...] * 2

    ref = hloom.new_ref(jnp.zeros(3))
    compiled = f.lower(ref, 1.0).compile()
    np.testing.assert_array_equal(compiled(ref, 1.0), np.full(3, 2.0))
    np.testing.assert_array_equal(compiled(ref, jnp.float32(2.0)), np.full(3, 6.0))
    np.testing.assert_array_equal(ref[...], np.full(3, 3.0))
