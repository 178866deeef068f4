"""Programs on disk: a second process runs no pass, what decides a program is in its name, and no damage is fatal."""

from __future__ import annotations

import functools
import json
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from hloom.hlo.content_key import NoKey, content_key
from hloom.hlo.targets import target_named
from hloom.hlo.text.parser import parse
from hloom.hlo.tpu_target import TpuTarget
from hloom.numba_backend import stored_programs
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.executable import NumbaExecutable
from hloom.numba_backend.runtime.errors import KernelStoreWarning
from hloom.numba_backend.runtime.portable import NotPortable
from hloom.numba_backend.runtime.program import ProgramBuilder, pointer, size
from hloom.numba_backend.runtime.store import PROGRAM, KernelStore, default_store

import hloom
import hloom.numpy as jnp
from hloom import hlo
from support.comparing import assert_same_arrays
from support.random_modules import random_arguments, random_module
from support.trace_events import on_track, read_trace

COMPILER = NumbaCompiler()

SQUARES = """
HloModule squares

ENTRY main {
  x = f32[4,3]{1,0} parameter(0), metadata={op_name="here" source_file="a.py" source_line=1}
  y = f32[4,3]{1,0} multiply(x, x)
  ROOT r = (f32[4,3]{1,0}) tuple(y)
}
"""


