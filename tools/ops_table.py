#!/usr/bin/env python3
"""The generated parts of docs/ops.md: what each opcode has in each layer, and the client interface's methods.

Everything is computed from the tables that the library uses, and from the cases that the tests run. A part is between
two comments, `<!-- made by tools/ops_table.py: NAME -->` and `<!-- end -->`.

    python tools/ops_table.py            # says where the file differs from what the tables say
    python tools/ops_table.py --write    # writes it
"""

from __future__ import annotations

import argparse
import difflib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, get_args

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "tests"), str(ROOT)]

from hloom.hlo import ComputationBuilder, HloError, LocalClient, Opcode, parse, verify  # noqa: E402
from hloom.hlo.buffers.values import is_alias  # noqa: E402
from hloom.hlo.evaluator import EVALUATE  # noqa: E402
from hloom.hlo.instruction import Attributes  # noqa: E402
from hloom.hlo.ir import HloModule  # noqa: E402
from hloom.hlo.ops import SPECS, OpSpec  # noqa: E402
from hloom.hlo.ops.declare import REQUIRED, Dims, declared  # noqa: E402
from hloom.hlo.passes.fuse.fusible import FUSED_WHEN, is_free, is_fusible  # noqa: E402
from hloom.hlo.passes.simplify.call_inliner import INLINED  # noqa: E402
from hloom.numba_backend.emit.element import ELEMENT  # noqa: E402
from hloom.numba_backend.expansions import NUMBA_EXPANSIONS as EXPANSIONS  # noqa: E402
from hloom.numba_backend.lowering import LOWERED  # noqa: E402
from hloom.numba_backend.lowering_rules import HOW, LOWERING_RULES, load_all  # noqa: E402

from hloom.backend_check.op_table import CASES, WITHOUT_CASES, OpCase, build_module  # noqa: E402
from support.recorded import UNANSWERED_CASES, UNANSWERED_OPCODES, is_answered  # noqa: E402

import hloom.numba_backend.emit  # noqa: E402, F401  # isort: skip

DOCUMENT = ROOT / "docs" / "ops.md"
MISSING = "**missing**"
"""The text of a cell where a layer has neither a rule nor a reason. No cell of the document may have it."""
MANY = 12
"""An expansion of more opcodes than this does not name them."""
TEXT_CASES = 40
"""Cases of an opcode to print and to parse again: enough for each attribute and element type."""


@dataclass(frozen=True)
class Row:
    """An opcode's cells."""

    opcode: str
    family: str
    shape_rule: str
    evaluator: str
    numba: str
    fusable: str
    text: str
    xla: str


load_all()


def rows() -> list[Row]:
    """One row for each opcode, in the order of their families."""
    return [row_of(spec) for spec in SPECS.values()]


def row_of(spec: OpSpec) -> Row:
    opcode = spec.opcode
    cases = [case for case in CASES if case.opcode is opcode]
    modules = [build_module(case) for case in cases] or [m for m in _programs() if _opcode_of(m) is opcode]
    return Row(
        f"`{opcode.value}`",
        spec.family,
        _shape_rule(spec),
        "yes" if opcode in EVALUATE else _reason(EVALUATE.reason(opcode)),
        _numba(opcode, modules),
        _fusable(opcode, modules),
        _text(modules[:TEXT_CASES]),
        _xla(opcode, cases),
    )


@cache
def _programs() -> tuple[HloModule, ...]:
    """PROGRAMS as modules. Their roots are the ops that no module with one op on parameters can show."""
    return tuple(parse(f"HloModule m\n\nENTRY main {{{body}}}\n") for body in PROGRAMS)


def _opcode_of(module: HloModule) -> Opcode:
    return module.entry.root.opcode


PROGRAMS = (
    """
  t = token[] after-all()
  ROOT fed = (f32[3], token[]) infeed(t)
""",
    """
  x = f32[3] parameter(0)
  t = token[] after-all()
  ROOT fed = token[] outfeed(x, t), outfeed_shape=f32[3]
""",
    """
  x = f32[3] parameter(0)
  t = token[] after-all()
  ROOT sent = (f32[3], u32[], token[]) send(x, t), channel_id=1
""",
    """
  x = f32[3] parameter(0)
  t = token[] after-all()
  sent = (f32[3], u32[], token[]) send(x, t), channel_id=1
  ROOT done = token[] send-done(sent), channel_id=1
""",
    """
  t = token[] after-all()
  ROOT received = (f32[3], u32[], token[]) recv(t), channel_id=1
""",
    """
  t = token[] after-all()
  received = (f32[3], u32[], token[]) recv(t), channel_id=1
  ROOT done = (f32[3], token[]) recv-done(received), channel_id=1
""",
    """
  x = f32[3] parameter(0)
  n = s32[] constant(3)
  ROOT sized = f32[3] set-dimension-size(x, n), dimensions={0}
""",
    """
  x = f32[6] parameter(0)
  m = s32[] constant(2)
  n = s32[] constant(3)
  ROOT reshaped = f32[2,3] dynamic-reshape(x, m, n)
""",
)
"""Modules for the opcodes without cases, which are in `WITHOUT_CASES`."""


