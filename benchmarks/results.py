"""`RESULTS.md`, from the JSON file of a run: `python -m benchmarks.results [FILE]`; `--join FILE PART...` makes one
file of runs that are parts of a table.

Every row that was measured is on the page. `TARGETS` are the goals; the page says which of them the run met. The
tables of the README and of `docs/measured.md` are made of the same run: `TABLES`, each between two comments.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from . import groups, machine, plot, report, startup
from .harness import Outcome
from .large import PROGRAMS
from .table import every as table

HERE = Path(__file__).resolve().parent
JSON, LARGE_JSON, PROGRAMS_JSON = "results.json", "large.json", "programs.json"
PAGE, PLOT = "RESULTS.md", "ratios.svg"
PEERS = ("jax", "numpy", "numba", "torch", "torch.compile", "iree", "mlx", "pytensor", "pythran")
PROGRAM_PEERS = ("jax", "numba", "pythran", "dace")
"""The peers of the programs of others."""
BEST = "the best"
"""Of all peers that measured a row, the quickest."""
NAMES = report.NAMES | {BEST: "the best of all"}
STEADY = tuple(name for name in table.GROUPS if name != "dispatch")
"""The groups of programs: all but those that measure a call, a compilation, a start."""
FUSED = ("chains", "reductions", "normalisations", "cumulative", "stencils", "movement")
LEAST = 0.95
BESIDE_JAX: dict[str, tuple[str, ...]] = {
    "all programs": STEADY,
    "elementwise, reductions, stencils": FUSED,
    "matrix products, convolutions": ("products", "convolutions"),
    "loops over small state": ("chosen loops",),
    "training steps of networks": ("training",),
    "tracing, compiling, new sizes, start": ("latency", "start"),
    "memory of a training process": ("memory",),
}
"""The lines of the README's table, and their groups."""


@dataclass(frozen=True)
class Target:
    """`value(run)` is compared with `bound`; None where the peer is missing."""

    what: str
    bound: float
    at_least: bool
    value: Callable[[Run], float | None]
    reason: str = ""
    """The reason for a missed target, if it is known."""
    unit: str = "x"
    prefix: str = ""
    """For the worst value of several cases: how their names start. The page lists those that miss the target."""

    def met(self, run: Run) -> bool | None:
        value = self.value(run)
        return None if value is None else value >= self.bound if self.at_least else value <= self.bound


