"""`python -m benchmarks [--group NAME]... [--case NAME]... [--json FILE] [--quick]`: see `--help`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hloom.hlo.support.progress import SILENT, cleared, working

from . import groups, harness, machine, peers, report, results, startup
from .harness import Outcome

ROUNDS, ROUNDS_FRESH = 9, 5
QUICK_ROUNDS, QUICK_ROUNDS_FRESH, LATE_ROUNDS_FRESH = 3, 1, 2
NOISE = 0.05
"""A case is called noisy if other processes use more than this part of the processors."""
PEERS = tuple(report.NAMES)
MINUTES = 25.0
STEADY_SECONDS, FRESH_SECONDS = 7.0, 25.0
"""About how long a case takes on two cores. A run that takes longer than these predict is late."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="hloom beside JAX, NumPy, Numba, PyTorch, IREE and others. Without --group and --case: the table.",
        epilog="Groups of the table: "
        + ", ".join(groups.TABLE)
        + ". Others: "
        + ", ".join(groups.NAMES[len(groups.TABLE) :]),
    )
    parser.add_argument("--group", action="append", choices=groups.NAMES, metavar="NAME", help="only these cases")
    parser.add_argument("--case", action="append", metavar="NAME", help="only this one; may be repeated")
    parser.add_argument("--list", action="store_true", help="print the names of the cases and end")
    parser.add_argument(
        "--prepare", action="store_true",
        help="only build the programs of others, which Pythran, DaCe and Numba keep: a run then waits for no compiler",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there")
    parser.add_argument(
        "--write", action="store_true",
        help=f"write {results.JSON}, {results.PAGE} and {results.PLOT} in this folder (or: benchmarks.results)",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds: to see whether it works")
    parser.add_argument(
        "--best", action="store_true", help="the best of short samples, not the median: where the machine is busy"
    )
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, metavar="N",
        help=f"a run that would take longer takes fewer rounds where it is late; {MINUTES:g} if not given",
    )  # fmt: skip
    parser.add_argument("--peer", action="append", choices=PEERS, help="only these beside hloom; may be repeated")
    parser.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="PEER=PATH",
        help="a peer's own interpreter; benchmarks.environments makes those of IREE, MLX and others",
    )
    parser.add_argument("--compile-loop", metavar="NAME", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.compile_loop:
        print(json.dumps(asdict(_compile_loop(options.compile_loop, options.best))))
        return 0
    named = options.group or (() if options.case else groups.TABLE)
    chosen = [*(name for group in named for name in groups.group(group)), *(options.case or ())]
    chosen = list(dict.fromkeys(chosen))
    for name in options.case or ():
        try:
            groups.home(name)
        except KeyError:
            parser.error(f"no case {name!r}: --list, with --group, has the names")
    if not chosen:
        parser.error("these groups have no cases: benchmarks/README.md says which clones they need")
    if options.list:
        print("\n".join(chosen))
        return 0

    startup.CHOSEN = startup.Chosen(dict(pair.split("=", 1) for pair in options.python), options.peer)
    if options.prepare:
        _prepare([name for name in chosen if groups.home(name) in groups.PROGRAMS])
        return 0
    files = [options.json] if options.json else []
    files += [results.HERE / results.JSON] if options.write else []
    outcomes, failed, about = _measure(chosen, options, files)
    print(report.tables(outcomes, about))
    if options.write:
        results.write(results.HERE / results.JSON)
    if failed:
        print("failed: " + ", ".join(failed), file=sys.stderr)
    return 1 if failed else 0


def _measure(chosen: list[str], options: Any, files: list[Path]) -> tuple[list[Outcome], list[str], dict[str, Any]]:
    outcomes: list[Outcome] = []
    failed = []
    rounds = QUICK_ROUNDS if options.quick else harness.BEST_ROUNDS if options.best else ROUNDS
    seconds = harness.BEST_SECONDS if options.quick or options.best else harness.SAMPLE_SECONDS
    about = machine.describe()
    expected = [FRESH_SECONDS if groups.is_fresh(name) else STEADY_SECONDS for name in chosen]
    began = time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as store,
        peers.started(Path(store), startup.CHOSEN) as running,
        working("benchmarks", len(chosen), "cases", delay=0) as work,
    ):
        for k, name in enumerate(chosen):
            work.reach(k, name)
            if work is SILENT:  # a log has a line for each case
                print(
                    f"{k + 1}/{len(chosen)} {time.perf_counter() - began:5.0f} s  {name} ...",
                    file=sys.stderr, flush=True,
                )  # fmt: skip
            home = groups.home(name)
            watch = machine.Watch(running.processes)
            planned = sum(expected[:k]) * min(1.0, options.minutes * 60 / sum(expected))
            hurry = options.quick or (not options.best and time.perf_counter() - began > planned + 30)
            try:
                if groups.is_fresh(name):
                    late = LATE_ROUNDS_FRESH if hurry else ROUNDS_FRESH
                    found = groups.group(home)[name](QUICK_ROUNDS_FRESH if options.quick else late)
                else:
                    found = [running.measure(name, QUICK_ROUNDS if hurry else rounds, seconds, options.best)]
                    if home == "loops":
                        found.append(_compile_loop_apart(name, options.best, Path(store)))
            except (RuntimeError, harness.Mismatch, peers.PeerFailed) as error:
                failed.append(name)
                found = [Outcome(name, name, notes=[f"failed: {error}"])]
                with cleared():
                    print(f"{name} failed: {error}", file=sys.stderr)
            if (others := watch.others()) > NOISE:
                found[0].notes.append(f"noisy: other processes took {others:.0%} of the processors")
            if hurry and not options.quick:
                found[0].notes.append("fewer rounds, as the run was late")
            for outcome in found:
                outcome.group, outcome.best = home, options.best and not groups.is_fresh(name)
            outcomes += found
            for file in files:  # each time, so that an interrupted run is not lost
                file.parent.mkdir(parents=True, exist_ok=True)
                written = report.as_json(outcomes, about | {"peers": startup.CHOSEN.about})
                file.write_text(json.dumps(written, indent=1) + "\n")
    return outcomes, failed, about | {"peers": startup.CHOSEN.about}


def _prepare(chosen: list[str]) -> None:
    with tempfile.TemporaryDirectory() as store, peers.started(Path(store), startup.CHOSEN) as running:
        for k, name in enumerate(chosen):
            print(f"{k + 1}/{len(chosen)}  {name}", flush=True)
            for peer, error in running.prepare(name).items():
                print(f"  {peer}: {error}", flush=True)


def _compile_loop(name: str, best: bool) -> Outcome:
    from .loops import CASES, measure

    return measure.compiling(CASES[name], measure.COMPILE_ROUNDS, best)


def _compile_loop_apart(name: str, best: bool, store: Path) -> Outcome:
    """How long a loop of the group `loops` takes to compile, from a process of its own."""
    arguments = ["-m", "benchmarks", "--compile-loop", name] + ["--best"] * best
    _, printed = startup.run(arguments, store, jax_cache=False, more={"HLOOM_CACHE_DIR": "off"})
    return Outcome(**json.loads(printed.splitlines()[-1]))


if __name__ == "__main__":
    sys.exit(main())