def _reason(why: str | None) -> str:
    return MISSING if why is None else f"no: {why}"


def _shape_rule(spec: OpSpec) -> str:
    """The labels in the rule's docstring: `c1–c4`. (c64 and c128 are types.)"""
    labels = sorted({int(n) for n in re.findall(r"\bc([1-9]|[1-3]\d)\b", spec.shape_rule.__doc__ or "")})
    if labels:
        return f"c1–c{labels[-1]}" if labels[-1] > 1 else "c1"
    return "any number of any operands" if spec.arity is None else "arity; any operands" if spec.arity else "arity"


def _numba(opcode: Opcode, modules: Sequence[HloModule]) -> str:
    """How the backend runs it: with an element rule, with a row of the program, or as other ops."""
    if opcode in (Opcode.PARAMETER, Opcode.CONSTANT):
        return "no code: memory" if opcode is Opcode.PARAMETER else "no code: memory, or a number in a kernel"
    found = []
    if modules and all(is_alias(m.entry.root) for m in modules):
        found.append("no code: the operand's bytes")
    elif opcode in INLINED:
        found.append("inlined")
    elif opcode in ELEMENT:
        found.append("in kernels")
    if opcode in LOWERING_RULES:
        found.append(HOW[opcode] or MISSING)
    elif opcode in LOWERED and opcode not in INLINED:
        found.append(LOWERED[opcode])
    if opcode in EXPANSIONS:
        names = ", ".join(f"`{rule.name}`" for rule in EXPANSIONS.of(opcode))
        found.append(f"{'some ' if found else ''}expanded by {names}")
    return "; ".join(found) or _reason(ELEMENT.reason(opcode))


def _fusable(opcode: Opcode, modules: Sequence[HloModule]) -> str:
    """Whether fusion takes the cases."""
    if opcode is Opcode.PARAMETER:
        return "no: it is what fusions read"
    found = {_fusion_of(module) for module in modules}
    if not found:
        return MISSING
    if len(found) == 1:
        answer = found.pop()
        if answer != "no":
            return answer
        if opcode in INLINED:
            return "no: what it calls is"
        if opcode in LOWERING_RULES or opcode in LOWERED:
            how = HOW.get(opcode) or LOWERED.get(opcode, "")
            return "no: a loop nest of its own" if how.startswith("a kernel") else "no: no loop nest"
        return "no: what it is expanded to is" if opcode in EXPANSIONS else "no: no code"
    return FUSED_WHEN.get(opcode, MISSING)


def _fusion_of(module: HloModule) -> str:
    root = module.entry.root
    return "yes" if is_fusible(root) else "each user computes it" if is_free(root) else "no"


def _text(modules: Iterable[HloModule]) -> str:
    """Do the cases' modules come back from their text, valid, and with the same text?"""
    count = 0
    for count, module in enumerate(modules, 1):  # noqa: B007
        text = module.to_text()
        try:
            again = parse(text)
            verify(again)
        except HloError as error:
            return f"**{type(error).__name__}**"
        if again.to_text() != text:
            return "**another text**"
    return "yes" if count else MISSING


def _xla(opcode: Opcode, cases: Sequence[OpCase]) -> str:
    if not cases:
        return f"no: {WITHOUT_CASES[opcode]}" if opcode in WITHOUT_CASES else MISSING
    if opcode in UNANSWERED_OPCODES:
        return f"no: {UNANSWERED_OPCODES[opcode]}"
    answered = sum(map(is_answered, cases))
    unanswered = {UNANSWERED_CASES[case.id] for case in cases if case.id in UNANSWERED_CASES}
    plural = "" if len(cases) == 1 else "s"
    counted = f"{answered} case{plural}" if answered == len(cases) else f"{answered} of {len(cases)} case{plural}"
    return counted + (f"; not where {', nor where '.join(sorted(unanswered))}" if unanswered else "")


def ops() -> str:
    """The table of opcodes."""
    header = ("opcode", "family", "shape rule", "evaluator", "Numba", "fusable", "text round trip", "against XLA")
    lines = [" | ".join(header), " | ".join(":--" for _ in header)]
    lines += [" | ".join(vars(row).values()) for row in rows()]
    return "\n".join(f"| {line} |" for line in lines)


