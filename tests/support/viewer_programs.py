"""Programs as the viewer's page gets them, drawn at random: all tables, any size, no compiler.

`viewer_program(instructions, stages)` has a loop, fusions with bodies in the last stages, kernels, rows with times,
an arena with reuse and padding, and collectives. Instructions are immutable, as in `hlo/`: a stage that changes one has
new ones for all that use it.
"""

from __future__ import annotations

import random
from typing import Any

_ELEMENTWISE = ("add", "multiply", "subtract", "maximum", "exponential", "negate", "tanh")
_SHAPES = ("f32[64,128]{1,0}", "f32[128]{0}", "f32[64,10]{1,0}", "f32[]")
_BYTES = (32768, 512, 2560, 4)


class _Tables:
    """The columns of the instructions, and the computations, as they are filled."""

    def __init__(self) -> None:
        self.strings: dict[str, int] = {}
        names = (
            "name",
            "opcode",
            "shape",
            "text",
            "operands",
            "called",
            "source",
            "line",
            "column",
            "op_name",
            "bytes",
        )
        self.columns: dict[str, list[Any]] = {name: [] for name in (*names, "flops", "origin")}
        self.computations: list[dict[str, Any]] = []

    def string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def add(self, opcode: str, shape: int, operands: list[int], line: int, **given: Any) -> int:
        number = len(self.columns["name"])
        scope = f"layer_{line // 4}" if line else ""
        row = {
            "name": given.get("name") or f"{opcode}.{number}",
            "opcode": self.string(opcode),
            "shape": self.string(_SHAPES[shape]),
            "text": given.get("text", ""),
            "operands": operands,
            "called": given.get("called", []),
            "source": 0 if line else -1,
            "line": 40 + line if line else -1,
            "column": 4,
            "op_name": self.string(f"step/{scope}/{opcode}"),
            "bytes": 3 * _BYTES[shape],
            "flops": _BYTES[shape] // 4,
            "origin": given.get("origin", []),
        }
        for name, value in row.items():
            self.columns[name].append(value)
        return number

    def copy(self, number: int, operands: list[int], opcode: str | None = None) -> int:
        """Another instruction in the place of one."""
        for column in self.columns.values():
            column.append(column[number])
        new = len(self.columns["name"]) - 1
        self.columns["operands"][new] = operands
        self.columns["origin"][new] = [number]
        if opcode:
            self.columns["opcode"][new] = self.string(opcode)
        return new

    def computation(self, name: str, ids: list[int], parameters: list[int]) -> int:
        self.computations.append({"name": name, "instructions": ids, "root": ids[-1], "parameters": parameters})
        return len(self.computations) - 1