class InMemory:
    """Programs that are kept in memory only, beside the kernels of the session's store."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("HLOOM_VERIFY_PASSES", raising=False)
        self.kept: dict[str, bytes] = {}
        monkeypatch.setattr(KernelStore, "data", lambda store, key, end: self.kept.get(key))
        monkeypatch.setattr(KernelStore, "keep", lambda store, key, end, data: self.kept.__setitem__(key, data))


@pytest.fixture
def in_memory(monkeypatch: pytest.MonkeyPatch) -> InMemory:
    if default_store().folder is None:
        pytest.skip("the kernel store is switched off")
    return InMemory(monkeypatch)


def is_stored(executable: Any) -> bool:
    """Whether this executable came from the store, and no caller has asked for its parts yet."""
    assert isinstance(executable, NumbaExecutable)
    return executable._program.twin is not None


def again(module: hlo.HloModule, target: Any = "cpu", donated: tuple[int, ...] = ()) -> tuple[Any, Any]:
    """The executables of a first compilation, which stores the program, and of a second one."""
    first = COMPILER.compile(module, target=target, donated=donated)
    second = COMPILER.compile(module, target=target, donated=donated)
    assert not is_stored(first)
    return first, second


# ---- results

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "elements": (lambda x: jnp.tanh(x) * 2 + 1, (np.linspace(-2, 2, 40, dtype=np.float32),)),
    "f64": (lambda x: jnp.exp(x).sum(), (np.linspace(0, 1, 7),)),
    "f16": (lambda x: x * x + 1, (np.linspace(0, 1, 9, dtype=np.float16),)),
    "s8": (lambda x: x // 3, (np.arange(-9, 9, dtype=np.int8),)),
    "u64": (lambda x: x * 3, (np.arange(5, dtype=np.uint64) + 2**40,)),
    "c64": (lambda x: x * x, ((np.arange(6) + 1j).astype(np.complex64),)),
    "pred": (lambda x: ~x, (np.array([True, False]),)),
    "empty": (lambda x: x + 1, (np.zeros((0, 3), np.float32),)),
    "one": (lambda x: x + 1, (np.float32(2),)),
    "product": (lambda a, b: a @ b, (np.ones((70, 60), np.float32), np.ones((60, 50), np.float32))),
    "c128 product": (lambda a: a @ a * (1 + 2j), (np.eye(40, dtype=np.complex128) + 1j,)),
    "constants": (lambda x: x + jnp.asarray(TABLE), (np.zeros(300, np.float32),)),
    "sort": (lambda x: jnp.sort(x), (np.random.default_rng(0).normal(size=500).astype(np.float32),)),
    "gather": (lambda x, i: x[i], (np.arange(90.0, dtype=np.float32).reshape(30, 3), np.array([4, 2, 40]))),
    "while": (
        lambda x: hloom.lax.while_loop(lambda s: s.sum() < 100, lambda s: s * 2 + 1, x),
        (np.ones(3, np.float32),),
    ),
    "rows in a loop": (
        lambda x: hloom.lax.fori_loop(0, 3, lambda i, s: s @ s / 100, x),
        (np.ones((100, 100), np.float32),),
    ),
    "conditional": (
        lambda i, x: hloom.lax.switch(i, [jnp.sin, jnp.cos, lambda v: v @ v], x),
        (np.int32(2), np.ones((64, 64), np.float32)),
    ),
    "singular values": (lambda x: jnp.linalg.svd(x)[1], (np.diag(np.arange(1.0, 5.0)).astype(np.float32),)),
    "gradient": (hloom.grad(lambda w, x: jnp.sum(jnp.tanh(x @ w))), (np.ones((3, 2)), np.ones((4, 3)))),
}
TABLE = np.arange(300, dtype=np.float32) ** 2


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_results(in_memory: InMemory, name: str) -> None:
    function, arguments = PROGRAMS[name]
    with hloom.enable_x64():
        lowered = hloom.jit(function).lower(*arguments)
    first, second = again(lowered.module)
    assert is_stored(second)
    given = [np.asarray(a) for a in arguments]
    given += [np.asarray(a) for a in lowered.captured]
    assert_same_arrays(first.execute(given), second.execute(given), rtol=0)
    assert is_stored(second)  # nothing above needs a pass


@pytest.mark.parametrize("target", ["cpu", "tpu"])
def test_layouts(in_memory: InMemory, target: str) -> None:
    module = hloom.make_hlo(lambda x: jnp.transpose(x, (1, 0, 2)) + 1)(np.ones((2, 3, 4), np.float32))
    first, second = again(module, target)
    assert is_stored(second)
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    assert_same_arrays(first.execute([x]), second.execute([x]), rtol=0)
    assert first.parameter_shapes == second.parameter_shapes
    assert first.result_shapes == second.result_shapes


@hypothesis.given(st.randoms(use_true_random=False))
@hypothesis.settings(max_examples=15, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
def test_random_modules(rng: random.Random) -> None:
    with pytest.MonkeyPatch.context() as patch:
        in_memory = InMemory(patch)
        module = random_module(rng)
        first, second = again(module)
        hypothesis.note(module.to_text())
        assert is_stored(second) == bool(in_memory.kept)
        arguments = random_arguments(module, 0)
        assert_same_arrays(first.execute(arguments), second.execute(arguments), rtol=0)
        described = second._find_details().program
        assert [str(row) for row in described.rows if "constant@" not in str(row)] == [
            str(row) for row in first._program.rows if "constant@" not in str(row)
        ]
        assert len(described._block) == len(second._program._block)


def test_donation(in_memory: InMemory) -> None:
    step = hloom.jit(lambda s, x: (s + x, (s * x).sum()), donate_argnums=0)
    results = []
    for _ in range(2):
        s = jnp.arange(1000.0)
        address = s.unsafe_buffer_pointer()
        new, total = step(s, jnp.ones(1000))
        assert new.unsafe_buffer_pointer() == address
        results.append((np.asarray(new), np.asarray(total)))
        hloom.clear_caches()
    assert len(in_memory.kept) == 1
    assert_same_arrays(*results, rtol=0)


def test_what_it_is_made_of(in_memory: InMemory) -> None:
    """A stored program gives the same answers as a program that was just compiled."""
    module = hloom.make_hlo(lambda x, w: jnp.tanh(x @ w).sum(0))(np.ones((30, 20)), np.ones((20, 10)))
    first, second = again(module)
    assert is_stored(second)
    assert second.as_text() == first.as_text()
    assert dict(second.kernels()) == dict(first.kernels())
    assert second.memory_analysis() == first.memory_analysis()
    assert [r.name for r in second.passes()] == [r.name for r in first.passes()]
    assert [str(row) for row in second._program.rows] == [str(row) for row in first._program.rows]
    assert not is_stored(second)


def test_a_timeline_names_the_rows(in_memory: InMemory, tmp_path: Path) -> None:
    module = hloom.make_hlo(lambda x, w: jnp.tanh(x @ w).sum(0))(*(np.ones((600, 600), np.float32),) * 2)
    x = np.ones((600, 600), np.float32)
    for executable in again(module):
        was_stored = is_stored(executable)
        with hloom.profiler.trace(tmp_path):
            executable.execute([x, x])
        assert not was_stored or not is_stored(executable)
        rows = on_track(read_trace(tmp_path / "timeline.json"), "Kernels and products")
        whole = [e for e in rows if e["cat"] != "piece"]
        assert "f32[600x600] @ [600x600]" in [e["name"] for e in whole]
        assert all("instruction" in e["args"] for e in whole)


# ---- keys


def key(module: str | hlo.HloModule = SQUARES, target: Any = "cpu") -> str | None:
    return stored_programs.key_of(parse(module) if isinstance(module, str) else module, target_named(target))


OTHERS = {
    "a shape": SQUARES.replace("[4,3]", "[4,5]"),
    "a type": SQUARES.replace("f32", "f64"),
    "an opcode": SQUARES.replace("multiply", "add"),
    "a layout of the caller": SQUARES.replace(
        "squares", "squares, entry_computation_layout={(f32[4,3]{0,1})->(f32[4,3]{1,0})}"
    ),
    "an alias": SQUARES.replace("squares", "squares, input_output_alias={ {0}: (0, {}, may-alias) }"),
    "partitions": SQUARES.replace("squares", "squares, num_partitions=2"),
    "a sharding": SQUARES.replace("multiply(x, x)", "multiply(x, x), sharding={devices=[2,1]0,1}"),
    "a frontend attribute": SQUARES.replace("multiply(x, x)", 'multiply(x, x), frontend_attributes={a="1"}'),
    "a result": SQUARES.replace("(f32[4,3]{1,0}) tuple(y)", "(f32[4,3]{1,0}) tuple(x)"),
}


def test_names_and_lines_do_not_matter(in_memory: InMemory) -> None:
    assert key() is not None
    renamed = SQUARES.replace("squares", "other").replace("main", "entry").replace("=1}", "=7}")
    renamed = renamed.replace(" y ", " z ").replace("(y)", "(z)")
    assert key(renamed) == key()
    x = np.ones((4, 3), np.float32)
    COMPILER.compile(parse(SQUARES)).execute([x])
    executable = COMPILER.compile(parse(renamed))
    assert is_stored(executable)
    assert executable.module.name == "other"  # its own, all the same
    with pytest.raises(hlo.ExecutionError, match="other takes 1 arrays"):
        executable.execute([])


@pytest.mark.parametrize("name", OTHERS)
def test_what_matters(in_memory: InMemory, name: str) -> None:
    assert key(OTHERS[name]) not in (None, key())


CONSTANT = "HloModule c\nENTRY main { ROOT c = f32[] constant(%s) }"
NUMBERS = "HloModule c\nENTRY main { ROOT c = f32[20] constant({%s}) }"


def test_constants_matter(in_memory: InMemory) -> None:
    few = [CONSTANT % text for text in ("0", "-0", "nan", "1")]
    many = [NUMBERS % ", ".join(map(str, [*range(19), last])) for last in (0, 1)]
    assert len({key(text) for text in (*few, *many)}) == 6


def test_settings_matter(in_memory: InMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = key()
    found = {usual, key(target="tpu"), key(target=TpuTarget(vmem_bytes=0))}
    monkeypatch.setenv("HLOOM_DISABLE_PASSES", "fusion")
    found.add(key())
    monkeypatch.setenv("HLOOM_A_SETTING_OF_TOMORROW", "1")
    found.add(key())
    assert len(found) == 5
    assert None not in found
    monkeypatch.delenv("HLOOM_DISABLE_PASSES")
    monkeypatch.delenv("HLOOM_A_SETTING_OF_TOMORROW")
    assert key() == usual
    monkeypatch.setattr(stored_programs, "get_num_threads", lambda: 77)
    assert key() not in found
    monkeypatch.setattr(stored_programs, "environment_key", lambda: "other sources")
    assert key() not in found


@pytest.mark.parametrize("name", ["HLOOM_VERIFY_PASSES", "HLOOM_DUMP_TO", "HLOOM_CHECK_RULES"])
def test_whoever_watches_passes_sees_them(in_memory: InMemory, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "1")
    assert key() is None


def test_a_users_target_is_not_known(in_memory: InMemory) -> None:
    class Own(TpuTarget):
        pass

    assert key(target=Own()) is None


def test_a_key_does_not_depend_on_objects() -> None:
    """Equal strings may be one object or several."""
    module = hloom.make_hlo(lambda x: jnp.where(x > 0, jnp.sin(x), 2.5) @ x)(np.ones((3, 3), np.float32))
    expected = content_key(module)
    again = pickle.loads(pickle.dumps(module))
    assert content_key(again) == content_key(parse(module.to_text())) == expected


# ---- values that are not kept


def test_python_is_not_kept(in_memory: InMemory) -> None:
    hloom.register_custom_call("stored_programs_doubled", lambda x: 2 * x)
    try:
        text = SQUARES.replace("multiply(x, x)", 'custom-call(x), custom_call_target="stored_programs_doubled"')
        with pytest.raises(NoKey, match="stored_programs_doubled"):
            content_key(parse(text))
        assert key(text) is None
    finally:
        hloom.unregister_custom_call("stored_programs_doubled")
    traced = hloom.make_hlo(
        lambda x: hloom.pure_callback(lambda v: np.asarray(v) + 1, hloom.ShapeDtypeStruct((3,), jnp.float32), x)
    )(np.ones(3, np.float32))
    assert key(traced) is None


def test_an_address_without_a_name_is_not_kept() -> None:
    builder = ProgramBuilder()
    builder.copy(pointer(1), pointer(0), 8)
    builder.portable()
    builder._add([size(id(builder))])
    with pytest.raises(NotPortable, match="may be an address"):
        builder.portable()
    builder = ProgramBuilder()
    builder.callback(lambda words: None, [])
    with pytest.raises(NotPortable, match="Python"):
        builder.portable()


# ---- disks

SCRIPT = """
import json, sys, warnings
import numpy as np
import hloom, hloom.numpy as jnp
def loss(w, x):
    return jnp.mean(jnp.tanh(x @ w) ** 2)