class Run:
    """Outcomes, and ratios of them."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self.outcomes = outcomes
        self.by_name = {outcome.name: outcome for outcome in outcomes}

    def of(self, *names: str) -> list[Outcome]:
        """The outcomes of groups."""
        return [outcome for outcome in self.outcomes if outcome.group in names]

    def mean(self, outcomes: Iterable[Outcome], peer: str) -> float | None:
        """How many times as fast as the peer hloom is, geometric mean."""
        known = [ratio for outcome in outcomes if (ratio := speed(outcome, peer))]
        return statistics.geometric_mean(known) if known else None

    def least(self, outcomes: Iterable[Outcome], peer: str) -> float | None:
        return min((ratio for outcome in outcomes if (ratio := speed(outcome, peer))), default=None)

    def part(self, prefix: str, worst: bool = False) -> float | None:
        """hloom's time (or memory) as part of JAX's, of the outcomes of this name: the mean, or the worst."""
        found = [outcome for outcome in self.outcomes if outcome.name.startswith(prefix)]
        value = self.least(found, "jax") if worst else self.mean(found, "jax")
        return 1 / value if value else None

    def microseconds(self, name: str) -> float | None:
        own = self.by_name[name].number("hloom") if name in self.by_name else None
        return own * 1e6 if own else None


def best(outcome: Outcome) -> str | None:
    """The peer with the smallest number; None if no peer was measured."""
    known = [peer for peer in dict.fromkeys((*PEERS, *PROGRAM_PEERS)) if outcome.number(peer)]
    return min(known, key=lambda peer: outcome.number(peer) or 0.0, default=None)


def speed(outcome: Outcome, peer: str) -> float | None:
    """How many times as fast as the peer (or `BEST`) hloom is, or how many times as little memory it takes."""
    found = best(outcome) if peer == BEST else peer
    own, other = outcome.number("hloom"), found and outcome.number(found)
    return other / own if own and other else None


def share(outcome: Outcome) -> str:
    """The machine's limit as part of hloom's time, and what the limit is."""
    own = outcome.number("hloom")
    if not own or not outcome.limit:
        return ""
    bound = max(outcome.limit, key=outcome.limit.__getitem__)
    return f"{outcome.limit[bound] / own:.0%} ({bound})"


TARGETS: tuple[Target, ...] = (
    Target("JAX, all steady cases, mean", 2.0, True, lambda run: run.mean(run.of(*STEADY), "jax")),
    Target("the best of all peers, all steady cases, mean", 1.6, True, lambda run: run.mean(run.of(*STEADY), BEST)),
    Target("the best of all peers, the worst steady case", LEAST, True, lambda run: run.least(run.of(*STEADY), BEST)),
    Target("JAX, the worst steady case", LEAST, True, lambda run: run.least(run.of(*STEADY), "jax")),
    Target("hand-written Numba, all steady cases, mean", 1.2, True, lambda run: run.mean(run.of(*STEADY), "numba")),
    Target("torch.compile, fused kernels, mean", 1.0, True, lambda run: run.mean(run.of(*FUSED), "torch.compile")),
    Target("PyTorch, convolutions, mean", 1.0, True, lambda run: run.mean(run.of("convolutions"), "torch")),
    Target("compiling the MLP step, part of JAX's time", 0.6, False, lambda run: run.part("compile-mlp")),
    Target("compiling with no kernel known, part of JAX's time, mean", 1.5, False, lambda run: run.part("compile-")),
    Target("first call, nothing stored, part of JAX's, worst", 1.0, False, lambda run: run.part("cold-", True)),
    Target(
        "first call, all stored, part of JAX's, worst", 0.5, False, lambda run: run.part("warm-", True),
        prefix="warm-",
    ),
    Target(
        "another size, part of JAX's time, worst", 0.1, False, lambda run: run.part("new-shape-", True),
        "no kernel is compiled: what is left is tracing, passes and buffers", prefix="new-shape-",
    ),
    Target(
        "memory of training steps, part of JAX's, worst", 0.3, False, lambda run: run.part("memory-", True),
        prefix="memory-",
    ),
    Target("call with its own arrays, us", 1.1, False, lambda run: run.microseconds("dispatch"), unit=""),
    Target("call with NumPy arguments, us", 2.5, False, lambda run: run.microseconds("dispatch-numpy"), unit=""),
    Target("10 arrays in dictionaries, us", 11.2, False, lambda run: run.microseconds("dispatch-tree"), unit=""),
)  # fmt: skip


def page(outcomes: Sequence[Outcome], about: dict[str, Any]) -> str:
    """The text of the page."""
    run = Run([outcome for outcome in outcomes if outcome.samples.get("hloom")])
    peers = [peer for peer in PEERS if any(outcome.samples.get(peer) for outcome in outcomes)]
    missing = [report.NAMES[peer] for peer in PEERS if peer not in peers]
    best = any(outcome.best for outcome in outcomes)
    parts = [
        "# Results",
        "From `python -m benchmarks --write`; `benchmarks/table/` says what each row computes, and `results.json` has "
        f"all samples. {'The best of many short samples' if best else 'Medians'} of rounds in which the peers take "
        "turns. Each peer is a process of its own, stopped while others run; results are compared before anything is "
        "timed. “÷” is the peer's time divided by hloom's: above 1, hloom is faster.",
        machine.line(about),
        f"Not installed, so not measured: {', '.join(missing)}." if missing else "",
        "## Targets", report.markdown(_targets(run)),
        "## Geometric means", report.markdown(_means(run, [*peers, BEST])), f"![ratios of all cases]({PLOT})",
        f"## Below {LEAST} of a peer", _behind(run, [BEST, *peers]),
    ]  # fmt: skip
    for group in dict.fromkeys(outcome.group for outcome in outcomes):
        parts += [f"## {group[0].upper()}{group[1:]}", _group([o for o in outcomes if o.group == group], peers)]
    noisy = [outcome.name for outcome in outcomes if any(note.startswith("noisy") for note in outcome.notes)]
    if noisy:
        parts.append(
            f"Other processes used the machine during {len(noisy)} of {len(outcomes)} cases: {', '.join(noisy)}."
        )
    return "\n\n".join(part for part in parts if part) + "\n"


def _targets(run: Run) -> list[list[str]]:
    rows = [["", "target", "measured", ""]]
    for target in TARGETS:
        value, met = target.value(run), target.met(run)
        sign = "at least" if target.at_least else "at most"
        verdict = "not measured" if met is None else "met" if met else _missed(target, run)
        shown = "" if value is None else f"{value:.2f}{target.unit}"
        rows.append([target.what, f"{sign} {target.bound:g}{target.unit}", shown, verdict])
    return rows


def _missed(target: Target, run: Run) -> str:
    """The note on a missed target: the cases that miss it, if it is on the worst of several, and the reason."""
    names = []
    if target.prefix:
        cases = [o for o in run.outcomes if o.name.startswith(target.prefix) and speed(o, "jax")]
        names = [o.name.removeprefix(target.prefix) for o in cases if 1 / (speed(o, "jax") or 1) > target.bound]
    why = [part for part in (", ".join(names), target.reason) if part]
    return ": ".join(["missed", "; ".join(why)] if why else ["missed"])


def _means(run: Run, peers: Sequence[str]) -> list[list[str]]:
    rows = [["times as fast as", "cases", *(NAMES[peer] for peer in peers)]]
    lines: dict[str, list[Outcome]] = {"all steady cases": run.of(*STEADY)}
    lines |= {group: run.of(group) for group in groups.TABLE}
    for name, outcomes in lines.items():
        if outcomes:
            rows.append([name, str(len(outcomes)), *(_shown(run.mean(outcomes, peer)) for peer in peers)])
    return rows


def _behind(run: Run, peers: Sequence[str]) -> str:
    lines = []
    for peer in peers:
        known = [(ratio, o.name) for o in run.outcomes if (ratio := speed(o, peer)) is not None]
        slow = sorted(pair for pair in known if pair[0] < LEAST)
        names = ", ".join(f"{name} {_shown(ratio)}{_of(run, name, peer)}" for ratio, name in slow) or "none"
        lines.append(f"* {NAMES[peer]} ({len(slow)} of {len(known)}): {names}")
    return "\n".join(lines)


def _of(run: Run, name: str, peer: str) -> str:
    """Which peer is the best one."""
    found = best(run.by_name[name]) if peer == BEST else None
    return f" ({report.NAMES[found]})" if found else ""


def _group(outcomes: Sequence[Outcome], peers: Sequence[str]) -> str:
    own = [peer for peer in peers if any(outcome.samples.get(peer) for outcome in outcomes)]
    limits = ["of the limit"] if any(outcome.limit for outcome in outcomes) else []
    head = [*(report.NAMES[p] for p in own), *(f"÷ {report.NAMES[p]}" for p in own), "best peer", "÷ best", *limits]
    rows = [["", "hloom", *head]]
    for outcome in outcomes:
        times = [report.cell(outcome.number(peer), outcome.unit) for peer in ("hloom", *own)]
        title = outcome.title.replace("*", "\\*")  # no emphasis
        found = best(outcome)
        cells = [*(_shown(speed(outcome, peer)) for peer in own), report.NAMES[found] if found else ""]
        cells += [_shown(speed(outcome, BEST)), *([share(outcome)] if limits else [])]
        rows.append([f"{title} ({outcome.name})", *times, *cells])
    notes: dict[str, list[str]] = {}
    for outcome in outcomes:
        for note in outcome.notes:
            if not note.startswith("noisy") and not note.endswith("not installed"):
                notes.setdefault(note, []).append(outcome.name)
    return "\n\n".join([report.markdown(rows), *(f"{', '.join(names)}: {note}." for note, names in notes.items())])


def _shown(value: float | None) -> str:
    return (
        "" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    )


def _jax(outcomes: Sequence[Outcome], about: dict[str, Any]) -> str:
    """The README's table: means, and the slowest case of each line."""
    run = Run(outcomes)
    versions = {name: version.split()[0] for name, version in (about["versions"] | about.get("peers", {})).items()}
    rows = [["", "cases", f"times as fast as JAX {versions.get('jax', '')}".rstrip(), "the slowest case"]]
    for name, names in BESIDE_JAX.items():
        known = [(ratio, o.name) for o in run.of(*names) if (ratio := speed(o, "jax")) is not None]
        if known:
            slowest, case = min(known)
            mean = statistics.geometric_mean(ratio for ratio, _ in known)
            rows.append([name, str(len(known)), _shown(mean), f"{_shown(slowest)} ({case})"])
    cores = f"{about['processor']}, {about['cores']} cores, {about['memory_gib']} GiB"
    return f"{report.markdown(rows)}\n\nGeometric means; hloom {versions['hloom']}, {cores}."


