"""The table of a run of loops: medians, how many times as fast as each peer hloom is, means, and the slower cases."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .. import machine
from ..harness import Outcome
from ..report import NAMES, cell, markdown
from .case import Loop
from .measure import SUFFIX

PEERS = ("hloom", "jax", "numba", "numpy")
OTHERS = PEERS[1:]
SUBGROUPS = ("scalar", "vector", "in place", "triangular", "dynamic", "grid", "sampler", "filter", "network", "batch",
             "random", "while", "gradient")  # fmt: skip
COMPILE_LIMIT = 1.5
"""A case is listed if compiling takes more than so many times as long as in JAX."""


def table(outcomes: Sequence[Outcome], loops: Mapping[str, Loop], about: dict[str, Any]) -> str:
    """Above 1 in the columns "times as fast", hloom is faster; above 1 in the last one, it compiles longer."""
    runs = {outcome.name: outcome for outcome in outcomes if not outcome.name.endswith(SUFFIX)}
    compiled = {o.name.removesuffix(SUFFIX): o for o in outcomes if o.name.endswith(SUFFIX)}
    peers = [peer for peer in PEERS if any(run.samples.get(peer) for run in runs.values())]
    others = [peer for peer in OTHERS if peer in peers]
    rows = [["", *(NAMES[p] for p in peers), *(f"÷ {NAMES[p]}" for p in others), "compile", "JAX's", "ratio"]]
    for name, run in runs.items():
        speeds = [_shown(_speed(run, peer)) for peer in others]
        compiling = compiled.get(name, Outcome(name, ""))
        rows.append([
            name, *(cell(run.number(peer), "s") for peer in peers), *speeds,
            cell(compiling.number("hloom"), "s"), cell(compiling.number("jax"), "s"), _shown(_longer(compiling)),
        ])  # fmt: skip
    what = "best samples" if any(run.best for run in runs.values()) else "medians"
    lines = [markdown(rows), "", f"{what}; ÷: times as fast as the peer; ratio: times as long as JAX compiles", ""]
    lines += [markdown(_means(runs, loops, others)), ""]
    lines += _list("below 1.0x of JAX", {name: _speed(run, "jax") for name, run in runs.items()}, below=1.0)
    lines += _list("below 1.0x of Numba", {name: _speed(run, "numba") for name, run in runs.items()}, below=1.0)
    longer = {name: _longer(outcome) for name, outcome in compiled.items()}
    lines.append(f"compile time beside JAX's, geometric mean: {_shown(_mean(longer.values()))}")
    slow = sorted(((r, n) for n, r in longer.items() if r and r > COMPILE_LIMIT), reverse=True)
    lines.append(f"above {COMPILE_LIMIT}x ({len(slow)}): " + (", ".join(f"{n} {_shown(r)}" for r, n in slow) or "none"))
    return "\n".join([*lines, "", machine.line(about), *_notes(runs)])


def _notes(runs: Mapping[str, Outcome]) -> list[str]:
    """A line for each note, with the cases that have it; how noisy a case was stands after its name."""
    cases: dict[str, list[str]] = {}
    for name, outcome in runs.items():
        for note in outcome.notes:
            kind, noisy, share = note.partition("noisy: other processes took ")
            if noisy:
                cases.setdefault("other processes took", []).append(f"{name} {share.partition(' ')[0]}")
            else:
                cases.setdefault(kind, []).append(name)
    return [f"({note}: {'all cases' if names == [*runs] else ', '.join(names)})" for note, names in cases.items()]


def _means(runs: Mapping[str, Outcome], loops: Mapping[str, Loop], others: Sequence[str]) -> list[list[str]]:
    """Geometric means over all cases and over the cases of each tag."""
    groups = {"all": list(runs), "in place and triangular": _tagged(runs, loops, "in place", "triangular")}
    groups |= {tag: _tagged(runs, loops, tag) for tag in SUBGROUPS}
    rows = [["geometric mean of speed", "cases", *(f"÷ {NAMES[peer]}" for peer in others)]]
    for group, names in groups.items():
        if names:
            means = [_shown(_mean(_speed(runs[name], peer) for name in names)) for peer in others]
            rows.append([group, str(len(names)), *means])
    return rows


def _tagged(runs: Iterable[str], loops: Mapping[str, Loop], *tags: str) -> list[str]:
    return [name for name in runs if loops[name].tags & set(tags)]


def _speed(run: Outcome, peer: str) -> float | None:
    own, other = run.number("hloom"), run.number(peer)
    return other / own if own and other else None


def _longer(compiling: Outcome) -> float | None:
    own, other = compiling.number("hloom"), compiling.number("jax")
    return own / other if own and other else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value]
    return statistics.geometric_mean(known) if known else None


def _shown(value: float | None) -> str:
    """Two digits after the point; of a small number, two that are not zero."""
    return "" if value is None else f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def _list(title: str, speeds: Mapping[str, float | None], below: float) -> list[str]:
    known = {name: speed for name, speed in speeds.items() if speed is not None}
    slow = sorted((speed, name) for name, speed in known.items() if speed < below)
    if not known:
        return []
    return [f"{title} ({len(slow)} of {len(known)}): " + (", ".join(f"{n} {_shown(s)}" for s, n in slow) or "none")]
