"""jit: pytrees, static and donated arguments, captured values, nesting, caches, ahead-of-time stages, threads."""

from __future__ import annotations

import functools
import gc
import threading
import weakref
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import hlo
from hloom.errors import DeletedArrayError, NonArrayArgumentError, NonHashableStaticArgumentsError, TreeStructureError
from support.evaluator_fixture import on_the_evaluator, x64  # noqa: F401  # fixtures

Point = namedtuple("Point", "x y")
X = np.arange(3, dtype=np.float32)


class Counted:
    """A function that counts how often it is traced."""

    def __init__(self, fun: Any) -> None:
        functools.update_wrapper(self, fun)
        self.fun, self.count = fun, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        return self.fun(*args, **kwargs)


# ---- what goes in and out


def test_arrays_numpy_and_numbers() -> None:
    f = hloom.jit(lambda x, y: x * 2 + y)
    for x in (jnp.asarray(X), X, X.astype(np.float64)):
        for y in (1, 1.0, np.float32(1), np.ones((), np.int32), jnp.asarray(1)):
            for _ in range(2):  # the second time by the fast way
                result = f(x, y)
                assert result.dtype == np.float32
                np.testing.assert_array_equal(np.asarray(result), X * 2 + 1)
    assert f(1, 2).weak_type
    assert not f(1, jnp.ones(())).weak_type


@pytest.mark.parametrize(
    "tree",
    [
        X,
        (X, 2.0),
        [X, (1, {"b": X, "a": 3})],
        Point(X, [X]),
        OrderedDict(z=X, a=1.0),
        {"none": None, "x": X},
        (),
        None,
        ((), [None, {}]),
    ],
)
def test_pytrees(tree: Any) -> None:
    f = hloom.jit(lambda t: hloom.tree.map(lambda v: v + 1, t))
    for _ in range(2):
        result = f(tree)
        assert hloom.tree.structure(result) == hloom.tree.structure(tree)
        for a, b in zip(hloom.tree.leaves(result), hloom.tree.leaves(tree), strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b) + 1)
    assert f._cache_size() == 1


def test_registered_classes() -> None:
    @hloom.tree_util.register_pytree_node_class
    class Pair:
        def __init__(self, a: Any, b: Any, name: str) -> None:
            self.a, self.b, self.name = a, b, name

        def tree_flatten(self) -> Any:
            return (self.a, self.b), self.name

        @classmethod
        def tree_unflatten(cls, name: str, children: Any) -> Pair:
            return cls(*children, name)

    @partial(hloom.tree_util.register_dataclass, data_fields=["w"], meta_fields=["kind"])
    @dataclass
    class Layer:
        w: Any
        kind: str

    f = hloom.jit(lambda p, layer: (Pair(p.b, p.a, p.name), Layer(layer.w * 2, layer.kind + "!")))
    pair, layer = f(Pair(X, 1.0, "n"), Layer(X, "relu"))
    assert (pair.name, float(pair.a), layer.kind) == ("n", 1.0, "relu!")
    np.testing.assert_array_equal(np.asarray(layer.w), X * 2)
    f(Pair(X, 1.0, "other"), Layer(X, "relu"))
    assert f._cache_size() == 2


def test_an_argument_may_have_the_name_self() -> None:
    def f(self: Any, fun: Any) -> Any:
        return 2 * self + fun

    jitted = hloom.jit(f)
    for _ in range(2):
        assert jitted(self=2.0, fun=1.0) == 5
    assert jitted.lower(self=2.0, fun=1.0).compile()(self=3.0, fun=1.0) == 7
    assert jitted.eval_shape(self=2.0, fun=1.0).shape == ()
    assert hloom.export.export(jitted)(self=2.0, fun=1.0).call(self=3.0, fun=1.0) == 7
    custom = hloom.custom_jvp(f)
    custom.defjvps(None, None)
    assert custom(self=2.0, fun=1.0) == 5


