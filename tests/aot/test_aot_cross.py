"""Programs compiled for other machines: run there by an emulator, beside the same programs here."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hloom.numba_backend.ahead.compiling import standalone
from hloom.numba_backend.ahead.llvm_program import Surroundings, program_object
from hloom.numba_backend.ahead.targets import TargetMachine
from hloom.numba_backend.ahead.wasm_program import caller
from hloom.numba_backend.runtime.library import CALLED

import hloom
import hloom.aot
import hloom.numpy as jnp
from tests.aot.test_aot import FUNCTIONS, PARAMS, X, net
from tests.support.elf import read_elf
from tests.support.foreign import Foreign, results_on

HERE = Foreign("native", "cc")
THERE = [
    Foreign("aarch64-linux-gnu", "aarch64-linux-gnu-gcc", "qemu-aarch64"),
    Foreign("riscv64-linux-gnu", "riscv64-linux-gnu-gcc", "qemu-riscv64", has_float16=False),
]
CONTRACTED = 8
"""By so many units in the last place results of object code may differ: each machine has vectors of its own width, and
so its own order of the terms of a sum, and LLVM chooses there which product and sum become one fused operation. C code
says all of that, and its results are the same to the last bit."""


def programs_for(triple: str, functions: list[Any]) -> tuple[list[hloom.aot.AotProgram], list[list[Any]]]:
    programs, inputs = [], []
    for number, (_, function, args) in enumerate(functions):
        programs.append(hloom.aot.compile(function, args, name=f"program{number}", target=triple))
        inputs.append([np.asarray(jnp.asarray(a)) for a in hloom.tree.leaves(args)])
    return programs, inputs


@pytest.mark.slow
@pytest.mark.parametrize("machine", THERE, ids=[m.triple for m in THERE])
@pytest.mark.parametrize("form", ["object", "c"])
def test_results_there_are_those_here(form: str, machine: Foreign, tmp_path: Path) -> None:
    if machine.missing:
        pytest.skip(f"needs {machine.missing}")
    if HERE.missing:
        pytest.skip(f"needs {HERE.missing}")
    functions = [f for f in FUNCTIONS if form == "object" or machine.has_float16 or f[0] != "half"]
    here, inputs = programs_for("native", functions)
    there, _ = programs_for(machine.triple, functions)
    expected = results_on(HERE, here, inputs, form, tmp_path / "here")
    found = results_on(machine, there, inputs, form, tmp_path / "there")
    for (what, *_), given, wanted in zip(functions, found, expected, strict=True):
        for a, b in zip(given, wanted, strict=True):
            assert _ulps(a, b) <= (0 if form == "c" else CONTRACTED), what


def _ulps(a: Any, b: Any) -> float:
    """The largest difference, in units of the last place of the larger elements; NaN is equal to NaN."""
    if a.tobytes() == b.tobytes():
        return 0
    if a.dtype.kind in "biu":
        return np.inf
    if a.dtype.kind == "c":
        return max(_ulps(a.real.copy(), b.real.copy()), _ulps(a.imag.copy(), b.imag.copy()))
    both = np.isnan(a) & np.isnan(b)
    unit = np.spacing(np.maximum(np.abs(a), np.abs(b)))
    return float(np.max(np.where(both, 0, np.abs(a - b) / unit)))


# ---- what object files are

TARGETS = [
    ("x86_64-linux-gnu", "", 64, 62, 0), ("aarch64-linux-gnu", "cortex-a72", 64, 183, 0),
    ("riscv64-linux-gnu", None, 64, 243, 5),  # flags: compressed instructions, arguments in registers of doubles
    ("armv7-linux-gnueabihf", "cortex-a9", 32, 40, 0x5000000),
    ("thumbv7em-none-eabihf", "cortex-m4", 32, 40, 0x5000000),
    ("thumbv8.1m.main-none-eabihf", "cortex-m55", 32, 40, 0x5000000),
]  # fmt: skip
_MEMORY = {"memcpy", "memset", "memmove"}
_OF_ARM = {f"__aeabi_{name}" for name in ("memcpy", "memcpy4", "memcpy8", "memset", "memset4", "memset8", "memclr",
           "memclr4", "memclr8", "memmove", "memmove4", "memmove8", "ldivmod", "l2f", "f2lz", "lmul")}  # fmt: skip


@pytest.mark.parametrize(("triple", "cpu", "bits", "machine", "flags"), TARGETS, ids=[t[0] for t in TARGETS])
def test_object_files_need_only_memory_functions(triple: str, cpu: str, bits: int, machine: int, flags: int) -> None:
    program = hloom.aot.compile(net, (PARAMS, X), name="network", target=triple, cpu=cpu)
    elf = read_elf(program.object_code)
    assert (elf.bits, elf.machine, elf.flags) == (bits, machine, flags)
    assert elf.defined == {"network_run"}
    assert elf.undefined <= (_MEMORY | _OF_ARM if bits == 32 else _MEMORY)
    if triple.endswith("eabihf"):
        # Addenda to the ABI for the Arm architecture: tag 28 with value 1 is the convention of hard floats
        assert bytes((28, 1)) in elf.sections[".ARM.attributes"]


def test_code_for_a_microcontroller_is_in_thumb() -> None:
    """Tag 9 says that the second generation of Thumb is used."""
    program = hloom.aot.compile(net, (PARAMS, X), name="network", target="thumbv7em-none-eabihf", cpu="cortex-m4")
    elf = read_elf(program.object_code)
    assert bytes((9, 2)) in elf.sections[".ARM.attributes"]
    assert len(elf.sections[".text"]) < 8000


# Linux on 32-bit Arm without a C library: read the arguments, call `run`, write the results, end. Instructions of the
# A32 set; a load from pc is from a word at the end.
_START = """
@start = constant [22 x i32] [
  i32 0xe3a07003, i32 0xe3a00000, i32 0xe59f1034, i32 0xe59f2034, i32 0xef000000,  ; read(0, arguments, their size)
  i32 0xe59f3030, i32 0xe12fff33, i32 0xe1a08000,                                    ; r8 = run()
  i32 0xe3a07004, i32 0xe3a00001, i32 0xe59f1020, i32 0xe59f2020, i32 0xef000000,  ; write(1, results, their size)
  i32 0xe3a07001, i32 0xe1a00008, i32 0xef000000, i32 0xe1a00000,                   ; exit(r8)
  i32 ptrtoint (ptr @buffer0 to i32), i32 {given}, i32 ptrtoint (ptr @run to i32),
  i32 ptrtoint (ptr @{result} to i32), i32 {made}
], section ".start", align 4
"""


@pytest.mark.skipif(not (shutil.which("qemu-arm") and shutil.which("ld.lld")), reason="needs qemu-arm and ld.lld")
def test_a_program_runs_on_arm_without_any_library(tmp_path: Path) -> None:
    def probabilities(x: Any) -> Any:
        return net(PARAMS, x)["probabilities"]

    compiled = hloom.aot.compile(probabilities, (X,))
    program = standalone(compiled.module)
    machine = TargetMachine("armv7-linux-gnueabihf", "cortex-a9").resolved()
    numbers = re.sub("0x[0-9a-f]{8}", lambda m: str(int(m[0], 16)), _START)
    start = numbers.format(given=X.nbytes, result="buffer1", made=program.results[0].byte_size)
    code = program_object(program, "network", machine, Surroundings(caller(program, "network") + start, CALLED))
    (tmp_path / "network.o").write_bytes(code)
    command = ["ld.lld", "-N", "-e", "start", "-o", "network", "network.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    run = subprocess.run(["qemu-arm", "./network"], cwd=tmp_path, input=X.tobytes(), capture_output=True)
    assert run.returncode == 0, run.stderr
    found = np.frombuffer(run.stdout, np.float32).reshape(3, 5)
    np.testing.assert_allclose(found, hloom.jit(probabilities)(X), rtol=1e-6)
