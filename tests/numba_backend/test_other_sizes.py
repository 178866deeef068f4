"""The second size of a program: fusion, emitters and loop transforms give what they gave for the first, and the same
texts and numbers as if there had been none."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hloom.hlo.passes.fuse import fuser
from hloom.hlo.passes.fuse.outline_loops import is_outlined_loop
from hloom.hlo.passes.simplify.algebraic_simplifier import AlgebraicSimplifier
from hloom.numba_backend import fused_computations
from hloom.numba_backend.fused_computations import FusedComputations
from hloom.numba_backend.native_loops import emit
from hloom.numba_backend.native_loops.emit import emit_native_loop
from hloom.numba_backend.output_fusion import is_output_fusion, scatter_of
from hloom.numba_backend.pipeline import pipeline
from hloom.numba_backend.policy.fusions import emit_fusion

import hloom
import hloom.numpy as jnp
from hloom import lax, nn
from support.known_kernels import forget_known
from support.random_sizes import ARGUMENTS, random_function, random_sizes

F32, S32 = "f32", "s32"


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    forget_known()
    yield
    forget_known()


def _array(*sizes: int, dtype: Any = np.float32) -> Any:
    return hloom.ShapeDtypeStruct(sizes, dtype)


def _norm(x: Any, w: Any) -> Any:
    return ((x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * w).sum()


def _loss(w: Any, x: Any, y: Any) -> Any:
    return -jnp.mean(jnp.sum(nn.log_softmax(x @ w) * nn.one_hot(y, 10), 1))


def _table(x: Any, y: Any) -> Any:
    def row(i: Any, t: Any) -> Any:
        def cell(j: Any, t: Any) -> Any:
            return t.at[i, j].set(jnp.minimum(t[i - 1, j], t[i, j - 1]) + (x[i] != y[j]))

        return lax.fori_loop(1, y.shape[0], cell, t)

    return lax.fori_loop(1, x.shape[0], row, jnp.zeros((x.shape[0], y.shape[0])))


def _heat(u: Any) -> Any:
    def step(_: Any, u: Any) -> Any:
        return u.at[1:-1, 1:-1].add(0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] - 2 * u[1:-1, 1:-1]))

    return lax.fori_loop(0, 5, step, u)


def _unrolled(x: Any) -> Any:
    """So many equal steps that they are cut into kernels after whole steps."""
    for _ in range(250):
        y = x * 0.5 + 0.25
        x = x - 0.01 * (y * y - y) * jnp.minimum(y, 2.5)
    return x


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]] = {
    "chain": (lambda x: jnp.tanh(x) * 2.5 + jnp.exp(-x * x) / x.size, lambda n: (_array(n),)),
    "softmax": (lambda x: nn.softmax(x) / x.size, lambda n: (_array(n, 2 * n),)),
    "alike": (lambda x, w: nn.softmax(x * w + 0.5), lambda n: (_array(n, 300), _array(300))),
    "columns": (lambda x: (x.sum(0), x.var(0), x * 2), lambda n: (_array(n, 48),)),
    "norm": (hloom.grad(_norm, (0, 1)), lambda n: (_array(n, 40), _array(40))),
    "loss": (hloom.value_and_grad(_loss), lambda n: (_array(20, 10), _array(n, 20), _array(n, dtype=np.int32))),
    "stencil": (lambda x: x[2:] - 2 * x[1:-1] + x[:-2], lambda n: (_array(n + 2),)),
    "roll": (lambda x: jnp.roll(x, 1) + jnp.pad(x[:-1], (1, 0)), lambda n: (_array(n + 1),)),
    "transposed": (lambda x: x.T * 2 + 1, lambda n: (_array(n, n + 1),)),
    "gathered": (lambda x, i: x[i] * 2, lambda n: (_array(n, 8), _array(5, dtype=np.int32))),
    "clipped": (lambda x: jnp.clip(x, -1.5, 2.5) + jnp.maximum(x, 0.25), lambda n: (_array(n),)),
    "complex": (lambda x: x * (1.5 + 2j) + 2.5, lambda n: (_array(n, dtype=np.complex64),)),
    "table": (_table, lambda n: (_array(n, dtype=np.int32), _array(n + 1, dtype=np.int32))),
    "heat": (_heat, lambda n: (_array(n + 2, n + 2),)),
    "unrolled": (_unrolled, lambda n: (_array(n, 20),)),
    "scan": (hloom.grad(lambda x: (lax.scan(lambda c, y: (jnp.sin(c) * 0.3 + y, c), x[0], x)[0] ** 2).mean()),
             lambda n: (_array(20, n),)),
}  # fmt: skip


def _described(name: str, size: int) -> str:
    function, arguments = PROGRAMS[name]
    return _description(lambda *x: function(*x), arguments(size))


def _description(function: Callable[..., Any], arguments: Sequence[Any]) -> str:
    """The optimised module, its kernels and their numbers."""
    bodies = FusedComputations()
    module, _ = pipeline("cpu", bodies).run(hloom.jit(function).lower(*arguments).module)
    found = [module.to_text(metadata=False)]
    for instruction in module.entry.instructions:
        if instruction.opcode is not hloom.hlo.Opcode.FUSION or scatter_of(instruction) is not None:
            continue
        if is_outlined_loop(instruction):
            kernel = emit_native_loop(instruction.attributes.calls, bodies).kernel
        elif is_output_fusion(instruction):
            continue
        else:
            operands = range(len(instruction.operands))
            found += [str(bodies.can_share(instruction, k, 0)) for k in operands]
            found.append(str(bodies.is_identity(instruction)))
            kernel = bodies.kernel(instruction, {})
        numbers = [(p.name, str(getattr(p, "value", None))) for p in kernel.parameters]
        found.append(f"{kernel.source}\n{numbers} {kernel.extent} {kernel.least} {kernel.cost} {kernel.nanoseconds}")
    return "\n".join(found)


SIZES = (1, 2, 4, 5, 12, 16, 17, 31, 33, 48, 64, 100, 128, 256, 1000)


@pytest.mark.parametrize("name", PROGRAMS)
def test_other_sizes_leave_no_trace(name: str) -> None:
    rng = random.Random(name)
    sizes = rng.sample(SIZES, 6)
    expected = {}
    for size in sizes:
        forget_known()
        expected[size] = _described(name, size)
    forget_known()
    for size in rng.sample([*sizes, *sizes], 2 * len(sizes)):
        assert _described(name, size) == expected[size], size


@pytest.mark.parametrize("seed", range(12))
def test_random_functions_at_other_sizes(seed: int) -> None:
    """Sizes that are equal by chance, swapped, 0 and 1 among them."""
    rng, function = random.Random(seed), random_function(seed)
    given = [
        [_array(*[sizes[letter] for letter in letters]) for letters in ARGUMENTS] for sizes in random_sizes(rng, 4)
    ]
    expected = []
    for arguments in given:
        forget_known()
        expected.append(_description(function, arguments))
    forget_known()
    for k in rng.sample(range(len(given)), len(given)):
        assert _description(function, given[k]) == expected[k], given[k]


KNOWN = ("chain", "softmax", "alike", "columns", "norm", "loss", "stencil", "heat", "unrolled", "scan")


@pytest.mark.parametrize("name", KNOWN)
def test_a_second_size_needs_no_simplification_and_no_emitter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes and constants in the kernels differ, and their texts do not."""
    first = _described(name, 300)

    def refuse(*_: Any) -> Any:
        raise AssertionError("it is known")

    monkeypatch.setattr(AlgebraicSimplifier, "rewrite", refuse)
    monkeypatch.setattr(fuser.Fuser, "run", refuse)
    monkeypatch.setattr(fused_computations, "emit_fusion", refuse)
    monkeypatch.setattr(emit, "jammed", refuse)
    second = _described(name, 350)
    assert second != first
    monkeypatch.undo()
    forget_known()
    assert _described(name, 350) == second