def test_keyword_arguments() -> None:
    f = hloom.jit(lambda x, *, scale=1.0, **rest: x * scale + sum(rest.values()))
    np.testing.assert_array_equal(np.asarray(f(X)), X)
    np.testing.assert_array_equal(np.asarray(f(X, scale=3)), X * 3)
    np.testing.assert_array_equal(np.asarray(f(X, b=1, a=X)), X * 2 + 1)
    np.testing.assert_array_equal(np.asarray(f(scale=2, x=X)), X * 2)
    g = hloom.jit(lambda x, y=None: x if y is None else x + y)
    np.testing.assert_array_equal(np.asarray(g(jnp.asarray(X), y=None)), X)
    np.testing.assert_array_equal(np.asarray(g(jnp.asarray(X), jnp.asarray(X))), 2 * X)


# ---- caches


def test_traced_once_for_each_combination_of_types() -> None:
    counted = Counted(lambda x, y: x + y)
    f = hloom.jit(counted)
    x = jnp.asarray(X)
    for args in ((x, x), (X, X), (X.astype(np.float64), x)):
        f(*args)
    assert counted.count == 1
    f(x, 1.0)
    f(x, 2.0)
    assert counted.count == 2
    f(x, np.float32(1))  # strongly typed
    f(x, 1)  # another dtype
    f(jnp.ones(4), jnp.ones(4))
    assert counted.count == 5
    assert f._cache_size() == 5
    f.clear_cache()
    f(x, x)
    assert counted.count == 6


def test_a_cache_is_cleared_within_an_outer_trace() -> None:
    """A function that uses values of the trace is kept by that."""
    counted = Counted(lambda x, y: x + y)

    def outer(x: Any) -> Any:
        inner = hloom.jit(lambda y: counted(x, y))
        inner(x)
        assert inner(x) is not None and counted.count == 1
        inner.clear_cache()
        return inner(x)

    assert hloom.jit(outer)(1.0) == 2 and counted.count == 2


def test_settings_are_part_of_the_key() -> None:
    f = hloom.jit(lambda x: x * 2)
    x = np.ones(2)
    assert f(x).dtype == np.float32
    hloom.config.update("jax_enable_x64", True)
    assert f(x).dtype == np.float64
    hloom.config.update("jax_enable_x64", False)
    assert f(x).dtype == np.float32


def test_functions_are_freed() -> None:
    def make() -> Any:
        big = jnp.ones(10)
        f = hloom.jit(lambda x: x + big)
        f(jnp.ones(10))
        return weakref.ref(f)

    reference = make()
    gc.collect()
    assert reference() is None


# ---- static arguments


@pytest.mark.parametrize(
    ("options", "lowered_for", "calls"),
    [
        ({"static_argnums": 0}, ((7, 8, 2), {}), [((5, 2), {}), ((7, 5, 2), {})]),
        ({"static_argnums": (0, 2)}, ((7, 8, 2), {}), [((5,), {}), ((7, 5, 2), {})]),
        ({"static_argnames": "z"}, ((7, 8), {"z": 2}), [((7, 5), {}), ((7, 5), {"z": 2})]),
        ({"static_argnames": "x"}, ((), {"x": 7, "y": 8, "z": 2}), [((), {"y": 5, "z": 2})]),
    ],
)
def test_a_compiled_function_is_called_without_its_static_arguments(
    options: dict[str, Any], lowered_for: Any, calls: Any
) -> None:
    """As in JAX. They may also be given, if they are those that the function was compiled for."""
    args, kwargs = lowered_for
    compiled = hloom.jit(lambda x, y, z: x * 100 + y * z, **options).lower(*args, **kwargs).compile()
    for args, kwargs in calls:
        assert int(compiled(*args, **kwargs)) == 710
    with pytest.raises(TypeError, match="was compiled for"):
        compiled(*args, 1, **kwargs)


def test_static_arguments() -> None:
    counted = Counted(lambda x, n, kind="add": x + n if kind == "add" else x * n)
    f = hloom.jit(counted.fun, static_argnums=1, static_argnames="kind")
    np.testing.assert_array_equal(np.asarray(f(X, 2)), X + 2)
    np.testing.assert_array_equal(np.asarray(f(X, 2, kind="mul")), X * 2)
    g = hloom.jit(static_argnames=("n",))(lambda x, n: x.reshape(n))
    assert g(X, (3, 1)).shape == (3, 1)
    assert g(X, n=(1, 3)).shape == (1, 3)
    h = hloom.jit(lambda x, n: x * n, static_argnums=-1)
    np.testing.assert_array_equal(np.asarray(h(X, 3)), X * 3)