def _peers(outcomes: Sequence[Outcome], about: dict[str, Any]) -> str:
    """The means beside all peers, and the machine."""
    peers = [peer for peer in PEERS if any(outcome.samples.get(peer) for outcome in outcomes)]
    return f"{report.markdown(_means(Run(outcomes), [*peers, BEST]))}\n\n{machine.line(about)}"


def _large(outcomes: Sequence[Outcome], about: dict[str, Any]) -> str:
    """A line for each large program: hloom's measures, and JAX's as multiples of them."""
    measures = {"first": "first call", "new-shape": "another size", "step": "a step", "peak": "most memory"}
    head = [cell for measure in measures.values() for cell in (measure, "JAX ÷ hloom")]
    rows = [["", *head]]
    by_name = {outcome.name: outcome for outcome in outcomes}
    for name, program in PROGRAMS.items():
        found = [by_name.get(f"{measure}-{name}") for measure in measures]
        if any(found):
            rows.append([program.title, *chain.from_iterable(map(_beside_jax, found))])
    late = [
        f"{PROGRAMS[name].title}: {note}."
        for name in PROGRAMS
        if (first := by_name.get(f"first-{name}"))
        for note in first.notes
        if startup.LATE in note
    ]
    return "\n\n".join([report.markdown(rows), *late, machine.line(about)])


