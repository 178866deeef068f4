"""Machine code for other processors and systems: linked and run under emulation, or read by LLVM's tools."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path
from types import ModuleType
from unittest import mock

import llvmlite.binding as llvm
import numpy as np
import pytest
from hloom.numba_backend.machine import registers_of
from hloom.numba_backend.runtime import dialect, llvm_backend, machine, native_code, threads
from hloom.numba_backend.runtime.compile import compile_kernels
from hloom.numba_backend.runtime.frontend import to_llvm
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.llvm_backend import emit_object
from hloom.numba_backend.runtime.loader import LINKS, Image, link, load_objects
from hloom.numba_backend.runtime.relocations import PROCESSORS, UnfamiliarError
from hloom.numba_backend.runtime.threads import POOL_FUNCTIONS

from support.runtime_kernels import ADD, F32
from support.tool_modules import tool_module

ARM = "aarch64-unknown-linux-gnu"
KERNELS = {
    name: KernelSource(name, f"def {name}(lo, hi, x, out):\n    for i in range(lo, hi):\n{body}", (F32, F32))
    for name, body in {
        "constants": "        v = x[i]\n        out[i] = ((v * float32(0.1) + float32(0.2)) * v + float32(0.3)) * v\n",
        "functions": "        v = x[i]\n        out[i] = exp(v) - sin(v * float32(1e6)) * tanh(v)\n",
        "copy": "        out[i] = x[i]\n",
        "switch": "        c = int32(x[i])\n"
        + "".join(
            f"        {'el' * (n > 0)}if c == {n}:\n            out[i] = float32({n * n % 7})\n" for n in range(12)
        )
        + "        else:\n            out[i] = float32(-1)\n",
    }.items()
}


def target(triple: str, cpu: str = "") -> object:
    llvm_backend.host_target()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    cpu = cpu or ("x86-64-v3" if triple.startswith("x86_64") else "")
    return llvm.Target.from_triple(triple).create_target_machine(cpu, "", 2, reloc="pic", codemodel="default")


def object_for(triple: str, kernel: KernelSource, cpu: str = "") -> bytes:
    made_for = target(triple, cpu)
    header = (triple, str(made_for.target_data))  # type: ignore[attr-defined]
    scope = machine.SCOPE if kernel.convention == "native" else dialect.SCOPE
    with mock.patch.object(llvm_backend, "module_header", lambda: header):
        return emit_object(to_llvm(kernel, scope, features=frozenset({"fma"}), register=16), made_for)


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command of a program that runs images for ARM."""
    emulator, compiler = shutil.which("qemu-aarch64"), shutil.which("aarch64-linux-gnu-gcc")
    if emulator is None or compiler is None:
        pytest.skip("no emulator of ARM, or no compiler for it: apt install qemu-user gcc-aarch64-linux-gnu")
    source = Path(__file__).resolve().parents[2] / "support" / "systems" / "run_image.c"
    program = tmp_path_factory.mktemp("arm") / "run_image"
    words = {"RUN_PARALLEL": threads.RUN_PARALLEL, "THREADS": threads.THREADS, "SPINS": threads.SPINS}
    private = ("LOCK", "UNLOCK", "WAIT", "SIGNAL", "YIELD", "NAP", "NAP_TIME", "MUTEX", "CONDITION")
    words |= {name: getattr(threads, f"_{name}") for name in private}
    defined = [f"-D{name}={offset}" for name, offset in words.items()]
    subprocess.run([compiler, "-O1", "-static", "-pthread", *defined, "-o", program, source], check=True, timeout=100)
    return [emulator, str(program)]


