"""Chains: products and what is between them, piece by piece. Which there are, and that results are right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hloom.hlo import parse
from hloom.hlo.evaluator import evaluate
from hloom.numba_backend.ahead import standalone
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.fused_computations import FusedComputations
from hloom.numba_backend.machine import compiling_for, this_machine
from hloom.numba_backend.output_fusion import find, is_output_fusion, memory_of, pieces_of
from hloom.numba_backend.pipeline import pipeline
from hloom.numba_backend.runtime import threads
from hloom.numba_backend.runtime.executor import Op

import hloom
import hloom.aot
import hloom.numpy as jnp


@pytest.fixture(autouse=True)
def all_chains(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small ones too, and small pieces."""
    monkeypatch.setattr(find, "least_bytes", lambda: 0)
    monkeypatch.setattr(find, "_piece_bytes", lambda: 1 << 15)
    monkeypatch.setattr(find, "_FEWEST_ROWS", 12)
    yield
    threads.set_num_threads(None)


def numbers(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(dtype)


def softmax(x: Any) -> Any:
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q: Any, k: Any, v: Any) -> Any:
    return jnp.einsum("...qk,...kd->...qd", softmax(jnp.einsum("...qd,...kd->...qk", q, k) / 8), v)


def masked(q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = jnp.where(mask, jnp.einsum("bqd,bkd->bqk", q, k), -jnp.inf)
    return jnp.einsum("bqk,bkd->bqd", softmax(scores), v)


def in_window(before: float, after: float, other: float = -jnp.inf) -> Callable[..., Any]:
    """Attention where query i sees keys from i - before to i + after."""

    def attend(q: Any, k: Any, v: Any) -> Any:
        i, j = jnp.arange(q.shape[-2])[:, None], jnp.arange(k.shape[-2])[None, :]
        seen = jnp.ones((1, 1), bool)
        if before < np.inf:
            seen = seen & (j >= i - before)
        if after < np.inf:
            seen = seen & (j <= i + after)
        scores = jnp.where(seen, jnp.einsum("...qd,...kd->...qk", q, k) / 8, other)
        return jnp.einsum("...qk,...kd->...qd", softmax(scores), v)

    return attend


causal = in_window(np.inf, 0)


def causal_gradients(q: Any, k: Any, v: Any, w: Any) -> Any:
    return hloom.grad(lambda *args: (causal(*args) * w).sum(), (0, 1, 2))(q, k, v)


def scores_too(q: Any, k: Any, v: Any) -> Any:
    p = softmax(jnp.einsum("bqd,bkd->bqk", q, k) / 8)
    return jnp.einsum("bqk,bkd->bqd", p, v), p


def gradients(q: Any, k: Any, v: Any, w: Any) -> Any:
    return hloom.grad(lambda *args: (attention(*args) * w).sum(), (0, 1, 2))(q, k, v)


def three(*shape: int, dtype: Any = np.float32) -> tuple[np.ndarray, ...]:
    return tuple(numbers(*shape, dtype=dtype) + k / 10 for k in range(3))


MASK = np.tril(np.ones((70, 70), bool))
X, W, B = numbers(150, 40), numbers(40, 64) / 6, numbers(64)

CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...], int, str]] = {
    # function, arguments, kernels in the chain (0: there is none), rows of a piece
    "heads": (attention, three(2, 5, 64, 32), 3, "matrices"),
    "heads that are too large": (attention, three(2, 5, 100, 32), 3, "rows"),
    "few heads": (attention, three(2, 200, 32), 3, "rows"),
    "one head": (attention, three(210, 48), 3, "rows"),
    "long sums": (attention, three(3, 530, 32), 3, "rows"),
    "odd sizes": (attention, three(9, 70, 46), 3, "matrices"),
    "f64": (attention, three(9, 50, 24, dtype=np.float64), 3, "matrices"),
    "f64, long sums": (attention, three(1, 300, 24, dtype=np.float64), 3, "rows"),
    "a mask for all": (masked, (*three(9, 70, 32), MASK), 3, "matrices"),
    "a mask for each": (masked, (*three(3, 70, 32), np.stack([MASK, MASK.T, MASK | (numbers(70, 70) > 0)])), 3, "rows"),
    "scores are a result": (scores_too, three(9, 64, 32), 3, "matrices"),
    "tiles that do not fit": (attention, three(9, 67, 33), 0, ""),
    "gradients": (gradients, (*three(9, 44, 32), numbers(9, 44, 32)), 6, "matrices"),
    "causal": (causal, three(9, 70, 32), 3, "matrices"),
    "causal, few heads": (causal, three(2, 200, 32), 3, "rows"),
    "causal, f64, long sums": (causal, three(1, 300, 24, dtype=np.float64), 3, "rows"),
    "causal, -1e30": (in_window(np.inf, 0, -1e30), three(9, 70, 32), 3, "matrices"),
    "causal, -1": (in_window(np.inf, 0, -1.0), three(9, 70, 32), 3, "matrices"),
    "not the past": (in_window(0, np.inf), three(9, 70, 32), 3, "matrices"),
    "a window": (in_window(7, 3), three(9, 70, 32), 3, "matrices"),
    "a window, few heads": (in_window(40, -1), three(2, 200, 32), 3, "rows"),
    "queries that see nothing": (in_window(np.inf, -20), three(9, 70, 32), 3, "matrices"),
    "a window beyond all": (in_window(-100, 200), three(9, 70, 32), 3, "matrices"),
    "causal gradients": (causal_gradients, (*three(9, 44, 32), numbers(9, 44, 32)), 6, "matrices"),
    "layers": (lambda x, w, b: jnp.maximum(x @ w + b, 0) @ w.T, (X, W, B), 3, "rows"),
    "three layers": (lambda x, w: jnp.tanh(jnp.tanh(x @ w) @ w.T) @ w, (X, W), 5, "rows"),
    "sums of columns between": (lambda x, w: ((y := x @ w) - y.mean(0)) @ w.T, (X, W), 0, ""),
    "rows in another order": (lambda x, w: jnp.tanh(x @ w)[::-1] @ w.T, (X, W), 0, ""),
    "a product with itself": (lambda x: (lambda y: jnp.tanh(y) @ y)(x @ x.T), (numbers(80, 40),), 0, ""),
    "integers": (lambda x: (x @ x.T) @ x, (np.arange(80 * 40, dtype=np.int32).reshape(80, 40),), 0, ""),
    "a wide layer": (lambda x, w: jnp.tanh(x @ w) @ w.T, (numbers(60, 200), numbers(200, 700) / 14), 0, ""),
    "tiny": (attention, three(9, 4, 5), 0, ""),
    "no matrices": (attention, three(0, 64, 32), 0, ""),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_evaluator(name: str) -> None:
    """On one thread and on two; a call does not see what another one left."""
    function, args, length, rows = CASES[name]
    with hloom.enable_x64(args[0].dtype == np.float64):
        module = parse(hloom.jit(function).lower(*args).as_text())
        expected = evaluate(module, *args)
        executable = NumbaCompiler().compile(module)
        chains = [row for row in executable._program.rows if row.op is Op.CHAIN]
        assert [1 + len(row.after) for row in chains] == ([length] if length else []), chains
        for row in chains:
            matrices = int(np.prod(args[0].shape[:-2]))
            assert (row.shown[-1] == f"for {matrices}") == (rows == "matrices"), row.shown
        tolerance = 1e-11 if args[0].dtype == np.float64 else 3e-4
        for count in (1, 2):
            threads.set_num_threads(count)
            for _ in range(2):
                for wanted, actual in zip(expected, executable.execute(list(args)), strict=True):
                    np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance)


