"""Where hloom runs beside this machine's Python: the commands setup, check and run of tools for such places."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import emulation
from emulation import ROOT


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where hloom runs: a folder with a Python, and what its tool says of it."""

    folder: Path
    """`setup` makes it; its program `python` is Python there, with hloom of the folder in HLOOM_CHECKOUT."""
    setup: Callable[[], None]
    variables: Mapping[str, str]
    """Of its processes, in addition."""
    programs: Sequence[str] = ("apt-get", "dpkg-deb")
    """What `setup` calls."""
    tests: Callable[[], Sequence[str]] = emulation.smoke_tests
    """The files that `check` runs if none are named."""
    left_out: Sequence[str] = ()
    """Tests that cannot pass there."""
    end: Sequence[str] = ()
    """A command that ends the processes of a file of tests that took too long."""

    @property
    def python(self) -> Path:
        return self.folder / "python"

    def environment(self, checkout: Path) -> Mapping[str, str]:
        """The variables of a process that imports hloom from a checkout."""
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        found = {**kept, "PYTHONPYCACHEPREFIX": str(self.folder / "byte-code"), "HLOOM_CHECKOUT": str(checkout)}
        return {"HLOOM_CACHE_DIR": str(self.folder / "kernels"), **found, **self.variables}

    def run(self, arguments: Sequence[str]) -> int:
        """Run Python in this checkout; its exit code."""
        return subprocess.run([str(self.python), *arguments], cwd=ROOT, env=self.environment(ROOT)).returncode

    def check(self, tests: Sequence[str], goes_on: bool) -> int:
        """Run files of tests on a copy of this checkout; 1 if a test failed. With `goes_on`, without those that passed
        in an earlier check."""
        copy, python = self.folder / "checkout", [str(self.python), "-m", "pytest"]
        emulation.copy_checkout(copy)
        if self.left_out:
            python += ["-k", " and ".join(f"not {name}" for name in self.left_out)]
        given, results = self.environment(copy), self.folder / "results"
        return emulation.check(python, copy, results, tests or self.tests(), given, goes_on, self.end)


def main(place: Place, documentation: str | None, unfit: str = "") -> int:
    """The tool's commands: setup, check with files of tests, run with arguments of Python; the exit code.

    `unfit` says why this machine cannot be used.
    """
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("setup", help="make the folder")
    checks = commands.add_parser("check", help="run tests on a copy of this checkout, and print a table")
    checks.add_argument("--continue", dest="goes_on", action="store_true", help="without files that passed before")
    checks.add_argument("files", nargs="*", help="of tests; by default those that the tool names")
    python = commands.add_parser("run", help="run Python on this checkout", prefix_chars="\0", add_help=False)
    python.add_argument("arguments", nargs=argparse.REMAINDER)  # options, too, are Python's
    options = parser.parse_args()
    if unfit:
        parser.error(unfit)
    if options.command == "setup":
        missing = [name for name in place.programs if shutil.which(name) is None]
        if missing:
            parser.error(f"{', '.join(missing)}: not installed")
        place.setup()
        said = "import sys, platform, hloom; print(platform.platform(), sys.version.split()[0], hloom.__version__)"
        return place.run(["-c", said])
    if not place.python.exists():
        parser.error(f"run `python tools/{parser.prog} setup` first")
    return place.run(options.arguments) if options.command == "run" else place.check(options.files, options.goes_on)


def write_program(path: Path, text: str) -> None:
    """Write a script that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def starter(command: str, home: Path, packages: Path, *more: str) -> str:
    """A shell script that is Python, for processes that Python starts, too: `sys.executable` is its path. It runs the
    command after setting the home of Python's library, the path to hloom and to packages, and `more` variables."""
    path = f'PYTHONPATH="$HLOOM_CHECKOUT:{packages}${{PYTHONPATH:+:$PYTHONPATH}}"'
    exports = "".join(f"export {each}\n" for each in (f'PYTHONHOME="{home}"', path, *more))
    return f'#!/bin/bash\n{exports}exec {command} "$@"\n'
