"""What the tools that run hloom on another processor or system share: Debian's packages and wheels for it, in a folder,
a copy of the checkout, and a table of tests that ran there.

Nothing here needs root: packages are unpacked, not installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MIRROR = "http://deb.debian.org/debian"
SUITE = "trixie"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
SECONDS = 3600
"""A file of tests that takes longer is ended."""


def unpack_debian(folder: Path, architecture: str, packages: Sequence[str], needed: bool = False) -> None:
    """Download Debian's packages for an architecture with settings of apt's own, and unpack them into `folder`; with
    `needed`, also those that they depend on."""
    state = folder.with_name(f"{folder.name}-apt")
    for name in ("lists/partial", "cache/archives/partial", "debs"):
        (state / name).mkdir(parents=True, exist_ok=True)
    signed = f"signed-by={KEYS}" if os.path.exists(KEYS) else "trusted=yes"
    (state / "sources.list").write_text(f"deb [arch={architecture} {signed}] {MIRROR} {SUITE} main\n")
    (state / "status").write_text("")
    settings = {
        "APT::Architecture": architecture, "APT::Architectures::": architecture, "Acquire::Languages": "none",
        "Dir::Etc::sourcelist": state / "sources.list", "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": state / "lists", "Dir::State::status": state / "status", "Dir::Cache": state / "cache",
        "APT::Sandbox::User": "root",
    }  # fmt: skip
    options = ["-qq", "--yes", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}"))]
    subprocess.run(["apt-get", *options, "update"], check=True)
    found = state / "debs"
    if needed:
        found = state / "cache" / "archives"
        install = ["install", "--download-only", "--no-install-recommends", *packages]
        subprocess.run(["apt-get", *options, "-o", "Debug::NoLocking=true", *install], check=True)
    else:
        subprocess.run(["apt-get", *options, "download", *packages], check=True, cwd=found)
    for package in sorted(found.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)


def install_wheels(folder: Path, python: str, platforms: Sequence[str], more: Sequence[str] = ()) -> None:
    """Unpack wheels of all that pyproject.toml names for hloom and its tests, for a version of Python and the first of
    `platforms` that a wheel is for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wheels = [*project["dependencies"], *project["optional-dependencies"]["test"], *more]
    chosen = [word for name in platforms for word in ("--platform", name)]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), "--no-compile"]
    command += ["--only-binary=:all:", "--python-version", python, "--implementation", "cp", *chosen]
    subprocess.run([*command, *wheels], check=True)


def copy_checkout(target: Path) -> None:
    """Copy the files that git knows, or would add. Tests then run on a checkout that nobody changes: keys of the kernel
    store contain the package's files."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode()
    shutil.rmtree(target, ignore_errors=True)
    for name in filter(None, listed.split("\0")):
        if os.path.lexists(ROOT / name):  # it may be deleted, and still known
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name, follow_symlinks=False)
    shared = target.with_name("shared")
    if (ROOT.parent / "shared").is_dir() and not shared.exists():
        shared.symlink_to(ROOT.parent / "shared")


def check(
    pytest: Sequence[str], checkout: Path, results: Path, tests: Sequence[str], environment: Mapping[str, str]
) -> int:
    """Run the command `pytest` on each file of `tests` in a process of its own, and print a row for each; 1 if a test
    failed. A process that the emulator ends is a row, too. `results` gets what the processes print.
    """
    results.mkdir(parents=True, exist_ok=True)
    print(f"{'passed':>6} {'failed':>6} {'skipped':>7} {'seconds':>7}  file", flush=True)
    total, failures = [0, 0, 0, 0], []
    for name in tests:
        stem = Path(name).stem
        report, log = results / f"{stem}.xml", results / f"{stem}.log"
        report.unlink(missing_ok=True)
        command = [*pytest, "-q", "-p", "no:cacheprovider", f"--junitxml={report}", name]
        started = time.perf_counter()
        with log.open("w") as text:
            try:
                code = subprocess.run(
                    command, cwd=checkout, env=environment, stdin=subprocess.DEVNULL, stdout=text, stderr=text,
                    timeout=SECONDS,
                ).returncode  # fmt: skip
            except subprocess.TimeoutExpired:
                code = -1
        row, failed = _counts(report)
        if code not in (0, 1, 5) or not report.exists():
            failed.append(f"{name}: ended with {code}, see {log}")
            row[1] += 1
        row.append(round(time.perf_counter() - started))
        total = [a + b for a, b in zip(total, row)]
        failures += failed
        print("{:6} {:6} {:7} {:7}  ".format(*row) + name, flush=True)
    print("{:6} {:6} {:7} {:7}  ".format(*total) + f"{len(tests)} files")
    print("\n".join(failures))
    return 1 if failures else 0


def _counts(report: Path) -> tuple[list[int], list[str]]:
    """The numbers of tests that passed, failed and were skipped; the names of those that failed."""
    if not report.exists():
        return [0, 0, 0], []
    cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    skipped = [case for case in cases if case.find("skipped") is not None]
    names = [f"{case.get('classname')}::{case.get('name')}" for case in failed]
    return [len(cases) - len(failed) - len(skipped), len(failed), len(skipped)], names


def smoke_tests() -> list[str]:
    """The files of tests/smoke.txt."""
    return (ROOT / "tests" / "smoke.txt").read_text().split()