def test_pieces_use_the_same_memory() -> None:
    """A value that only the chain uses, the fusion's last result, has memory for a few pieces."""
    args = three(600, 64, 32)
    module = parse(hloom.jit(attention).lower(*args).as_text())
    with compiling_for(replace(this_machine(), second_cache=1 << 20)):
        optimized, _ = pipeline("cpu").run(module)
    (fusion,) = [i for i in optimized.entry.instructions if is_output_fusion(i)]
    assert str(fusion.shape) == "(f32[600,64,32], u8[3276800])"
    assert fusion.annotations == (("backend_config", '{"matrices":"600","rows":"1","step":"1","parts":"200"}'),)
    (expected,) = evaluate(module, *args)
    np.testing.assert_array_equal(evaluate(parse(optimized.to_text()), *args)[0], expected)
    with compiling_for(replace(this_machine(), second_cache=1 << 20)):
        compiled = NumbaCompiler().compile(module)
    assert compiled.memory_analysis().temp_size_in_bytes == 200 * 64 * 64 * 4
    for count in (1, 2, 3):
        threads.set_num_threads(count)
        np.testing.assert_allclose(compiled.execute(list(args))[0], expected, rtol=3e-4, atol=3e-4)


def test_the_memory_of_an_operand_that_is_read_later_is_not_overwritten() -> None:
    """The result of a chain may be where an operand of its first product was, but for what other pieces read of it."""
    text = """HloModule m
    ENTRY e {
      x = f32[210,210] parameter(0)
      y = f32[210,210] sine(x)
      p = f32[210,210] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      s = f32[210,210] multiply(p, x)
      q = f32[210,210] dot(s, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      t = f32[210,210] cosine(q)
      r = f32[210,210] dot(t, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT u = f32[210,210] subtract(r, t)
    }"""
    module = parse(text)
    x = numbers(210, 210) / 10
    (expected,) = evaluate(module, x)
    executable = NumbaCompiler().compile(module)
    for count in (1, 2):
        threads.set_num_threads(count)
        np.testing.assert_allclose(executable.execute([x])[0], expected, rtol=1e-3, atol=1e-4)


