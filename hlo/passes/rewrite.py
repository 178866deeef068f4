"""Functions that every pass uses to rebuild a module: only changed instructions are new, all others stay the same
objects.

A pass that changes nothing returns the module it was given, so "did it change?" is `new is old`. Nothing here
recurses over operands: programs may be deeper than Python's stack. Rules that know opcodes do not belong here.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from ..builder import with_unique_names
from ..effects import effects_of, live_instructions, needed_by
from ..ir import NO_ATTRIBUTES, HloComputation, HloInstruction, HloModule, Metadata
from ..opcode import Opcode
from ..provenance import note_made, note_replacements


class HloPass(Protocol):
    """A transformation of modules. Passes are frozen dataclasses with their options as fields."""

    @property
    def name(self) -> str:
        """Its name in dumps, records and HLOOM_DISABLE_PASSES."""

    def __call__(self, module: HloModule) -> HloModule:
        """The rewritten module; the same object if nothing changed."""


def is_idempotent(each: HloPass) -> bool:
    """True for a pass that says that it finds nothing to do in its own result."""
    return getattr(each, "is_idempotent", False)


Visit = Callable[[HloInstruction, HloInstruction], HloInstruction]
"""visit(old, moved): the replacement of `old`. `moved` is `old` on the replacements of its operands (`old` itself if
none changed). Returns `moved` to keep it, an existing instruction, or a new one, perhaps on new operands."""


Effects = dict[HloInstruction, Sequence[HloInstruction]]
"""By replaced instruction: new instructions with side effects that its replacement does not need."""


def rewrite_computation(
    computation: HloComputation, visit: Visit, effects: Effects | None = None
) -> HloComputation:
    """`computation` with each instruction replaced by the result of `visit`, operands before users.

    Program order is kept: a new instruction takes the position of the one that it replaces. Instructions that neither
    the root nor an instruction with side effects needs are dropped, except parameters. A replacement without metadata
    gets the metadata of the instruction that it replaces. A `visit` that replaces an instruction by a computation
    enters into `effects`, in program order, the instructions with side effects that the replacement does not need.
    The same computation is returned if every instruction was kept.
    """
    mapping: dict[HloInstruction, HloInstruction] = {}
    untouched = mapping.keys().isdisjoint
    for old in computation.instructions:
        moved = old
        if not untouched(old.operands):
            moved = old.with_operands(tuple([mapping.get(o, o) for o in old.operands]))
        new = visit(old, moved)
        if new is not old:
            if new.metadata is None and old.metadata is not None and not new.name:
                new = replace(new, metadata=old.metadata)
            mapping[old] = new
    return rebuild(computation, mapping, effects) if mapping else computation


def rebuild(
    computation: HloComputation, mapping: Mapping[HloInstruction, HloInstruction], effects: Effects | None = None
) -> HloComputation:
    """`computation` after the replacements in `mapping`, dead code dropped, in program order.

    The values of `mapping` must already have replaced operands. `effects`: see `rewrite_computation`.
    """
    note_replacements(mapping, trees=True)
    for old, several in (effects or {}).items():
        for new in several:
            note_made(new, (old,))
    root = mapping.get(computation.root, computation.root)
    acting = [mapping.get(old, old) for old in effects_of(computation)]
    added = effects or {}
    live = needed_by((root, *acting, *[new for several in added.values() for new in several]))
    order: dict[HloInstruction, None] = {}
    for old in computation.instructions:
        if old in added:
            for new in added[old]:
                if new not in order:
                    _append(new, order)
        new = mapping.get(old, old)
        if new in order:
            continue
        # of an unused one, even if its value is now read through another instruction
        if new in live or old.opcode is Opcode.PARAMETER:
            _append(new, order)
    return HloComputation(computation.name, tuple(order), root)


def _append(instruction: HloInstruction, order: dict[HloInstruction, None]) -> None:
    """Append `instruction` to `order`, after all instructions that it needs and that are not there yet."""
    for operand in instruction.operands:
        if operand not in order:
            break
    else:
        order[instruction] = None
        return
    stack = [instruction]
    while stack:
        node = stack[-1]
        missing = [o for o in node.operands if o not in order]
        if missing:
            stack.extend(reversed(missing))
        else:
            stack.pop()
            order[node] = None


def map_computations(
    module: HloModule,
    function: Callable[[HloComputation], HloComputation],
    *,
    inside_fusions: bool = False,
    renamed: dict[HloInstruction, HloInstruction] | None = None,
    own: Container[HloInstruction] = (),
) -> HloModule:
    """The module with `function` applied to every computation, callees first; itself if nothing changed.

    A caller that `function` gets already calls the new computations. Bodies of fusions are skipped unless
    `inside_fusions`. New instructions get names; `renamed` receives instructions that were replaced only for a name.
    `own`: new instructions that have names, which may change.
    """
    return map_each_computation(
        module, lambda old, current: function(current), inside_fusions=inside_fusions, renamed=renamed, own=own
    )


def map_each_computation(
    module: HloModule,
    function: Callable[[HloComputation, HloComputation], HloComputation],
    *,
    inside_fusions: bool = False,
    renamed: dict[HloInstruction, HloInstruction] | None = None,
    shown: bool = False,
    own: Container[HloInstruction] = (),
    new: dict[HloComputation, HloComputation] | None = None,
) -> HloModule:
    """`map_computations` for a function that needs the original computations: function(old, current).

    `old` is the computation in `module`, and `current` is the same one, calling the new computations. `shown`: new
    instructions will be shown as the function made them, without names, so that copies get the names. `new`: a
    dictionary that receives the new computations; then `current` is `old`, and the function sees to what its
    instructions call (`calling`), so that a computation is not rebuilt for that alone.
    """
    fused = set() if inside_fusions else fused_computations(module)
    sees_to_calls = new is not None
    new = {} if new is None else new
    for old in module.computations:
        current = old if sees_to_calls and old not in fused else with_called(old, new)
        changed = current if old in fused else function(old, current)
        if changed is not old:
            new[old] = changed
    entry = new.get(module.entry, module.entry)
    if entry is module.entry:
        return module

    def is_new(instruction: HloInstruction) -> bool:
        # All instructions of the old module have names. Instructions that outlive a pass, such as a reducer that is
        # made once for all modules, must have them too.
        return not instruction.name or instruction in own

    return with_unique_names(replace(module, entry=entry), renamed, None if shown else is_new)


def fused_computations(module: HloModule) -> set[HloComputation]:
    """The bodies of the module's fusions (and the computations that these call)."""
    found: set[HloComputation] = set()
    for computation in reversed(module.computations):  # callers first
        inside = computation in found
        for instruction in computation.callers:
            if inside or instruction.opcode is Opcode.FUSION:
                found.update(instruction.called_computations())
    return found