def test_static_values_that_are_equal_but_of_other_types() -> None:
    f = hloom.jit(lambda x, n: x + n, static_argnums=1)
    x = jnp.ones((), int)
    assert [f(x, n).dtype for n in (1, 1.0, True)] == [np.int32, np.float32, np.int32]


def test_static_arguments_must_be_hashable() -> None:
    f = hloom.jit(lambda x, n: x, static_argnums=1)
    with pytest.raises(NonHashableStaticArgumentsError, match=r"list, which cannot be hashed[\s\S]*test_jit.py"):
        f(X, [1])


@pytest.mark.parametrize(
    "options",
    [{"static_argnums": 5}, {"static_argnames": "z"}, {"static_argnums": 0, "donate_argnums": 0}],
)
def test_arguments_that_do_not_exist_or_collide(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="arg"):
        hloom.jit(lambda x, y: x, **options)


def test_methods_and_decorators() -> None:
    class Model:
        def __init__(self, w: float) -> None:
            self.w = w

        @partial(hloom.jit, static_argnums=0)
        def __call__(self, x: Any) -> Any:
            """Documented."""
            return x * self.w

        @hloom.jit(static_argnums=0)
        def twice(self, x: Any) -> Any:
            return x * self.w * 2

    m = Model(3.0)
    np.testing.assert_array_equal(np.asarray(m(X)), X * 3)
    np.testing.assert_array_equal(np.asarray(m.twice(X)), X * 6)
    assert Model.__call__.__doc__ == "Documented."
    assert Model.__call__.__name__ == "__call__"
    with pytest.raises(TypeError, match="expects a function"):
        hloom.jit(3)  # type: ignore[call-overload]


# ---- captured values and nesting


def test_arrays_from_outside_are_hidden_parameters() -> None:
    big, small = jnp.asarray(X), jnp.asarray(5.0)
    f = hloom.jit(lambda x: x + big * big + small)
    np.testing.assert_array_equal(np.asarray(f(X)), X + X * X + 5)
    module = f.lower(X).module
    assert len(module.entry.parameters) == 2
    assert "constant(5)" in module.to_text()


@pytest.mark.parametrize(
    "transformed",
    [
        lambda f: f,
        hloom.jit,
        hloom.grad,
        lambda f: hloom.jit(hloom.grad(f)),
        lambda f: lambda w: hloom.jvp(f, (w,), (w,)),
        lambda f: lambda w: hloom.vmap(f)(jnp.stack([w, w])),
        lambda f: lambda w: hloom.lax.scan(lambda c, _: (c + f(w), None), 0.0, None, length=2)[0],
    ],
)
def test_a_function_that_uses_values_from_outside_is_traced_once(transformed: Any) -> None:
    traced = []

    def outer(w: Any) -> Any:
        @hloom.jit
        def layer(x: Any) -> Any:
            traced.append(w)
            return jnp.sin(x * w)

        outside.append(w)
        return layer(layer(w)).sum() + layer(jnp.ones((2, 3))).sum() + layer(w).sum()

    outside: list[Any] = []
    transformed(outer)(jnp.array([0.5, 1.0, 1.5]))
    assert len(traced) == 2 * len(outside)  # for two combinations of types


@pytest.mark.parametrize("transformed", [hloom.jit, hloom.grad, hloom.hessian, lambda f: hloom.jit(hloom.grad(f))])
def test_a_function_that_uses_values_from_outside_uses_those_of_now(transformed: Any) -> None:
    def outer(w: Any, jit: Any = hloom.jit) -> Any:
        outside = w
        inside = lambda x: x * outside  # noqa: E731
        layer = jit(lambda x: inside(x) + inside(x))
        total = layer(w).sum()
        outside = w * w
        total += layer(w).sum()
        inside = lambda x: jnp.sin(x) * outside  # noqa: E731
        return total + layer(w).sum()

    w = jnp.array([0.5, 1.0, 1.5])
    np.testing.assert_allclose(transformed(outer)(w), transformed(lambda w: outer(w, lambda f: f))(w), rtol=1e-6)


