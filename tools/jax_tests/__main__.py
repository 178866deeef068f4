"""The command line: see the package."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from .report import read, report, wanted
from .suites import SUITES

ROOT = Path(__file__).resolve().parents[2]


def _run(options: argparse.Namespace) -> int:
    suite = SUITES[options.suite]
    place = suite.cut(options.repository, options.ref or suite.ref, options.folder.resolve() / options.suite)
    files = suite.files(place)
    if options.files:  # by name: also one that the list leaves out
        stems = options.files.split(",")
        files = [f for f in files if f.stem in stems] or [place / suite.folder / f"{stem}.py" for stem in stems]
    out = options.out or Path("out") / f"{options.suite}_{options.on}.jsonl"
    out.parent.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "HLOOM_JAX_TESTS": str(place),
        "HLOOM_JAX_TESTS_SUITE": options.suite,
        "HLOOM_JAX_TESTS_WITH": options.on,
        "HLOOM_JAX_TESTS_OUT": str(out.resolve()),
        "HLOOM_JAX_TESTS_ONE_IN": str(options.one_in),
        "HLOOM_JAX_TESTS_PIECE": str(options.piece),
        "JAX_NUM_GENERATED_CASES": str(options.cases),
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join([str(place / "tests"), str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    if options.failed_in:
        environment["HLOOM_JAX_TESTS_FAILED"] = str(options.failed_in.resolve())
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(place)]
    command += ["-p", "tools.jax_tests.plugin", "-q", "--no-header", "--tb=short"]
    command += ["-W", "ignore", "-o", "python_files=*_test.py test_*.py"]
    command += ["-p", "no:cacheprovider", "-p", "no:hypothesispytest", "--continue-on-collection-errors"]
    command += ["-n", str(options.workers), "--dist", "worksteal", "--max-worker-restart", "1000"]
    command += ["-k", options.keyword] if options.keyword else []
    with open(out.with_suffix(".log"), "w") as log:
        subprocess.run([*command, *map(str, files)], env=environment, cwd=place, stdout=log, stderr=log)
    outcomes = read(out)
    print(report(outcomes, wanted(outcomes, options.beside)))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.jax_tests", description="Tests for JAX, run on hloom.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run the tests of a version of JAX, or of a library")
    run.add_argument("repository", type=Path, help="a git checkout, or an unpacked source distribution of the library")
    run.add_argument("--suite", choices=SUITES, default="jax", help="whose tests")
    run.add_argument("--ref", help="the version: a tag or hash; without it the one in suites.py")
    run.add_argument("--with", dest="on", choices=["hloom", "jax"], default="hloom")
    run.add_argument("--files", help="lax_test,nn_test: these alone")
    run.add_argument("-k", dest="keyword", help="as pytest's -k")
    run.add_argument("--cases", type=int, default=10, help="cases that are drawn for each generated test")
    run.add_argument("--one-in", type=int, default=1, help="one test in so many, the same ones each time")
    run.add_argument("--piece", type=int, default=0, help="which ones: pieces 0 to N - 1 of --one-in N are all tests")
    run.add_argument("--failed-in", type=Path, help="only what did not pass, by the outcomes in this file")
    run.add_argument("--workers", type=int, default=2)
    run.add_argument("--out", type=Path, help="the file of outcomes")
    run.add_argument("--beside", type=Path, nargs="*", help="outcomes with JAX: only tests that passed there count")
    run.add_argument("--folder", type=Path, default=Path("out/jax_tests"), help="where the tests are put")
    counted = commands.add_parser("report", help="count outcomes")
    counted.add_argument("outcomes", type=Path, nargs="+", help="files of outcomes: of several runs, later ones first")
    counted.add_argument("--beside", type=Path, nargs="*")
    counted.add_argument("--kinds", type=int, default=60)
    options = parser.parse_args()
    if options.command == "run":
        return _run(options)
    outcomes = read(*options.outcomes)
    print(report(outcomes, wanted(outcomes, options.beside), options.kinds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