def others(x, w, table=np.arange(70, dtype=np.float32)):
    # a product with a vector, constants, a loop of rows, a branch, a sort, a routine of LAPACK
    y = x @ (w @ jnp.ones(60)) + jnp.asarray(np.arange(80) ** 2)
    z = hloom.lax.fori_loop(0, 2, lambda i, s: s @ s / 100, w @ w.T)
    c = hloom.lax.cond(y[0] > 0, lambda: z @ z, lambda: z)
    s = jnp.linalg.svd(jnp.diag(jnp.asarray(table[:5])) + c[:5, :5])[1]
    return jnp.sort(y)[3], c.sum(), s.sum()
x, w = jnp.ones((80, 70)), jnp.full((70, 60), 0.01)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    value, gradient = hloom.jit(hloom.value_and_grad(loss))(w, x)
    more = [float(v) for v in hloom.jit(others)(x, w)]
own = [name.removeprefix("hloom.") for name in sys.modules if name.startswith("hloom.")]
other = [name for name in ("numba", "llvmlite", "scipy") if name in sys.modules]
print(json.dumps({"value": [float(value), *more], "gradient": np.asarray(gradient).tolist(), "modules": own,
    "other": other, "warnings": [str(c.message) for c in caught]}))
"""


def run(folder: Path, **settings: str) -> dict[str, Any]:
    """The output of the script, in a process with a store in `folder`."""
    environment = {**os.environ, "HLOOM_CACHE_DIR": str(folder), **settings}
    for name in ("HLOOM_VERIFY_PASSES", "PYTHONPATH"):
        environment.pop(name, None)
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, cwd=root, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def compiled(process: dict[str, Any]) -> bool:
    return "numba_backend.compiling" in process["modules"]


ABSENT = (
    "numba_backend.compiling", "numba_backend.pipeline", "numba_backend.lowering", "numba_backend.emit",
    "numba_backend.lowering_rules", "numba_backend.loops", "numba_backend.native_loops",
    "numba_backend.fused_computations", "numba_backend.timeline", "hlo.passes.manager", "hlo.passes.fuse",
    "hlo.passes.layout", "hlo.passes.simplify.algebraic_simplifier", "hlo.buffers", "hlo.verifier",
)  # fmt: skip


def test_a_second_process_runs_no_pass(tmp_path: Path) -> None:
    first = run(tmp_path)
    assert compiled(first)
    second = run(tmp_path, PYTHONHASHSEED="7")
    assert (second["value"], second["gradient"]) == (first["value"], first["gradient"])
    assert second["warnings"] == second["other"] == []
    assert [name for name in second["modules"] if name.startswith(ABSENT)] == []
    program = max(tmp_path.glob("*.program"), key=lambda path: path.stat().st_size)
    data = bytearray(program.read_bytes())
    data[len(data) // 2] ^= 1
    program.write_bytes(bytes(data))
    third = run(tmp_path)
    assert third["value"] == first["value"]
    assert compiled(third)
    assert ["damaged" in text for text in third["warnings"]] == [True]
    assert program.read_bytes() != bytes(data)  # it was written again


@pytest.fixture
def on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KernelStore:
    """A folder for programs; kernels come from the session's store."""
    monkeypatch.delenv("HLOOM_VERIFY_PASSES", raising=False)
    folder = KernelStore(tmp_path / "programs")
    monkeypatch.setattr(KernelStore, "data", functools.partialmethod(_of_folder, folder))
    monkeypatch.setattr(KernelStore, "keep", functools.partialmethod(_into_folder, folder))
    return folder


