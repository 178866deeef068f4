"""Modules after XLA's own CPU passes (fusions, layouts, bitcasts, schedules, parallel calls, custom calls) run here and
give JAX's results. Needs JAX, and prints JAX's modules again each time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hloom.hlo import evaluate, parse, verify
from hloom.numba_backend.compiler import NumbaCompiler

from hloom.backend_check.op_values import NDArray

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax

_rng = np.random.default_rng(0)
Function = Callable[..., Any]


def _f32(*dimensions: int) -> NDArray:
    return _rng.standard_normal(dimensions).astype(np.float32)


def _i32(high: int, *dimensions: int) -> NDArray:
    return _rng.integers(0, high, dimensions).astype(np.int32)


def _layer_norm(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def _loss(w: Any, x: Any, b: Any) -> Any:
    return jnp.tanh(x @ w + b).sum()


def _recurrence(x: Any) -> Any:
    return lax.scan(lambda c, y: (jnp.sin(c) + y, c.sum()), jnp.zeros(16, jnp.float32), x)


def _pooled(x: Any) -> Any:
    window = ((1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return lax.reduce_window(x, np.float32(-np.inf), lax.max, *window)


def _convolved(x: Any, k: Any) -> Any:
    return lax.conv_general_dilated(x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


_X, _W, _B, _KEY = _f32(8, 16), _f32(16, 32), _f32(32), np.array([1, 2], np.uint32)
_IMAGES = _f32(2, 3, 8, 8)

FUNCTIONS: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "mlp": (_loss, (_W, _X, _B)),
    "mlp gradient": (jax.grad(_loss, argnums=(0, 1, 2)), (_W, _X, _B)),
    "softmax": (jax.nn.softmax, (_X,)),
    "logsumexp": (partial(jax.nn.logsumexp, axis=0), (_X,)),
    "layer norm": (_layer_norm, (_X,)),
    "gelu": (jax.nn.gelu, (_X,)),
    "cumsum": (partial(jnp.cumsum, axis=1), (_X,)),
    "sort": (partial(jnp.sort, axis=1), (_X,)),
    "argsort": (partial(jnp.argsort, axis=1), (_X,)),
    "top-k": (lambda x: lax.top_k(x, 4), (_X,)),
    "argmax": (partial(jnp.argmax, axis=1), (_X,)),
    "median": (partial(jnp.median, axis=0), (_X,)),
    "gather": (lambda x, i: x[i], (_X, _i32(8, 5))),
    "scatter add": (lambda x, i, y: x.at[i].add(y), (_X, _i32(8, 5), _f32(5, 16))),
    "scatter set": (lambda x, i, y: x.at[i].set(y), (_X, np.array([1, 3, 5], np.int32), _f32(3, 16))),
    "convolution": (lambda x, k: lax.conv(x, k, (1, 1), "SAME"), (_IMAGES, _f32(4, 3, 3, 3))),
    "convolution nhwc": (_convolved, (_f32(2, 9, 9, 3), _f32(3, 3, 3, 4))),
    "max pool": (_pooled, (_IMAGES,)),
    "max pool gradient": (jax.grad(lambda x: (_pooled(x) ** 2).sum()), (_IMAGES,)),
    "scan": (_recurrence, (_X,)),
    "scan gradient": (jax.grad(lambda x: _recurrence(x)[1].sum()), (_X,)),
    "while": (
        lambda n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 1.5), (0, 1.0)),
        (np.int32(10),),
    ),
    "fori": (lambda x: lax.fori_loop(0, 5, lambda i, a: a @ a * 0.1, x), (_f32(8, 8),)),
    "cond": (lambda p, x: lax.cond(p, jnp.sin, lambda y: y * 2, x), (np.bool_(True), _X)),
    "switch": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda y: y * 3], x), (np.int32(2), _X)),
    "einsum": (partial(jnp.einsum, "bij,bjk->bik"), (_f32(3, 4, 5), _f32(3, 5, 6))),
    "einsum of two": (partial(jnp.einsum, "ijk,lkj->il"), (_f32(3, 4, 5), _f32(6, 5, 4))),
    "transpose": (lambda a: jnp.transpose(a, (2, 0, 1)).reshape(10, -1) + 1, (_f32(4, 5, 10),)),
    "bf16 product": (lambda a, b: a @ b, (_f32(8, 16).astype(jnp.bfloat16), _f32(16, 8).astype(jnp.bfloat16))),
    "f16 sum": (lambda a: a.sum(0), (_f32(64, 8).astype(np.float16),)),
    "bf16 chain": (lambda a: jnp.tanh(a) * a + 1, (_f32(64, 8).astype(jnp.bfloat16),)),
    "normal": (lambda k: jax.random.normal(k, (50,)), (_KEY,)),
    "uniform": (lambda k: jax.random.uniform(k, (7, 9)), (_KEY,)),
    "split": (lambda k: jax.random.split(k, 3), (_KEY,)),
    "permutation": (lambda k: jax.random.permutation(k, 20), (_KEY,)),
    "fft": (jnp.fft.fft, (_f32(4, 16),)),
    "rfft": (lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * 2), (_f32(4, 16),)),
    "complex": (lambda x: jnp.exp(1j * x) * x, (_f32(20),)),
    "cholesky": (lambda x: jnp.linalg.cholesky(x @ x.T + 8 * jnp.eye(8, dtype=x.dtype)), (_f32(8, 8),)),
    "solve": (jnp.linalg.solve, (_f32(6, 6) + 4 * np.eye(6, dtype=np.float32), _f32(6, 2))),
    "svd": (lambda a: jnp.linalg.svd(a)[1], (_f32(6, 4),)),
    "eigh": (lambda a: jnp.linalg.eigvalsh(a + a.T), (_f32(6, 6),)),
    "qr": (lambda a: jnp.abs(jnp.linalg.qr(a)[1]), (_f32(6, 4),)),
    "pad": (partial(jnp.pad, pad_width=((1, 2), (0, 3)), constant_values=7), (_X,)),
    "concatenate": (lambda x, y: jnp.concatenate([x, y * 2, jnp.sin(x)], 0), (_X, _X)),
    "roll": (lambda x: jnp.roll(x, 3, 1), (_X,)),
    "where": (lambda x: jnp.where(x > 0, x, jnp.exp(x) - 1), (_X,)),
    "integers": (lambda a, b: (a // b, a % b, a << 2, a & b), (_i32(100, 20), _i32(9, 20) + 1)),
    "bits": (lambda a: (lax.population_count(a), lax.clz(a)), (_i32(10000, 20),)),
    "update slice": (lambda x, u, i: lax.dynamic_update_slice(x, u, (i, i)), (_X, _f32(2, 16), np.int32(3))),
    "slice": (lambda x, i: lax.dynamic_slice(x, (i, i), (3, 4)), (_X, np.int32(3))),
    "attention": (jax.nn.dot_product_attention, tuple(_f32(2, 16, 4, 8) for _ in range(3))),
    "gradients of rows": (jax.vmap(jax.grad(lambda x: (jnp.sin(x) ** 2).sum())), (_X,)),
    "hessian": (jax.hessian(lambda x: (jnp.sin(x) * x**2).sum()), (_f32(5),)),
    "one hot": (lambda i: jax.nn.one_hot(i, 10), (_i32(10, 7),)),
    "segment sum": (lambda x, i: jax.ops.segment_sum(x, i, num_segments=4), (_X, _i32(4, 8))),
    "histogram": (lambda x: jnp.histogram(x, bins=10)[0], (_f32(1000),)),
    "large sum": (lambda x: x.sum(), (_f32(300, 300),)),
    "large product": (lambda a, b: a @ b + 1, (_f32(200, 300), _f32(300, 100))),
    "product of transposed": (lambda a: (a.T @ a) * 2, (_f32(200, 100),)),
    "inverse erf": (lambda x: jax.scipy.special.erfinv(x * 0.1), (_X,)),
    "log gamma": (lambda x: jax.scipy.special.gammaln(jnp.abs(x) + 1), (_X,)),
}

_TOLERANCE = {2: 3e-2, 4: 3e-5, 8: 3e-5}


def _assert_close(actual: NDArray, expected: NDArray) -> None:
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    if expected.dtype.kind in "iub":
        np.testing.assert_array_equal(actual, expected)
        return
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    tolerance = _TOLERANCE[expected.dtype.itemsize]
    scale = float(np.abs(expected.astype(wide)).max(initial=1.0))
    np.testing.assert_allclose(actual.astype(wide), expected.astype(wide), rtol=tolerance, atol=tolerance * scale)


def printed(compiled: Any) -> str:
    """The text of `compiled.as_text()`, with all constants: newer versions leave the larger ones out."""
    from jaxlib import _hlo

    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    text: str = compiled.runtime_executable().hlo_modules()[0].to_string(options)
    return text


@pytest.mark.parametrize("name", FUNCTIONS)
def test_optimized_module_agrees_with_jax(name: str) -> None:
    function, arguments = FUNCTIONS[name]
    jitted = jax.jit(function, keep_unused=True)
    module = parse(printed(jitted.lower(*arguments).compile()), f"{name}.hlo")
    verify(module)
    expected = [np.asarray(leaf) for leaf in jax.tree.leaves(jitted(*arguments))]
    arrays = [np.asarray(a) for a in arguments]
    for actual in (evaluate(module, *arrays), NumbaCompiler().compile(module).execute(arrays)):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            _assert_close(a, e)


def _columns(leaf: Any) -> Any:
    """The reverse of row-major, in JAX's words."""
    from jax.experimental.layout import Format, Layout

    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    return Format(Layout(tuple(reversed(range(len(leaf.shape))))), device)


