"""The pass manager: runs a visible list of passes, and checks, times and dumps them.

It knows no pass by name: each backend composes its own list, as `numba_backend/pipeline.py` does.
"""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path

from ..builder import with_unique_names
from ..errors import HloError, VerificationError
from ..ir import HloInstruction, HloModule
from ..provenance import is_recording
from ..support.loading import load
from ..support.progress import Progress, current
from ..support.records import dataclass
from ..text.dot_graph import to_dot
from ..timeline.spans import RECORDERS, Track
from ..verifier import verify
from .by_form import by_form
from .history import current_history, noting
from .record import PassRecord
from .rewrite import HloPass, is_idempotent
from .rewriter import Application, RewriteLog, has_rules


class PassOptionsError(HloError, ValueError):
    """An invalid setting of the pass manager: an unknown pass, a folder that cannot be written."""


@dataclass(frozen=True, slots=True)
class PassOptions:
    """How to run passes. `PassOptions.from_environment()` reads the user's environment variables."""

    verify: bool = False
    """Run the verifier after each pass that changed something."""
    dump_to: str | None = None
    """Write each stage as text and as a graph into a new folder below this one."""
    disabled: frozenset[str] = frozenset()
    """Names of passes not to run."""
    explain: bool = False
    """Keep each application of a rule in the records, not only how many there were."""
    check_rules: bool = False
    """Evaluate both sides of each application of a rule on random inputs. RuleCheckError names a wrong one."""

    @staticmethod
    def from_environment(environment: Mapping[str, str] = os.environ) -> PassOptions:
        """HLOOM_VERIFY_PASSES=1, HLOOM_CHECK_RULES=1, HLOOM_DUMP_TO=folder, HLOOM_DISABLE_PASSES=names with commas
        between."""
        names = environment.get("HLOOM_DISABLE_PASSES", "")
        return PassOptions(
            verify=_is_set(environment, "HLOOM_VERIFY_PASSES"),
            dump_to=environment.get("HLOOM_DUMP_TO") or None,
            disabled=frozenset(name.strip() for name in names.split(",") if name.strip()),
            check_rules=_is_set(environment, "HLOOM_CHECK_RULES"),
        )


def _is_set(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "0").lower() not in ("", "0", "false", "off")


class UnsettledWarning(UserWarning):
    """A fixed point was given up: its passes would change the module again and again."""


_LAST_ROUNDS = 4
"""Rules that fired in this number of last rounds are reported as not settling: such rules may alternate."""

_NOTABLE = 0.1
"""Milliseconds from which on a timeline shows a pass that changed nothing."""

Observer = Callable[[HloPass, HloModule, HloModule], None]
"""observer(pass, before, after), after each pass that changed the module. An error that it raises ends the run."""


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """Passes that run one after the other until a whole round changes nothing, at most `limit` rounds.

    A pass is skipped while the module is the one in which it found nothing to do. If the last round still changed
    something, an UnsettledWarning and the records of that round name the rules, and the passes without rules.
    """

    passes: tuple[HloPass, ...]
    limit: int = 20
    only_after: str | None = None
    """Name of a pass: run only if that pass changed the module."""


@dataclass(frozen=True, slots=True)
class ByForm:
    """Steps that run once for all modules that differ in sizes and ordinary constants alone, as long as these get the
    same answers (`by_form.py`). Each module goes through the passes itself if somebody looks at them one by one."""

    steps: tuple[HloPass | FixedPoint, ...]
    options: Hashable = None
    """All that the passes depend on besides the module and their fields."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A list of passes in order."""

    name: str
    steps: tuple[HloPass | FixedPoint | ByForm, ...]

    def passes(self) -> Iterator[HloPass]:
        """All passes; the passes of fixed points occur once."""
        for step in self.plain_steps():
            yield from step.passes if isinstance(step, FixedPoint) else (step,)

    def plain_steps(self) -> Iterator[HloPass | FixedPoint]:
        """All steps, with those of a `ByForm` in its place."""
        for step in self.steps:
            yield from step.steps if isinstance(step, ByForm) else (step,)

    def run(
        self, module: HloModule, options: PassOptions | None = None, observer: Observer | None = None
    ) -> tuple[HloModule, Sequence[PassRecord]]:
        """The module after all passes, and one record for each pass that ran, in order.

        VerificationError, with options.verify, names the pass that broke the module; RuleCheckError, with
        options.check_rules, the rule. PassOptionsError for an unknown name in options.disabled.
        """
        return _Run(self, options or PassOptions.from_environment(), observer).run(module)


