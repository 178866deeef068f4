"""The data of the page: all stages of a program, with what became of each instruction, as one JSON object.

    title, facts                the head
    sources                     the user's lines
    strings, instructions,      the tables; ids are positions in them
    computations
    stages, passes              the program before and after each pass that changed it; all passes
    kernels, rows               the last stage as code: texts, and the steps of the program, perhaps with times
    buffers, arenas, schedule   its memory over time
    profile, devices            null where there is none

`VERSION` changes when the page must change with it.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..hlo.analyses.communication import communication_analysis
from ..hlo.ir import HloInstruction, HloModule
from ..hlo.kernel_texts import KernelText
from ..hlo.passes.history import AppliedRule, Stage
from ..hlo.passes.rewrite import fused_computations
from ..hlo.passes.rewrite_text import ShownNames
from ..hlo.text.printer import operation_text
from ..hlo.timeline.work import Work
from ..version import __version__
from .inspection import Inspection
from .memory import buffers_of
from .running import Times
from .sources import Sources
from .tables import FEW_ELEMENTS, Tables

VERSION = 1
TRACED = "traced"
"""The name of the stage before all passes."""
_MOST_ADDED = 40
"""The most new instructions of a rule whose text is shown."""
_LIBRARIES = {"callback": "library", "gemm": "product", "native_loop": "loop", "long": "kernel"}


def model_of(program: Inspection) -> dict[str, Any]:
    """The data of one program."""
    sources = Sources(program.is_traced)
    modules = [program.first, *(stage.after for stage in program.history.stages)]
    sources.read(i for module in modules for i in module.instructions())
    tables = Tables(sources)
    stages = [_stage(TRACED, None, program.first, tables, {})]
    stages += [_changed(stage, tables) for stage in program.history.stages]
    last = modules[-1]
    ids = {i.name: tables.id(i) for i in last.instructions()}
    kernels, rows = _code(program, ids, sources)
    return {
        "version": VERSION,
        "title": program.title,
        "facts": _facts(program, last),
        "sources": sources.to_json(),
        **tables.to_json(),
        "stages": stages,
        "passes": _passes(program),
        "kernels": kernels,
        "rows": rows,
        **buffers_of(program.executable.memory_analysis().report, ids),
        "profile": _profile(program.times, rows),
        "devices": _devices(program, ids),
    }


def to_text(data: Mapping[str, Any]) -> str:
    """The JSON text: only ASCII, and no number that JSON does not have."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False)


def _stage(
    name: str, milliseconds: float | None, module: HloModule, tables: Tables, origins: Mapping[HloInstruction, Any]
) -> dict[str, Any]:
    numbers = tables.add(module.computations, origins)
    return {
        "name": name,
        "milliseconds": None if milliseconds is None else round(milliseconds, 3),
        "entry": tables.computation_id(module.entry),
        "computations": numbers[::-1],
        "fused": sorted(tables.computation_id(c) for c in fused_computations(module)),
        "rules": [],
        "merged": [],
    }


def _changed(stage: Stage, tables: Tables) -> dict[str, Any]:
    found = _stage(stage.name, stage.milliseconds, stage.after, tables, stage.origins)
    names = _FinalNames()
    now = frozenset(stage.after.instructions())
    found["rules"] = [_rule(rule, tables, names, now) for rule in stage.rules]
    found["merged"] = [[tables.id(gone), tables.id(kept)] for gone, kept in stage.merged.items()]
    return found


class _FinalNames(ShownNames):
    """The names that a rule's new instructions have after the pass."""

    def __init__(self) -> None:
        super().__init__()
        self.final: dict[HloInstruction, HloInstruction] = {}

    def of_instruction(self, instruction: HloInstruction) -> str:
        return super().of_instruction(self.final.get(instruction, instruction))


def _rule(
    rule: AppliedRule, tables: Tables, names: _FinalNames, now: frozenset[HloInstruction]
) -> dict[str, Any]:
    made = rule.application
    names.final.update({i: new for i, new in zip(rule.added, rule.after, strict=True) if new is not None})
    lines = [f"- {_line(made.before, names)}", *(f"+ {_line(i, names)}" for i in rule.added[:_MOST_ADDED])]
    if len(rule.added) > _MOST_ADDED:
        lines.append(f"+ ... {len(rule.added) - _MOST_ADDED} more")
    if not rule.added:
        lines.append(f"= %{names.of_instruction(made.after)}")
    before = tables.known(rule.before)
    after = [i for i in rule.after if i is not None] or [made.after]
    return {
        "rule": tables.strings.number(made.rule),
        "computation": tables.strings.number(made.computation),
        "before": before[0] if before else -1,
        "after": tables.known(i for i in after if i in now),
        "text": "\n".join(lines),
    }


def _line(instruction: HloInstruction, names: ShownNames) -> str:
    return f"%{names.of_instruction(instruction)} = {operation_text(instruction, names, FEW_ELEMENTS)}"


def _passes(program: Inspection) -> list[dict[str, Any]]:
    """All passes, and the stages of the backend after them, which record no history."""
    recorded = list(program.history.records)
    ran = {id(record) for record in recorded}
    others = [r for r in program.executable.passes() if id(r) not in ran]
    return [
        {
            "name": record.name,
            "milliseconds": round(record.milliseconds, 3),
            "before": record.instructions_before,
            "after": record.instructions_after,
            "changed": record.changed,
            "rules": dict(record.rewrites),
        }
        for record in [*recorded, *others]
    ]


