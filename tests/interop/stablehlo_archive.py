"""The file of programs in StableHLO as JAX writes them: texts by the ids of `archive.py`, which has inputs and results.

A tar archive, compressed as a whole, with `<id>.mlir` for each. Reading it needs no JAX.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "data" / "stablehlo"
PATH = DATA / "jax_programs.tar.xz"


def write(texts: Mapping[str, str]) -> None:
    """Make the file."""
    DATA.mkdir(exist_ok=True)
    with tarfile.open(PATH, "w:xz", preset=9, format=tarfile.USTAR_FORMAT) as archive:
        for name, text in texts.items():
            data = text.encode()
            member = tarfile.TarInfo(f"{name}.mlir")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


@cache
def read() -> dict[str, str]:
    """The texts, by id."""
    found = {}
    with tarfile.open(PATH) as archive:
        for member in archive.getmembers():
            opened = archive.extractfile(member)
            assert opened is not None
            found[member.name.removesuffix(".mlir")] = opened.read().decode()
    return found
