"""The machine that programs are compiled for: as the system describes it, as users change it, and in kernels."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from hloom.hlo import UnsupportedError
from hloom.hlo.system.linux import caches_of
from hloom.hlo.targets import target_named
from hloom.hlo.text.parser import parse
from hloom.numba_backend import machine, stored_programs
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.emit import large_results, long_sort
from hloom.numba_backend.emit.copies import emit_copy
from hloom.numba_backend.emit.transposes import tiles_of
from hloom.numba_backend.emitted_kernel import EmittedKernel
from hloom.numba_backend.loops.statements import SizeParameter
from hloom.numba_backend.lowering_rules import fourier
from hloom.numba_backend.machine import ANY_TARGET, Machine, compiling_for, this_machine, with_numbers
from hloom.numba_backend.native_loops.batch import block_members
from hloom.numba_backend.native_loops.memory import Lanes
from hloom.numba_backend.output_fusion import find
from hloom.numba_backend.policy import convolutions, windows
from hloom.numba_backend.runtime import store
from hloom.numba_backend.runtime.dialect import SCOPE
from hloom.numba_backend.runtime.executor import Op
from hloom.numba_backend.runtime.frontend import to_llvm
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter
from hloom.numba_backend.runtime.llvm_backend import optimise, widens_straight_lines

import hloom
import hloom.numpy as jnp
from hloom import command_line, nn

MACHINES = {
    "Skylake-SP": ("GenuineIntel avx2 fma avx512f avx512vl", (32, 32), False),
    "Cooper Lake": ("GenuineIntel avx2 fma avx512f avx512vl avx512_bf16", (32, 32), True),
    "Sapphire Rapids": ("GenuineIntel avx2 fma avx512f avx512vl avx512_bf16 avx_vnni avx512_fp16", (32, 64), True),
    "Zen 4": ("AuthenticAMD avx2 fma avx512f avx512vl avx512_bf16", (32, 64), True),
    "Zen 5": ("AuthenticAMD avx2 fma avx512f avx512vl avx512_bf16 avx_vnni", (32, 64), True),
    "Alder Lake": ("GenuineIntel avx2 fma avx_vnni", (16, 32), False),
    "Haswell": ("GenuineIntel avx2 fma", (16, 32), False),
    "Graviton": ("fp asimd evtstrm aes", (32, 16), False),
}


@pytest.mark.parametrize("name", MACHINES)
def test_registers_follow_from_the_words_of_the_system(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words, registers, multiplies_bf16 = MACHINES[name]
    monkeypatch.setattr(machine, "cpu_description", lambda: f"vendor_id: {words}")
    monkeypatch.delenv("HLOOM_MACHINE", raising=False)
    found = this_machine.__wrapped__()
    assert ((found.registers, found.register_bytes), found.multiplies_bf16) == (registers, multiplies_bf16)
    assert found.in_halves == (name == "Zen 4")
    assert found.fuses


def test_caches_are_those_of_data(tmp_path: Path) -> None:
    rows = [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2048K"), ("3", "Unified", "107520K")]
    for number, (level, kind, size) in enumerate(rows):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size)):
            folder.joinpath(name).write_text(f"{text}\n")
    (tmp_path / "index9").mkdir()  # nothing can be read there
    assert caches_of(str(tmp_path)) == {"1": 48 << 10, "2": 2 << 20, "3": 105 << 20}
    assert caches_of(str(tmp_path / "none")) == {}


def test_numbers_of_the_user() -> None:
    changed = with_numbers(ANY_TARGET, "register_bytes=64, cores=7,multiplies_bf16=1,in_halves=1,fuses=1")
    new = replace(ANY_TARGET, register_bytes=64, cores=7, multiplies_bf16=True, in_halves=True, fuses=True)
    assert changed == new
    assert not ANY_TARGET.fuses
    assert with_numbers(ANY_TARGET, "") == ANY_TARGET
    registers, caches = ["register_bytes=48", "registers=0"], ["cache_line=48", "first_cache=0", "second_cache=4096"]
    for text in ["speed=3", "cores=-1", "cores=x", "cores=²", "cores=9=9", "cores=0", *registers, *caches]:
        with pytest.raises(UnsupportedError, match="HLOOM_MACHINE="):
            with_numbers(ANY_TARGET, text)


def test_code_for_another_machine_is_not_taken_from_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for text in ("", "register_bytes=16", "register_bytes=32"):
        monkeypatch.setenv("HLOOM_MACHINE", text)
        found.add(store.environment_description.__wrapped__())
    assert len(found) == 3


PROGRAM = """
import numpy as np, hloom, hloom.numpy as jnp
from hloom.numba_backend.machine import this_machine
x = jnp.asarray(np.linspace(-3, 3, 70_000, dtype=np.float32))
print(this_machine().register_bytes, np.asarray(hloom.jit(lambda x: jnp.tanh(x) * x + 1)(x)).tobytes().hex()[:4000])
"""


@pytest.mark.parametrize("nbytes", [16, 32, 64])
def test_a_program_gives_the_same_bits_with_registers_of(nbytes: int, tmp_path: Path) -> None:
    environment = {**os.environ, "HLOOM_MACHINE": f"register_bytes={nbytes}", "HLOOM_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=True)
    width, bits = ran.stdout.split()
    x = np.linspace(-3, 3, 70_000, dtype=np.float32)
    here = np.asarray(hloom.jit(lambda x: jnp.tanh(x) * x + 1)(x)).tobytes().hex()[:4000]
    assert (int(width), bits) == (nbytes, here)


KERNEL = KernelSource(
    "k",
    "def k(lo, hi, a, b, n):\n    for i in range(lo * n, hi * n):\n        a[i] = tanh(b[i]) * b[i]\n",
    (Parameter("pointer", "f32"), Parameter("pointer", "f32"), Parameter("size", "s64")),
)


def _assembly(cpu: str, register: int) -> str:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = "x86_64-unknown-linux-gnu"
    target = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=2, reloc="pic", codemodel="default")
    text = to_llvm(KERNEL, SCOPE, "one pass", features=frozenset(), register=register)
    text = re.sub(r'target triple = ".*"', f'target triple = "{triple}"', text)
    text = re.sub(r'target datalayout = ".*"', f'target datalayout = "{target.target_data}"', text)
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        optimise(module, widens_straight_lines(text), target)
        return str(target.emit_assembly(module))


@pytest.mark.parametrize(
    ("cpu", "register", "widest"),
    [
        ("skylake-avx512", 32, "ymm"),
        ("sapphirerapids", 64, "zmm"),
        ("sapphirerapids", 32, "ymm"),
        ("znver4", 64, "zmm"),
        ("x86-64-v3", 32, "ymm"),
    ],
)
def test_kernels_have_the_vectors_of_the_machine(cpu: str, register: int, widest: str) -> None:
    found = set(re.findall(r"%([xyz]mm)\d", _assembly(cpu, register)))
    assert max(found) == widest, found


def test_the_command_prints_every_field(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["machine"]) == 0
    lines = capsys.readouterr().out.splitlines()
    fields = [*Machine.__dataclass_fields__]
    assert [line.split()[0] for line in lines[: len(fields)]] == fields
    copies, *products = lines[len(fields) :][:3]
    assert "GB/s" in copies and all("GFLOP/s" in line for line in products)
    assert command_line.main(["machine", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["register_bytes"] == this_machine().register_bytes and found["bytes_per_second"] > 0


THIS = Machine(2, 32, 64, True, 64, 1 << 15, 1 << 20, 1 << 25)


def _rows_of_pieces(machine: Machine) -> int:
    """Of a chain: the softmax of a product, and another product."""

    def attention(q: Any, k: Any, v: Any) -> Any:
        return jnp.einsum("qk,kd->qd", nn.softmax(jnp.einsum("qd,kd->qk", q, k)), v)

    arrays = [np.ones((rows, 64), np.float32) for rows in (4096, 512, 512)]
    with compiling_for(machine):
        rows = NumbaCompiler().compile(parse(hloom.jit(attention).lower(*arrays).as_text()))._program.rows
    (chain,) = [row for row in rows if row.op is Op.CHAIN]
    return int(4096 / int(chain.shown[-1].split()[1]))


def _value(kernel: EmittedKernel, name: str) -> int:
    (found,) = [p.value for p in kernel.parameters if isinstance(p, SizeParameter) and p.name == name]
    return found


DECISIONS: dict[str, tuple[Callable[[], object], dict[str, int]]] = {
    "a copy by non-temporal stores": (lambda: _value(emit_copy(3 << 20), "stream"), {"third_cache": 8 << 20}),
    "a result by non-temporal stores": (large_results.least_bytes, {"third_cache": 8 << 20}),
    "tiles of a transpose": (lambda: tiles_of((4096, 4096), (1, 0), 4), {"first_cache": 1 << 13}),
    "digits of a sort": (long_sort._wide_bytes, {"second_cache": 1 << 18}),
    "blocks of a native loop": (lambda: block_members([(Lanes(1024, 1, 8), 8)]), {"first_cache": 1 << 13}),
    "columns of a transform": (lambda: fourier._block(1024, 64, 8), {"second_cache": 1 << 21}),
    "what follows a product": (find.least_bytes, {"second_cache": 1 << 21}),
    "a piece of windows": (windows.piece_bytes, {"first_cache": 1 << 16}),
    "a strip of an image": (convolutions.strip_bytes, {"second_cache": 1 << 21}),
}


@pytest.mark.parametrize("name", DECISIONS)
def test_a_decision_follows_the_machine(name: str) -> None:
    decide, numbers = DECISIONS[name]
    with compiling_for(THIS):
        before = decide()
    with compiling_for(replace(THIS, **numbers)):
        assert decide() != before
    with compiling_for(replace(THIS, cores=64)):
        assert decide() == before


def test_a_smaller_second_cache_makes_smaller_pieces() -> None:
    large, small = _rows_of_pieces(THIS), _rows_of_pieces(replace(THIS, second_cache=1 << 19))
    assert small < large


def test_a_fusion_has_a_kernel_for_each_machine() -> None:
    module = parse(hloom.jit(lambda x: x.T).lower(np.ones((1024, 1024), np.float32)).as_text())
    found = set()
    for third in (4 << 20, 32 << 20, 4 << 20):
        with compiling_for(replace(THIS, third_cache=third)):
            found |= set(re.findall(r"stream = (\d)", "".join(NumbaCompiler().compile(module).kernels().values())))
    assert found == {"0", "1"}


def test_a_program_for_another_machine_has_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_programs, "is_watched", lambda: False)
    module, target = parse("HloModule m\nENTRY main { ROOT p = f32[3] parameter(0) }"), target_named("cpu")
    names = []
    for machine_ in (THIS, replace(THIS, second_cache=1 << 19), THIS):
        with compiling_for(machine_):
            names.append(stored_programs.key_of(module, target))
    assert names[0] == names[2] != names[1] and names[0] is not None


def test_one_core_is_one_thread(tmp_path: Path) -> None:
    text = "from hloom.numba_backend.runtime.threads import get_num_threads; print(get_num_threads())"
    environment = {**os.environ, "HLOOM_MACHINE": "cores=1", "HLOOM_NUM_THREADS": "2"}
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment, check=True)
    assert ran.stdout.strip() == "1"
