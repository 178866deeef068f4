"""outline-loops: a loop that a backend compiles as one kernel becomes one instruction, a custom fusion.

Before::

    init = (s32[], f32[8], f32[8,8]) tuple(zero, x, a)
    loop = (s32[], f32[8], f32[8,8]) while(init), condition=..., body=...

After, if the body returns `a` unchanged and nothing reads the counter::

    loop = f32[8] fusion(x, a), kind=kCustom, calls=native_loop

The fused computation holds the loop, with its body as it was fused and scheduled. Operands are the initial values that
are not scalar constants; results are the elements of the state that change and that are read, or that go on in memory
which another loop has left to this one. So buffer assignment sees
the loop as an instruction that may update its operands in place, and the backend decides about the memory inside. XLA's
CPU compiler outlines small loops too (`small_while_loop_hoisting_pass.cc`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...builder import (
    make_computation,
    make_get_tuple_element,
    make_instruction,
    make_parameter,
    make_tuple,
    with_unique_names,
)
from ...custom_calls import is_unwritten
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops.structure import FusionAttributes, FusionKind
from ...provenance import note_replacements
from ...support.records import dataclass
from ..rewrite import rewrite_computation
from ..simplify.loops import has_tuple_state, unchanged_elements
from .flatten_call_graph import CONTROL_FLOW

IsNative = Callable[[HloInstruction], bool]
"""is_native(while): does the backend compile this loop as one kernel?"""


def is_outlined_loop(instruction: HloInstruction) -> bool:
    """True for a fusion that holds a loop."""
    return (
        instruction.opcode is Opcode.FUSION
        and instruction.attributes.kind is FusionKind.CUSTOM
        and any(i.opcode is Opcode.WHILE for i in instruction.attributes.calls.instructions)
    )


@dataclass(frozen=True, slots=True)
class OutlineLoops:
    """Outlines the outermost loops with `is_native`. Their state is an array or a flat tuple of arrays."""

    is_native: IsNative
    name: str = "outline-loops"

    def __call__(self, module: HloModule) -> HloModule:
        if not any(i.opcode is Opcode.WHILE for i in module.instructions()):
            return module
        entry = self._outlined(module.entry)
        return module if entry is module.entry else with_unique_names(replace(module, entry=entry))

    def _outlined(self, computation: HloComputation) -> HloComputation:
        """The computation with its native loops outlined; loops that are not native are looked into."""

        def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
            if old.opcode is Opcode.GET_TUPLE_ELEMENT and moved is not old:
                return make_get_tuple_element(moved.operands[0], old.attributes.index)
            if old.opcode not in CONTROL_FLOW:
                return moved
            if old.opcode is Opcode.WHILE and _has_flat_state(old) and self.is_native(old):
                return _outline(moved, _elements_read(computation, old) | _elements_left(computation, old))
            attributes = old.attributes.map_computations(self._outlined)
            return moved if attributes is old.attributes else replace(moved, attributes=attributes)

        return rewrite_computation(computation, visit)


def _has_flat_state(loop: HloInstruction) -> bool:
    return has_tuple_state(loop) and all(s.is_array for s in loop.shape.elements)


def _elements_read(computation: HloComputation, loop: HloInstruction) -> set[int]:
    """The elements of the loop's result that are read."""
    users = computation.users[loop]
    if loop is computation.root or any(u.opcode is not Opcode.GET_TUPLE_ELEMENT for u in users):
        return set(range(len(loop.shape.elements)))
    return {u.attributes.index for u in users}


def _elements_left(computation: HloComputation, loop: HloInstruction) -> set[int]:
    """The elements of the state that begin as another loop's result, or as uninitialised memory, for which nothing else
    has a use: as a result, too, such an element stays in its memory, and is not copied to the kernel's own."""
    state = loop.operands[0]
    if state.opcode is not Opcode.TUPLE:
        return set()
    return {
        k for k, value in enumerate(state.operands)
        if value.shape.is_array and not value.shape.is_scalar and _is_left(value) and len(computation.users[value]) == 1
    }  # fmt: skip


def _is_left(value: HloInstruction) -> bool:
    if value.opcode is Opcode.GET_TUPLE_ELEMENT:
        return value.operands[0].opcode is Opcode.WHILE
    return value.opcode is Opcode.CUSTOM_CALL and is_unwritten(value.attributes.custom_call_target)


def _outline(loop: HloInstruction, read: set[int]) -> HloInstruction:
    """A tuple like the loop's result: the results of the fusion, and the initial values of elements that do not
    change."""
    initial = [make_get_tuple_element(loop.operands[0], k) for k in range(len(loop.shape.elements))]
    results = sorted(read - unchanged_elements(loop))
    operands: dict[HloInstruction, HloInstruction] = {}
    """Initial values outside -> the fused computation's parameters."""
    state: list[HloInstruction] = []
    for value in initial:
        if value.opcode is Opcode.CONSTANT and value.shape.is_scalar:
            state.append(replace(value, name=""))
            continue
        if value not in operands:
            operands[value] = make_parameter(len(operands), value.shape, f"initial_{len(operands)}")
        state.append(operands[value])
    inner = make_instruction(Opcode.WHILE, (make_tuple(state),), loop.attributes, metadata=loop.metadata)
    note_replacements({**operands, loop: inner})
    elements = [make_get_tuple_element(inner, k) for k in results]
    root = elements[0] if len(elements) == 1 else make_tuple(elements)
    called = make_computation("native_loop", root, list(operands.values()))
    fusion = make_instruction(
        Opcode.FUSION, list(operands), FusionAttributes(FusionKind.CUSTOM, called), root.shape, name="loop_fusion",
        metadata=loop.metadata,
    )  # fmt: skip
    new = {k: fusion if len(results) == 1 else make_get_tuple_element(fusion, n) for n, k in enumerate(results)}
    return make_tuple([new.get(k, value) for k, value in enumerate(initial)])
