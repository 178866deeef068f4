"""A case: one program with its inputs; what checking it says; and the files of a reproduction.

A case holds only text and arrays, so that it can be sent to another process, changed by the minimiser, and stored.
A program is drawn from a seed, with set 0 of its data; other sets have numbers (`data`), and are cases of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

import ml_dtypes
import numpy as np

NDArray = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """`kind`, `seed` and `data`, the number of the set of data, name it. `program`: HLO text, or the source of a Python
    function. `inputs`: one array for each argument. `options`: how it is run, as JSON holds it."""

    kind: str
    seed: int
    program: str
    inputs: tuple[NDArray, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    parts: Any = None
    """The data that the kind's minimiser works on, if it is not the text."""
    data: int = 0

    @property
    def id(self) -> str:
        return f"{self.kind}:{self.seed}" + (f".{self.data}" if self.data else "")

    def but(self, **changes: Any) -> Case:
        return replace(self, **changes)


class Verdict(Enum):
    """The outcome of a case."""

    OK = "ok"
    REFUSED = "refused"
    """Text that is no program, refused as it should be."""
    SKIPPED = "skipped"
    """Not run: too large, or it waits for input."""
    UNSTABLE = "unstable"
    """Results differ, but the program jumps where rounding decides: nothing can be said."""
    ONLY_HERE = "only here"
    """A program that JAX refuses has a result."""
    KNOWN = "known"
    """A defect that `known` lists."""
    FOUND = "FOUND"
    """A defect."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A verdict. For a defect, `signature` is the same for cases that show the same one, as far as can be told."""

    verdict: Verdict
    message: str = ""
    signature: str = ""


OK = Outcome(Verdict.OK)


def found(signature: str, message: str) -> Outcome:
    return Outcome(Verdict.FOUND, message, signature)


class Stage(Protocol):
    """Says what the check does next: the parent process knows it when the child is gone."""

    def __call__(self, name: str) -> None: ...


class Kind(Protocol):
    """One kind of case: a module has these functions."""

    def draw(self, seed: int) -> Case:
        """The case of a seed: always the same one."""

    def check(self, case: Case, stage: Stage) -> Outcome:
        """Run it in every way. Runs in the child."""

    def minimised(self, case: Case, shows: Callable[[Case], bool]) -> Case:
        """A smaller case that `shows` the same."""


# ---- reproductions

_SUFFIXES = {"array": "py", "loop-array": "py", "limit": "py", "interrupt": "py", "store": "txt"}


def write(folder: Path, name: str, case: Case, outcome: Outcome) -> Path:
    """The reproduction's file (`.py`, `.hlo` or `.txt`), beside it `.npz` with the inputs and `.json` with the rest."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.{_SUFFIXES.get(case.kind, 'hlo')}"
    path.write_text(case.program, encoding="utf-8", errors="surrogateescape")
    raw = {f"argument{k}": _as_bytes(a) for k, a in enumerate(case.inputs)}
    np.savez(path.with_suffix(".npz"), **raw)  # type: ignore[arg-type]  # a keyword of another type
    about = {
        "kind": case.kind,
        "seed": case.seed,
        "data": case.data,
        "options": dict(case.options),
        "signature": outcome.signature,
        "message": outcome.message,
        "dtypes": [str(a.dtype) for a in case.inputs],
        "shapes": [list(a.shape) for a in case.inputs],
    }
    path.with_suffix(".json").write_text(json.dumps(about, indent=1))
    return path


def read(path: Path) -> Case:
    """The case of a reproduction's file."""
    about = json.loads(path.with_suffix(".json").read_text())
    with np.load(path.with_suffix(".npz")) as stored:
        raw = [stored[f"argument{k}"] for k in range(len(about["dtypes"]))]
    inputs = tuple(
        np.frombuffer(data.tobytes(), dtype_named(dtype)).reshape(shape)
        for data, dtype, shape in zip(raw, about["dtypes"], about["shapes"], strict=True)
    )
    program = path.read_text(encoding="utf-8", errors="surrogateescape")
    return Case(about["kind"], about["seed"], program, inputs, about["options"], data=about["data"])


def dtype_named(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


def _as_bytes(array: NDArray) -> NDArray:
    """NumPy's files do not hold the small types."""
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
