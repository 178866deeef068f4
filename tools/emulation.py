"""What the tools that run hloom on another processor or system share: Debian's packages and wheels for it, in a folder,
a copy of the checkout, and a table of tests that ran there.

Nothing here needs root: packages are unpacked, not installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MIRROR = "http://deb.debian.org/debian"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
SECONDS = 3600
"""A file of tests that takes longer is ended."""


def unpack_debian(folder: Path, architecture: str, packages: Sequence[str], suite: str = "trixie") -> None:
    """Download Debian's packages for an architecture with settings of apt's own, and unpack them into `folder`."""
    state = folder.with_name(f"{folder.name}-apt")
    for name in ("lists/partial", "cache/archives/partial", "debs"):
        (state / name).mkdir(parents=True, exist_ok=True)
    signed = f"signed-by={KEYS}" if os.path.exists(KEYS) else "trusted=yes"
    (state / "sources.list").write_text(f"deb [arch={architecture} {signed}] {MIRROR} {suite} main\n")
    (state / "status").write_text("")
    settings = {
        "APT::Architecture": architecture, "APT::Architectures::": architecture, "Acquire::Languages": "none",
        "Dir::Etc::sourcelist": state / "sources.list", "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": state / "lists", "Dir::State::status": state / "status", "Dir::Cache": state / "cache",
        "APT::Sandbox::User": "root",
    }  # fmt: skip
    options = ["-qq", "--yes", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}"))]
    subprocess.run(["apt-get", *options, "update"], check=True)
    subprocess.run(["apt-get", *options, "download", *packages], check=True, cwd=state / "debs")
    for package in sorted((state / "debs").glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)


def download_wheels(
    folder: Path, python: str, platforms: Sequence[str], wheels: Sequence[str], abi: str = "", whole: bool = True
) -> None:
    """Unpack wheels for a version of Python and the first of `platforms` that a wheel is for; without `whole`, none of
    those that they depend on."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), "--no-compile"]
    command += ["--only-binary=:all:", "--python-version", python, "--implementation", "cp"]
    command += [word for name in platforms for word in ("--platform", name)]
    command += ["--abi", abi] if abi else []
    command += [] if whole else ["--no-deps"]
    subprocess.run([*command, *wheels], check=True)


def install_wheels(folder: Path, python: str, platforms: Sequence[str], abi: str = "") -> None:
    """Unpack wheels of all that pyproject.toml names for hloom and its tests."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wheels = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    download_wheels(folder, python, platforms, wheels, abi)


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
    pytest: Sequence[str], checkout: Path, results: Path, tests: Sequence[str], environment: Mapping[str, str],
    goes_on: bool = False, end: Sequence[str] = (),
) -> int:  # fmt: skip
    """Run the command `pytest` on each file of `tests` in a process of its own, and print a row for each; 1 if a test
    failed. A process that the emulator ends is a row, too. `results` gets what the processes print.

    With `goes_on`, the row of a file that passed in an earlier check is that one's, with its commit. `end` is a command
    that ends the processes of a file that took too long.
    """
    results.mkdir(parents=True, exist_ok=True)
    print(f"{'passed':>6} {'failed':>6} {'skipped':>7} {'seconds':>7}  {'commit':<12}  file", flush=True)
    rows, failures, reasons = [], [], Counter[str]()
    for name in tests:
        stem = name.replace("/", ".").removesuffix(".py")
        report, log = results / f"{stem}.xml", results / f"{stem}.log"
        outcome = Outcome.read(report)
        if not (goes_on and outcome.commit and not outcome.failed):
            report.unlink(missing_ok=True)
            command = [*pytest, "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
            code = _run([*command, "-o", f"junit_suite_name={_commit()}", name], checkout, environment, log)
            if code == -1 and end:
                subprocess.run(end, env=environment)
            outcome = Outcome.read(report)
            if code not in (0, 1, 5) or not report.exists():
                report.unlink(missing_ok=True)
                outcome.failed.append(f"{name}: ended with {code}, see {log}")
        numbers = [outcome.passed, len(outcome.failed), sum(outcome.skipped.values()), round(outcome.seconds)]
        print("{:6} {:6} {:7} {:7}".format(*numbers) + f"  {outcome.commit:<12}  {name}", flush=True)
        rows.append(numbers)
        failures += outcome.failed
        reasons += outcome.skipped
    print("{:6} {:6} {:7} {:7}".format(*map(sum, zip(*rows))) + f"  {'':12}  {len(tests)} files")
    for reason, count in reasons.most_common():
        print(f"{count} skipped: {reason}")
    print("\n".join(failures))
    return 1 if failures else 0


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path) -> int:
    """Run a command with nobody at its terminal; its exit status, -1 where it took too long."""
    with log.open("w") as text:
        try:
            return subprocess.run(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=text, stderr=text,
                timeout=SECONDS,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            return -1


def _commit() -> str:
    """The commit that is checked out; with a + if files differ."""
    command = ["git", "describe", "--always", "--exclude=*", "--abbrev=8", "--dirty=+"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


@dataclass
class Outcome:
    """What became of the tests of a file: the names of those that failed, how many were skipped for which reason."""

    commit: str = ""
    passed: int = 0
    seconds: float = 0.0
    failed: list[str] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)

    @classmethod
    def read(cls, report: Path) -> Outcome:
        """Of a report in the format of JUnit, if there is one."""
        if not report.exists():
            return cls()
        suite = next(ElementTree.parse(report).getroot().iter("testsuite"))
        outcome = cls(suite.get("name", ""), seconds=float(suite.get("time", 0)))
        for case in suite.iter("testcase"):
            skipped = case.find("skipped")
            if skipped is not None:
                outcome.skipped[skipped.get("message", "")] += 1
            elif case.find("failure") is not None or case.find("error") is not None:
                outcome.failed.append(f"{case.get('classname')}::{case.get('name')}")
            else:
                outcome.passed += 1
        return outcome


def smoke_tests() -> list[str]:
    """The files of tests/smoke.txt."""
    return (ROOT / "tests" / "smoke.txt").read_text().split()
