"""The file of recorded cases: HLO texts, inputs and XLA's results. Reading it needs no JAX.

A tar archive, compressed as a whole because the texts are much alike: `index.json`, then for each case `<id>.hlo`, some
`<id>.optimized.hlo`, and `<id>.bin`, the bytes of its inputs and results in the index's order.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

PATH = Path(__file__).resolve().parent.parent / "data" / "interop.tar.xz"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A call of one JAX function."""

    id: str
    function: str
    """Its public name, below `jax.`."""
    text: str
    """The module as JAX lowers it."""
    optimized: str | None
    """The module after XLA's passes for the CPU, where that was recorded."""
    inputs: list[Array]
    outputs: list[Array]
    """XLA's results."""

    def __repr__(self) -> str:
        return self.id


def write(recorded: Sequence[Recorded]) -> None:
    """Make the file."""
    index = [
        {
            "id": one.id,
            "function": one.function,
            "inputs": [(str(a.dtype), a.shape) for a in one.inputs],
            "outputs": [(str(a.dtype), a.shape) for a in one.outputs],
        }
        for one in recorded
    ]
    with tarfile.open(PATH, "w:xz", preset=9, format=tarfile.USTAR_FORMAT) as archive:
        _add(archive, "index.json", json.dumps(index, indent=0).encode())
        for one in recorded:
            _add(archive, f"{one.id}.hlo", one.text.encode())
            if one.optimized is not None:
                _add(archive, f"{one.id}.optimized.hlo", one.optimized.encode())
            _add(archive, f"{one.id}.bin", b"".join(a.tobytes() for a in (*one.inputs, *one.outputs)))


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    """A member without date or owner."""
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


@cache
def read() -> dict[str, Recorded]:
    """All cases, by id."""
    with tarfile.open(PATH) as archive:
        members = {m.name: _bytes(archive, m) for m in archive.getmembers()}
    found = {}
    for entry in json.loads(members["index.json"]):
        name, data = entry["id"], members[f"{entry['id']}.bin"]
        arrays = []
        for kind, shape in entry["inputs"] + entry["outputs"]:
            dtype = np.dtype(getattr(ml_dtypes, kind, kind))
            size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
            arrays.append(np.frombuffer(data[:size], dtype).reshape(shape))
            data = data[size:]
        count = len(entry["inputs"])
        optimized = members.get(f"{name}.optimized.hlo")
        found[name] = Recorded(
            name, entry["function"], members[f"{name}.hlo"].decode(), optimized and optimized.decode(),
            arrays[:count], arrays[count:],
        )  # fmt: skip
    return found


def _bytes(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    opened = archive.extractfile(member)
    assert opened is not None
    return opened.read()
