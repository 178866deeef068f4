"""Programs that are tuned: which variants are tried, what is kept, and what is never tuned."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from hloom.hlo.backend import AUTOTUNE
from hloom.hlo.errors import ScheduleError
from hloom.numba_backend import autotuning, stored_programs
from hloom.numba_backend.choices import schedules_of, with_schedules
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.executable import NumbaExecutable
from hloom.numba_backend.runtime import store
from hloom.numba_backend.schedule.steps import EVERY, Jumps, Share, Split, Vectors

import hloom
import hloom.numpy as jnp
from hloom import hlo, lax

TUNED = {"autotune": True}


def steps(x: Any) -> Any:
    return lax.fori_loop(0, 10, lambda i, c: jnp.tanh(c) * 0.5 + i, x)


@pytest.fixture
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    found = store.KernelStore(tmp_path / "store")
    monkeypatch.delenv("HLOOM_VERIFY_PASSES", raising=False)  # with it no program has a key
    for module in (autotuning, stored_programs):
        monkeypatch.setattr(module, "default_store", lambda: found)
    yield tmp_path / "store"


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The variants that are timed; one with rows and jumps is said to be the fastest, then one with narrow vectors."""
    seen: list[str] = []

    def compared(first: NumbaExecutable, second: NumbaExecutable, inputs: Sequence[Any]) -> tuple[float, float]:
        for program in (first, second):
            assert all(np.isfinite(r).all() for r in program.execute(inputs)), "every variant computes"
        variant = schedules_of(second.module)[EVERY]
        seen.append(", ".join(map(str, variant)))
        return 1.0, 0.5 if Jumps() in variant and Share not in map(type, variant) else 0.99

    monkeypatch.setattr(autotuning, "_compared", compared)
    monkeypatch.setattr(autotuning, "get_num_threads", lambda: 2)
    monkeypatch.setattr(autotuning, "cpu_description", lambda: "avx512f")
    return seen


def test_the_fastest_variant_is_kept(own_store: Path, measured: list[str]) -> None:
    x = jnp.linspace(0.0, 1.0, 8)
    tuned = hloom.jit(steps, compiler_options=TUNED)
    np.testing.assert_allclose(tuned(x), hloom.jit(steps)(x), rtol=1e-6)
    assert measured == [
        "Jumps()", *[f"Jumps(), Share(nanoseconds={n})" for n in (0, 5000, 80000)],
        "Jumps(), Vectors(bits=256)", "Jumps(), Vectors(bits=512)",
    ]  # fmt: skip
    compiled = tuned.lower(x).compile()
    assert schedules_of(compiled.executable.module) == {EVERY: (Jumps(), Vectors(512))}
    assert "hloom_schedules=" in compiled.as_text() and "hloom_autotune" not in compiled.as_text()
    assert len(measured) == 6, "what was chosen is in the store"
    assert "hloom_schedules" not in hloom.jit(steps).lower(x).compile().as_text(), "another program"
    (kept,) = own_store.glob("*.tuning")
    assert store.KernelStore(own_store).data(kept.stem, store.TUNING) == b"*:\n    Jumps()\n    Vectors(bits=512)\n"


def test_a_note_that_cannot_be_read_is_made_again(own_store: Path, measured: list[str]) -> None:
    lowered = hloom.jit(steps).lower(jnp.ones(5))
    lowered.compile(TUNED)
    (note,) = own_store.glob("*.tuning")
    store.KernelStore(own_store).keep(note.stem, store.TUNING, b"cores=7\n")
    lowered.compile(TUNED)
    assert len(measured) == 12 and note.read_bytes().startswith(b"*:\n    Jumps()")


def test_the_setting_tunes_all_programs(own_store: Path, measured: list[str]) -> None:
    before = hloom.config.hloom_autotune
    hloom.config.update("hloom_autotune", True)
    try:
        hloom.jit(lambda x: steps(x) + 1)(1.0)
    finally:
        hloom.config.update("hloom_autotune", before)
    assert measured


def test_measuring(own_store: Path) -> None:
    """With nothing replaced: whatever is chosen, the results are the same."""
    def program(x: Any, n: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, c: c * 0.5 + x[n], x), n + 1

    x = np.linspace(0, 1, 70_000, dtype=np.float32)
    found = hloom.jit(program, compiler_options=TUNED, donate_argnums=0)(jnp.array(x), 3)
    for ours, plain in zip(found, hloom.jit(program)(jnp.array(x), 3), strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-6)


NOT_TUNED = {
    "turns is not known": lambda x: lax.while_loop(lambda c: c < x, lambda c: c + 1, 0.0),
    "acts other than through its results": lambda x: hloom.debug.callback(print, x) or x,
}


