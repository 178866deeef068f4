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
from hloom.hlo.errors import UnsupportedError
from hloom.numba_backend import autotuning, stored_programs
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.executable import NumbaExecutable
from hloom.numba_backend.runtime import store
from hloom.numba_backend.tuning import Tuning, parse, tuning_of, with_tuning

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
        variant = tuning_of(second.module)
        seen.append(variant.to_text())
        return 1.0, 0.5 if not variant.native_loops and variant.piece_nanoseconds < 0 else 0.99

    monkeypatch.setattr(autotuning, "_compared", compared)
    monkeypatch.setattr(autotuning, "get_num_threads", lambda: 2)
    monkeypatch.setattr(autotuning, "cpu_description", lambda: "avx512f")
    return seen


def test_the_fastest_variant_is_kept(own_store: Path, measured: list[str]) -> None:
    x = jnp.linspace(0.0, 1.0, 8)
    tuned = hloom.jit(steps, compiler_options=TUNED)
    np.testing.assert_allclose(tuned(x), hloom.jit(steps)(x), rtol=1e-6)
    assert measured == [
        "native_loops=0", "native_loops=0,piece_nanoseconds=0", "native_loops=0,piece_nanoseconds=5000",
        "native_loops=0,piece_nanoseconds=80000", "native_loops=0,vector_bits=256", "native_loops=0,vector_bits=512",
    ]  # fmt: skip
    text = tuned.lower(x).compile().as_text()
    assert 'hloom_tuning="native_loops=0,vector_bits=512"' in text and "hloom_autotune" not in text
    assert len(measured) == 6, "what was chosen is in the store"
    assert "hloom_tuning" not in hloom.jit(steps).lower(x).compile().as_text(), "another program of the same function"
    assert [path.read_text() for path in own_store.glob("*.tuning")] == ["native_loops=0,vector_bits=512\n"]


def test_a_note_that_cannot_be_read_is_made_again(own_store: Path, measured: list[str]) -> None:
    lowered = hloom.jit(steps).lower(jnp.ones(5))
    lowered.compile(TUNED)
    (note,) = own_store.glob("*.tuning")
    note.write_text("cores=7\n")
    lowered.compile(TUNED)
    assert len(measured) == 12 and note.read_text().startswith("native_loops=0")


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
    module = with_tuning(hloom.make_hlo(jnp.sin)(jnp.ones(100)), Tuning(vector_bits=256))
    program = NumbaCompiler().compile(module)
    (text,) = program.kernels().values()
    assert "\n@vectors(256)\ndef " in text
    names = hloom.kernel_globals()
    exec(text, names)
    out = np.zeros(100, np.float32)
    numba.njit(names["fused_sin"])(0, 100, np.ones(100, np.float32), out)
    np.testing.assert_allclose(out, np.sin(1.0), rtol=1e-6)
    np.testing.assert_allclose(program.execute([np.ones(100, np.float32)])[0], np.sin(1.0), rtol=1e-6)


def test_the_text_of_a_choice() -> None:
    assert Tuning().to_text() == "" and parse("") == Tuning()
    for tuning in (Tuning(0), Tuning(piece_nanoseconds=0), Tuning(1, 5, 512)):
        assert parse(tuning.to_text()) == tuning
    module = hlo.parse("HloModule m, frontend_attributes={hloom_tuning=\"native_loops=0\",own=\"1\"}\n\n"
                       "ENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n")  # fmt: skip
    assert tuning_of(module) == Tuning(0)
    asking = replace(module, frontend_attributes=(*module.frontend_attributes, AUTOTUNE))
    assert with_tuning(asking, Tuning()).frontend_attributes == (("own", "1"),)


@pytest.mark.parametrize("text", ["cores=7", "native_loops=2", "vector_bits=x", "piece_nanoseconds=-1", "vector_bits"])
def test_a_file_with_a_wrong_choice(text: str) -> None:
    module = hlo.parse(f'HloModule m, frontend_attributes={{hloom_tuning="{text}"}}\n\n'
                       "ENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n")  # fmt: skip
    with pytest.raises(UnsupportedError, match="native_loops=0 or 1"):
        NumbaCompiler().compile(module)


def test_options() -> None:
    with pytest.raises(ValueError, match="No such compile option: 'tune'; here are 'autotune'"):
        hloom.jit(jnp.sin, compiler_options={"tune": True})
    with pytest.raises(ValueError, match="must be a bool"):
        hloom.jit(jnp.sin).lower(1.0).compile({"autotune": 1})
    copied = pickle.loads(pickle.dumps(hloom.jit(np.square, compiler_options=TUNED)))
    assert copied._options == {"autotune"}
