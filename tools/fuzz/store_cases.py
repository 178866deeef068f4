"""Cases of a store with damaged files: results are right all the same, and a user's files stay.

A program is a list of steps: a damage of `support/soak_store.py` and the number that chooses a file and a place in it,
`use` of some kernels, or `keep` of a program.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import warnings
from pathlib import Path

import numpy as np
from hloom.numba_backend.runtime.errors import KernelStoreWarning
from hloom.numba_backend.runtime.program import ProgramBuilder, pointer
from hloom.numba_backend.runtime.store import PROGRAM, KernelStore

from support.soak_store import DAMAGES, KERNELS, kernel, remove

from .case import OK, Case, Outcome, Stage, found
from .minimise import Shows, without_parts

_DAMAGES = {damage.__name__: damage for damage in DAMAGES}
OF_THE_USER = ("notes.o", "model.program", "script.py", "results.tmp")


def draw(seed: int) -> Case:
    """The case of a seed."""
    rng = random.Random(seed)
    names = ("use", "keep", *_DAMAGES, *_DAMAGES)
    steps = [f"{rng.choice(names)} {rng.randrange(1 << 30)}" for _ in range(rng.choice((3, 6, 12)))]
    return Case("store", seed, "\n".join(["use 0", *steps, "use 1"]) + "\n")


def check(case: Case, stage: Stage) -> Outcome:
    """Do the steps."""
    kept: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "store"
        for line in case.program.splitlines():
            stage(line)
            what, _, number = line.partition(" ")
            rng = random.Random(int(number))
            mine_are_there = folder.is_dir()
            if mine_are_there:
                for mine in OF_THE_USER:
                    (folder / mine).write_bytes(b"mine" * 2000)
                    os.utime(folder / mine, (1, 1))
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                wrong = _do(what, rng, folder, kept)
            wrong = wrong or "".join(str(w) for w in said if not issubclass(w.category, KernelStoreWarning))
            lost = [mine for mine in OF_THE_USER if not (folder / mine).exists()]
            if mine_are_there and what != "everything" and lost:
                wrong = f"the store has deleted {lost}"
            if wrong:
                return found(f"store: {what}", f"{line}: {wrong}")
    return OK


def _do(what: str, rng: random.Random, folder: Path, kept: dict[str, bytes]) -> str:
    """One step; the error, or ""."""
    if what == "use":
        return _used(KernelStore(folder, max_bytes=rng.choice((20_000, 1 << 20))), rng)
    if what == "keep":
        key, data = f"{rng.randrange(4):064x}", rng.randbytes(500)
        store = KernelStore(folder, max_bytes=20_000)
        before = store.data(key, PROGRAM)
        if before not in (None, kept.get(key)):
            return "another program than was kept"
        store.keep(key, PROGRAM, data)
        kept[key] = data
        return ""
    files = sorted(path for path in folder.glob("*") if path.name not in OF_THE_USER) if folder.is_dir() else []
    if files:
        path = rng.choice(files)
        try:
            special = path.is_fifo() or path.is_dir() or path.is_symlink()
            (remove if special else _DAMAGES[what])(path, rng)
        except (OSError, IndexError, shutil.Error):  # there is no other file for it
            pass
    return ""


def _used(store: KernelStore, rng: random.Random) -> str:
    numbers = rng.sample(range(KERNELS), 3)
    builder = ProgramBuilder()
    for number in numbers:
        builder.kernel(kernel(number), [pointer(0)], 100)
    program = builder.build(store)
    x = np.arange(100, dtype=np.float32)
    expected = x.copy()
    for number in numbers:
        expected = expected * 2 + number
    program.run([x.ctypes.data])
    return "" if np.array_equal(x, expected) else f"kernels {numbers} compute something else"


def minimised(case: Case, shows: Shows) -> Case:
    """Fewer steps."""
    steps = case.program.splitlines(keepends=True)
    return case.but(program="".join(without_parts(steps, lambda fewer: shows(case.but(program="".join(fewer))))))