def attributes() -> str:
    """The attributes of all ops, as their fields declare them."""
    of: dict[type[Attributes], list[str]] = {}
    for spec in SPECS.values():
        of.setdefault(spec.attributes, []).append(f"`{spec.opcode.value}`")
    lines = []
    for kind, opcodes in of.items():
        first = ", ".join(opcodes)
        for number, line in enumerate(attribute_lines(kind)):
            lines.append(f"| {'' if number else first} | {line} |")
    return "\n".join(["| of | attribute | value | default | dimensions |", "| :-- | :-- | :-- | :-- | :-- |", *lines])


def attribute_lines(kind: type[Attributes]) -> list[str]:
    lines: dict[str, str] = {}
    for field in declared(kind):
        if field.attr.codec is None:
            nested = isinstance(field.type, type) and issubclass(field.type, Attributes)
            lines |= {line: line for line in (attribute_lines(field.type) if nested else ())}
            continue
        default = "must be given" if field.default is REQUIRED else _default(field.default)
        value = _type_name(field.type)
        dimensions = _dimensions(field.attr.dims, "a dimension" if field.type is int else "dimensions")
        lines.setdefault(field.key, f"`{field.key}` | {value} | {default} | {dimensions}")
    return list(lines.values())


def _type_name(kind: Any) -> str:
    """`tuple[int, ...]`: Python's name of a type, without modules."""
    name = kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)
    plain = re.sub(r"\b[a-z_]+(?:\.[a-z_]+)*\.(?=[A-Za-z])", "", name)
    return plain.replace("HloComputation", "computation").replace("|", "or")


def _default(value: Any) -> str:
    if value in (None, "", ()):
        return "none"
    return f"`{value.value}`" if isinstance(value, Enum) else f"`{getattr(value, 'text', value)}`"


def _dimensions(dims: Dims, named: str) -> str:
    """A field's declaration about dimensions, in words."""
    found = []
    for of, words in ((dims.per, "one for each dimension of"), (dims.last, "one for each of the last dimensions of")):
        if of is not None:
            found.append(f"{words} {of.value}")
    if dims.names is not None:
        found.append(f"{named} of {dims.names.value}")
    if dims.removed:
        found.append("which the result has not")
    return ", ".join(found)


def expansions() -> str:
    """The rules of the pass `expand`, with their docstrings' first sentences."""
    lines = []
    for rule in sorted(EXPANSIONS, key=lambda rule: rule.name):
        many = f"{len(rule.opcodes)} element-wise and other ops"
        of = many if len(rule.opcodes) > MANY else ", ".join(f"`{opcode.value}`" for opcode in rule.opcodes)
        lines.append(f"| `{rule.name}` | {of} | {_first_sentence(rule.documentation)} |")
    return "\n".join(["| rule | of | |", "| :-- | :-- | :-- |", *lines])


def _first_sentence(documented: str | None) -> str:
    first = re.split(r"(?<=[.!?])\s", (documented or MISSING).strip(), maxsplit=1)[0]
    return " ".join(first.split()).replace("|", "\\|")


def methods(of: type) -> str:
    """A class's methods with the first sentences of their docstrings."""
    lines = []
    for name, member in inspect.getmembers(of):
        if name.startswith("_") or name.isupper():
            continue
        if isinstance(member, property):
            signature = ""
        else:
            parameters = [p for p in inspect.signature(member).parameters.values() if p.name != "self"]
            signature = f"({', '.join(p.name if p.default is p.empty else f'{p.name}=…' for p in parameters)})"
        lines.append(f"| `{name}{signature}` | {_first_sentence(member.__doc__)} |")
    return "\n".join([f"| {of.__name__} | |", "| :-- | :-- |", *lines])


PARTS: dict[str, Callable[[], str]] = {
    "opcodes": ops,
    "attributes": attributes,
    "expansions": expansions,
    "ComputationBuilder": lambda: methods(ComputationBuilder),
    "LocalClient": lambda: methods(LocalClient),
}
_BEGIN = r"(?P<begin><!-- made by tools/ops_table\.py: (?P<name>\w+) -->\n)"
_PART = re.compile(_BEGIN + r".*?(?P<end><!-- end -->)", re.DOTALL)


def with_parts(markdown: str) -> str:
    """`markdown` with each part made again. KeyError for an unknown part."""
    return _PART.sub(lambda m: f"{m['begin']}\n{PARTS[m['name']]()}\n\n{m['end']}", markdown)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    old = DOCUMENT.read_text()
    new = with_parts(old)
    if options.write:
        DOCUMENT.write_text(new)
        return 0
    difference = difflib.unified_diff(old.splitlines(), new.splitlines(), "as written", "as made", lineterm="")
    lines = list(difference)
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