@pytest.mark.parametrize("name", KERNELS)
def test_linked_code_for_arm_computes_the_same(name: str, emulator: list[str], tmp_path: Path) -> None:
    kernel = KERNELS[name]
    image = link(kernel.symbol, object_for(ARM, kernel), PROCESSORS["aarch64"])
    assert image is not None
    image = Image.from_bytes(image.to_bytes())
    (tmp_path / "code").write_bytes(image.code)
    x = np.linspace(-1, 14, 1001).astype(np.float32)
    np.stack([x, np.full_like(x, 7)]).tofile(tmp_path / "arrays")
    names = ",".join(image.externals)
    arguments = ["kernel", tmp_path / "code", str(image.entry), names, tmp_path / "arrays", str(x.size)]
    subprocess.run([*emulator, *arguments], check=True, timeout=100)
    found = np.fromfile(tmp_path / "arrays", np.float32).reshape(2, -1)
    (code,) = load_objects([(kernel.symbol, compile_kernels([kernel])[0])])
    expected = np.empty_like(x)
    table = (ctypes.c_int64 * 2)(x.ctypes.data, expected.ctypes.data)
    call = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(code.address)
    call(0, x.size, ctypes.addressof(table))
    np.testing.assert_array_equal(found, [x, expected])


def test_delivered_code_for_arm_shares_work(emulator: list[str], tmp_path: Path) -> None:
    """The pool's functions, as they come with the package, with real threads of the emulator."""
    text = Path(native_code.PATHS["aarch64"]).read_text()
    for function in POOL_FUNCTIONS[:2]:
        image = native_code.find(text, function.identity)
        assert image is not None and image.entry == 0 and not image.externals
        (tmp_path / function.name).write_bytes(image.code)
    done = subprocess.run(
        [*emulator, "pool", tmp_path / "run_parallel", tmp_path / "worker"], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    expected = np.zeros(64, np.int64)
    np.add.at(expected, np.arange(10000) % 64, np.arange(10000))
    np.testing.assert_array_equal([int(line) for line in done.stdout.split()], expected * 50)


def test_relocations_of_arm_by_hand() -> None:
    """The bits of AAELF64, on instructions that are all zeros but for the operation."""
    arm = PROCESSORS["aarch64"]

    def relocated(instruction: int, kind: int, place: int, target: int) -> int:
        code = bytearray(0x3000)
        code[place : place + 4] = instruction.to_bytes(4, "little")
        arm.relocate(code, kind, place, target)
        return int.from_bytes(code[place : place + 4], "little")

    assert relocated(0x94000000, 283, 0x1000, 0x1010) == 0x94000004  # BL +16
    assert relocated(0x94000000, 283, 0x1010, 0x1000) == 0x97FFFFFC  # BL -16
    assert relocated(0x90000008, 275, 0x0010, 0x2345) == 0xD0000008  # ADRP X8, +2 pages
    assert relocated(0x90000008, 275, 0x2010, 0x0345) == 0xD0FFFFE8  # ADRP X8, -2 pages
    assert relocated(0x91000108, 277, 0x0010, 0x2345) == 0x910D1508  # ADD X8, X8, #0x345
    assert relocated(0x3DC00100, 299, 0x0010, 0x2340) == 0x3DC0D100  # LDR Q0, [X8, #0x340]
    assert relocated(0, 261, 0x0010, 0x2340) == 0x2330
    for kind, target in ((283, 3), (299, 0x2348), (311, 0), (257, 0)):
        with pytest.raises(UnfamiliarError):
            relocated(0, kind, 0x10, target)


def test_only_code_for_the_processor_is_linked() -> None:
    arm, ours = object_for(ARM, ADD), object_for("x86_64-unknown-linux-gnu", ADD)
    assert link(ADD.symbol, arm, PROCESSORS["x86_64"]) is None and link(ADD.symbol, ours, PROCESSORS["aarch64"]) is None
    assert link(ADD.symbol, arm, PROCESSORS["aarch64"]) and link(ADD.symbol, ours, PROCESSORS["x86_64"])
    assert link(ADD.symbol, arm, None) is None
    assert not LINKS or os.uname().machine in PROCESSORS


SYSTEMS = {
    "arm64-apple-macosx13.0": ("Mach-O arm64", "_"),
    "x86_64-apple-macosx13.0": ("Mach-O 64-bit x86-64", "_"),
    "x86_64-pc-windows-msvc": ("COFF-x86-64", ""),
    "aarch64-pc-windows-msvc": ("COFF-ARM64", ""),
}
"""Triples, with LLVM's name of the object format, and what symbols begin with."""
C_LIBRARY = {"memcpy", "memmove", "memset", "bzero", "__bzero", "malloc", "free", "strlen", "__chkstk", "_fltused"}


@pytest.fixture(scope="module")
def tool(root: Path) -> ModuleType:
    return tool_module(root, "native_code")


@pytest.mark.skipif(shutil.which("llvm-readobj") is None, reason="LLVM's tools are not installed")
@pytest.mark.parametrize("every", [16, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("triple", SYSTEMS)
def test_objects_for_other_systems(triple: str, every: int, tool: ModuleType, tmp_path: Path) -> None:
    """Some functions of the runtime and some kernels: the format, one global symbol, nothing missing but the C
    library's functions, and sections of code that is not written to."""
    form, prefix = SYSTEMS[triple]
    for kernel in (*tool.FUNCTIONS[::every], *KERNELS.values()):
        path = tmp_path / "kernel.o"
        path.write_bytes(object_for(triple, kernel))
        head = subprocess.run(["llvm-readobj", "--file-headers", "--sections", path], capture_output=True, text=True)
        assert head.returncode == 0 and re.search(rf"Format: {re.escape(form)}\n", head.stdout), head.stdout[:300]
        names = subprocess.run(["llvm-nm", "--extern-only", "--format=posix", path], capture_output=True, text=True)
        kinds = {line.split()[0]: line.split()[1] for line in names.stdout.splitlines()}
        assert kinds.pop(prefix + kernel.symbol) == "T"
        missing = {name.removeprefix(prefix) for name, kind in kinds.items() if kind == "U"}
        assert missing <= C_LIBRARY, missing
        assert all(kind in "UDRAad" for kind in kinds.values()), kinds


APPLE = "arm64-apple-macosx13.0"
VECTOR = re.compile(r"\.4s\b")
SCALABLE = re.compile(r"\bz\d+\.[bhsdq]\b|\bp\d+/[mz]\b|\b(smstart|whilelo|cntw|rdvl)\b")
"""Registers and instructions of SVE and SME. Apple's cores have none, or only in a mode of their own (M4)."""


@pytest.mark.skipif(shutil.which("llvm-objdump") is None, reason="LLVM's tools are not installed")
@pytest.mark.parametrize(
    "cpu", ["apple-m1", *(pytest.param(f"apple-{n}", marks=pytest.mark.slow) for n in ("a14", "m2", "m3", "m4"))]
)
def test_kernels_for_apples_cores_use_neon(cpu: str, tmp_path: Path) -> None:
    """By LLVM's names: Mach-O with an underscore, and vectors of 16 bytes."""
    for kernel in KERNELS.values():
        path = tmp_path / "kernel.o"
        path.write_bytes(object_for(APPLE, kernel, cpu))
        assert path.read_bytes()[:8] == struct.pack("<II", 0xFEEDFACF, 0x0100000C)  # Mach-O of 64 bits, ARM64
        command = ["llvm-objdump", "--disassemble", "--syms", "--mattr=+all", path]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert re.search(rf"\bg\s+F __TEXT,__text _{re.escape(kernel.symbol)}$", shown, re.MULTILINE), shown[:500]
        assert "<unknown>" not in shown and not SCALABLE.search(shown)
        if kernel.name in ("constants", "functions"):
            assert len(VECTOR.findall(shown)) > 4, shown[:2000]


def test_widths_on_a_mac() -> None:
    """The words of `hlo/system/darwin.py` for a processor of Apple's."""
    assert registers_of(frozenset(["arm64", "Apple", "M1", "asimd"])) == (32, 16)