def _programs(outcomes: Sequence[Outcome], about: dict[str, Any]) -> str:
    """The means of each group of programs of others, in parentheses of how many, and the programs in which a peer is
    faster."""
    run = Run(outcomes)
    peers = [peer for peer in PROGRAM_PEERS if any(outcome.samples.get(peer) for outcome in outcomes)]
    rows = [["times as fast as", "programs", *(NAMES[peer] for peer in [*peers, BEST]), f"below {LEAST} of the best"]]
    behind = []
    for group in groups.PROGRAMS:
        own = run.of(group)
        slow = sorted((ratio, o.name) for o in own if (ratio := speed(o, BEST)) is not None and ratio < LEAST)
        if own:
            means = (_mean_of_some(run, own, peer) for peer in [*peers, BEST])
            rows.append([group, str(len(own)), *means, str(len(slow))])
        if slow:
            names = (f"{n.removeprefix(group + '-')} {_shown(ratio)}{_of(run, n, BEST)}" for ratio, n in slow)
            behind.append(f"* {group}: {', '.join(names)}")
    return "\n\n".join([report.markdown(rows), "\n".join(behind), machine.line(about)])


def _mean_of_some(run: Run, outcomes: Sequence[Outcome], peer: str) -> str:
    """The mean, and of how many, if the peer has not all."""
    count = sum(speed(outcome, peer) is not None for outcome in outcomes)
    return _shown(run.mean(outcomes, peer)) + (f" ({count})" if 0 < count < len(outcomes) else "")


