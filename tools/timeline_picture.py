#!/usr/bin/env python3
"""A part of a timeline as a picture, for documents: what ui.perfetto.dev shows of a file that `hloom.profiler` wrote.

    python tools/timeline_picture.py timeline.json -o docs/images/timeline.png --step 40

Shown is one step (an event of the track "Steps"), or the time from --from to --to in milliseconds. Needs Matplotlib.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#9c755f")
LETTER = 0.0062
"""The width of a letter, in parts of the picture's width."""


def rows_of(events: list[dict[str, Any]]) -> list[tuple[str, int, int, int]]:
    """(label, process, thread, depth) of each line of the picture, from top to bottom."""
    names = {(e["name"], e["pid"], e["tid"]): e["args"] for e in events if e["ph"] == "M"}
    deepest: dict[tuple[int, int], int] = {}
    for event in events:
        if event["ph"] == "X":
            key = event["pid"], event["tid"]
            deepest[key] = max(deepest.get(key, 0), event["depth"])
    order = sorted(deepest, key=lambda key: (key[0], names["thread_sort_index", *key]["sort_index"]))
    found = []
    for process, thread in order:
        track = names["process_name", process, 0]["name"]
        label = f"{track}\n{names['thread_name', process, thread]['name']}"
        depths = range(deepest[process, thread] + 1)
        found += [("" if depth else label, process, thread, depth) for depth in depths]
    return found


def with_depth(spans: list[dict[str, Any]]) -> None:
    """Say of each span in how many others of its row it is."""
    around: dict[tuple[int, int], list[float]] = {}
    for span in sorted(spans, key=lambda s: (s["ts"], -s["dur"])):
        ends = around.setdefault((span["pid"], span["tid"]), [])
        while ends and ends[-1] <= span["ts"] + 1e-3:
            ends.pop()
        span["depth"] = len(ends)
        ends.append(span["ts"] + span["dur"])


def draw(document: dict[str, Any], start: float, end: float, path: Path) -> None:
    """The spans between two times, in microseconds."""
    spans = [
        e for e in document["traceEvents"]
        if e["ph"] == "X" and e["ts"] < end and e["ts"] + e["dur"] > start and e["dur"] > (end - start) / 2000
    ]  # fmt: skip
    with_depth(spans)
    rows = rows_of([*(e for e in document["traceEvents"] if e["ph"] == "M"), *spans])
    place = {row[1:]: number for number, row in enumerate(rows)}
    figure, axes = plt.subplots(figsize=(12, 0.34 * len(rows) + 0.7), layout="constrained")
    colours: dict[str, str] = {}
    for span in spans:
        left, right = max(span["ts"], start), min(span["ts"] + span["dur"], end)
        y = place[span["pid"], span["tid"], span["depth"]]
        colour = colours.setdefault(span["name"], COLOURS[len(colours) % len(COLOURS)])
        axes.barh(y, right - left, left=left - start, height=0.86, color=colour, edgecolor="white", linewidth=0.4)
        letters = int((right - left) / (end - start) / LETTER)
        if letters >= 4:
            name = span["name"]
            shown = name if len(name) <= letters else name[: letters - 1] + "\N{HORIZONTAL ELLIPSIS}"
            axes.text((left + right) / 2 - start, y, shown, ha="center", va="center", fontsize=7, color="white")
    axes.set_yticks(range(len(rows)), [row[0] for row in rows], fontsize=7)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, end - start)
    axes.set_xlabel("microseconds", fontsize=8)
    axes.tick_params(axis="x", labelsize=7)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    for number, row in enumerate(rows):
        if number and row[3] == 0:
            axes.axhline(number - 0.5, color="#cccccc", linewidth=0.5)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--step", type=int, help="the number of a step")
    parser.add_argument("--from", dest="start", type=float, help="milliseconds")
    parser.add_argument("--to", dest="end", type=float, help="milliseconds")
    options = parser.parse_args()
    document = json.loads(options.file.read_text())
    if options.step is None:
        draw(document, options.start * 1e3, options.end * 1e3, options.output)
        return
    tracks = {e["pid"] for e in document["traceEvents"] if e["name"] == "process_name" and e["args"]["name"] == "Steps"}
    (step,) = [
        e for e in document["traceEvents"]
        if e["ph"] == "X" and e["pid"] in tracks and e["args"].get("step_num") == options.step
    ]  # fmt: skip
    draw(document, step["ts"], step["ts"] + step["dur"], options.output)


if __name__ == "__main__":
    main()
