"""The stages of a compilation: the program before any pass and after each one, and the changes between two of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..ir import HloModule
from ..support.records import dataclass
from .history import Origins, recording
from .manager import PassOptionsError, Pipeline
from .module_diff import ModuleDiff, ModuleDiffs
from .record import PassRecord


@dataclass(frozen=True, slots=True)
class Stages:
    """A program before any pass, and after each pass that ran, with the records of these, in order."""

    first: HloModule
    records: Sequence[PassRecord]
    modules: Sequence[HloModule]
    """After each pass of `records`."""
    origins: Sequence[Origins]
    """Of the instructions of each of `modules`: those of the one before that they replace. One that took the place of
    others that are equal to it replaces itself, too."""

    def diff(self, *asked: str | int) -> ModuleDiffs:
        """The changes of one pass, or from one to another; of all passes if none is named.

        A pass is a name, or an index of `records`. A name stands for each run that changed something, if it is alone;
        of two passes, the first begins with its first run, and the second ends with its last. PassOptionsError, which
        lists the passes, for a pass that did not run.
        """
        if len(asked) > 2:
            raise PassOptionsError(f"diff takes a pass, or the first and the last one of several, not {len(asked)}")
        runs = [self._runs(each) for each in asked]
        if len(runs) == 1:
            changed = [k for k in runs[0] if self.records[k].changed] or runs[0][:1]
            return ModuleDiffs([self._between(k, k, self._title(k)) for k in changed])
        if not runs:
            return ModuleDiffs([self._between(0, len(self.records) - 1, "all passes")])
        start, end = runs[0][0], runs[1][-1]
        if start > end:
            raise PassOptionsError(f"{asked[0]} ran after {asked[1]}: name the earlier pass first")
        return ModuleDiffs([self._between(start, end, f"{self._title(start)} to {self._title(end)}")])

    def _title(self, index: int) -> str:
        """The name of a run; with its number, if the pass ran several times."""
        name = self.records[index].name
        runs = self._runs(name)
        return name if len(runs) == 1 else f"{name} (run {runs.index(index) + 1} of {len(runs)}, pass {index})"

    def _runs(self, asked: str | int) -> Sequence[int]:
        names = [record.name for record in self.records]
        if isinstance(asked, int):
            if 0 <= asked < len(names):
                return [asked]
            raise PassOptionsError(f"there is no pass {asked}: {len(names)} ran, from 0 to {len(names) - 1}")
        found = [k for k, name in enumerate(names) if name == asked]
        if not found:
            changed = dict.fromkeys([record.name for record in self.records if record.changed])
            others = [name for name in dict.fromkeys(names) if name not in changed]
            raise PassOptionsError(
                f"no pass named {asked!r} ran; these changed the program: {', '.join(changed) or 'none'}; these did "
                f"not: {', '.join(others) or 'none'}"
            )
        return found

    def _between(self, start: int, end: int, title: str) -> ModuleDiff:
        rules: Counter[str] = Counter()
        for record in self.records[start : end + 1]:
            rules.update(record.rewrites)
        before = self.modules[start - 1] if start else self.first
        after = self.modules[end] if end >= 0 else self.first
        applied = [application for record in self.records[start : end + 1] for application in record.applications]
        return ModuleDiff(title, before, after, dict(rules), applied)


def stages_of(pipeline: Pipeline, module: HloModule) -> Stages:
    """Run the passes on a module, and keep the program after each."""
    with recording() as history:
        pipeline.run(module)
    modules: list[HloModule] = []
    origins: list[Origins] = []
    current, stages = module, iter(history.stages)
    for record in history.records:
        stage = next(stages) if record.changed else None
        current = current if stage is None else stage.after
        modules.append(current)
        origins.append({} if stage is None else stage.all_origins())
    return Stages(module, history.records, modules, origins)
