"""The command: draws cases, has them checked, makes findings small, and writes them down.

    python -m tools.fuzz --minutes 10 --seed 0 --kind text,hlo,array,loop      exit code 1 if anything is found
    python -m tools.fuzz --replay hlo:1000042                             one case again, from its seed
    python -m tools.fuzz --replay hlo:1000042.7                           with set 7 of its data
    python -m tools.fuzz --replay out/fuzz/hlo_1000042.hlo                one from its file

Program number n of a run with seed s has seed 1,000,000 s + n, for any kinds; the kinds take turns. Each program
runs with `--data` sets of data; set 0 is drawn with it. A case is a program with a set.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, cycle
from pathlib import Path

from hloom.hlo.support.progress import cleared, working

from . import ledger
from .case import Case, Outcome, Verdict, read, write
from .minimise import Search
from .worker import ROOT, Drawn, Limits, Worker

ATTACKS = ("hostile", "store", "limit", "interrupt")
KINDS = ("op", "text", "hlo", "array", "loop", "loop-array", *ATTACKS)
PROGRAMS_PER_SEED = 1_000_000


@dataclass
class Run:
    """The settings of a run, and its findings."""

    worker: Worker
    folder: Path
    minimise_seconds: float = 60.0
    quiet: bool = False
    most: int = 20
    """Reproductions after which the run ends."""
    data: int = 1
    """With how many sets of data a program runs."""
    counts: Counter[tuple[str, Verdict]] = field(default_factory=Counter)
    programs: Counter[str] = field(default_factory=Counter)
    each: int = 3
    """Of findings with one signature, how many are written down: they may be different defects."""
    signatures: Counter[str] = field(default_factory=Counter)
    found: list[tuple[str, Path]] = field(default_factory=list)

    def one(self, kind: str, seed: int) -> Outcome:
        """Check the cases of one program, and write down their findings, unless an earlier one had the same."""
        started = time.monotonic()
        outcomes = self.worker.outcomes(Drawn(kind, seed, 0, self.data))
        self.programs[kind] += 1
        self.counts.update((kind, outcome.verdict) for outcome in outcomes)
        outcome = outcomes[-1]
        if not self.quiet or outcome.verdict is Verdict.FOUND:
            about = f" {outcome.message.splitlines()[0]}" if outcome.message else ""
            name = self.worker.last_case.id if self.worker.last_case else f"{kind}:{seed}"
            with cleared():
                print(f"{name} {outcome.verdict.value} {time.monotonic() - started:.2f} s{about[:150]}", flush=True)
        if outcome.verdict is Verdict.FOUND:
            self.signatures[outcome.signature] += 1
            if self.signatures[outcome.signature] <= self.each:
                case = self.worker.last_case or Case(kind, seed, "# the generator failed: use the seed")
                self.found.append((outcome.signature, self.write_down(case, outcome)))
        return outcome

    def write_down(self, case: Case, outcome: Outcome) -> Path:
        """The smallest case that shows the same, as files; prints it."""
        from . import kinds

        search = Search(self.worker, case, outcome, self.minimise_seconds)
        if self.minimise_seconds:
            search.run(kinds.KINDS[case.kind].minimised)
        path = write(self.folder, case.id.replace(":", "_"), search.case, search.outcome)
        with cleared():
            print(f"\n{search.outcome.signature}\n{search.outcome.message}\n")
            print(f"{search.case.program}\noptions: {dict(search.case.options)}\n")
            print(f"{path}: again with  python -m tools.fuzz --replay {path}\n", flush=True)
        return path

    def summary(self) -> str:
        """How many cases of each kind had which verdict."""
        lines = []
        for kind in KINDS:
            verdicts = {v.value: self.counts[kind, v] for v in Verdict if self.counts[kind, v]}
            if verdicts:
                lines.append(f"{kind}: {sum(verdicts.values())} cases of {self.programs[kind]} programs: {verdicts}")
        if self.worker.oracle_crashes:
            lines.append(f"XLA or JAX crashed {self.worker.oracle_crashes} times")
        lines += [f"FOUND {signature}: {path}" for signature, path in self.found]
        return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; 1 if a defect was found, 2 if it was called wrongly."""
    options = _parser().parse_args(arguments)
    kinds = options.kind.split(",")
    if not set(kinds) <= set(KINDS):
        print(f"--kind must be some of {','.join(KINDS)}, with commas between", file=sys.stderr)
        return 2
    with Worker(Limits(options.limit), prepare=options.prepare, oracle=not options.no_jax) as worker:
        if options.replay:
            return _replay(worker, options.replay)
        out, each = Path(options.out), options.each
        run = Run(worker, out, options.minimise, options.quiet, options.most, options.data, each=each)
        end = time.monotonic() + 60 * options.minutes
        with suppress(KeyboardInterrupt), working("fuzz", *_extent(options)) as work:
            began = time.monotonic()
            for number, kind in zip(count(options.start), cycle(kinds)):
                now = time.monotonic()
                done = number - options.start if options.cases >= 0 else min(now, end) - began
                work.reach(int(done), f"{kind}:{options.seed * PROGRAMS_PER_SEED + number}, {len(run.found)} found")
                if now > end or number - options.start == options.cases or len(run.found) >= run.most:
                    break
                run.one(kind, options.seed * PROGRAMS_PER_SEED + number)
        print(run.summary())
        if options.ledger:
            drawn = ledger.Seeds(options.seed, options.start, run.programs.total(), options.data)
            found = [s for s, _ in run.found]
            ledger.add(kinds, drawn, {(k, v.value): n for (k, v), n in run.counts.items()}, found, not options.no_jax)
        return 1 if run.found else 0


