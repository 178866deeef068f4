"""The three rule tables of autodiff; `tangents.py` has the types of their rules' arguments and results.

A JVP rule computes an op's result and how it moves when the operands move; a TRANSPOSE rule runs an op that is linear
in some operands backwards; a BATCH rule runs it on a batch. They are in `<family>.py`. Nothing else belongs here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any

from ...hlo.opcode import Opcode
from ...hlo.rules import R, RuleTable
from ...hlo.shape import Shape
from ...tracer.core import Value
from ..tangents import Operand, Tangent

JvpRule = Callable[[Sequence[Value], Sequence[Tangent], Any, Shape], tuple[Any, Any]]
"""rule(primals, tangents, attributes, result shape) -> (result, its tangent); two lists for ops with several results.

At least one tangent is not Zero. A rule first computes everything that does not depend on tangents, so that the rest
is linear in them with as few residuals as possible.
"""

TransposeRule = Callable[[Any, Sequence[Operand], Any, Shape], Sequence["Value | None"]]
"""rule(cotangent, operands, attributes, result shape) -> a cotangent for each operand, None where it is zero or the
operand is not Linear. For ops with several results the cotangent is a list with None for zeros."""

BatchRule = Callable[[Any, Sequence[Value], Sequence[bool], Any, Shape], tuple[Any, Any]]
"""rule(axis, operands, batched, attributes, result shape of one element) -> (result, is it batched); two lists for ops
with several results.

At least one operand is batched: it has the batch, of `axis.size` elements, as an additional first dimension.
"""

_families: list[Callable[[], object]] = []
"""Functions that import all files with derivatives; empty: they are imported."""
_batches: list[Callable[[], object]] = []
"""Functions that import the other files, with rules that only batching needs."""


def families_come_from(load: Callable[[], object], load_batches: Callable[[], object]) -> None:
    """Have `load` import all families of rules when the first function is transformed, or the first rule asked for, and
    `load_batches` those for batches alone: most programs that are only compiled and run need none."""
    _families[:], _batches[:] = [load], [load_batches]


def load_rules() -> None:
    """Import all families of rules, if that has not been done."""
    if _families:
        _load(_families)


def load_batch_rules() -> None:
    """The same, and the rules that only batching needs."""
    if _batches:
        load_rules()
        _load(_batches)


def _load(what: list[Callable[[], object]]) -> None:
    thread = get_ident()
    if thread in _loading:
        return
    _loading.add(thread)
    try:
        for load in list(what):
            load()  # a second thread comes here too, and waits for the import
        what.clear()
    finally:
        _loading.discard(thread)


_loading: set[int] = set()
"""The threads that import the families now: a lookup during the import sees the rules that are there so far."""


class _Rules(RuleTable[R]):
    """A table of rules that are imported at the first lookup."""

    def __init__(self, what: str, load: Callable[[], None] = load_rules) -> None:
        super().__init__(what)
        self._load = load

    def __getitem__(self, opcode: Opcode) -> R:
        self._load()
        return super().__getitem__(opcode)

    def __contains__(self, opcode: Opcode) -> bool:
        self._load()
        return super().__contains__(opcode)

    def reason(self, opcode: Opcode) -> str | None:
        self._load()
        return super().reason(opcode)

    def missing(self) -> list[Opcode]:
        self._load()
        return super().missing()


JVP: RuleTable[JvpRule] = _Rules("forward-mode derivative (jvp)")
TRANSPOSE: RuleTable[TransposeRule] = _Rules("transpose (reverse-mode derivative)")
BATCH: RuleTable[BatchRule] = _Rules("batching (vmap)", load_batch_rules)

AddTo = Callable[["Value | None", Value, Sequence[Operand], Any, Shape], Value]
"""rule(sum, cotangent, operands, attributes, result shape) -> the sum (None: zero) with the cotangent of operand 0."""

ADD_TO: dict[Opcode, AddTo] = {}
"""For ops that read a part of operand 0: so a loop that reads an element in each iteration adds to that element alone,
in place, where it would otherwise add an array of zeros. They are used beside TRANSPOSE."""

ZERO_DERIVATIVE: set[Opcode] = set()
"""Ops with results that do not move with their operands: integers, booleans, steps. They have no rules."""


def zero_derivative(*opcodes: Opcode) -> None:
    """Declare that the results of `opcodes` always have zero tangents."""
    for opcode in opcodes:
        assert opcode not in ZERO_DERIVATIVE, f"{opcode} declared twice"
    ZERO_DERIVATIVE.update(opcodes)
    JVP.unsupported(opcodes, "its derivative is zero; the trace must not ask for a rule")
    TRANSPOSE.unsupported(opcodes, "its derivative is zero: it never is part of a linear program")


def not_linear(*opcodes: Opcode) -> None:
    """Declare that `opcodes` cannot be transposed because they are linear in no operand."""
    TRANSPOSE.unsupported(opcodes, "it is not linear, so there is nothing to transpose; only linear ops come here")