def with_called(computation: HloComputation, new: Mapping[HloComputation, HloComputation]) -> HloComputation:
    """`computation` calling `new[c]` wherever it called `c`; itself if that makes no difference."""

    if not new or not any(new.get(c, c) is not c for c in computation.callees):
        return computation
    return rewrite_computation(computation, lambda old, moved: calling(moved, new))


def calling(instruction: HloInstruction, new: Mapping[HloComputation, HloComputation]) -> HloInstruction:
    """`instruction` calling `new[c]` wherever it called `c`; itself if that makes no difference."""
    if instruction.attributes is NO_ATTRIBUTES:
        return instruction
    attributes = instruction.attributes.map_computations(lambda c: new.get(c, c))
    return instruction if attributes is instruction.attributes else replace(instruction, attributes=attributes)


def clone_computation(
    computation: HloComputation,
    operands: Mapping[HloInstruction, HloInstruction],
    caller: Metadata | None = None,
) -> tuple[HloInstruction, dict[HloInstruction, HloInstruction]]:
    """Copies of a computation's instructions with `operands` in the place of its parameters.

    Returns the copy of the root and the whole mapping. The copies keep names (made unique later) and metadata; metadata
    without a source line gets `caller`'s. Dead code is not copied, but side effects are: a caller that inserts the
    copies at another place passes these on (see `cloned_effects`).
    """
    mapping = dict(operands)
    live = live_instructions(computation)
    for old in computation.instructions:
        if old in live and old not in mapping:
            copied = tuple([mapping[o] for o in old.operands])
            new = old.with_operands(copied) if copied else replace(old)
            mapping[old] = new if caller is None else _located(new, caller)
    note_replacements(mapping, besides=operands)
    return mapping[computation.root], mapping


def _located(instruction: HloInstruction, caller: Metadata) -> HloInstruction:
    """The instruction, with the caller's line if its metadata names none: it was made for many callers."""
    metadata = instruction.metadata
    if metadata is None or metadata.source_file or not caller.source_file:
        return instruction
    line = replace(metadata, source_file=caller.source_file, source_line=caller.source_line)
    return replace(instruction, metadata=line)


def cloned_effects(
    computation: HloComputation, mapping: Mapping[HloInstruction, HloInstruction]
) -> list[HloInstruction]:
    """The copies of a computation's instructions with side effects, for `Effects`."""
    return [mapping[effect] for effect in effects_of(computation)]
