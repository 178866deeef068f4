"""The reference of operations: a page for each HLO opcode, made of the tables that the library works with.

The text is the docstring of the opcode's shape rule; the attributes, the layers and the number of comparisons with XLA
are those of `docs/ops.md` (`tools/ops_table.py`); the example is the smallest test case, with its result. The
derivative comes from autodiff's rules (`derivatives.py`); the functions are those whose examples trace to the opcode
(`traced.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import derivatives, traced
from .docstrings import markdown
from .reference import ROOT
from .traced import Users

sys.path.insert(0, str(ROOT / "tools"))
import ops_table
from hloom.hlo import ComputationBuilder, Opcode, evaluate
from hloom.hlo.evaluator import EVALUATE
from hloom.hlo.ops import SPECS, OpSpec

import hloom.jaxpr.view  # noqa: F401  # declares how each operation is shown
from hloom.backend_check.op_table import CASES, OpCase, build_module, make_inputs
from hloom.jaxpr.rules import PRIMITIVES

_HOST = frozenset({Opcode.INFEED, Opcode.OUTFEED, Opcode.SEND, Opcode.RECV})
"""Operations with a host that must be there."""
_NOT_IN_NAVIGATION = "---\norphan: true\n---\n\n"
"""Every page of the site has the whole navigation: a hundred more entries would double the time to build it."""
_MOST_ELEMENTS = 24
"""Elements of all operands and of the result of an example."""


def pages() -> dict[str, str]:
    """The path of each page below the site, and its Markdown."""
    users = traced.functions()
    found = {spec.opcode.value: page(spec, users.get(spec.opcode, {})) for spec in SPECS.values()}
    families: dict[str, list[str]] = {}
    for spec in SPECS.values():
        families.setdefault(spec.family, []).append(spec.opcode.value)
    rows = [
        f"- {family}: " + ", ".join([f"[{name}]({name}.md)" for name in sorted(names)])
        for family, names in sorted(families.items())
    ]
    index = (
        "# HLO operations\n\nA page for each operation: its meaning, its text, its derivative, how it runs, and the "
        "functions that trace to it. [Operations](../ops.md) has all of them in one table.\n\n" + "\n".join(rows) + "\n"
    )
    return {"operations/index.md": index, **{f"operations/{name}.md": text for name, text in found.items()}}


def page(spec: OpSpec, users: Users) -> str:
    """The page of an opcode, with the functions that use it."""
    return _NOT_IN_NAVIGATION + "\n\n".join(part for part in _parts(spec, users) if part) + "\n"


def _parts(spec: OpSpec, users: Users) -> Iterator[str]:
    opcode = spec.opcode
    yield f"# {opcode.value}"
    name = _method(opcode)
    yield markdown(getattr(ComputationBuilder, name).__doc__ or "") if name else ""
    yield "## Shapes\n\n" + markdown(spec.shape_rule.__doc__ or "")
    rule = EVALUATE[opcode] if opcode in EVALUATE else None  # noqa: SIM401  # a table of rules has no `get`
    if rule is not None and str(getattr(rule, "__module__", "")).startswith("hloom.") and rule.__doc__:
        yield "## Value\n\n" + markdown(rule.__doc__)
    yield from _example(opcode)
    yield derivatives.section(opcode, _cases(opcode))
    yield traced.section(opcode, users)
    lines = ops_table.attribute_lines(spec.attributes)
    if lines:
        head = "| attribute | value | default | dimensions |\n| :-- | :-- | :-- | :-- |\n"
        yield "## Attributes\n\n" + head + "\n".join([f"| {line} |" for line in lines])
    yield "## In each layer\n\n" + "\n".join([f"- {name}: {value}" for name, value in _facts(spec)])


def _facts(spec: OpSpec) -> Iterator[tuple[str, str]]:
    row = ops_table.row_of(spec)
    kinds = _element_types(spec.opcode)
    if kinds:
        yield "element types of the test cases", ", ".join(kinds)
    if name := _method(spec.opcode):
        yield "`ComputationBuilder`", f"`{name}`"
    if primitive := PRIMITIVES.get(spec.opcode):
        yield "in jaxprs", f"`{primitive}` ({primitive.replace('_', '-')})"
    yield "evaluator", row.evaluator
    yield "compiled", row.numba
    yield "in fusions", row.fusable
    yield "compared with XLA", row.xla


def _method(opcode: Opcode) -> str | None:
    """The method of ComputationBuilder that adds such an instruction."""
    wanted = opcode.value.replace("-", "")
    return next((n for n in vars(ComputationBuilder) if n.replace("_", "").lower() == wanted), None)


def _cases(opcode: Opcode) -> list[OpCase]:
    return [case for case in CASES if case.opcode is opcode]


def _element_types(opcode: Opcode) -> list[str]:
    found: dict[str, None] = {}
    for case in _cases(opcode):
        found.update(dict.fromkeys([leaf.element_type.value for leaf in build_module(case).entry.root.shape.leaves()]))
    return sorted(found)


def _example(opcode: Opcode) -> Iterator[str]:
    """A small case as HLO text, with its arguments and its result where the evaluator has one."""
    best: tuple[int, Any] | None = None
    for case in _cases(opcode):
        module = build_module(case)
        shapes = [leaf for i in (*module.entry.parameters, module.entry.root) for leaf in i.shape.leaves()]
        size = sum(shape.num_elements for shape in shapes)
        plain = all(shape.element_type.value in ("f32", "s32", "pred") for shape in shapes)
        several = module.entry.root.shape.is_tuple or not all(shape.num_elements for shape in shapes)
        rank = (not plain) * 10_000 + several * 1000 + abs(size - _MOST_ELEMENTS // 2)
        if best is None or rank < best[0]:
            best = rank, (case, module, size)
    if best is None:
        return
    case, module, size = best[1]
    text = module.to_text().partition("\n\n")[2].strip() or module.to_text().strip()
    yield f"## Example\n\n```\n{text}\n```"
    if opcode not in EVALUATE or size > 2 * _MOST_ELEMENTS:
        return
    if module.replica_count * module.num_partitions > 1 or opcode in _HOST:
        return
    arguments = make_inputs(case, seed=0)
    results = evaluate(module, *arguments)
    shown = [f"{p.name} = {_array(a)}" for p, a in zip(module.entry.parameters, arguments)]
    yield "```\n" + "\n".join([*shown, *[f"result = {_array(r)}" for r in results]]) + "\n```"


def _array(array: Any) -> str:
    return np.array2string(np.asarray(array), precision=4, separator=", ", max_line_width=100)