@pytest.mark.parametrize("transformed", [hloom.jit, hloom.grad, lambda f: lambda w: hloom.vmap(f)(w[None])])
def test_programs_with_values_from_outside_end_with_their_trace(transformed: Any) -> None:
    values = []

    def outer(w: Any) -> Any:
        y = jnp.sin(w)
        values.append(weakref.ref(y))
        layer = hloom.jit(lambda x: x * y)
        return layer(layer(w)).sum()

    gc.collect()
    gc.disable()
    try:
        transformed(outer)(jnp.ones(3))
        assert [v() for v in values] == [None]  # no cycle keeps them
    finally:
        gc.enable()


def test_nested_jit_is_a_composite_call() -> None:
    inner = hloom.jit(lambda x, y: (x + y, x * y))
    outer = hloom.jit(lambda x: inner(x, 2.0)[1] + inner(x, 3.0)[0])
    np.testing.assert_array_equal(np.asarray(outer(X)), X * 2 + X + 3)
    text = outer.lower(X).as_text()
    assert text.count('composite.name="jit"') == 2
    assert len([c for c in hlo.parse(text).computations if len(c.parameters) == 2]) == 1
    inlined = hloom.jit(lambda x, y: x + y, inline=True)
    assert "call(" not in hloom.make_hlo(lambda x: inlined(x, x))(X).to_text()


def test_traced_values_from_outside() -> None:
    def outer(x: Any) -> Any:
        @hloom.jit
        def inner(y: Any) -> Any:
            return x * y

        return inner(2.0) + inner(3.0)

    np.testing.assert_array_equal(np.asarray(hloom.jit(outer)(X)), X * 5)
    np.testing.assert_array_equal(np.asarray(outer(jnp.asarray(X))), X * 5)


def test_traced_values_of_another_call_are_not_reused() -> None:
    class Holder:
        value: Any = None

    inner = hloom.jit(lambda y: Holder.value * y)

    @hloom.jit
    def outer(x: Any) -> Any:
        Holder.value = x
        return inner(2.0)

    assert float(outer(jnp.asarray(3.0))) == 6
    assert outer(jnp.ones(2)).tolist() == [2, 2]


def test_grad_of_jit_and_jit_of_grad() -> None:
    f = hloom.jit(lambda x: jnp.sum(x**3))
    expected = 3 * X**2
    np.testing.assert_allclose(np.asarray(hloom.grad(f)(X)), expected)
    np.testing.assert_allclose(np.asarray(hloom.jit(hloom.grad(f))(X)), expected)


def test_results_that_are_arguments_or_constants() -> None:
    f = hloom.jit(lambda x, y: (y, x, x, 1.0, np.float32(2)))
    data = X.copy()
    y, x, again, one, two = f(data, 7)
    data[:] = -1
    np.testing.assert_array_equal(np.asarray(x), X)
    np.testing.assert_array_equal(np.asarray(again), X)
    assert (int(y), float(one), float(two)) == (7, 1, 2)
    assert one.weak_type
    assert not two.weak_type


# ---- donation


def test_donated_arguments_are_deleted() -> None:
    f = hloom.jit(lambda s, x: ({"w": s["w"] + x}, x), donate_argnums=0)
    state = {"w": jnp.asarray(X)}
    for _ in range(3):
        old = state
        state, _ = f(old, 1.0)
        assert old["w"].is_deleted()
    np.testing.assert_array_equal(np.asarray(state["w"]), X + 3)
    with pytest.raises(DeletedArrayError, match=r"deleted with shape=float32\[3\][\s\S]*test_jit.py"):
        _ = old["w"] + 1
    assert len(f.lower(state, 1.0).module.input_output_aliases) == 1


