"""Outcomes as a Markdown table and as JSON."""

from __future__ import annotations

import importlib
import statistics
from collections.abc import Sequence
from typing import Any

from . import machine
from .harness import Outcome

NAMES = {
    "hloom": "hloom", "hloom-tpu": "hloom, tpu", "hloom-recorded": "hloom, recorded", "jax": "JAX", "numpy": "NumPy",
    "numba": "Numba", "torch": "PyTorch", "torch.compile": "torch.compile", "iree": "IREE", "mlx": "MLX",
    "pytensor": "PyTensor", "pythran": "Pythran", "dace": "DaCe", "hloom scope": "hloom, scope",
    "hloom jit": "hloom, jit",
}  # fmt: skip
RATIOS = {
    "hloom ÷ JAX": ("hloom", "jax"), "tpu ÷ cpu": ("hloom-tpu", "hloom"),
    "recorded ÷ not": ("hloom-recorded", "hloom"),
}  # fmt: skip


def tables(outcomes: Sequence[Outcome], about: dict[str, Any]) -> str:
    """One table for each group."""
    parts = []
    for group in dict.fromkeys(outcome.group for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.group == group]
        if group == "loops":
            parts.append(_of_loops(own, about))
        else:
            parts.append(f"{group}\n\n{table(own, about)}" if group else table(own, about))
    return "\n\n".join(parts)


def _of_loops(outcomes: Sequence[Outcome], about: dict[str, Any]) -> str:
    loops = importlib.import_module("benchmarks.loops")
    summary = importlib.import_module("benchmarks.loops.summary")
    return summary.table(outcomes, loops.CASES, about)  # type: ignore[no-any-return]


def table(outcomes: Sequence[Outcome], about: dict[str, Any]) -> str:
    """Medians, and hloom's time (or memory) divided by JAX's: below 1, hloom is faster or smaller. Where two targets
    were measured, the second target's divided by the first's."""
    peers = [peer for peer in NAMES if any(outcome.samples.get(peer) for outcome in outcomes)]
    ratios = [name for name, (over, _) in RATIOS.items() if name == "hloom ÷ JAX" or over in peers]
    if "jax" not in peers and len(ratios) > 1:
        ratios.remove("hloom ÷ JAX")
    rows = [["", *(NAMES[peer] for peer in peers), *ratios]]
    for outcome in outcomes:
        cells = [cell(outcome.number(peer), outcome.unit) for peer in peers]
        rows.append([outcome.title, *cells, *(_ratio(outcome, *RATIOS[name]) for name in ratios)])
    notes = [f"{outcome.name}: {note}" for outcome in outcomes for note in outcome.notes]
    shared = [note for note in dict.fromkeys(n.partition(": ")[2] for n in notes) if _everywhere(note, outcomes)]
    notes = [note for note in notes if note.partition(": ")[2] not in shared] + shared
    return "\n".join([markdown(rows), "", machine.line(about), *(f"({note})" for note in notes)])


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table; the first row is its head, the first column its names."""
    rows = [rows[0], [":--", *(["--:"] * (len(rows[0]) - 1))], *rows[1:]]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = []
    for row in rows:
        padded = [text.ljust(widths[k]) if k == 0 else text.rjust(widths[k]) for k, text in enumerate(row)]
        lines.append("| " + " | ".join(padded) + " |")
    return "\n".join(lines)


def as_json(outcomes: Sequence[Outcome], about: dict[str, Any]) -> dict[str, Any]:
    """All samples, with four digits, so that other statistics can be computed later."""
    cases = []
    for outcome in outcomes:
        peers = {}
        for peer, samples in outcome.samples.items():
            quarters = statistics.quantiles(samples, n=4) if len(samples) > 1 else [samples[0]] * 3
            numbers = {
                "median": statistics.median(samples), "best": min(samples),
                "quartiles": [quarters[0], quarters[2]], "samples": samples,
            }  # fmt: skip
            peers[peer] = {name: _short(number) for name, number in numbers.items()}
            if peer in outcome.peak:
                peers[peer]["peak"] = outcome.peak[peer]
        cases.append({
            "name": outcome.name, "group": outcome.group, "title": outcome.title, "unit": outcome.unit,
            "best": outcome.best, "peers": peers, "notes": outcome.notes,
            "limit": {bound: _short(seconds) for bound, seconds in outcome.limit.items()},
        })  # fmt: skip
    return {"machine": about, "cases": cases}


def from_json(written: dict[str, Any]) -> tuple[list[Outcome], dict[str, Any]]:
    """The outcomes, and the machine."""
    outcomes = []
    for case in written["cases"]:
        samples = {peer: numbers["samples"] for peer, numbers in case["peers"].items()}
        peak = {peer: numbers["peak"] for peer, numbers in case["peers"].items() if "peak" in numbers}
        about = {name: case[name] for name in ("name", "group", "title", "unit", "best", "notes")}
        outcomes.append(Outcome(samples=samples, peak=peak, limit=case.get("limit", {}), **about))
    return outcomes, written["machine"]


def _short(number: Any) -> Any:
    return [_short(n) for n in number] if isinstance(number, list) else float(f"{number:.4g}")


def _everywhere(note: str, outcomes: Sequence[Outcome]) -> bool:
    return sum(note in outcome.notes for outcome in outcomes) > 2


def _ratio(outcome: Outcome, peer: str, other: str) -> str:
    over, under = outcome.number(peer), outcome.number(other)
    return f"{over / under:.2f}" if over and under else ""


def cell(value: float | None, unit: str) -> str:
    """A number with its unit; nothing for None."""
    if value is None:
        return ""
    if unit == "byte":
        return f"{value / 2**20:.0f} MiB"
    for scale, name in ((1e-6, "us"), (1e-3, "ms"), (1.0, "s")):
        if value < scale * 1000 or name == "s":
            shown = value / scale
            return f"{shown:.{max(0, 3 - len(str(int(shown))))}f} {name}"
    raise AssertionError("unreachable")
