"""The data of the page for a timeline in a file, which `hloom profile --timeline` or `hloom.profiler.trace` wrote.

A timeline has the rows that ran, their times, bytes and lines; it has no HLO. Anybody may have written the file: see
`sources.py` for the files that are read.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..hlo.ir import HloInstruction
from ..hlo.metadata import Metadata
from ..hlo.opcode import Opcode
from ..hlo.shape import Shape
from ..hlo.timeline.spans import Track
from .model import VERSION
from .sources import Sources
from .tables import Tables

_KINDS = {Track.KERNELS.value: "kernel", Track.LIBRARIES.value: "library", Track.COPIES.value: "copy"}
_MOST_BYTES = 1 << 30


def model_of_file(name: str) -> dict[str, Any]:
    """The data. OSError if the file cannot be read, ValueError if it is no timeline."""
    path = Path(name)
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        try:
            found = json.loads(file.read(_MOST_BYTES))
        except RecursionError:
            raise ValueError("its JSON is nested too deeply") from None
    events = found.get("traceEvents") if isinstance(found, dict) else None
    if not isinstance(events, list):
        raise ValueError("it has no traceEvents")
    events = [event for event in events if isinstance(event, dict)]
    return _model(path.name, events)


def _model(title: str, events: list[dict[str, Any]]) -> dict[str, Any]:
    tracks = {
        _process(event): _mapping(event.get("args")).get("name")
        for event in events
        if event.get("ph") == "M" and event.get("name") == "process_name"
    }
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    begun, ended = [], []
    for event in events:
        if event.get("ph") != "X":
            continue
        start, seconds = _number(event.get("ts")) / 1e6, _number(event.get("dur")) / 1e6
        begun.append(start)
        ended.append(start + seconds)
        kind = _KINDS.get(str(tracks.get(_process(event))))
        if kind is None or event.get("cat") == "piece":
            continue
        about = _mapping(event.get("args"))
        texts = [str(about.get(key, "")) for key in ("program", "instruction", "source", "op_name")]
        key = (str(event.get("name", "")), kind, *texts)
        row = rows.setdefault(key, {"calls": 0, "seconds": 0.0, "bytes": 0, "flops": 0})
        row["calls"] += 1
        row["seconds"] += seconds
        for amount in ("bytes", "flops"):
            value = about.get(amount)
            if isinstance(value, int) and row[amount] >= 0:
                row[amount] = value
    whole = max(ended, default=0.0) - min(begun, default=0.0)
    return _data(title, rows, whole)


def _data(title: str, rows: Mapping[tuple[str, ...], dict[str, Any]], whole: float) -> dict[str, Any]:
    sources = Sources(is_traced=False)
    sources.read(_stand_in(key[4]) for key in rows)
    shown, spent = [], dict[tuple[int, int], float]()
    for key, row in sorted(rows.items(), key=lambda item: -item[1]["seconds"]):
        part, line = sources.of_text(key[4])
        if part >= 0:
            spent[part, line] = spent.get((part, line), 0.0) + row["seconds"]
        program = f"{key[2]}: " if key[2] else ""
        share = row["seconds"] / whole if whole else 0.0
        shown.append(
            {
                "label": f"{program}{key[0]}", "kind": key[1], "instruction": -1, "kernel": -1, "source": part,
                "line": line, "share": share, "of_memory": None, "of_peak": None, **row,
            }
        )  # fmt: skip
    lines = [
        {"source": part, "line": line, "seconds": s, "share": s / whole if whole else 0.0}
        for (part, line), s in sorted(spent.items(), key=lambda item: -item[1])
    ]
    return {
        "version": VERSION,
        "title": title,
        "facts": [["recorded", f"{whole:,.3f} s"], ["rows", f"{len(shown):,}"]],
        "sources": sources.to_json(),
        **Tables(sources).to_json(),
        **{name: [] for name in ("stages", "passes", "kernels", "buffers", "arenas", "schedule")},
        "rows": shown,
        "profile": {"calls": 1, "seconds": whole, "machine": "", "lines": lines},
        "devices": None,
    }


def _stand_in(source: str) -> HloInstruction:
    """An instruction at ``file:line``."""
    path, _, line = source.rpartition(":")
    metadata = Metadata("", path, int(line) if line.isdecimal() else 0)
    return HloInstruction(Opcode.TUPLE, Shape.tuple(()), metadata=metadata)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _process(event: Mapping[str, Any]) -> str:
    return repr(event.get("pid"))


def _number(value: object) -> float:
    """The number, if JSON has it and a float can be it."""
    return float(value) if isinstance(value, int | float) and abs(value) <= sys.float_info.max else 0.0