def _of_folder(store: KernelStore, folder: KernelStore, key: str, end: str) -> bytes | None:
    assert folder._disk is not None
    found = folder._disk.read_data(key, end)
    folder._disk.warn()
    return found


def _into_folder(store: KernelStore, folder: KernelStore, key: str, end: str, data: bytes) -> None:
    assert folder._disk is not None
    folder._disk.write_data(key, end, data)
    folder._disk.warn()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "short": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "long": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "other bytes": lambda path: path.write_bytes(b"hello" * 100),
    "of another program": lambda path: path.write_bytes(_sealed_elsewhere(path)),
    "writable by others": lambda path: path.chmod(0o666),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


def _sealed_elsewhere(path: Path) -> bytes:
    """A whole file, but under another name."""
    other = KernelStore(path.parent.parent / "other")
    assert other._disk is not None
    key = "f" * 64
    other._disk.write_data(key, PROGRAM, b"data")
    return (path.parent.parent / "other" / f"{key}{PROGRAM}").read_bytes()


@pytest.mark.parametrize("name", DAMAGE)
def test_damage(on_disk: KernelStore, tmp_path: Path, name: str) -> None:
    module = parse(SQUARES)
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    COMPILER.compile(module)
    (path,) = (tmp_path / "programs").glob("*.program")
    DAMAGE[name](path)
    with pytest.warns(KernelStoreWarning):
        executable = COMPILER.compile(module)
    assert not is_stored(executable)
    np.testing.assert_array_equal(executable.execute([x])[0], x * x)