def test_donation_by_name() -> None:
    f = hloom.jit(lambda x, y: x + y, donate_argnames="y")
    a, b, c = (jnp.asarray(X) for _ in range(3))
    f(a, b)
    f(a, y=c)
    assert not a.is_deleted()
    assert b.is_deleted()
    assert c.is_deleted()


@pytest.mark.parametrize("backend", ["evaluator", "numba"])
def test_donated_memory_that_others_see_is_not_written(backend: str) -> None:
    hloom.config.update("hloom_backend", backend)
    f = hloom.jit(lambda x: x * 2 + 1, donate_argnums=0)
    make = hloom.jit(lambda x: x + 0)

    data = X.copy()
    f(data)
    np.testing.assert_array_equal(data, X)

    for start in (jnp.asarray(X), make(X)):  # over a NumPy array, over a backend's buffer
        view = np.asarray(start)
        part = view[1:]
        f(start)
        np.testing.assert_array_equal(view, X)
        np.testing.assert_array_equal(part, X[1:])

    x = make(X)
    y = hloom.lax.convert_element_type(x, np.float32)
    captured = hloom.jit(lambda v: v + x)
    captured(X)
    twin = x.reshape(3)
    f(x)
    np.testing.assert_array_equal(np.asarray(captured(X)), 2 * X)
    for other in (y, twin):
        if other is not x:
            np.testing.assert_array_equal(np.asarray(other), X)


def test_donated_memory_is_used() -> None:
    """Without a copy: the results are at the arguments' addresses."""
    hloom.config.update("hloom_backend", "numba")
    f = hloom.jit(lambda s: hloom.tree.map(lambda v: v * 2, s), donate_argnums=0)
    state = {"eager": jnp.ones(100) * 3, "compiled": hloom.jit(lambda x: x + 1)(jnp.ones(50))}
    for _ in range(3):
        before = {k: v.addressable_data_pointer for k, v in state.items()}
        state = f(state)
        assert {k: v.addressable_data_pointer for k, v in state.items()} == before
    assert float(state["eager"][0]) == 24
    seen = np.asarray(state["eager"])
    assert f(state)["eager"].addressable_data_pointer != before["eager"]
    assert seen[0] == 24


def test_donated_twice() -> None:
    f = hloom.jit(lambda a, b: (a + 1, b * 2), donate_argnums=(0, 1))
    x = jnp.asarray(X)
    a, b = f(x, x)
    np.testing.assert_array_equal(np.asarray(a), X + 1)
    np.testing.assert_array_equal(np.asarray(b), X * 2)


# ---- ahead of time


def test_stages() -> None:
    f = hloom.jit(lambda p, x, n: (p["w"] @ x * n, {"n": x}), static_argnums=2)
    p = {"w": np.ones((2, 3), np.float32)}
    lowered = f.lower(p, X, 3)
    text = lowered.as_text(metadata=True)
    assert "f32[2,3]" in text
    assert "p_w" in text
    assert "op_name=\"p['w']\"" in text
    assert "test_jit.py" in text
    hlo.verify(lowered.module)
    assert lowered.cost_analysis()["flops"] == 12 + 2
    assert lowered.out_info[0] == hloom.ShapeDtypeStruct((2,), np.float32)
    compiled = lowered.compile()
    result, extra = compiled(p, X, 3)
    np.testing.assert_array_equal(np.asarray(result), [9, 9])
    np.testing.assert_array_equal(np.asarray(extra["n"]), X)
    assert compiled.as_text()
    assert compiled.memory_analysis().output_size_in_bytes == 20
    assert compiled.cost_analysis()["flops"] == 14
    assert list(compiled.kernels()) == []
    assert list(compiled.passes()) == []
    for wrong in ((p, X, 4), (p, X[:2], 3), (p, X.astype(np.int32), 3), ([X], X, 3)):
        with pytest.raises(TreeStructureError, match="was compiled for"):
            compiled(*wrong)


