#!/usr/bin/env python3
"""The wheel and the source distribution, the same bits on every machine, and their checks.

    python -m tools.distributions --to dist             # of the files that git has at HEAD; then both are checked

Needs the extra `release` of pyproject.toml. Modes and times do not come from the checkout: files are 0644 or 0755, and
the time is that of the commit, or $SOURCE_DATE_EPOCH (https://reproducible-builds.org/specs/source-date-epoch/).
setuptools keeps to it in a wheel, but not in a source distribution, so `repack` writes that again.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import stat
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"
CHECKS = (("twine", "check", "--strict"), ("check_wheel_contents", "--no-config"))
"""Modules that check: the first both files, the second the wheel."""


class CheckError(Exception):
    """A distribution that is not as it should be; the text says how."""


def export(root: Path, to: Path, commit: str = "HEAD") -> None:
    """Write the files of a commit."""
    to.mkdir(parents=True)
    packed = subprocess.run(["git", "archive", commit], cwd=root, capture_output=True, check=True, timeout=120).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        tar.extractall(to, filter="tar")


def time_of(root: Path, commit: str = "HEAD") -> int:
    """$SOURCE_DATE_EPOCH, or when the commit was made."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    command = ["git", "log", "-1", "--format=%ct", commit]
    return int(subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, timeout=60).stdout)


def settle_modes(folder: Path) -> None:
    """Give every file the mode that git knows: 0644, or 0755 if it can be run."""
    for path in folder.rglob("*"):
        if not path.is_symlink():
            can_run = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
            path.chmod(0o755 if can_run else 0o644)


def _run(kind: str, source: Path, to: Path, epoch: int, python: str) -> Path:
    command = [python, "-c", _BUILD, kind, str(to)]
    variables = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    ran = subprocess.run(
        command, cwd=source, capture_output=True, text=True, timeout=600, env=variables, umask=0o022
    )
    if ran.returncode:
        raise CheckError(f"{kind} in {source}: {ran.stderr[-3000:]}")
    return to / ran.stdout.splitlines()[-1]


def build_wheel(source: Path, to: Path, epoch: int, python: str = sys.executable) -> Path:
    """The wheel of a folder of sources. The interpreter must have setuptools; nothing is loaded from an index."""
    settle_modes(source)
    return _run("build_wheel", source, to, epoch, python)


def build_sdist(source: Path, to: Path, epoch: int, python: str = sys.executable) -> Path:
    """The source distribution of a folder of sources."""
    settle_modes(source)
    made = _run("build_sdist", source, to, epoch, python)
    repack(made, epoch)
    return made


def repack(sdist: Path, epoch: int) -> None:
    """Write a source distribution again: sorted, without owners, all files of one time."""
    content: dict[str, tuple[tarfile.TarInfo, bytes]] = {}
    with tarfile.open(sdist) as tar:
        for member in tar:
            file = tar.extractfile(member)
            if file is not None:
                content[member.name] = member, file.read()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, (member, data) in sorted(content.items()):
            kept = tarfile.TarInfo(name)
            kept.mode = 0o755 if member.mode & stat.S_IXUSR else 0o644
            kept.size, kept.mtime = len(data), epoch
            tar.addfile(kept, io.BytesIO(data))
    with sdist.open("wb") as out, gzip.GzipFile("", "wb", 9, out, mtime=epoch) as zipped:
        zipped.write(packed.getvalue())


def unpack(sdist: Path, to: Path) -> Path:
    """The folder of sources in it."""
    with tarfile.open(sdist) as tar:
        tar.extractall(to, filter="data")
    (folder,) = to.iterdir()
    return folder


def check(sdist: Path, wheel: Path, python: str = sys.executable) -> None:
    """Ask the tools that know the rules of the package index."""
    for module, *options in CHECKS:
        files = [str(wheel)] if module == "check_wheel_contents" else [str(sdist), str(wheel)]
        command = [python, "-m", module, *options, *files]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if ran.returncode:
            raise CheckError(f"{' '.join(command)}:\n{ran.stdout}{ran.stderr}")


def build(root: Path, to: Path, commit: str = "HEAD", python: str = sys.executable) -> tuple[Path, Path]:
    """Build and check both from a commit. The wheel is built from the commit's files and from the source distribution;
    CheckError if these differ."""
    epoch = time_of(root, commit)
    to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for other in ("first", "second"):
            export(root, work / other, commit)
        sdist = build_sdist(work / "first", to.resolve(), epoch, python)
        wheel = build_wheel(work / "second", to.resolve(), epoch, python)
        (work / "third").mkdir()
        again = build_wheel(unpack(sdist, work / "unpacked"), work / "third", epoch, python)
        if again.read_bytes() != wheel.read_bytes():
            raise CheckError("the wheel from the source distribution differs from that of the commit")
    check(sdist, wheel, python)
    return sdist, wheel


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--to", type=Path, default=ROOT / "dist", help="the folder, dist/ by default")
    options = parser.parse_args()
    try:
        made = build(ROOT, options.to)
    except CheckError as error:
        print(error, file=sys.stderr)
        return 1
    for path in made:
        print(f"{path}  {path.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
