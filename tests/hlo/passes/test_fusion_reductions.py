"""Nests with several reductions and results against the evaluator, at every size and on several threads."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from hloom.hlo.evaluator import evaluate
from hloom.hlo.ir import HloModule
from hloom.hlo.text.parser import parse
from hloom.numba_backend import lowering, pipeline
from hloom.numba_backend.compiler import NumbaCompiler

import hloom
import hloom.numpy as jnp
from hloom import nn
from support.nest_modules import assert_close, whole_arguments
from support.reduction_modules import reduction_module


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small arrays are split and shared as large ones are."""
    split = replace(
        pipeline.SPLIT_REDUCTIONS,
        large=1, large_columns=64, large_few_columns=64, large_both=16, parts=4, rows=1,
    )  # fmt: skip
    monkeypatch.setattr(pipeline, "SPLIT_REDUCTIONS", split)
    monkeypatch.setattr(
        pipeline, "KERNEL_LIMITS", replace(pipeline.KERNEL_LIMITS, serial_elements=32, workers=2, rows=24)
    )
    monkeypatch.setattr(lowering, "PIECE_NANOSECONDS", 1)
    yield


def check(module: HloModule) -> None:
    executable = NumbaCompiler().compile(module)
    for seed in range(2):
        arguments = whole_arguments(module, seed)
        with np.errstate(all="ignore"):
            expected = evaluate(module, *arguments)
        assert_close(executable.execute(arguments), expected)


@hypothesis.given(st.randoms(use_true_random=False))
@hypothesis.settings(max_examples=20, suppress_health_check=list(hypothesis.HealthCheck), deadline=None)
def test_random_reductions(rng: random.Random) -> None:
    check(reduction_module(rng))


@hypothesis.given(st.randoms(use_true_random=False))
@hypothesis.settings(max_examples=20, suppress_health_check=list(hypothesis.HealthCheck), deadline=None)
def test_random_reductions_in_parts(eager: None, rng: random.Random) -> None:
    check(reduction_module(rng))


def layer_norm(x: Any, scale: Any, offset: Any) -> Any:
    centred = x - jnp.mean(x, -1, keepdims=True)
    return centred / jnp.sqrt(jnp.mean(centred * centred, -1, keepdims=True) + 1e-5) * scale + offset


def root_mean_square(x: Any, scale: Any) -> Any:
    return x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * scale


def layers(count: int, x: Any) -> Any:
    for _ in range(count):
        x = nn.softmax(x) + x
    return x


def gradient(f: Callable[..., Any], *x: Any) -> Any:
    return hloom.grad(lambda *y: jnp.sum(f(*y) * y[0]), argnums=tuple(range(len(x))))(*x)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...], int]] = {
    # a function, the shapes of its arguments, and its kernels
    "sum and largest of rows": (lambda x: (x.sum(1), x.max(1)), ((96, 80),), 1),
    "statistics of rows": (lambda x: (x.mean(1), x.var(1), x.min(1), x.max(1)), ((96, 80),), 1),
    "statistics of columns": (lambda x: (x.mean(0), x.var(0), x.min(0), x.max(0)), ((96, 80),), 1),
    "columns scaled": (lambda x: (x - x.mean(0)) / (x.std(0) + 1), ((96, 80),), 1),
    "softmax along columns": (lambda x: nn.softmax(x, 0), ((96, 80),), 1),
    "sine and cosine": (lambda x: (jnp.sin(x), jnp.cos(x)), ((96, 80),), 1),
    "sine and sum of cosines": (lambda x: (jnp.sin(x), jnp.cos(x).sum(1)), ((96, 80),), 1),
    "columns of a large array": (lambda x: (x.mean(0), x.min(0)), ((2048, 512),), 2),
    "rows and columns": (lambda x: (x.sum(0), x.sum(1), x + 1), ((1024, 256),), 2),
    "an activation and its sum": (lambda x: (jnp.tanh(x), jnp.tanh(x).sum(0)), ((4096, 256),), 2),
    "layer norm": (layer_norm, ((1024, 128), (128,), (128,)), 1),
    "gradient of a layer norm": (partial(gradient, layer_norm), ((1024, 128), (128,), (128,)), 2),
    "gradient of a layer norm of a batch": (partial(gradient, layer_norm), ((16, 64, 128), (128,), (128,)), 2),
    "two layers": (lambda x: nn.softmax(nn.softmax(x) + x), ((96, 80),), 1),
    "ten layers": (lambda x: layers(10, x), ((96, 80),), 4),
    "twenty layers": (lambda x: layers(20, x), ((96, 80),), 4),
    "gradient of a root mean square norm": (partial(gradient, root_mean_square), ((1024, 128), (128,)), 2),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_few_kernels(name: str) -> None:
    function, shapes, count = PROGRAMS[name]
    generator = np.random.default_rng(0)
    arguments = [generator.standard_normal(shape).astype(np.float32) for shape in shapes]
    lowered = hloom.jit(function).lower(*arguments)
    compiled = lowered.compile()
    assert len(compiled.kernels()) == count
    module = parse(lowered.as_text())
    for got, want in zip(hloom.tree.leaves(compiled(*arguments)), evaluate(module, *arguments), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize(("columns", "steps"), [(17, 2), (100, 2), (128, 1), (1000, 1)])
def test_few_columns_are_added_in_parts(columns: int, steps: int) -> None:
    """From 65,536 elements on: a part of each row is read slowly if it is a few vectors long."""
    rows = 16 * (65536 // columns // 16 + 1)
    x = np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32)
    for name, function in (("sum", jnp.sum), ("max", jnp.max)):
        compiled = hloom.jit(lambda x, function=function: function(x, 0)).lower(x).compile()
        assert compiled.as_text().count(" reduce(") == steps
        np.testing.assert_allclose(compiled(x), getattr(x.astype(np.float64), name)(0), rtol=1e-5, atol=1e-4)


def test_results_do_not_depend_on_who_computes_the_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(x: Any) -> Any:
        return (x - x.mean(1, keepdims=True)).sum(0), x.sum(1), (x * x).max(0)

    x = np.random.default_rng(0).standard_normal((2048, 640)).astype(np.float32)
    module = parse(hloom.jit(program).lower(x).as_text())
    results = []
    for least in (1, 1 << 40):  # nanoseconds: all rows are shared, or none
        monkeypatch.setattr(lowering, "PIECE_NANOSECONDS", least)
        results.append([y.tobytes() for y in NumbaCompiler().compile(module).execute([x])])
    assert results[0] == results[1]


@pytest.mark.slow
@hypothesis.given(st.randoms(use_true_random=False))
@hypothesis.settings(max_examples=100, suppress_health_check=list(hypothesis.HealthCheck), deadline=None)
def test_many_random_reductions_in_parts(eager: None, rng: random.Random) -> None:
    check(reduction_module(rng, 20))