def test_a_missing_kernel_is_compiled_again(on_disk: KernelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    module = parse(SQUARES)
    COMPILER.compile(module)
    assert is_stored(COMPILER.compile(module))
    with monkeypatch.context() as patch:
        patch.setattr(KernelStore, "stored_codes", lambda store, kernels: None)
        assert not is_stored(COMPILER.compile(module))


def test_a_folder_that_is_read_only_or_off(
    on_disk: KernelStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = parse(SQUARES)
    COMPILER.compile(module)
    assert on_disk._disk is not None
    on_disk._disk._state = "readable"
    assert is_stored(COMPILER.compile(module))
    assert not is_stored(COMPILER.compile(parse(OTHERS["a shape"])))
    assert len(list((tmp_path / "programs").glob("*.program"))) == 1
    monkeypatch.setattr(KernelStore, "folder", None)
    assert key() is None


def test_programs_are_evicted(tmp_path: Path) -> None:
    store = KernelStore(tmp_path / "store", max_bytes=8000)
    for number in range(20):
        store.keep_program(f"{number:064}", bytes(1000))
        os.utime(tmp_path / "store" / f"{number:064}.program", (number, number))
    left = sorted(int(path.stem) for path in (tmp_path / "store").iterdir())
    assert 0 < len(left) <= 8
    assert left[-1] == 19
    assert store.data(f"{19:064}", PROGRAM) == bytes(1000)
    assert store.data(f"{0:064}", PROGRAM) is None


def test_writers_meet_no_half_written_program(tmp_path: Path) -> None:
    """A writer that died leaves a file with another name."""
    key, store = "a" * 64, KernelStore(tmp_path / "store")
    store.keep_program(key, b"first")
    (tmp_path / "store" / f"{key}.program.0123456789abcdef.tmp").write_bytes(b"half")
    assert store.data(key, PROGRAM) == b"first"
    store.keep_program(key, b"second")
    assert KernelStore(tmp_path / "store").data(key, PROGRAM) == b"second"
