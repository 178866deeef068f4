"""The estimate of a kernel's time, and that no other file has numbers of nanoseconds, bytes of a cache or grains."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hloom.hlo.text.parser import parse
from hloom.numba_backend import cost, lowering
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.emitted_kernel import EmittedKernel
from hloom.numba_backend.loops.expressions import Expr, Name, Number, call
from hloom.numba_backend.loops.statements import LoopProgram
from hloom.numba_backend.loops.writer import Writer
from hloom.numba_backend.machine import PIECE_NANOSECONDS, Machine, compiling_for

import hloom
import hloom.numpy as jnp

MACHINE = Machine(2, 32, 64, True, 64, 1 << 15, 1 << 20, 1 << 25)
X, Y = Name("x", "float32*"), Name("y", "float32*")
N = Name("n")


def _map(value: Expr, *, stride: int = 1) -> LoopProgram:
    """``for i in range(n): y[i * stride] = value``"""
    writer = Writer()
    with writer.loop("k", Name("lo"), Name("hi")), writer.loop("i", N) as i:
        writer.store(Y, i * stride, value)
    return LoopProgram("k", ("lo", "hi", "x", "y", "n"), writer.body())


def _of(program: LoopProgram, n: int, hi: int = 10, machine: Machine = MACHINE) -> float:
    return cost.nanoseconds(program, {"lo": 0, "hi": hi, "n": n}, machine)


LOADED = X[Name("i", "int64", 2)]


def test_time_grows_with_the_trips() -> None:
    program = _map(LOADED)
    assert _of(program, 100_000) == pytest.approx(10 * _of(program, 10_000), rel=0.02)
    assert _of(program, 1000, 100) == pytest.approx(10 * _of(program, 1000, 10))
    assert _of(program, 0) < _of(program, 1)
    assert _of(program, 1000, 0) == 0


def test_operations_of_vectors() -> None:
    plain, function = _map(LOADED), _map(call("exp", LOADED))
    strided, gathered = _map(LOADED, stride=1000), _map(X[call("int64", LOADED)])
    narrow = replace(MACHINE, register_bytes=16)
    assert _of(function, 1000) > 1.5 * _of(plain, 1000)
    assert _of(function, 1000, machine=narrow) > 2 * _of(function, 1000)
    assert _of(strided, 1000) > 3 * _of(plain, 1000) and _of(gathered, 1000) > 3 * _of(plain, 1000)


def test_an_estimate_does_not_depend_on_those_before() -> None:
    programs = [_map(call("exp", LOADED) + LOADED) for _ in range(2)]
    narrow = replace(MACHINE, register_bytes=16)
    first = _of(programs[0], 1000), _of(programs[0], 1000, machine=narrow)
    assert first[::-1] == (_of(programs[1], 1000, machine=narrow), _of(programs[1], 1000))


def test_a_sum_that_is_stored_at_each_step_is_no_vector() -> None:
    writer = Writer()
    with writer.loop("k", Name("lo"), Name("hi")):
        total = writer.assign("total", Number(0.0))
        with writer.loop("i", N) as i:
            writer.assign(total, total + X[i])
            writer.store(Y, i, total)
    serial = LoopProgram("k", ("lo", "hi", "x", "y", "n"), writer.body())
    assert _of(serial, 1000) > 3 * _of(_map(LOADED), 1000)


@pytest.mark.parametrize("chosen", [0, 1])
def test_sizes_choose_a_branch(chosen: int) -> None:
    writer = Writer()
    with writer.loop("k", Name("lo"), Name("hi")):
        with writer.if_(Name("n").eq(1)), writer.loop("i", 1000) as i:
            writer.store(Y, i, call("pow", X[i], X[i]))
        with writer.else_():
            writer.store(Y, Number(0), X[Number(0)])
    program = LoopProgram("k", ("lo", "hi", "x", "y", "n"), writer.body())
    assert (_of(program, chosen, 1) > 1000) is bool(chosen)


def _kernels(function: object, *arrays: np.ndarray, machine: Machine = MACHINE) -> list[tuple[EmittedKernel, int]]:
    """The kernels with their grains."""
    found = []
    original = lowering._Lowering.kernel

    def kernel(self: lowering._Lowering, name: str, emitted: EmittedKernel, *rest: object) -> None:
        found.append((emitted, self._grain(emitted, None)))
        original(self, name, emitted, *rest)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch, compiling_for(machine):
        patch.setattr(lowering._Lowering, "kernel", kernel)
        NumbaCompiler().compile(parse(hloom.jit(function).lower(*arrays).as_text()))
    return found


def test_threads_get_shares_that_take_long_enough() -> None:
    """Of a sum as of a tangent: what a share has of them differs."""
    x = np.ones((1000, 1000), np.float32)
    shares = []
    for function in (lambda x: x.sum(1), jnp.tan):
        ((kernel, grain),) = _kernels(function, x)
        each = kernel.nanoseconds / kernel.extent
        assert each * (grain - 1) < PIECE_NANOSECONDS <= each * grain * (1 + 1e-9)
        shares.append(grain * x.size // kernel.extent)
    assert shares[0] > 3 * shares[1]


def test_a_machine_with_narrow_registers_shares_sooner() -> None:
    x = np.ones((1000, 1000), np.float32)
    (wide,), (narrow,) = (
        _kernels(jnp.exp, x, machine=replace(MACHINE, register_bytes=nbytes)) for nbytes in (64, 16)
    )
    assert narrow[1] < wide[1]


# ---- the sources

ROOT = Path(hloom.__file__).resolve().parent.parent / "numba_backend"
HOME = ("machine.py", "cost.py", "policy/")
_NAME = re.compile(r"(^|_)(BYTES|LINE|NANOSECONDS|CACHE|GRAIN|SHARE)($|_)")
_COST = frozenset(("cost", "nanoseconds", "finish", "EmittedKernel", "written"))

NO_COSTS = {
    "ahead/c_program.py: _BYTES_A_LINE": "of C's text",
    "ahead/wasm_linker.py: STACK_BYTES": "of a module's stack",
    "ahead/wasm_program.py: _MOST_BYTES": "addresses have 32 bits",
    "runtime/array_calls_code.py: _PARAMETER_BYTES": "the place of a word",
    "runtime/array_calls_code.py: _RESULT_BYTES": "the same",
    "runtime/blas.py: _BLAS_BYTES": "memory that OpenBLAS asks for",
    "runtime/blas.py: _THREAD_BYTES": "the same, for each thread",
    "runtime/callbacks.py: _MAIN_NANOSECONDS": "how often a loop calls Python",
    "runtime/callbacks.py: _OTHER_NANOSECONDS": "the same in other threads",
    "runtime/compile.py: _LLVM_BYTES": "memory that LLVM asks for",
    "runtime/ffi.py: _STATE_BYTES": "the size of a record",
    "runtime/threads.py: _TASK_BYTES": "the size of a record",
    "runtime/executor.py: NANOSECONDS": "the place of a word",
    "runtime/kernel.py: ELEMENT_BYTES": "sizes of types",
    "runtime/loader.py: _STUB_BYTES": "the size of an instruction",
    "runtime/long_kernels.py: LONG_NANOSECONDS": "how long people wait for an interrupt",
    "runtime/long_kernels.py: STEP_NANOSECONDS": "the same",
    "runtime/machine.py: _BYTES": "a type",
    "runtime/native_code.py: _LINE": "of a text file",
    "emit/transposes.py: _MOST_BYTES": "of the local array of a tile, whose size is in the text",
    "runtime/program.py: _LEAST_NANOSECONDS": "so that a loop's fuel ends",
    "runtime/store_disk.py: _MOST_BYTES": "of a file",
    "schedule/given.py: _LOCAL_BYTES": "of a thread's stack, for schedules of users",
    "stored_programs.py: _MOST_BYTES": "of a file",
}
"""Numbers with such names that say nothing of a processor, or nothing that decides how a kernel is made."""

TEXTS = {
    "expansions/convolution.py: TILE_BYTES": "forms are chosen in HLO, before there is a kernel; the same everywhere",
    "expansions/stencil.py: VECTOR_BYTES": "the same",
    "linalg/forms.py: _MOST_LOCAL_BYTES": "which sizes of matrices have a kernel: a part of the program's text",
    "ahead/product.py: _GRAIN_FLOP": "C for any compiler: no machine is known",
}
"""Numbers that belong to the text of a kernel, and to the schedule that will be chosen for it."""

ESTIMATES = {
    "lowering_rules/fourier.py": "the texts of passes end where the table of factors says",
    "lowering_rules/lapack.py": "around calls of LAPACK",
}  # fmt: skip
"""Files with a formula of their own for the estimates of their kernels."""


def _found(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            targets = target.elts if isinstance(target, ast.Tuple) else [target]
            for name in [t.id for t in targets if isinstance(t, ast.Name)]:
                if _NAME.search(name) and _has_number(node.value, int | float):
                    yield name
                if name in _COST and _has_number(node.value, float):
                    yield "an estimate"
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _COST and any(_has_number(a, float) for a in (*node.args, *(k.value for k in node.keywords))):
                yield "an estimate"


def _has_number(node: ast.expr, kind: object) -> bool:
    return any(
        isinstance(n, ast.Constant) and isinstance(n.value, kind) and not isinstance(n.value, bool)  # type: ignore[arg-type]
        for n in ast.walk(node)
    )


def test_numbers_of_the_machine_are_in_one_place() -> None:
    """A new one belongs into cost.py or machine.py, or is a part of a cache: ``target_machine().second_cache // 2``."""
    found = set()
    for path in ROOT.rglob("*.py"):
        file = path.relative_to(ROOT).as_posix()
        if not file.startswith(HOME):
            found |= {file if name == "an estimate" else f"{file}: {name}" for name in _found(path)}
    assert found == {*NO_COSTS, *TEXTS, *ESTIMATES}


@pytest.mark.parametrize("text", ["_PIECE_BYTES = 1 << 19", "LINE = 64", "A, B_NANOSECONDS = 1, 2.0",
                                  "cost = 0.3 * n", "k = text.finish(rows, 5.0 + 0.2 * n)"])  # fmt: skip
def test_a_number_is_found(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(text)
    assert list(_found(tmp_path / "a.py"))
