"""Cases of fresh processes: tracing, cold compiles, a new size, a changed constant; the start of a process; memory.

Every sample is a new process.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from . import fresh
from .harness import Mismatch, Outcome
from .large import PROGRAMS

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Chosen:
    """The peers of this run, as the command line says it."""

    pythons: dict[str, str] = field(default_factory=dict)
    """The interpreter of a peer, if it is not this one."""
    only: Sequence[str] | None = None
    """Which peers are measured; all if None. hloom always is."""
    about: dict[str, str] = field(default_factory=dict)
    """By peer, its version and its threads, once it is measured."""

    def python(self, peer: str) -> str:
        return self.pythons.get(peer, sys.executable)

    def names(self, peer: str) -> bool:
        return self.only is None or peer == "hloom" or peer in self.only


CHOSEN = Chosen()
PEERS = ("hloom", "jax", "numpy", "numba")
WITH_TORCH = (*PEERS, "torch")
LATE = "no result after"
LARGE_SECONDS = 300
"""After so many seconds a process with a large program is ended, and its peer has no figure."""
IMPORTS = {
    "hloom": "import hloom.numpy; hloom.jit, hloom.grad, hloom.lax, hloom.random",
    "jax": "import jax.numpy; jax.jit, jax.grad, jax.lax, jax.random",
    "numpy": "import numpy",
    "numba": "import numba",
    "torch": "import torch",
}


def environment(store: Path) -> dict[str, str]:
    """Every peer's compiled code is stored in `store`; JAX writes every entry, even if it compiled quickly. Python
    keeps its .pyc files despite this process's settings: installed packages have theirs, and this folder must, too."""
    return {
        **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        "PYTHONPATH": str(ROOT),
        "HLOOM_CACHE_DIR": str(store / "hloom"),
        "JAX_COMPILATION_CACHE_DIR": str(store / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "JAX_PLATFORMS": "cpu",
        "NUMBA_CACHE_DIR": str(store / "numba"),
    }


def run(
    arguments: list[str],
    store: Path,
    *,
    python: str = sys.executable,
    jax_cache: bool = True,
    limit: float | None = None,
    more: Mapping[str, str] = MappingProxyType({}),
) -> tuple[float, str]:
    """Seconds from the start of a Python process to its end, and its output. `more`: of its environment. Raises
    TimeoutExpired after `limit` seconds."""
    settings = environment(store) | more
    if not jax_cache:
        settings["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    began = time.perf_counter()
    done = subprocess.run([python, *arguments], env=settings, cwd=ROOT, capture_output=True, text=True, timeout=limit)
    seconds = time.perf_counter() - began
    if done.returncode != 0:
        raise RuntimeError(f"{python} {' '.join(arguments)} failed:\n{done.stderr}")
    return seconds, done.stdout


def task(
    name: str, peer: str, store: Path, *more: str, jax_cache: bool = True, limit: float | None = None
) -> tuple[float, dict[str, float]]:
    """Seconds of a process that does one task of `fresh.py`, and its results."""
    arguments = ["-m", "benchmarks.fresh", name, peer, *more]
    seconds, printed = run(arguments, store, python=CHOSEN.python(peer), jax_cache=jax_cache, limit=limit)
    return seconds, json.loads(printed.splitlines()[-1])


def installed(outcome: Outcome, peers: tuple[str, ...]) -> list[str]:
    """Those of the chosen peers that are installed; adds a note for each other one."""
    peers = tuple(filter(CHOSEN.names, peers))
    found = [peer for peer in peers if peer in CHOSEN.pythons or importlib.util.find_spec(peer)]
    outcome.notes += [f"{peer}: not measured, not installed" for peer in peers if peer not in found]
    with tempfile.TemporaryDirectory() as store:
        for peer in found:
            if peer not in CHOSEN.about:
                _, said = run(["-m", "benchmarks.about", peer], Path(store), python=CHOSEN.python(peer))
                CHOSEN.about[peer] = said.strip()
    return found


def compiling(name: str) -> Callable[[int], list[Outcome]]:
    """Trace and compile a program with empty stores, then at another size and with another constant."""

    def measure(rounds: int) -> list[Outcome]:
        program = fresh.PROGRAMS[name]()
        outcomes = {
            "trace": Outcome(f"trace-{name}", f"trace: {program.title}"),
            "compile": Outcome(f"compile-{name}", f"trace and compile, nothing stored: {program.title}"),
            "new-shape": Outcome(f"new-shape-{name}", f"again with another size: {program.title}"),
            "new-constant": Outcome(f"new-constant-{name}", f"again with another constant: {program.title}"),
        }
        peers = installed(outcomes["compile"], ("hloom", "jax", "numba") if name == "mlp" else ("hloom", "jax"))
        for _ in range(rounds):
            for peer in peers:
                with tempfile.TemporaryDirectory() as store:
                    _, seconds = task("compile", peer, Path(store), name, jax_cache=False)
                for what, took in seconds.items():
                    outcomes[what].samples.setdefault(peer, []).append(took)
        if "numba" in peers:
            outcomes["new-shape"].notes.append("numba: generic in sizes, this is a run")
        return list(outcomes.values())

    return measure


def calling(name: str, what: str, *more: str) -> Callable[[int], list[Outcome]]:
    """A whole process, from start to end: with nothing stored, and with the code that an earlier process stored."""

    def measure(rounds: int) -> list[Outcome]:
        key = "-".join([name, *more])
        cold = Outcome(f"cold-{key}", f"new process: import and first {what}, nothing stored")
        warm = Outcome(f"warm-{key}", f"new process: import and first {what}, stores filled")
        peers = installed(cold, PEERS if more in ((), ("mlp",)) else ("hloom", "jax"))
        for outcome in (cold, warm):
            outcome.samples = {peer: [] for peer in peers}
        with tempfile.TemporaryDirectory() as filled:
            values = {peer: task(name, peer, Path(filled), *more)[1]["value"] for peer in peers}
            _same(values)
            for _ in range(rounds):
                for peer in peers:
                    with tempfile.TemporaryDirectory() as empty:
                        cold.samples[peer].append(task(name, peer, Path(empty), *more, jax_cache=False)[0])
                    warm.samples[peer].append(task(name, peer, Path(filled), *more)[0])
        return [cold, warm]

    return measure


def _same(values: Mapping[str, float]) -> None:
    (first, expected), *others = values.items()
    for peer, value in others:
        if not abs(value - expected) <= 1e-3 * abs(expected):
            raise Mismatch(f"{first} and {peer} differ: {expected} and {value}")


def importing(rounds: int) -> list[Outcome]:
    outcome = Outcome("import", "new process: import only, with what it loads when first used")
    peers = installed(outcome, WITH_TORCH)
    outcome.samples = {peer: [] for peer in peers}
    empty = []
    with tempfile.TemporaryDirectory() as store:
        for _ in range(rounds + 1):  # the first fills the file cache and the .pyc files
            empty.append(run(["-c", ""], Path(store))[0])
            for peer in peers:
                python = CHOSEN.python(peer)
                outcome.samples[peer].append(run(["-c", IMPORTS[peer]], Path(store), python=python)[0])
    for samples in outcome.samples.values():
        samples.pop(0)
    outcome.notes.append(f"an empty Python: {sorted(empty)[len(empty) // 2] * 1e3:.0f} ms")
    return [outcome]


def memory(name: str) -> Callable[[int], list[Outcome]]:
    """The largest memory of a process that does twenty steps."""

    def measure(rounds: int) -> list[Outcome]:
        title = fresh.PROGRAMS[name]().title
        outcome = Outcome(f"memory-{name}", f"peak memory of a process after 20 steps: {title}", unit="byte")
        peers = installed(outcome, WITH_TORCH if name == "mlp" else ("hloom", "jax", "torch"))
        values = {}
        with tempfile.TemporaryDirectory() as store:
            for peer in peers:  # compile and store first: the compiler's own memory is not measured
                values[peer] = task("memory", peer, Path(store), name)[1]["value"]
                found = [task("memory", peer, Path(store), name)[1]["peak"] for _ in range(min(rounds, 2))]
                outcome.samples[peer] = found
        _same(values)
        return [outcome]

    return measure


def large(name: str) -> Callable[[int], list[Outcome]]:
    """A program of `large.py`, with empty stores: the first call, a step, another size, and the memory."""

    def measure(rounds: int) -> list[Outcome]:
        title = PROGRAMS[name].title
        outcomes = {
            "first": Outcome(f"first-{name}", f"first call, nothing stored: {title}"),
            "step": Outcome(f"step-{name}", f"a step: {title}"),
            "new-shape": Outcome(f"new-shape-{name}", f"first call with another size: {title}"),
            "peak": Outcome(f"peak-{name}", f"peak memory: {title}", unit="byte"),
        }
        peers = installed(outcomes["first"], ("hloom", "jax"))
        for _ in range(min(rounds, 3)):
            values = {}
            for peer in tuple(peers):
                try:
                    with tempfile.TemporaryDirectory() as store:
                        _, found = task("large", peer, Path(store), name, jax_cache=False, limit=LARGE_SECONDS)
                except subprocess.TimeoutExpired:
                    peers.remove(peer)
                    outcomes["first"].notes.append(f"{peer}: {LATE} {LARGE_SECONDS} s")
                    continue
                values[peer] = found.pop("value")
                for what, number in found.items():
                    outcomes[what].samples.setdefault(peer, []).append(number)
            _same(values)
        return list(outcomes.values())

    return measure


Measured = dict[str, Callable[[int], list[Outcome]]]
LATENCY: Measured = {f"latency-{name}": compiling(name) for name in fresh.PROGRAMS}
START: Measured = {
    "import": importing,
    "start-tiny": calling("tiny", "call of a jitted a + b"),
    "start-mlp": calling("first", "MLP step", "mlp"),
    "start-transformer": calling("first", "transformer step", "transformer"),
}
MEMORY: Measured = {f"memory-{name}": memory(name) for name in ("mlp", "cnn", "transformer", "vae")}
LARGE: Measured = {f"large-{name}": large(name) for name in PROGRAMS}
CASES: Measured = {**LATENCY, **START, **MEMORY}