def _facts(program: Inspection, last: HloModule) -> list[list[str]]:
    first, memory = program.first, program.executable.memory_analysis()
    devices = last.replica_count * last.num_partitions
    facts = [
        ("instructions", f"{_count(first):,} → {_count(last):,}"),
        ("kernels", f"{len(program.executable.kernels()):,}"),
        ("arguments", _bytes(memory.argument_size_in_bytes)),
        ("results", _bytes(memory.output_size_in_bytes)),
        ("temporaries", _bytes(memory.temp_size_in_bytes)),
        ("compiled in", f"{program.seconds * 1e3:,.0f} ms"),
        ("devices", program.mesh or str(devices)),
        ("backend", f"{type(program.executable).__name__.removesuffix('Executable').lower()}, hloom {__version__}"),
    ]
    if program.times is not None:
        facts.insert(0, ("a call", f"{program.times.seconds * 1e3:,.3f} ms"))
    return [list(fact) for fact in facts]


def _count(module: HloModule) -> int:
    return sum(len(c.instructions) for c in module.computations)


def _bytes(count: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count} bytes"


def _code(
    program: Inspection, ids: Mapping[str, int], sources: Sources
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The kernels, and the rows of the program."""
    kernels, uses = [], dict[str, list[tuple[int, str]]]()
    for number, (name, text) in enumerate(program.executable.kernels().items()):
        known = text if isinstance(text, KernelText) else KernelText(text, (), (name,))
        users = list(dict.fromkeys([u.partition(" ")[0] for u in known.instructions]))
        for user in users:
            uses.setdefault(user, []).append((number, text))
        kernels.append(
            {
                "name": name,
                "text": text.strip(),
                "algorithm": None if known.algorithm is None else str(known.algorithm),
                "schedule": [str(step) for step in known.schedule],
                "instructions": [ids[user] for user in users if user in ids],
            }
        )
    works = program.executable.rows()
    alike = Counter((work.name, work.instruction, work.source) for work in works)
    return kernels, [_row(work, uses, ids, sources, program.times, alike) for work in works]


def _row(
    work: Work, uses: Mapping[str, Sequence[tuple[int, str]]], ids: Mapping[str, int], sources: Sources,
    times: Times | None, alike: Mapping[tuple[str, str, str], int],
) -> dict[str, Any]:  # fmt: skip
    part, line = sources.of_text(work.source)
    row: dict[str, Any] = {
        "label": work.name,
        "kind": _LIBRARIES.get(work.op, work.op),
        "instruction": ids.get(work.instruction, -1),
        "kernel": _kernel_of(work, uses),
        "source": part,
        "line": line,
        "calls": 0,
        "seconds": 0.0,
        "share": 0.0,
        "bytes": -1 if work.bytes is None else work.bytes,
        "flops": -1 if work.flops is None else work.flops,
        "of_memory": None,
        "of_peak": None,
    }
    key = work.name, work.instruction, work.source
    measured = None if times is None else times.lines.get(key)
    if times is not None and measured is not None:
        seconds = measured.seconds / times.runs / alike[key]
        row |= {
            "calls": round(measured.calls / times.runs / alike[key]),
            "seconds": seconds,
            "share": seconds / times.seconds if times.seconds else 0.0,
        }
        if times.speed is not None and measured.seconds:
            row["of_memory"] = _rate(measured.bytes, measured.seconds, times.speed.bytes_per_second)
            row["of_peak"] = _rate(measured.flops, measured.seconds, times.summary.peak(measured))
    return row


def _rate(amount: int | None, seconds: float, most: float) -> float | None:
    found = None if not amount or not most else amount / seconds / most
    return found if found is not None and math.isfinite(found) else None


def _kernel_of(work: Work, uses: Mapping[str, Sequence[tuple[int, str]]]) -> int:
    """The number of the kernel that a row calls; -1 for none. An instruction may have several, such as one that unpacks
    an operand: its function's name tells them apart. Of a product: the first one that runs on its pieces."""
    function = work.arguments.get("kernel")
    then = str(work.arguments.get("then", "")).partition(", ")[0]
    for user in (then, work.instruction) if then else (work.instruction,):
        found = uses.get(user, ())
        named = [number for number, text in found if function is None or f"def {function}(" in text]
        if named and (function is not None or then or work.op == "chain"):
            return named[0]
    return -1


def _profile(times: Times | None, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    if times is None:
        return None
    spent: dict[tuple[int, int], float] = {}
    for row in rows:
        if row["source"] >= 0:
            place = row["source"], row["line"]
            spent[place] = spent.get(place, 0.0) + row["seconds"]
    lines = [
        {"source": part, "line": line, "seconds": s, "share": s / times.seconds if times.seconds else 0.0}
        for (part, line), s in sorted(spent.items(), key=lambda item: -item[1])
    ]
    return {"calls": times.calls, "seconds": times.seconds, "machine": times.machine, "lines": lines}


def _devices(program: Inspection, ids: Mapping[str, int]) -> dict[str, Any] | None:
    module = program.executable.module
    count = module.replica_count * module.num_partitions
    if count == 1:
        return None
    return {
        "mesh": program.mesh or f"{module.replica_count} replicas, {module.num_partitions} partitions",
        "collectives": [
            {
                "instruction": ids.get(c.name, -1),
                "bytes": c.byte_size,
                "text": f"{c.opcode.value} of {c.devices} devices, {c.times:,} times; each sends {c.sent():,.0f} bytes",
            }
            for c in communication_analysis(module)
        ],
    }