@pytest.mark.parametrize("name", [n for n, (_, a) in FUNCTIONS.items() if any(np.ndim(x) > 1 for x in a)])
def test_module_for_column_major_arrays_agrees_with_jax(name: str) -> None:
    """XLA is told that all arrays lie in columns, lays out the rest, and prints the module; the layouts at the entry
    stay, those inside are chosen anew."""
    function, arguments = FUNCTIONS[name]
    arrays = [np.asarray(a) for a in arguments]
    results = jax.eval_shape(function, *arrays)
    formats = {"in_shardings": tuple(map(_columns, arrays)), "out_shardings": jax.tree.map(_columns, results)}
    compiled = jax.jit(function, keep_unused=True, **formats).lower(*arrays).compile()
    module = parse(printed(compiled), f"{name}.hlo")
    verify(module)
    matrices = [shape for p in module.entry_parameter_shapes for shape in p.leaves() if shape.rank > 1]
    assert matrices and all(s.array_layout.minor_to_major == tuple(range(s.rank)) for s in matrices)
    expected = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(function)(*arguments))]
    executable = NumbaCompiler().compile(module)
    assert [s.layout for s in executable.result_shapes] == [leaf.layout for leaf in module.entry_result_shape.leaves()]
    for actual in (evaluate(module, *arrays), executable.execute(arrays)):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            _assert_close(a, e)
