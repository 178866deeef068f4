"""`python -m benchmarks [--group NAME]... [--case NAME]... [--json FILE] [--quick]`: see `--help`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from . import eager, harness, loops, machine, recording, report, scopes, startup, steady, tracing, transformations
from .harness import Outcome
from .loops import measure as loop_times
from .loops import summary

ROUNDS, ROUNDS_STARTUP = 15, 7
QUICK_ROUNDS = 3
NOISE = 0.05
"""A case is called noisy if other processes use more than this part of the processors."""


WRITTEN_OUT = {
    **steady.CASES, **transformations.CASES, **tracing.CASES, **eager.CASES, **recording.CASES, **scopes.CASES,
}  # fmt: skip
"""The cases whose programs are built one by one."""
GROUPS = {
    "steady": steady.CASES,
    "startup": startup.CASES,
    "loops": loops.CASES,
    "transformations": transformations.CASES,
    "tracing": tracing.CASES,
    "eager": eager.CASES,
    "recording": recording.CASES,
    "scopes": scopes.CASES,
}
DEFAULT = ("steady", "startup")


def main() -> int:
    names = [name for group in GROUPS.values() for name in group]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="hloom beside JAX, NumPy, Numba, PyTorch."
    )
    parser.add_argument("--group", action="append", choices=GROUPS, help=f"only these cases; {' and '.join(DEFAULT)}")
    parser.add_argument("--case", action="append", choices=names, metavar="NAME", help="only this one; may be repeated")
    parser.add_argument("--list", action="store_true", help="print the names of the cases and end")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds: to see whether it works")
    parser.add_argument(
        "--best", action="store_true", help="the best of short samples, not the median: where the machine is busy"
    )
    parser.add_argument("--worker", choices=[*WRITTEN_OUT, *loops.CASES], help=argparse.SUPPRESS)
    options = parser.parse_args()
    rounds = QUICK_ROUNDS if options.quick else harness.BEST_ROUNDS if options.best else ROUNDS
    if options.worker:
        print(json.dumps([asdict(outcome) for outcome in work(options.worker, rounds, options.best)]))
        return 0
    chosen = options.case or [name for group in options.group or DEFAULT for name in GROUPS[group]]
    if options.list:
        print("\n".join(chosen))
        return 0

    outcomes: list[Outcome] = []
    failed = []
    with tempfile.TemporaryDirectory() as store:
        for name in chosen:
            print(f"{name} ...", file=sys.stderr, flush=True)
            watch = machine.Watch()
            try:
                if name in startup.CASES:
                    found = startup.CASES[name](QUICK_ROUNDS if options.quick else ROUNDS_STARTUP)
                else:
                    found = in_a_process(name, options.quick, options.best, Path(store))
                if (others := watch.others()) > NOISE:
                    found[0].notes.append(f"noisy: other processes took {others:.0%} of the processors")
                outcomes += found
                if options.json:  # each time, so that an interrupted run is not lost
                    about = machine.describe()
                    options.json.write_text(json.dumps(report.as_json(outcomes, about), indent=1) + "\n")
            except (RuntimeError, harness.Mismatch) as error:
                failed.append(name)
                print(f"{name} failed: {error}", file=sys.stderr)
    about = machine.describe()
    of_loops = [outcome for outcome in outcomes if outcome.name.removesuffix(loop_times.SUFFIX) in loops.CASES]
    rest = [outcome for outcome in outcomes if outcome not in of_loops]
    tables = [report.table(rest, about)] if rest else []
    tables += [summary.table(of_loops, loops.CASES, about)] if of_loops else []
    print("\n\n".join(tables))
    return 1 if failed else 0


def work(name: str, rounds: int, best: bool) -> list[Outcome]:
    """What the process of a case does."""
    if name in loops.CASES:
        return loop_times.measure(loops.CASES[name], rounds, best)
    return [harness.measure(WRITTEN_OUT[name](), rounds, best)]


def in_a_process(name: str, quick: bool, best: bool, store: Path) -> list[Outcome]:
    """Run one case in a separate process."""
    arguments = ["-m", "benchmarks", "--worker", name] + ["--quick"] * quick + ["--best"] * best
    more = loop_times.ENVIRONMENT if name in loops.CASES else {}
    _, printed = startup.run(arguments, store, jax_cache=False, more=more)
    return [Outcome(**outcome) for outcome in json.loads(printed.splitlines()[-1])]


if __name__ == "__main__":
    sys.exit(main())
