"""`python -m benchmarks [--case NAME]... [--json FILE] [--quick]`: see `--help`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from . import harness, machine, report, startup, steady
from .harness import Outcome

ROUNDS, ROUNDS_STARTUP = 15, 7
QUICK_ROUNDS = 3
NOISE = 0.05
"""A case is called noisy if other processes use more than this part of the processors."""


def main() -> int:
    names = [*steady.CASES, *startup.CASES]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="hloom beside JAX, NumPy, Numba, PyTorch."
    )
    parser.add_argument("--case", action="append", choices=names, help="only this one; may be repeated")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds: to see whether it works")
    parser.add_argument("--worker", choices=steady.CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    if options.worker:
        print(json.dumps(asdict(harness.measure(steady.CASES[options.worker](), rounds))))
        return 0

    outcomes: list[Outcome] = []
    failed = []
    with tempfile.TemporaryDirectory() as store:
        for name in options.case or names:
            print(f"{name} ...", file=sys.stderr, flush=True)
            watch = machine.Watch()
            try:
                if name in steady.CASES:
                    found = [steady_case(name, options.quick, Path(store))]
                else:
                    found = startup.CASES[name](QUICK_ROUNDS if options.quick else ROUNDS_STARTUP)
                if (others := watch.others()) > NOISE:
                    found[0].notes.append(f"noisy: other processes took {others:.0%} of the processors")
                outcomes += found
            except (RuntimeError, harness.Mismatch) as error:
                failed.append(name)
                print(f"{name} failed: {error}", file=sys.stderr)
    about = machine.describe()
    if outcomes:
        print(report.table(outcomes, about))
    if options.json:
        options.json.write_text(json.dumps(report.as_json(outcomes, about), indent=1) + "\n")
    return 1 if failed else 0


def steady_case(name: str, quick: bool, store: Path) -> Outcome:
    """Run one case in a separate process."""
    arguments = ["-m", "benchmarks", "--worker", name] + ["--quick"] * quick
    _, printed = startup.run(arguments, store, jax_cache=False)
    return Outcome(**json.loads(printed.splitlines()[-1]))


if __name__ == "__main__":
    sys.exit(main())
