"""Functions traced for symbolic sizes: types, exported programs, values of sizes, errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.tracer.symbolic.shapes import symbolic_args_specs, symbolic_shape

import hloom
import hloom.numpy as jnp
from hloom import export, lax
from hloom.errors import InconclusiveDimensionOperation, UnsupportedError

KEY = hloom.random.key(0)
F32 = np.float32

CASES: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "elementwise": (lambda x: x + jnp.sin(x), ("b, 4",)),
    "reduce": (lambda x: (x.sum(0), x.mean(), x.var(0)), ("b, 4",)),
    "values": (lambda x: x * x.shape[0] + x.size // 3, ("b, 4",)),
    "max": (lambda x: x + hloom.core.max_dim(x.shape[0], 4) % 3, ("b, 4",)),
    "arange": (lambda x: (jnp.arange(x.shape[0]), jnp.arange(0, 5 * x.shape[0] + 1, 2)), ("b",)),
    "arange-back": (lambda x: jnp.arange(x.shape[0], -1, -2), ("b",)),
    "linspace": (lambda x: jnp.linspace(0, 1, x.shape[0]), ("b",)),
    "reshape": (lambda x: (x.reshape(-1), x.reshape(x.shape[1], -1)), ("b, n",)),
    "join": (lambda x: (jnp.concatenate([x, x]), jnp.tile(x, (2, 1)), jnp.repeat(x, 3, 0)), ("b, 4",)),
    "pad": (lambda x: jnp.pad(x, ((1, x.shape[0]), (0, 2))), ("b, 4",)),
    "pad-edge": (lambda x: jnp.pad(x, ((x.shape[0], 0), (1, 1)), mode="edge"), ("b, 4",)),
    "slices": (lambda x: (x[1:], x[::2], x[::-1], x[-2:], x[: x.shape[0] - 1]), ("b, 4",)),
    "indices": (lambda x: (x[0], x[1], x[-1], x[jnp.array([0, 1])]), ("b, 4",)),
    "updates": (lambda x: (x.at[0].set(1.0), x.at[-1].add(2.0)), ("b, 4",)),
    "products": (lambda x: (x @ x.T, jnp.einsum("ij,kj->ik", x, x), jnp.outer(x[0], x[0])), ("b, n",)),
    "broadcast": (lambda x: jnp.broadcast_to(x, (3, *x.shape)) + jnp.ones((x.shape[0], 1)), ("b, 4",)),
    "sort": (lambda x: (jnp.sort(x, 0), jnp.argsort(x, 0), jnp.argmax(x, 0)), ("b, 4",)),
    "roll": (lambda x: jnp.roll(x, 2, 0), ("b, 4",)),
    "softmax": (hloom.nn.softmax, ("b, n",)),
    "vmap": (hloom.vmap(lambda r, k: r[k] + r.sum()), ("b, 4", "b, 2")),
    "grad": (hloom.grad(lambda x: (x[::2] ** 2).sum() * x.shape[0]), ("b, 4",)),
    "scan": (lambda x: lax.scan(lambda c, r: (c + r, c), jnp.zeros(4), x), ("b, 4",)),
    "scan-grad": (hloom.grad(lambda x: lax.scan(lambda c, r: (c * r.sum(), c), 1.0, x)[0]), ("b, 4",)),
    "while": (lambda x: lax.while_loop(lambda s: s.sum() < 99, lambda s: s + x.shape[0], x), ("b",)),
    "fori": (lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], jnp.zeros(4)), ("b, 4",)),
    "cond": (lambda x: lax.cond(x.sum() > 0, lambda: x + 1, lambda: jnp.zeros_like(x)), ("b, 4",)),
    "jit": (hloom.jit(lambda x: x * x.shape[0]), ("b, 4",)),
    "pool": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2), (1, 2), "SAME"), ("b, n",)),
    "convolution": (lambda x: lax.conv(x, jnp.ones((2, 3, 2, 2)), (1, 1), "SAME"), ("b, 3, n, 8",)),
    "random": (lambda x: hloom.random.uniform(KEY, x.shape) + hloom.random.normal(KEY, x.shape), ("b, n",)),
    "triangle": (lambda x: (jnp.tril(x @ x.T), jnp.eye(x.shape[0]), jnp.tri(x.shape[0], x.shape[1])), ("b, n",)),
    "triangle-indices": (lambda x: jnp.tril_indices(x.shape[0]), ("b",)),
    "qr": (lambda x: jnp.abs(jnp.linalg.qr(x)[1]), ("n, 3",)),
    "cumulative": (lambda x: (jnp.cumsum(x, 0), lax.cummax(x, 1)), ("b, 4",)),
    "search": (lambda x: jnp.searchsorted(jnp.sort(x[:, 0]), x[:, 1]), ("b, 4",)),
    "one-hot": (lambda x: hloom.nn.one_hot(jnp.arange(x.shape[0]), x.shape[0]), ("b",)),
}


def specs(shapes: tuple[str, ...], dtypes: list[Any] | None = None) -> list[Any]:
    scope = None
    found = []
    for k, shape in enumerate(shapes):
        sizes = symbolic_shape(shape, scope=scope)
        scope = next(s.scope for s in sizes if not isinstance(s, int))
        found.append(hloom.ShapeDtypeStruct(sizes, dtypes[k] if dtypes else F32))
    return found


def given(arguments: list[Any], values: dict[str, int]) -> list[Any]:
    rng = np.random.default_rng(0)
    shapes = [[d if isinstance(d, int) else values[str(d)] for d in a.shape] for a in arguments]
    return [
        rng.normal(size=s).astype(F32) if a.dtype == F32 else rng.integers(0, 2, s).astype(a.dtype)
        for s, a in zip(shapes, arguments, strict=True)
    ]


@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("name", CASES)
def test_a_program_for_all_sizes_gives_the_results_of_one_for_each(name: str) -> None:
    function, shapes = CASES[name]
    arguments = specs(shapes, [F32, np.int32][: len(shapes)])
    exported = export.export(hloom.jit(function))(*arguments)
    for values in ({"b": 3, "n": 5}, {"b": 2, "n": 4}):
        arrays = given(arguments, values)
        found = hloom.tree.leaves(exported.call(*arrays))
        expected = hloom.tree.leaves(hloom.jit(function)(*arrays))
        for x, y in zip(found, expected, strict=True):
            assert x.shape == y.shape
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)


def test_types() -> None:
    (x,) = specs(("b, 4",))
    (b, _) = x.shape
    assert hloom.eval_shape(lambda x: x[1:], x).shape == (b - 1, 4)
    assert hloom.eval_shape(lambda x: x.T @ x, x).shape == (4, 4)
    assert "f32[b,4]" in str(hloom.make_jaxpr(jnp.sin)(x))
    value = hloom.eval_shape(lambda x: jnp.array(x.shape[0]), x)
    assert (value.dtype, value.weak_type) == (np.int32, True)


def test_a_function_is_traced_once_for_sizes_of_one_scope() -> None:
    count = 0

    @hloom.jit
    def function(x: Any) -> Any:
        nonlocal count
        count += 1
        return x

    (x,) = specs(("b",))
    function.lower(x)
    function.lower(hloom.ShapeDtypeStruct(symbolic_shape("b", scope=x.shape[0].scope), F32))
    assert count == 1
    function.lower(*specs(("b",)))
    assert count == 2


@pytest.mark.parametrize(
    ("function", "error", "why"),
    [
        (lambda x: [x for _ in range(x.shape[0])], TypeError, "cannot be interpreted as an integer"),
        (lambda x: np.zeros(x.shape), TypeError, "cannot be interpreted as an integer"),
        (lambda x: x if x.shape[0] > 4 else x + 1, InconclusiveDimensionOperation, "'b' > '4' is inconclusive"),
        (lambda x: x.reshape(2, -1), InconclusiveDimensionOperation, r"Cannot divide evenly .*\(b,\) and \(2, -1\)"),
        (lambda x: jnp.squeeze(x), ValueError, "axis=None is not supported with shape polymorphism"),
        (lambda x: jnp.split(x, x.shape[0]), ValueError, "symbolic number of sections is not supported"),
        (lambda x: jnp.arange(0.0, x.shape[0]), ValueError, "must be either dimension expressions or integers"),
        (lambda x: jnp.arange(0, 9, x.shape[0] - 2), InconclusiveDimensionOperation, "if it is > 0 or < 0"),
        (lambda x: x[:: x.shape[0] - 2], InconclusiveDimensionOperation, "must be resolved statically"),
        (lambda x: x + jnp.ones(3), ValueError, "Incompatible shapes for broadcasting"),
        (lambda x: x.shape[0] ** 1.5, ValueError, "cannot be raised to non-integer powers"),
    ],
)
def test_errors(function: Callable[..., Any], error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        hloom.eval_shape(function, *specs(("b",)))


def test_bounds() -> None:
    a, b, n = symbolic_shape("a, mod(a, 3) + 5, n", constraints=["n >= 2", "n <= 9"])
    found = [export.symbolic_dim_bounds(size) for size in (a, b, n - a, np.int32(4))]
    assert found == [(1, math.inf), (5, 7), (-math.inf, 8), (4, 4)]
    with pytest.raises(TypeError, match=r"a size is an integer or symbolic, not 2\.5"):
        export.symbolic_dim_bounds(2.5)


def test_a_size_has_no_value_outside_of_a_traced_function() -> None:
    (b,) = symbolic_shape("b")
    with pytest.raises(UnsupportedError, match="has no value here"):
        jnp.array(b)


def test_specifications_of_arguments() -> None:
    args = ((jnp.ones((2, 3)), jnp.ones(3)), {"k": jnp.ones(4, int)})
    first, second = symbolic_args_specs(args, (("b, _", None), {"k": "2*b"}))
    b = first[0].shape[0]
    assert (first[0].shape, first[1].shape, second["k"].shape) == ((b, 3), (3,), (2 * b,))
    assert second["k"].dtype == np.int32
    with pytest.raises(ValueError, match="pytree structure error"):
        symbolic_args_specs(args, ("b", "b", "b"))
    with pytest.raises(ValueError, match="should be None or a string"):
        symbolic_shape(5.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Cannot specify both"):
        symbolic_shape("b", scope=b.scope, constraints=["b >= 2"])


@pytest.mark.parametrize(
    ("text", "like", "why"),
    [
        ("3", (4,), "different size"),
        ("b, ...", None, "no 'like' shape was given"),
        ("b, 6, c, _", (4, 6, 7), "because we parsed 3 already and 'like' shape has only 3 dimensions"),
        ("_", (None,), "unexpected placeholder for unknown dimension"),
    ],
)
def test_shapes_that_do_not_fit_another(text: str, like: Any, why: str) -> None:
    with pytest.raises(ValueError, match=f"syntax error in symbolic shape .*{why}"):
        symbolic_shape(text, like=like)