def _extent(options: argparse.Namespace) -> tuple[int, str]:
    """How much there is to do, and its unit."""
    return (options.cases, "programs") if options.cases >= 0 else (int(60 * options.minutes), "s")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("tools.fuzz", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to look (default 10)")
    parser.add_argument("--cases", type=int, default=-1, help="how many programs at most")
    parser.add_argument("--data", type=int, default=1, help="with how many sets of data each runs (default 1)")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other cases (default 0)")
    parser.add_argument("--start", type=int, default=0, help="the number of the first program (default 0)")
    parser.add_argument("--kind", default=",".join(KINDS), help=f"some of {','.join(KINDS)}; default all")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of processor time for one case (default 60)")
    parser.add_argument("--minimise", type=float, default=60.0, metavar="SECONDS", help="for each defect (default 60)")
    parser.add_argument("--most", type=int, default=20, help="reproductions after which to stop (default 20)")
    parser.add_argument("--each", type=int, default=3, help="reproductions with one signature at most (default 3)")
    parser.add_argument("--out", default=str(ROOT / "out" / "fuzz"), help="folder for reproductions (default out/fuzz)")
    parser.add_argument("--no-jax", action="store_true", help="do not compare with JAX")
    parser.add_argument("--ledger", action="store_true", help="add the run to tests/data/fuzz_ledger.jsonl")
    parser.add_argument("--quiet", action="store_true", help="print only what is found")
    parser.add_argument("--replay", metavar="FILE|KIND:SEED[.SET]", help="one case again; nothing is made smaller")
    parser.add_argument("--prepare", default="", help=argparse.SUPPRESS)  # for tests: breaks something in the child
    return parser


def _replay(worker: Worker, what: str) -> int:
    path = Path(what)
    if path.exists():
        outcome = worker.check(read(path))
    else:
        kind, _, number = what.partition(":")
        seed, _, data = number.partition(".")
        outcome = worker.check(Drawn(kind, int(seed), int(data or 0)))
    case = worker.last_case
    if case is not None:
        print(case.program)
    print(f"{outcome.verdict.value} {outcome.signature}\n{outcome.message}")
    return 1 if outcome.verdict is Verdict.FOUND else 0