def test_stages_of_the_numba_backend() -> None:
    hloom.config.update("hloom_backend", "numba")
    compiled = hloom.jit(lambda x: jnp.tanh(x) * 2).lower(X).compile()
    np.testing.assert_allclose(np.asarray(compiled(X)), np.tanh(X) * 2, rtol=1e-6)
    assert "tanh" in "".join(compiled.kernels().values())
    assert len(compiled.passes()) > 3
    assert compiled.memory_analysis().argument_size_in_bytes == 12


def test_lower_takes_types() -> None:
    f = hloom.jit(lambda x: x.sum(0))
    lowered = f.lower(hloom.ShapeDtypeStruct((4, 2), np.float32))
    assert lowered.compile()(np.ones((4, 2), np.float32)).tolist() == [4, 4]
    with pytest.raises(TypeError, match="ShapeDtypeStruct"):
        f(hloom.ShapeDtypeStruct((4, 2), np.float32))


def test_eval_shape_and_make_hlo() -> None:
    def f(x: Any, *, k: Any) -> Any:
        return {"a": x @ k, "b": (x.sum(), None)}

    shapes = hloom.eval_shape(f, hloom.ShapeDtypeStruct((2, 3), "bfloat16"), k=np.ones((3, 4), np.float32))
    assert shapes["a"] == hloom.ShapeDtypeStruct((2, 4), np.float32)
    assert repr(shapes["b"][0]) == "ShapeDtypeStruct(shape=(), dtype=bfloat16)"
    place = hloom.sharding.SingleDeviceSharding(hloom.devices()[0])
    placed = hloom.jit(f, out_shardings={"a": place, "b": None}).eval_shape(np.ones((2, 3)), k=np.ones((3, 4)))
    assert (placed["a"].sharding, placed["b"][0].sharding) == (place, None)
    module = hloom.make_hlo(lambda x: x + 1)(X)
    assert isinstance(module, hlo.HloModule)
    hlo.verify(module)
    assert hlo.parse(module.to_text()).to_text() == module.to_text()
    np.testing.assert_array_equal(hloom.run_hlo(module, X, backend="evaluator")[0], X + 1)
    np.testing.assert_array_equal(hloom.run_hlo(module.to_text(), X)[0], X + 1)


def test_metadata_is_the_users_line() -> None:
    def f(x: Any) -> Any:
        y = jnp.sin(x)
        return jnp.var(y)

    module = hloom.make_hlo(f)(X)
    lines = {i.metadata.source_line for i in module.entry.instructions if i.metadata and i.metadata.source_line}
    first = f.__code__.co_firstlineno
    assert lines == {first + 1, first + 2}
    files = {i.metadata.source_file for i in module.entry.instructions if i.metadata and i.metadata.source_line}
    assert files == {__file__}


def test_disable_jit() -> None:
    seen: list[Any] = []
    f = hloom.jit(lambda x: seen.append(float(x.sum())) or x * 2)
    with hloom.disable_jit():
        np.testing.assert_array_equal(np.asarray(f(jnp.asarray(X))), X * 2)
    assert seen == [3.0]
    with pytest.raises(TypeError, match="float"):
        f(jnp.asarray(X))


# ---- threads