@dataclass(slots=True)
class _Run:
    pipeline: Pipeline
    options: PassOptions
    observer: Observer | None = None
    records: list[PassRecord] = field(default_factory=list)
    folder: Path | None = None
    dumps: int = 0
    settled: dict[HloPass, set[HloInstruction]] = field(default_factory=dict)
    """For each pass with rules: the instructions that no rule changes, and that are not visited again."""
    work: Progress = field(default_factory=current)
    quiet: dict[HloPass, HloModule] = field(default_factory=dict)
    """For each pass of a fixed point: the module in which it found nothing to do, and would find nothing again."""
    counted: tuple[HloModule | None, int] = (None, 0)
    """The module that was counted last, and its instructions."""

    def run(self, module: HloModule) -> tuple[HloModule, Sequence[PassRecord]]:
        self.check_names()
        if self.options.dump_to:
            self.folder = _new_folder(Path(self.options.dump_to), module.name)
        self.dump(module, "before")
        if self.options.verify:
            self.verify(module, "before any pass")
        module = self.all(module, self.pipeline.steps)
        self.dump(module, "after")
        return module, tuple(self.records)

    def all(self, module: HloModule, steps: Sequence[HloPass | FixedPoint | ByForm]) -> HloModule:
        for step in steps:
            if isinstance(step, ByForm):
                module = self.by_form(module, step)
            elif isinstance(step, FixedPoint):
                module = self.fixed_point(module, step)
            elif self.quiet.get(step) is not module:
                module = self.one(module, step)
        return module

    def by_form(self, module: HloModule, group: ByForm) -> HloModule:
        """The module after a group of steps. Its records are those of the first module of the form."""
        options = self.options
        is_watched = options.dump_to or options.explain or options.check_rules or self.observer
        if is_watched or RECORDERS or is_recording() or current_history() is not None:
            return self.all(module, group.steps)

        def run(observed: HloModule) -> tuple[HloModule, tuple[Sequence[PassRecord], Sequence[HloPass]]]:
            inner = _Run(self.pipeline, replace(options, verify=False), work=self.work)
            try:
                new = inner.all(observed, group.steps)
            except Exception as error:  # if it is not the observed sizes, it comes again
                raise TypeError("the passes do not run on observed sizes") from error
            if any(record.unsettled for record in inner.records):
                raise TypeError("a fixed point that was given up: whoever compiles the next one is told, too")
            records = tuple([replace(record, milliseconds=0.0) for record in inner.records])
            return new, (records, tuple([each for each, quiet in inner.quiet.items() if quiet is new]))

        started = time.perf_counter()
        found = by_form(module, (group, options.disabled), run, with_constants=True)
        if found is None:
            return self.all(module, group.steps)
        entry, (records, quiet) = found
        if entry is not module.entry:
            new = with_unique_names(replace(module, entry=entry))
            if options.verify:
                try:
                    verify(new)
                except VerificationError:
                    self.all(module, group.steps)  # it names the pass
                    raise
            module = new
        self.quiet.update(dict.fromkeys(quiet, module))
        if records:
            elapsed = (time.perf_counter() - started) * 1e3
            self.records += [replace(records[0], milliseconds=elapsed), *records[1:]]
        return module

    def check_names(self) -> None:
        known = [p.name for p in self.pipeline.passes()]
        unknown = sorted(self.options.disabled - set(known))
        if unknown:
            raise PassOptionsError(f"no pass named {', '.join(unknown)}; known: {', '.join(dict.fromkeys(known))}")

    def fixed_point(self, module: HloModule, step: FixedPoint) -> HloModule:
        if step.only_after and not any(r.name == step.only_after and r.changed for r in self.records):
            return module
        quiet = self.quiet
        rounds = []
        for _ in range(step.limit):
            start = module
            rounds.append(len(self.records))
            for each in step.passes:
                if quiet.get(each) is not module:
                    before, module = module, self.one(module, each)
                    if module is before or is_idempotent(each):
                        quiet[each] = module
            if module is start:
                return module
        self.give_up(step, rounds)
        return module

    def give_up(self, step: FixedPoint, rounds: list[int]) -> None:
        """Report the changes of the last rounds. `rounds`: the index of the first record of each."""
        going_on: dict[str, dict[str, None]] = {}
        for record in self.records[rounds[-_LAST_ROUNDS:][0] :]:
            if record.changed:
                going_on.setdefault(record.name, {}).update(dict.fromkeys(record.rewrites))
        for number, record in enumerate(self.records[rounds[-1] :], rounds[-1]):
            if record.name in going_on:
                rules = tuple(going_on[record.name]) or (record.name,)
                self.records[number] = replace(record, unsettled=rules)
        said = [f"{name} ({', '.join(rules)})" if rules else name for name, rules in going_on.items()]
        message = f"the fixed point of pipeline {self.pipeline.name} was given up after {step.limit} rounds"
        warnings.warn(f"{message}: still changing the module are {'; '.join(said)}", UnsettledWarning, stacklevel=6)

    def one(self, module: HloModule, each: HloPass) -> HloModule:
        name = each.name
        if name in self.options.disabled:
            return module
        self.work.stage(f"pass {name}")
        history = current_history()
        log = RewriteLog(keep=self.options.explain or history is not None)
        started = time.perf_counter()
        if history is None:
            notes = None
            new = self.apply(each, module, log)
        else:
            notes = history.begin(module)
            with noting(notes):
                new = self.apply(each, module, log)
        ended = time.perf_counter()
        elapsed = (ended - started) * 1e3
        before = self.count(module)
        changed = new is not module
        after = self.count(new) if changed else before
        for recorder in RECORDERS:
            if recorder.detail > 2 or (recorder.detail == 2 and (changed or elapsed > _NOTABLE)):
                about = {"module": module.name, "instructions": f"{before} -> {after}" if changed else str(before)}
                rules = ", ".join([f"{name} x{count}" for name, count in sorted(log.counts.items())])
                span = int(started * 1e9), int(ended * 1e9), about | ({"rules": rules} if rules else {})
                recorder.add(Track.PASSES, each.name, *span)
        unfinished = tuple(log.unfinished)
        record = PassRecord(name, elapsed, before, after, changed, log.counts, unfinished, log.applications)
        self.records.append(record)
        if history is not None and notes is not None:
            history.end(record, module, new, notes)
        if changed:
            self.dump(new, each.name)
            if self.options.verify:
                self.verify(new, f"after {each.name}")
            if self.observer is not None:
                self.observer(each, module, new)
        return new

    def count(self, module: HloModule) -> int:
        """The module's instructions: most passes change nothing."""
        known, count = self.counted
        if known is not module:
            count = sum([len(c.instructions) for c in module.computations])
            self.counted = module, count
        return count

    def apply(self, each: HloPass, module: HloModule, log: RewriteLog) -> HloModule:
        if not has_rules(each):
            return each(module)
        log.settled = self.settled.setdefault(each, log.settled)
        if self.options.check_rules:
            log.check = partial(_check, each, module)
        return each.rewrite(module, log)

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


def _check(each: HloPass, module: HloModule, application: Application) -> None:
    load(".rule_check", __package__).check_application(application, f"module {module.name}, pass {each.name}")


def _file_name(text: str) -> str:
    """`text` without characters that are unsafe in file systems or shells: the user chooses names of modules."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text).lstrip(".")[:80] or "module"


def _new_folder(parent: Path, module_name: str) -> Path:
    """A new folder for one compilation: `<module>`, `<module>.1`, ..., also if processes compete."""
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
