"""The pass manager: runs a visible list of passes, checks, times and dumps them.

No pass is known here by name: each backend composes its own list, as `numba_backend/pipeline.py` does.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import HloError, VerificationError
from ..ir import HloModule
from ..text.dot_graph import to_dot
from ..verifier import verify
from .record import PassRecord
from .rewrite import HloPass


class PassOptionsError(HloError, ValueError):
    """A setting of the pass manager that makes no sense: an unknown pass, a folder that cannot be written."""


@dataclass(frozen=True, slots=True)
class PassOptions:
    """How to run passes. `PassOptions.from_environment()` reads what a user sets from outside."""

    verify: bool = False
    """Run the verifier after each pass that changed something."""
    dump_to: str | None = None
    """Write each stage as text and as a graph into a new folder below this one."""
    disabled: frozenset[str] = frozenset()
    """Names of passes not to run."""

    @staticmethod
    def from_environment(environment: Mapping[str, str] = os.environ) -> PassOptions:
        """HLOOM_VERIFY_PASSES=1, HLOOM_DUMP_TO=folder, HLOOM_DISABLE_PASSES=names with commas between."""
        names = environment.get("HLOOM_DISABLE_PASSES", "")
        return PassOptions(
            environment.get("HLOOM_VERIFY_PASSES", "0").lower() not in ("", "0", "false", "off"),
            environment.get("HLOOM_DUMP_TO") or None,
            frozenset(name.strip() for name in names.split(",") if name.strip()),
        )


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """Passes to be run in turn until a whole round changes nothing, at most `limit` rounds.

    A pass is left out while the module is the very one in which it found nothing to do.
    """

    passes: tuple[HloPass, ...]
    limit: int = 20
    only_after: str | None = None
    """Name of a pass: there is something to do only if it has changed the module."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A list of passes in order."""

    name: str
    steps: tuple[HloPass | FixedPoint, ...]

    def passes(self) -> Iterator[HloPass]:
        """All passes, those of fixed points once."""
        for step in self.steps:
            if isinstance(step, FixedPoint):
                yield from step.passes
            else:
                yield step

    def run(self, module: HloModule, options: PassOptions | None = None) -> tuple[HloModule, Sequence[PassRecord]]:
        """The module after all passes, and one record a pass that ran, in order.

        VerificationError, with options.verify, names the pass that broke the module. PassOptionsError for an unknown
        name in options.disabled.
        """
        return _Run(self, options or PassOptions.from_environment()).run(module)


@dataclass(slots=True)
class _Run:
    pipeline: Pipeline
    options: PassOptions
    records: list[PassRecord] = field(default_factory=list)
    folder: Path | None = None
    dumps: int = 0

    def run(self, module: HloModule) -> tuple[HloModule, Sequence[PassRecord]]:
        self.check_names()
        if self.options.dump_to:
            self.folder = _new_folder(Path(self.options.dump_to), module.name)
        self.dump(module, "before")
        if self.options.verify:
            self.verify(module, "before any pass")
        for step in self.pipeline.steps:
            module = self.fixed_point(module, step) if isinstance(step, FixedPoint) else self.one(module, step)
        self.dump(module, "after")
        return module, tuple(self.records)

    def check_names(self) -> None:
        known = [p.name for p in self.pipeline.passes()]
        unknown = sorted(self.options.disabled - set(known))
        if unknown:
            raise PassOptionsError(f"no pass named {', '.join(unknown)}; known: {', '.join(dict.fromkeys(known))}")

    def fixed_point(self, module: HloModule, step: FixedPoint) -> HloModule:
        if step.only_after and not any(r.name == step.only_after and r.changed for r in self.records):
            return module
        settled: dict[HloPass, HloModule] = {}
        for _ in range(step.limit):
            start = module
            for each in step.passes:
                if settled.get(each) is not module:
                    before, module = module, self.one(module, each)
                    if module is before:
                        settled[each] = module
            if module is start:
                break
        return module

    def one(self, module: HloModule, each: HloPass) -> HloModule:
        if each.name in self.options.disabled:
            return module
        started = time.perf_counter()
        new = each(module)
        elapsed = (time.perf_counter() - started) * 1e3
        before = _instruction_count(module)
        changed = new is not module
        after = _instruction_count(new) if changed else before
        self.records.append(PassRecord(each.name, elapsed, before, after, changed))
        if changed:
            self.dump(new, each.name)
            if self.options.verify:
                self.verify(new, f"after {each.name}")
        return new

    def verify(self, module: HloModule, when: str) -> None:
        try:
            verify(module)
        except VerificationError as error:
            raise VerificationError(f"module {module.name} failed {when}: {error}") from error

    def dump(self, module: HloModule, stage: str) -> None:
        if self.folder is None:
            return
        stem = f"{self.dumps:03d}.{_file_name(stage)}"
        self.dumps += 1
        (self.folder / f"{stem}.hlo").write_text(module.to_text(), encoding="utf-8")
        (self.folder / f"{stem}.dot").write_text(to_dot(module), encoding="utf-8")


def _instruction_count(module: HloModule) -> int:
    return sum(len(c.instructions) for c in module.computations)


def _file_name(text: str) -> str:
    """`text` without what file systems or shells dislike; names of modules come from outside."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text).lstrip(".")[:80] or "module"


def _new_folder(parent: Path, module_name: str) -> Path:
    """A folder of its own for one compilation: `<module>`, `<module>.1`, ..., also when processes compete."""
    stem = _file_name(module_name)
    number = 0
    try:
        parent.mkdir(parents=True, exist_ok=True)
        while True:
            folder = parent / (f"{stem}.{number}" if number else stem)
            try:
                folder.mkdir()
            except FileExistsError:
                number += 1
            else:
                return folder
    except OSError as error:
        raise PassOptionsError(f"HLOOM_DUMP_TO: cannot write to {parent}: {error}") from error