def test_timelines_show_a_chain(tmp_path: Any) -> None:
    args = three(9, 64, 32)
    function = hloom.jit(lambda q, k, v: attention(q, k, v) * 2)
    function(*args)
    with hloom.profiler.trace(str(tmp_path)):
        function(*args).block_until_ready()
    text = "".join(path.read_text() for path in tmp_path.rglob("*.json"))
    assert "shallow_product + fused_" in text


AHEAD = ("heads", "one head", "f64, long sums", "a mask for each", "gradients", "layers")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", AHEAD)
def test_a_chain_ahead_of_time_gives_what_jit_gives(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There each of its kernels runs for all pieces before the next one does."""
    function, args, _, _ = CASES[name]
    lengths = []
    original = standalone._Builder.chain

    def chain_of(self: Any, stages: Any, *rest: Any, **more: Any) -> None:
        lengths.append(len(stages))
        original(self, stages, *rest, **more)

    monkeypatch.setattr(standalone._Builder, "chain", chain_of)
    with hloom.enable_x64(args[0].dtype == np.float64):
        hloom.aot.compile(function, args, name="program").write(tmp_path)
        assert lengths and min(lengths) >= 3
        found = hloom.tree.leaves(hloom.aot.load(tmp_path / "program.json")(*args))
        expected = hloom.tree.leaves(hloom.jit(function)(*args))
    tolerance = 1e-13 if args[0].dtype == np.float64 else 1e-5
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, np.asarray(b), rtol=tolerance, atol=tolerance)


def test_values_for_all_rows_share_no_memory() -> None:
    """Threads are at different members at the same time: rows of one value would lie where others have other rows."""

    def layers(x: Any, *weights: Any) -> Any:
        for w in weights:
            x = jnp.tanh(x @ w)
        return x

    arguments = [numbers(256, 64), *[numbers(a, b) for a, b in ((64, 256), (256, 64), (64, 192), (192, 32))]]
    bodies = FusedComputations()
    optimized, _ = pipeline("cpu", bodies).run(hloom.jit(layers).lower(*arguments).module)
    (fusion,) = [i for i in optimized.entry.instructions if is_output_fusion(i)]
    pieces = pieces_of(fusion)
    assert pieces is not None
    memory = memory_of(fusion.attributes.calls, pieces._replace(parts=0), bodies.can_share)
    own = {place.offset: place.row for place in memory.placements.values() if place.output is None}
    assert len(set(own.values())) == 3
    ends = [offset + 256 * row for offset, row in sorted(own.items())]
    assert all(end <= begin for end, begin in zip(ends, sorted(own)[1:], strict=False))
