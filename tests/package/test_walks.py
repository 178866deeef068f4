"""The guides of `docs/architecture/adding.md`, step by step, with public means only: a backend, a target, a pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hloom.hlo.backend import (
    Compiler,
    DeviceBuffer,
    Executable,
    MemoryAnalysis,
    NDArray,
    get_compiler,
    register_backend,
    unregister_backend,
)
from hloom.hlo.host_buffers import HostBuffer
from hloom.hlo.passes.expand.expand import EXPANSIONS, Expand
from hloom.hlo.passes.manager import FixedPoint, PassOptionsError, Pipeline
from hloom.hlo.passes.record import PassRecord
from hloom.hlo.passes.rewrite import map_computations, rewrite_computation
from hloom.hlo.passes.simplify.algebraic_simplifier import AlgebraicSimplifier
from hloom.hlo.passes.simplify.call_inliner import CallInliner
from hloom.hlo.passes.simplify.dead_code_elimination import DeadCodeElimination

import hloom
import hloom.numpy as jnp
from hloom import hlo

# ---- a pass: a frozen dataclass with a name, from a module to a module


@dataclass(frozen=True, slots=True)
class SineIsOdd:
    """-sin(x) is sin(-x)."""

    name: str = "sine-is-odd"

    def __call__(self, module: hlo.HloModule) -> hlo.HloModule:
        def visit(old: hlo.HloInstruction, moved: hlo.HloInstruction) -> hlo.HloInstruction:
            if moved.opcode is not hlo.Opcode.NEGATE or moved.operands[0].opcode is not hlo.Opcode.SIN:
                return moved
            negated = hlo.make_instruction(hlo.Opcode.NEGATE, moved.operands[0].operands)
            return hlo.make_instruction(hlo.Opcode.SIN, (negated,))

        return map_computations(module, lambda computation: rewrite_computation(computation, visit))


# ---- a backend: a compiler with a pipeline, and an executable


class PlainExecutable(Executable):
    """Runs a module operation by operation; a kernel is a line of text that names one."""

    def __init__(self, module: hlo.HloModule, records: Sequence[PassRecord]) -> None:
        self.module = module
        self._records = records

    @property
    def parameter_shapes(self) -> Sequence[hlo.Shape]:
        return [leaf for p in self.module.entry.parameters for leaf in p.shape.leaves()]

    @property
    def result_shapes(self) -> Sequence[hlo.Shape]:
        return list(self.module.entry.root.shape.leaves())

    def call(self, arguments: list[DeviceBuffer]) -> list[DeviceBuffer]:
        results = self.execute([np.asarray(a) for a in arguments])
        return [HostBuffer(r, s) for r, s in zip(results, self.result_shapes, strict=True)]

    def execute(self, arguments: Sequence[NDArray]) -> list[NDArray]:
        return [np.array(r) for r in hlo.evaluate(self.module, *arguments)]

    def kernels(self) -> Mapping[str, str]:
        computed = [i for i in self.module.entry.instructions if i.operands and i.shape.is_array]
        return {i.name: f"{i.opcode.value} -> {i.shape}" for i in computed}

    def memory_analysis(self) -> MemoryAnalysis:
        return MemoryAnalysis(0, 0, 0, 0, 0, 0, "not known")

    def passes(self) -> Sequence[PassRecord]:
        return self._records


class PlainCompiler(Compiler):
    """A compiler without any knowledge of the CPU, BLAS and threads."""

    def pipeline(self, target: str | hlo.Target = "cpu") -> Pipeline:
        simplify = FixedPoint((AlgebraicSimplifier(), SineIsOdd(), DeadCodeElimination()))
        return Pipeline("plain", (CallInliner(), Expand(EXPANSIONS), simplify))

    def compile(
        self, module: hlo.HloModule, *, target: str | hlo.Target = "cpu", donated: Sequence[int] = ()
    ) -> PlainExecutable:
        return PlainExecutable(*self.pipeline(target).run(module))


@pytest.fixture
def plain() -> Iterator[None]:
    """The backend, registered and chosen as a user does."""
    before = hloom.config.hloom_backend
    register_backend("plain", PlainCompiler)
    hloom.config.update("hloom_backend", "plain")
    yield
    hloom.config.update("hloom_backend", before)
    unregister_backend("plain")


X = np.arange(3, dtype=np.float32)


def odd(x: hloom.Array) -> hloom.Array:
    return -jnp.sin(x)


@pytest.mark.usefixtures("plain")
def test_a_backend_runs_programs() -> None:
    value, gradient = hloom.jit(hloom.value_and_grad(lambda x: jnp.sum(odd(x))))(jnp.asarray(X))
    np.testing.assert_allclose(value, -np.sum(np.sin(X)), rtol=1e-6)
    np.testing.assert_allclose(gradient, -np.cos(X), rtol=1e-6)
    compiled = hloom.jit(odd).lower(X).compile()
    assert type(compiled.executable) is PlainExecutable
    assert list(compiled.kernels().values()) == ["negate -> f32[3]", "sine -> f32[3]"]
    (result,) = hloom.run_hlo(hloom.jit(odd).lower(X).as_text(), X)
    np.testing.assert_allclose(result, np.sin(-X), rtol=1e-6)


@pytest.mark.usefixtures("plain")
def test_optimize_is_the_pipeline_of_the_backend() -> None:
    module = hlo.parse(hloom.jit(odd).lower(X).as_text())
    plain, _ = hlo.optimize(module)
    assert " sine(%negate)" in plain.to_text() and " fusion(" not in plain.to_text()
    fused, _ = hlo.optimize(module, backend="numba")
    assert " fusion(" in fused.to_text()
    same, records = hlo.optimize(module, backend="evaluator")
    assert same is module and not records


@pytest.mark.usefixtures("plain")
def test_what_a_backend_may_be_called() -> None:
    with pytest.raises(ValueError, match="there is a backend named 'plain' already"):
        register_backend("plain", PlainCompiler)
    for name in (get_compiler, unregister_backend):
        with pytest.raises(hlo.UnsupportedError, match=r"no backend named 'plane'; known: .*numba.*plain"):
            name("plane")


@pytest.mark.usefixtures("plain")
def test_a_pass_is_seen_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled() -> hloom.Compiled:
        return hloom.jit(odd).lower(X).compile()

    monkeypatch.setenv("HLOOM_DUMP_TO", str(tmp_path))
    changed = [record.name for record in compiled().passes() if record.changed]
    assert "sine-is-odd" in changed
    (dump,) = tmp_path.glob("*/*sine-is-odd.hlo")
    assert " sine(%negate)" in dump.read_text()
    monkeypatch.setenv("HLOOM_DISABLE_PASSES", "sine-is-odd")
    without = compiled()
    assert " negate(%sine)" in without.as_text() and "sine-is-odd" not in [record.name for record in without.passes()]
    monkeypatch.setenv("HLOOM_DISABLE_PASSES", "sine-is-even")
    with pytest.raises(PassOptionsError, match=r"no pass named sine-is-even; known: .*sine-is-odd"):
        compiled()


# ---- a target: the layout of every buffer


@dataclass(frozen=True)
class Quads(hlo.Target):
    """Buffers padded to blocks of four elements along the last dimension, and a scratch pad of 64 bytes."""

    name = "quads"

    def buffer_layout(self, shape: hlo.Shape) -> hlo.Layout:
        minor_to_major = tuple(range(shape.rank - 1, -1, -1))
        return hlo.Layout(minor_to_major, (hlo.Tile((4,)),) if shape.rank else ())

    @property
    def fast_memory(self) -> hlo.MemorySpace:
        return hlo.MemorySpace(3, "pad", 64)


def test_a_target_lays_out_what_lies_between() -> None:
    def f(x: hloom.Array) -> hloom.Array:
        return jnp.cumsum(jnp.tanh(x)) @ jnp.ones((3, 2), jnp.float32)

    lowered = hloom.jit(f).lower(X)
    compiled = lowered.compile(target=Quads())
    np.testing.assert_allclose(compiled(X), lowered.compile()(X), rtol=1e-6)
    text = compiled.as_text()
    assert "f32[3]{0:T(4)S(3)}" in text, "in tiles, and in the fast memory"
    optimized, _ = hlo.optimize(hlo.parse(lowered.as_text()), Quads())
    assert "f32[3]{0:T(4)S(3)}" in optimized.to_text()
    assert "pad" in str(compiled.memory_analysis())
