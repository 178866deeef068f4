"""Checks that a document is in the Trace Event format, as far as it is used here."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_SLACK = 0.002
"""Rounding may move the end of a span by so many microseconds."""


def read_trace(path: Path) -> dict[str, Any]:
    """The document in a file, checked."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("ascii")
    document: dict[str, Any] = json.loads(text, parse_constant=_no_constant)
    check_trace(document)
    return document


def _no_constant(name: str) -> None:
    raise AssertionError(f"JSON has no {name}")


def check_trace(document: dict[str, Any]) -> None:
    """AssertionError that names the first event which breaks a rule."""
    events = document["traceEvents"]
    assert isinstance(events, list)
    named, processes = set(), set()
    for event in events:
        assert isinstance(event["name"], str), event
        event["name"].encode()  # no lone surrogates
        assert type(event["pid"]) is int and type(event["tid"]) is int and event["pid"] > 0, event
        assert isinstance(event.get("args", {}), dict), event
        match event["ph"]:
            case "M":
                assert event["name"] in ("process_name", "process_sort_index", "thread_name", "thread_sort_index")
                (value,) = event["args"].values()
                assert isinstance(value, str if event["name"].endswith("name") else int), event
                if event["name"] == "thread_name":
                    named.add((event["pid"], event["tid"]))
                elif event["name"] == "process_name":
                    processes.add(event["pid"])
            case "X":
                assert event["ts"] >= 0 and event["dur"] >= 0, event
            case "C":
                assert event["ts"] >= 0 and event["args"], event
                assert all(type(value) in (int, float) for value in event["args"].values()), event
            case other:
                raise AssertionError(f"an event of kind {other!r}: {event}")
    rows: dict[tuple[int, int], list[tuple[float, float, str]]] = {}
    for event in events:
        if event["ph"] == "X":
            row = rows.setdefault((event["pid"], event["tid"]), [])
            row.append((event["ts"], event["ts"] + event["dur"], event["name"]))
    assert rows.keys() <= named, "a row without a name"
    assert {process for process, _ in rows} <= processes, "a track without a name"
    for key, spans in rows.items():
        _check_nested(key, spans)


def _check_nested(key: tuple[int, int], spans: Sequence[tuple[float, float, str]]) -> None:
    """Of two spans in a row, one contains the other, or they are apart."""
    around: list[tuple[float, float, str]] = []
    for span in sorted(spans, key=lambda s: (s[0], -s[1])):
        while around and around[-1][1] <= span[0] + _SLACK:
            around.pop()
        assert not around or span[1] <= around[-1][1] + _SLACK, f"in row {key} {span} overlaps {around[-1]}"
        around.append(span)


def on_track(document: dict[str, Any], track: str) -> list[dict[str, Any]]:
    """The spans, or the numbers, of one track."""
    events = document["traceEvents"]
    numbers = [e["pid"] for e in events if e["name"] == "process_name" and e["args"]["name"] == track]
    return [e for e in events if e["pid"] in numbers and e["ph"] in "XC"]