@pytest.mark.parametrize("reason", NOT_TUNED)
def test_what_is_not_tuned(reason: str, measured: list[str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        hloom.jit(NOT_TUNED[reason], compiler_options=TUNED)(2.0)
    assert not measured and reason in caplog.text


def test_kernels_say_the_width_of_their_vectors() -> None:
    module = with_schedules(hloom.make_hlo(jnp.sin)(jnp.ones(100)), {EVERY: (Vectors(256),)})
    program = NumbaCompiler().compile(module)
    (text,) = program.kernels().values()
    assert "\n@vectors(256)\ndef " in text
    names = hloom.kernel_globals()
    exec(text, names)
    out = np.zeros(100, np.float32)
    numba.njit(names["fused_sin"])(0, 100, np.ones(100, np.float32), out)
    np.testing.assert_allclose(out, np.sin(1.0), rtol=1e-6)
    np.testing.assert_allclose(program.execute([np.ones(100, np.float32)])[0], np.sin(1.0), rtol=1e-6)


@pytest.mark.usefixtures("narrow_registers")
def test_tiles_of_kernels_are_tried(own_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Splits of half and of twice the size; those that the kernel cannot have are left out."""
    tried: list[tuple[str, int]] = []

    def _changed(schedule: Any) -> tuple[str, int]:
        (found,) = [s for s in schedule if isinstance(s, Split) and str(s) not in map(str, original)]
        return found.outer, int(found.size)

    def compared(first: NumbaExecutable, second: NumbaExecutable, inputs: Sequence[Any]) -> tuple[float, float]:
        schedule = schedules_of(second.module).get("dot", ())
        tried.append(("", 0) if not schedule else _changed(schedule))
        return 1.0, 0.5 if tried[-1] == ("row", 3) else 1.0

    x = np.random.default_rng(0).standard_normal((600, 64), np.float32)
    product = hloom.jit(lambda x: x @ x.T)
    original = product.lower(x).compile().kernels()["dot"].schedule
    monkeypatch.setattr(autotuning, "_compared", compared)
    tuned = product.lower(x).compile(TUNED)
    assert ("row", 3) in tried and ("column", 8) in tried
    (split,) = [s for s in tuned.kernels()["dot"].schedule if isinstance(s, Split) and s.outer == "row"]
    assert split.size == 3
    np.testing.assert_allclose(tuned(x), x @ x.T, rtol=1e-4, atol=1e-4)


def test_blocks_of_reductions_are_tried(own_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other blocks of columns, and of rows that are added together."""
    tried: list[str] = []

    def compared(first: NumbaExecutable, second: NumbaExecutable, inputs: Sequence[Any]) -> tuple[float, float]:
        schedule = [str(step) for steps in schedules_of(second.module).values() for step in steps]
        tried.append("\n".join(schedule))
        return 1.0, 0.5 if "outer='rows', size=8" in tried[-1] and "size=1024" in tried[-1] else 1.0

    x = np.random.default_rng(0).integers(-4, 5, (90, 700)).astype(np.float32)
    columns = hloom.jit(lambda x: x.sum(0))
    monkeypatch.setattr(autotuning, "_compared", compared)
    (kernel,) = columns.lower(x).compile(TUNED).kernels().values()
    assert any("size=512" in text for text in tried) and any("size=2" in text for text in tried)
    assert [s.size for s in kernel.schedule if isinstance(s, Split)] == [1024, 8]
    np.testing.assert_array_equal(hloom.jit(lambda x: x.sum(0), compiler_options=TUNED)(x), x.sum(0))


def test_schedules_take_the_place_of_others() -> None:
    module = hlo.parse("HloModule m, frontend_attributes={hloom_schedules=\"*: \\n Jumps()\",own=\"1\"}\n\n"
                       "ENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n")  # fmt: skip
    assert schedules_of(module) == {EVERY: (Jumps(),)}
    asking = replace(module, frontend_attributes=(*module.frontend_attributes, AUTOTUNE))
    assert with_schedules(asking, {}).frontend_attributes == (("own", "1"),)


def test_a_file_with_a_wrong_schedule() -> None:
    module = hlo.parse('HloModule m, frontend_attributes={hloom_schedules="cores=7"}\n\n'
                       "ENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n")  # fmt: skip
    with pytest.raises(ScheduleError, match="'cores=7' is no step"):
        NumbaCompiler().compile(module)


def test_options() -> None:
    with pytest.raises(ValueError, match="No such compile option: 'tune'; here are 'autotune', 'memory_budget', "):
        hloom.jit(jnp.sin, compiler_options={"tune": True})
    with pytest.raises(ValueError, match="must be a bool"):
        hloom.jit(jnp.sin).lower(1.0).compile({"autotune": 1})
    copied = pickle.loads(pickle.dumps(hloom.jit(np.square, compiler_options=TUNED)))
    assert copied._options == {("autotune", True)}