def test_a_size_that_decides_otherwise_is_emitted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    emitted: list[object] = []
    monkeypatch.setattr(
        fused_computations, "emit_fusion", lambda *given: emitted.append(given) or emit_fusion(*given)
    )
    counts = []
    for size in (100, 200, 7, 8, 7, 100):  # rows of 14 and 16 elements are literals
        _described("softmax", size)
        counts.append(len(emitted))
    assert counts[0] == counts[1]
    assert counts[1] < counts[2] < counts[3]
    assert counts[3:] == [counts[3]] * 3


def test_constants_are_those_of_the_program() -> None:
    """Fusions that differ in ordinary constants alone share an emission; 0, 1 and infinities are others."""
    x = np.linspace(-2, 2, 50).astype(np.float32)
    for a, b in ((0.5, 0.25), (0.25, 0.5), (0.5, 0.5), (1.0, 0.5), (0.0, -1.0), (-0.0, 0.5), (np.inf, 2.5), (1e30, 7)):
        for size in (50, 30):
            given = hloom.jit(lambda v, a=a, b=b: jnp.maximum(v * a, b) + a)(x[:size])
            with np.errstate(invalid="ignore"):
                expected = np.maximum(x[:size] * np.float32(a), np.float32(b)) + np.float32(a)
            np.testing.assert_array_equal(given, expected)


def test_results_at_many_sizes() -> None:
    rng = np.random.default_rng(0)
    step = hloom.jit(lambda x, w: nn.softmax(x @ w / x.shape[0]).sum(0))
    for rows in (96, 128, 1, 17, 2, 64, 0, 33, 128):
        x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((rows, 24), (24, 10)))
        scores = np.exp(x @ w / max(rows, 1))
        expected = (scores / scores.sum(1, keepdims=True)).sum(0)
        np.testing.assert_allclose(step(x, w), expected, rtol=2e-5, atol=1e-6)


def test_a_schedule_for_a_kernel_that_is_known() -> None:
    """`under` writes the kernel for its own sizes, not for those that were observed."""
    function, arguments = PROGRAMS["columns"]
    for size in (700, 1200):  # so few that they are not summed in parts
        bodies = FusedComputations()
        module, _ = pipeline("cpu", bodies).run(hloom.jit(function).lower(*arguments(size)).module)
        (fusion, *_) = [i for i in module.entry.instructions if i.opcode is hloom.hlo.Opcode.FUSION]
        kernel = bodies.kernel(fusion, {})
        assert kernel.under is not None
        plain = emit_fusion(bodies.of(fusion), {})
        assert plain.under is not None
        again, expected = (each.under(kernel.program.notes[1:]) for each in (kernel, plain))
        assert again.source == expected.source
        assert again.parameters == expected.parameters
        assert size in [getattr(p, "value", None) for p in again.parameters]