def _beside_jax(outcome: Outcome | None) -> list[str]:
    if outcome is None:
        return ["", ""]
    return [report.cell(outcome.number("hloom"), outcome.unit), _shown(speed(outcome, "jax"))]


@dataclass(frozen=True)
class Table:
    """A table of a document, and the file of the run that it shows; None: the run that the page shows."""

    text: Callable[[Sequence[Outcome], dict[str, Any]], str]
    source: str | None = None


TABLES = {
    "jax": Table(_jax), "peers": Table(_peers), "large": Table(_large, LARGE_JSON),
    "programs": Table(_programs, PROGRAMS_JSON),
}  # fmt: skip
"""What stands between `<!-- made by benchmarks/results.py: NAME -->` and `<!-- end -->`."""
DOCUMENTS = ("README.md", "docs/measured.md")
_TABLE = re.compile(
    r"(?P<begin><!-- made by benchmarks/results\.py: (?P<name>\w+) -->\n).*?(?P<end><!-- end -->)", re.DOTALL
)


def with_tables(text: str, outcomes: Sequence[Outcome], about: dict[str, Any]) -> str:
    """A document with the tables of this run, and of the runs of other groups."""

    def made(match: re.Match[str]) -> str:
        table = TABLES[match["name"]]
        found = (outcomes, about) if table.source is None else read(HERE / table.source)
        known = [outcome for outcome in found[0] if outcome.samples.get("hloom")]
        return f"{match['begin']}\n{table.text(known, found[1])}\n\n{match['end']}"

    return _TABLE.sub(made, text)


def read(source: Path) -> tuple[list[Outcome], dict[str, Any]]:
    """The outcomes of a run and its machine, from its JSON file."""
    return report.from_json(json.loads(source.read_text()))


def join(sources: Sequence[Path]) -> dict[str, Any]:
    """One file of several runs, with each peer's median (or best) as its only sample; of a row, the last run counts."""
    outcomes: dict[str, Outcome] = {}
    about: dict[str, Any] = {}
    for found, machine_of in map(read, sources):
        about = machine_of | {"peers": about.get("peers", {}) | machine_of.get("peers", {})}
        for o in found:
            numbers = {peer: [number] for peer in o.samples if (number := o.number(peer)) is not None}
            outcomes[o.name] = replace(o, samples=numbers, peak={})
    order = {name: k for k, name in enumerate(groups.NAMES)}
    return report.as_json(sorted(outcomes.values(), key=lambda o: (order.get(o.group, 0), o.name)), about)


def write(source: Path) -> None:
    """The page and the plot, beside this file, and the tables in `DOCUMENTS`."""
    outcomes, about = read(source)
    (HERE / PAGE).write_text(page(outcomes, about))
    for document in (HERE.parent / name for name in DOCUMENTS):
        document.write_text(with_tables(document.read_text(), outcomes, about))
    shown = [o for o in outcomes if o.group in table.GROUPS]
    peers = [peer for peer in PEERS if any(o.samples.get(peer) for o in shown)]
    (HERE / PLOT).write_text(plot.ratios(shown, peers, speed))


def main(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["--join"]:
        target, *sources = map(Path, arguments[1:])
        target.write_text(json.dumps(join(sources), indent=1) + "\n")
    else:
        write(Path(arguments[0]) if arguments else HERE / JSON)


if __name__ == "__main__":
    main(sys.argv[1:])
