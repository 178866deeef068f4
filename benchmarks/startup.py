"""Cases of fresh processes: cold compiles, a new size, warm starts, imports, memory. Every sample is a new process."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from . import fresh
from .harness import Mismatch, Outcome

ROOT = Path(__file__).resolve().parent.parent
PEERS = ("hloom", "jax", "numpy", "numba")
IMPORTS = {
    "hloom": "import hloom.numpy; hloom.jit, hloom.grad, hloom.lax, hloom.random",
    "jax": "import jax.numpy; jax.jit, jax.grad, jax.lax, jax.random",
    "numpy": "import numpy",
    "numba": "import numba",
}


def environment(store: Path) -> dict[str, str]:
    """Every peer's compiled code is stored in `store`; JAX writes every entry, even if it compiled quickly. Python
    keeps its .pyc files, whatever this process was told: installed packages have theirs, and this folder must, too."""
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
    arguments: list[str], store: Path, *, jax_cache: bool = True, more: Mapping[str, str] = MappingProxyType({})
) -> tuple[float, str]:
    """Seconds from the start of a Python process to its end, and what it printed. `more`: of its environment."""
    settings = environment(store) | more
    if not jax_cache:
        settings["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    began = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], env=settings, capture_output=True, text=True)
    seconds = time.perf_counter() - began
    if done.returncode != 0:
        raise RuntimeError(f"python {' '.join(arguments)} failed:\n{done.stderr}")
    return seconds, done.stdout


def task(name: str, peer: str, store: Path, **options: bool) -> tuple[float, dict[str, float]]:
    seconds, printed = run(["-m", "benchmarks.fresh", name, peer], store, **options)
    return seconds, json.loads(printed.splitlines()[-1])


def installed(outcome: Outcome, peers: tuple[str, ...]) -> list[str]:
    """The peers that are installed; adds a note for each other one."""
    found = [peer for peer in peers if importlib.util.find_spec(peer)]
    outcome.notes += [f"{peer}: not measured, not installed" for peer in peers if peer not in found]
    return found


def compiling(rounds: int) -> list[Outcome]:
    """Trace and compile the MLP step with empty stores, then at another batch size in the same process."""
    cold = Outcome("compile", "trace and compile the MLP step, nothing stored")
    again = Outcome("new-batch", f"the same again at batch {fresh.NEW_BATCH}, same process")
    peers = installed(cold, ("hloom", "jax", "numba"))
    for outcome in (cold, again):
        outcome.samples = {peer: [] for peer in peers}
    for _ in range(rounds):
        for peer in peers:
            with tempfile.TemporaryDirectory() as store:
                _, seconds = task("compile", peer, Path(store), jax_cache=False)
            cold.samples[peer].append(seconds[f"batch {fresh.BATCH}"])
            again.samples[peer].append(seconds[f"batch {fresh.NEW_BATCH}"])
    again.notes.append("numba: generic in sizes, this is a run")
    return [cold, again]


def calling(name: str, what: str) -> Callable[[int], list[Outcome]]:
    """A whole process, from start to end: with nothing stored, and with the code that an earlier process stored."""

    def measure(rounds: int) -> list[Outcome]:
        cold = Outcome(f"cold-{name}", f"new process: import and first {what}, nothing stored")
        warm = Outcome(f"warm-{name}", f"new process: import and first {what}, stores filled")
        peers = installed(cold, PEERS)
        for outcome in (cold, warm):
            outcome.samples = {peer: [] for peer in peers}
        with tempfile.TemporaryDirectory() as filled:
            values = {peer: task(name, peer, Path(filled))[1]["value"] for peer in peers}
            expected = values[peers[0]]
            for peer, value in values.items():
                if abs(value - expected) > 1e-4 * abs(expected):
                    raise Mismatch(f"{peers[0]} and {peer} differ: {expected} and {value}")
            for _ in range(rounds):
                for peer in peers:
                    with tempfile.TemporaryDirectory() as empty:
                        cold.samples[peer].append(task(name, peer, Path(empty), jax_cache=False)[0])
                    warm.samples[peer].append(task(name, peer, Path(filled))[0])
        return [cold, warm]

    return measure


def importing(rounds: int) -> list[Outcome]:
    outcome = Outcome("import", "new process: import only, with what it loads when first used")
    peers = installed(outcome, PEERS)
    outcome.samples = {peer: [] for peer in peers}
    empty = []
    with tempfile.TemporaryDirectory() as store:
        for _ in range(rounds + 1):  # the first fills the file cache and the .pyc files
            empty.append(run(["-c", ""], Path(store))[0])
            for peer in peers:
                outcome.samples[peer].append(run(["-c", IMPORTS[peer]], Path(store))[0])
    for samples in outcome.samples.values():
        samples.pop(0)
    outcome.notes.append(f"an empty Python: {sorted(empty)[len(empty) // 2] * 1e3:.0f} ms")
    return [outcome]


def memory(rounds: int) -> list[Outcome]:
    outcome = Outcome("memory", "peak memory of a process after 20 MLP steps", unit="byte")
    peers = installed(outcome, PEERS)
    with tempfile.TemporaryDirectory() as store:
        for peer in peers:
            task("memory", peer, Path(store))  # compile and store first: the compiler's own memory is not measured
            outcome.samples[peer] = [task("memory", peer, Path(store))[1]["peak"] for _ in range(min(rounds, 3))]
    return [outcome]


CASES: dict[str, Callable[[int], list[Outcome]]] = {
    "compile": compiling,
    "start-tiny": calling("tiny", "call of a jitted a + b"),
    "start-mlp": calling("mlp", "MLP step"),
    "import": importing,
    "memory": memory,
}