def test_threads_trace_and_run_on_their_own() -> None:
    f = hloom.jit(lambda x: jnp.tanh(x) @ x)
    failures: list[BaseException] = []

    def work(size: int) -> None:
        try:
            x = np.linspace(0, 1, size, dtype=np.float32)
            for _ in range(5):
                np.testing.assert_allclose(float(f(x)), np.tanh(x) @ x, rtol=1e-4)
                np.testing.assert_allclose(
                    float(hloom.grad(f)(x).sum()), (np.tanh(x) + x / np.cosh(x) ** 2).sum(), rtol=1e-3
                )
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in (3, 4, 3, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


# ---- not arrays


@pytest.mark.parametrize("value", ["text", object(), {1, 2}, np.array(["a"]), len])
def test_arguments_that_are_no_arrays(value: Any) -> None:
    def function(x: Any, rest: Any) -> Any:
        return x

    with pytest.raises(TypeError) as caught:
        hloom.jit(function)(X, {"k": [value]})
    if not isinstance(value, np.ndarray):
        assert isinstance(caught.value, NonArrayArgumentError)
        for word in ("rest['k'][0]", "function at", "test_jit.py", "static"):
            assert word in str(caught.value)


def test_results_that_are_no_arrays() -> None:
    words = r"returned a value of type str at output component \[1\][\s\S]*'text'"
    with pytest.raises(NonArrayArgumentError, match=words):
        hloom.jit(lambda x: (x, "text"))(X)


# --- float0: what integers have as tangents


def _gradients(x: Any, i: Any) -> Any:
    return hloom.grad(lambda x, i: (x * i).sum(), (0, 1), allow_int=True)(x, i)


@pytest.mark.parametrize(
    "run",
    [
        hloom.jit(_gradients),
        lambda x, i: hloom.jit(_gradients).lower(x, i).compile()(x, i),
        lambda x, i: hloom.jit(lambda *z: z)(*_gradients(x, i)),
        lambda x, i: hloom.jit(lambda z, y: (y, z))(*_gradients(x, i)[::-1]),
        lambda x, i: hloom.jit(lambda z: z).lower(_gradients(x, i)).compile()(_gradients(x, i)),
        hloom.checkpoint(_gradients),
        lambda x, i: hloom.lax.cond(x[0] > 0, _gradients, lambda x, i: _gradients(2 * x, i), x, i),
        partial(hloom.eval_shape, _gradients),
    ],
)
def test_float0_is_an_argument_and_a_result(run: Any) -> None:
    x, i = np.ones(3, np.float32), np.arange(3)
    for _ in range(2):  # the second call may take another way
        moving, zero = run(x, i)
        assert zero.dtype == hloom.float0 and zero.shape == (3,)
        assert moving.dtype == np.float32 and moving.shape == (3,)


def test_float0_is_no_part_of_a_program() -> None:
    closed = hloom.make_jaxpr(_gradients)(np.ones(3, np.float32), np.arange(3))
    assert len(closed.out_avals) == 1
    pullback = hloom.vjp(lambda x, y: x + y, 2, 1)[1]
    assert [z.dtype for z in hloom.jit(pullback)(np.zeros((), hloom.float0))] == [hloom.float0] * 2


# --- types in place of arrays


class Described:
    """No array: it has a shape and a dtype."""

    shape = (2, 3)
    dtype = np.dtype(np.float32)


@pytest.mark.parametrize(
    "aval",
    [
        lambda f, x: hloom.eval_shape(f, x),
        lambda f, x: hloom.jit(f).eval_shape(x),
        lambda f, x: hloom.make_jaxpr(f)(x).out_avals[0],
        lambda f, x: hloom.jit(f).lower(x).out_info,
    ],
)
def test_examples_have_a_shape_and_a_dtype(aval: Any) -> None:
    found = aval(lambda x: x.sum(0), Described())
    assert found.shape == (3,) and found.dtype == np.float32


def test_an_object_with_a_shape_is_no_argument_of_a_call() -> None:
    with pytest.raises(NonArrayArgumentError, match=r"Described.*It is not an array"):
        hloom.jit(lambda x: x)(Described())


class _NoSignature:
    @property
    def __signature__(self) -> Any:
        raise TypeError("no signature")

    def __call__(self, *args: Any) -> None:
        return None


def test_names_to_donate_need_a_signature() -> None:
    with pytest.raises(ValueError, match="Getting the signature of function _NoSignature failed"):
        hloom.jit(_NoSignature(), donate_argnames="a")
    assert hloom.jit(_NoSignature(), donate_argnums=0)(jnp.ones(2)) is None


class _NoHash:
    def __hash__(self) -> int:
        raise ValueError("of the user")


class _NoEquality:
    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("value", "message"),
    [(_NoHash(), "^of the user$"), (_NoEquality(), "static arguments should be comparable using __eq__")],
)
def test_static_arguments_that_raise_where_they_are_looked_up(value: Any, message: str) -> None:
    f = hloom.jit(lambda x, y: x + 3, static_argnums=1)
    f(1, 1)
    with pytest.raises(ValueError, match=message):
        for _ in range(2):
            f(1, type(value)())
