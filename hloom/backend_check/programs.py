"""Whole programs that every backend runs: traced, differentiated, with control flow. Small, and quick to compile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import config, grad, jit, lax, nn, random, tree, value_and_grad, vmap
from .. import numpy as jnp
from ..hlo.support.records import dataclass

F32 = np.float32


@dataclass(frozen=True, slots=True)
class Program:
    """A function of arrays; results of floats may differ by `tolerance`, relative to the largest of an array."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    tolerance: float = 1e-5


def run_program(program: Program, backend: str) -> None:
    """AssertionError unless the program's results on the backend are those on the evaluator."""
    expected = _results(program, "evaluator")
    found = _results(program, backend)
    assert len(found) == len(expected), f"{len(found)} results, not {len(expected)}"
    for number, (got, wanted) in enumerate(zip(found, expected, strict=True)):
        where = f"result {number}"
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), f"{where}: {got.dtype}{list(got.shape)}"
        if wanted.dtype.kind in "fc":
            scale = float(np.max(np.abs(wanted), initial=1e-30))
            worst = float(np.max(np.abs(got - wanted), initial=0))
            assert worst <= program.tolerance * scale, f"{where} differs by {worst / scale:.3g} of {scale:.3g}"
        else:
            assert np.array_equal(got, wanted), f"{where} differs in {np.sum(got != wanted)} elements"


def _results(program: Program, backend: str) -> list[np.ndarray[Any, Any]]:
    before = config.hloom_backend
    config.update("hloom_backend", backend)
    try:
        return [np.array(leaf) for leaf in tree.leaves(jit(program.function)(*program.arguments))]
    finally:
        config.update("hloom_backend", before)


def _array(*dimensions: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(dimensions, F32)


def _loss(weights: Sequence[Any], x: Any, labels: Any) -> Any:
    hidden = jnp.maximum(x @ weights[0] + weights[1], 0)
    logits = hidden @ weights[2] + weights[3]
    return -jnp.mean(jnp.take_along_axis(nn.log_softmax(logits), labels[:, None], axis=1))


def _train(weights: Sequence[Any], x: Any, labels: Any) -> Any:
    def step(weights: Any, _: Any) -> tuple[Any, Any]:
        loss, gradients = value_and_grad(_loss)(weights, x, labels)
        return [w - F32(0.1) * g for w, g in zip(weights, gradients, strict=True)], loss

    return lax.scan(step, list(weights), length=3)


def _newton(x: Any) -> Any:
    return lax.while_loop(lambda s: jnp.abs(s * s - x) > 1e-4 * x, lambda s: (s + x / s) / 2, x)


def _sorted_rows(x: Any) -> Any:
    return jnp.sort(x, axis=0), jnp.argsort(x, axis=1), lax.top_k(x, 3)


def _updates(x: Any, i: Any) -> Any:
    return x.at[i].add(1.0), x.at[2].set(x[i[0]] * 2), x[i], x.at[:, 1:3].mul(x[:, :2])


def _pieces(x: Any) -> Any:
    return {
        "turned": jnp.concatenate([x.T, x.T[::-1]], axis=1)[:, ::2],
        "padded": jnp.pad(x, ((1, 2), (0, 1)), constant_values=7),
        "spread": jnp.broadcast_to(x[:, :1], (5, 4)) + jnp.arange(4),
        "empty": x[:, 2:2],
    }


def _branches(x: Any) -> Any:
    low = lax.cond(jnp.sum(x) < 0, lambda a: a * 2, jnp.sin, x)
    return low, lax.switch(jnp.int32(2), [lambda a: a, lambda a: -a, lambda a: a + 1], x)


def _body(i: Any, state: Any) -> Any:
    return lax.fori_loop(0, i, lambda j, inner: inner.at[j].add(state[i] / 3), state)


def _chain(x: Any) -> Any:
    return jnp.sum(lax.scan(lambda carry, y: (jnp.sin(carry + y), carry * y), x[0], x)[1])


def _convolved(kernel: Any, x: Any) -> Any:
    return jnp.sum(nn.relu(lax.conv(x, kernel, (1, 1), "SAME")) ** 2)


def _bits(x: Any) -> Any:
    return x ^ (x >> 3), lax.population_count(x), lax.bitcast_convert_type(x, jnp.float32)


_WEIGHTS = tuple(_array(*d, seed=k) * F32(0.3) for k, d in enumerate([(6, 8), (8,), (8, 3), (3,)]))
_LABELS = np.array([0, 2, 1, 1, 0], np.int32)
_X = _array(5, 6)

PROGRAMS: tuple[Program, ...] = (
    Program("arithmetic", lambda x: (jnp.tanh(x) * 2 + jnp.exp(-x * x), x > 0, x.astype(jnp.int32) // 2), (_X,)),
    Program("no-arguments", lambda: jnp.arange(7) * 3, ()),
    Program("several-results-of-one-value", lambda x: (x, x, (x + 1, x)), (_X,)),
    Program("scalars", lambda a, b: (a * b + 1, a < b), (F32(2.5), F32(-1))),
    Program("network-and-gradient", value_and_grad(_loss), (_WEIGHTS, _X, _LABELS), 1e-4),
    Program("training-in-a-scan", _train, (_WEIGHTS, _X, _LABELS), 1e-4),
    Program("while-of-unknown-length", vmap(_newton), (np.array([2, 9, 1e4, 0.3], F32),)),
    Program("loops-in-loops", lambda x: lax.fori_loop(0, 5, _body, x), (_array(5),)),
    Program("gradient-of-a-scan", grad(_chain), (_array(6),), 1e-4),
    Program("branches", _branches, (_X,)),
    Program("sort", _sorted_rows, (_X,)),
    Program("gather-and-scatter", _updates, (_X, np.array([3, 1, 3], np.int32))),
    Program("movement", _pieces, (_array(5, 4),)),
    Program("reductions", lambda x: (jnp.sum(x, 0), jnp.max(x, 1), jnp.argmin(x), jnp.cumsum(x, 1), jnp.var(x)), (_X,)),
    Program("products", lambda x, y: (x @ y, jnp.einsum("ij,kj->ik", x, x), x.T @ x), (_X, _array(6, 7))),
    Program("convolution-and-gradient", grad(_convolved), (_array(2, 1, 3, 3), _array(1, 1, 6, 6)), 1e-4),
    Program("random-numbers", lambda seed: random.uniform(random.key(seed), (4, 3)), (np.uint32(7),)),
    Program("half-precision", lambda x: (x.astype(jnp.bfloat16) * 3, jnp.sum(x.astype(jnp.float16))), (_X,), 1e-2),
    Program("complex-numbers", lambda x: (jnp.abs(x + 2j * x), (x + 1j) * (x - 2j)), (_X,)),
    Program("bits", _bits, (np.arange(9, dtype=np.int32) * 77777,)),
)  # fmt: skip