def viewer_program(instructions: int = 60, stages: int = 5, seed: int = 0) -> dict[str, Any]:
    """The object that the page shows: at least three stages, of which the last two are "fusion" and "scheduling"."""
    draw = random.Random(seed)
    tables = _Tables()
    lines = max(4, instructions // 8)
    entry, others = _traced(tables, draw, instructions, lines)
    found = [_stage("traced", entry, others)]
    for k in range(stages - 3):
        entry, rules = _rewritten(tables, draw, entry)
        found.append(_stage(("simplifier", "cse", "dce")[k % 3], entry, others, rules=rules))
    entry, fused = _fused(tables, entry)
    found.append(_stage("fusion", entry, [*fused, *others], fused))
    entry, rules = _rewritten(tables, draw, entry)
    found.append(_stage("scheduling", entry, [*fused, *others], fused, rules))
    for stage in found:
        for rule in stage["rules"]:
            rule["rule"] = tables.string(rule["rule"])
    kernels, rows = _kernels(tables, draw, entry)
    buffers, size = _buffers(tables, draw, entry)
    total = sum(row["seconds"] for row in rows)
    heat: dict[int, float] = {}
    for row in rows:
        row["share"] = row["seconds"] / total
        heat[row["line"]] = heat.get(row["line"], 0) + row["seconds"]
    schedule = tables.computations[entry]["instructions"]
    collective = next(n for n in schedule if tables.columns["name"][n].startswith("all-reduce"))
    passes = [
        {
            "name": s["name"],
            "milliseconds": s["milliseconds"],
            "before": 9,
            "after": 8,
            "changed": True,
            "rules": {"zero": 2},
        }
        for s in found[1:]
    ]
    return {
        "version": 1,
        "title": f"drawn_{seed}",
        "facts": [["instructions", str(instructions)], ["devices", "2"]],
        "sources": [{"path": "/home/me/train.py", "first": 40, "lines": [_line(k) for k in range(lines + 2)]}],
        "strings": list(tables.strings),
        "instructions": tables.columns,
        "computations": tables.computations,
        "stages": found,
        "passes": [
            {"name": "verifier", "milliseconds": 0.1, "before": 9, "after": 9, "changed": False, "rules": {}},
            *passes,
        ],
        "kernels": kernels,
        "rows": rows,
        "buffers": buffers,
        "schedule": schedule,
        "arenas": [{"space": "HBM", "size": size, "peak": size, "limit": None}],
        "profile": {
            "calls": 10,
            "seconds": total,
            "machine": "50 GB/s, 100 GFLOP/s",
            "lines": [{"source": 0, "line": k, "seconds": s, "share": s / total} for k, s in heat.items()],
        },
        "devices": {"mesh": "x: 2", "collectives": [{"instruction": collective, "bytes": 512, "text": "over x"}]},
    }


def _line(k: int) -> str:
    return "def step(w, x):" if k == 0 else f"    h{k} = jnp.tanh(h{k - 1} @ w[{k}]) + 0.5  # layer {k}"


def _stage(
    name: str, entry: int, others: list[int], fused: list[int] | None = None, rules: Any = None
) -> dict[str, Any]:
    return {
        "name": name, "milliseconds": 1.5, "entry": entry, "computations": [entry, *others],
        "fused": fused or [], "rules": rules or [],
    }  # fmt: skip


def _traced(tables: _Tables, draw: random.Random, count: int, lines: int) -> tuple[int, list[int]]:
    parameters = [tables.add("parameter", 0, [], 0, name=f"w.{k}", text=f"{k}") for k in range(3)]
    state = tables.add("parameter", 0, [], 0, name="state")
    step = tables.add("tanh", 0, [state], 2)
    more = tables.add("add", 0, [step, state], 2)
    body = tables.computation("body", [state, step, more], [state])
    ids = [*parameters, tables.add("constant", 3, [], 0, text="0.5")]
    for k in range(count - 4):
        line = 1 + k * lines // max(1, count - 4)
        if k == count // 2:
            ids.append(tables.add("while", 0, [ids[-1]], line, called=[body], text=", condition=%cond, body=%body"))
        elif k == count // 3:
            ids.append(tables.add("all-reduce", 0, [ids[-1]], line))
        elif k % 9 == 0:
            ids.append(tables.add("dot", draw.choice((0, 2)), [ids[-1], draw.choice(parameters)], line))
        else:
            operands = [ids[-1], draw.choice(ids[-12:])]
            ids.append(tables.add(draw.choice(_ELEMENTWISE), draw.randrange(3), operands, line))
    return tables.computation("main", ids, parameters), [body]


def _rewritten(tables: _Tables, draw: random.Random, entry: int) -> tuple[int, list[dict[str, Any]]]:
    """An entry in which some instructions have another opcode, one in fifty is gone, and their users are new."""
    old = tables.computations[entry]
    new: dict[int, int] = {}
    ids, rules = [], []
    for number in old["instructions"]:
        operands = tables.columns["operands"][number]
        moved = [new[n] for n in operands]
        opcode = list(tables.strings)[tables.columns["opcode"][number]]
        chance = draw.random()
        if opcode in _ELEMENTWISE and chance < 0.02 and number != old["root"]:
            new[number] = moved[0]
            rules.append(
                {
                    "rule": "identity",
                    "computation": tables.string("main"),
                    "before": number,
                    "after": [moved[0]],
                    "text": "",
                }
            )
            continue
        if opcode in _ELEMENTWISE and chance < 0.05:
            new[number] = tables.copy(number, moved, "rsqrt")
            rules.append(
                {
                    "rule": "as_root",
                    "computation": tables.string("main"),
                    "before": number,
                    "after": [new[number]],
                    "text": "valid for x > 0",
                }
            )
        else:
            new[number] = number if moved == operands else tables.copy(number, moved)
        ids.append(new[number])
    return tables.computation("main", ids, [new[n] for n in old["parameters"]]), rules


def _fused(tables: _Tables, entry: int) -> tuple[int, list[int]]:
    """An entry in which up to six neighbouring elementwise instructions are one fusion."""
    old = tables.computations[entry]
    new: dict[int, int] = {}
    ids: list[int] = []
    bodies: list[int] = []
    run: list[int] = []

    def close() -> None:
        if not run:
            return
        outside = sorted({n for number in run for n in tables.columns["operands"][number] if n not in run})
        inner = {
            n: tables.add("parameter", 0, [], 0, name=f"param_{k}.{len(bodies)}", text=f"{k}")
            for k, n in enumerate(outside)
        }
        body = list(inner.values())
        for number in run:
            inner[number] = tables.copy(number, [inner[n] for n in tables.columns["operands"][number]])
            body.append(inner[number])
        bodies.append(tables.computation(f"fused_computation.{len(bodies)}", body, body[: len(outside)]))
        line = tables.columns["line"][run[-1]] - 40
        called, text = [bodies[-1]], f", kind=kLoop, calls=%fused_computation.{len(bodies) - 1}"
        made = tables.add("fusion", 0, [new[n] for n in outside], line, called=called, text=text, origin=list(run))
        ids.append(made)
        new.update(dict.fromkeys(run, made))
        run.clear()

    for number in old["instructions"]:
        opcode = list(tables.strings)[tables.columns["opcode"][number]]
        if opcode in (*_ELEMENTWISE, "rsqrt"):
            run.append(number)
            if len(run) == 6:
                close()
            continue
        close()
        operands = tables.columns["operands"][number]
        new[number] = number if all(new[n] == n for n in operands) else tables.copy(number, [new[n] for n in operands])
        ids.append(new[number])
    close()
    return tables.computation("main", ids, [new[n] for n in old["parameters"]]), bodies


def _kernels(tables: _Tables, draw: random.Random, entry: int) -> tuple[list[Any], list[Any]]:
    kernels: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    strings = list(tables.strings)
    for number in tables.computations[entry]["instructions"]:
        opcode, name = strings[tables.columns["opcode"][number]], tables.columns["name"][number]
        if opcode in ("parameter", "constant"):
            continue
        if opcode == "fusion":
            body = "    for i in range(lo, hi):  # rows\n        out0[i] = tanh(x0[i]) + 0.5\n"
            text = f"def {name}(lo, hi, x0, out0):\n{body}"
            kernel = {
                "name": name,
                "text": text,
                "algorithm": "out0[i] = map over i",
                "schedule": ["Vectorize(at='i')"],
            }
            kernels.append({**kernel, "instructions": [number]})
        seconds = draw.random() ** 4 * 1e-4
        fused, line = opcode == "fusion", tables.columns["line"][number]
        rows.append({
            "label": name, "kind": "kernel" if fused else "product", "instruction": number,
            "kernel": len(kernels) - 1 if fused else -1, "source": 0, "line": line, "calls": 1, "seconds": seconds,
            "share": 0, "bytes": 98304, "flops": 16384, "of_memory": 0.4, "of_peak": 0.02,
        })  # fmt: skip
    return kernels, rows


def _buffers(tables: _Tables, draw: random.Random, entry: int) -> tuple[list[dict[str, Any]], int]:
    """First fit over the schedule."""
    ids = tables.computations[entry]["instructions"]
    end = {n: k for k, number in enumerate(ids) for n in (number, *tables.columns["operands"][number])}
    placed: list[dict[str, Any]] = []
    live: list[dict[str, Any]] = []
    for k, number in enumerate(ids):
        if number in tables.computations[entry]["parameters"]:
            placed.append({"memory": "argument", "space": "HBM", "offset": 0, "size": 32768, "logical": 32768,
                           "first": 0, "last": len(ids) - 1, "values": [number], "reason": ""})  # fmt: skip
            continue
        live = [buffer for buffer in live if buffer["last"] >= k]
        logical = draw.choice(_BYTES[:3])
        size = -(-logical // 4096) * 4096
        offset = 0
        for buffer in sorted(live, key=lambda b: b["offset"]):
            if offset + size <= buffer["offset"]:
                break
            offset = max(offset, buffer["offset"] + buffer["size"])
        made = {"memory": "arena", "space": "HBM", "offset": offset, "size": size, "logical": logical,
                "first": k, "last": end[number], "values": [number], "reason": "first fit"}  # fmt: skip
        live.append(made)
        placed.append(made)
    return placed, max(b["offset"] + b["size"] for b in placed if b["memory"] == "arena")
