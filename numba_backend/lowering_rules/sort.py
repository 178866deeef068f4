"""The rows of sort and topk."""

from __future__ import annotations

import itertools

from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ..emit.long_sort import LongSort, long_sort_of
from ..emit.network_sort import network_sort_of
from ..emit.radix_sort import radix_sort_of
from ..emit.sort import merge_sort_of
from ..emit.topk import emit_topk
from ..runtime.program import Label
from ..runtime.threads import get_num_threads
from .table import LoweringContext, register


@register(
    Opcode.SORT,
    how="a kernel of its own: short rows by a network, others by the digits of keys (a long one in blocks), or merged "
    "with any comparator",
)
def _sort(context: LoweringContext, instruction: HloInstruction) -> None:
    if not instruction.operands[0].shape.num_elements:
        return
    read = [k for k, _ in enumerate(instruction.operands) if context.is_read(instruction, k)]
    long = long_sort_of(instruction, get_num_threads(), read)
    if long is not None:
        _sort_long(context, instruction, long)
        return
    sorter = network_sort_of(instruction) or radix_sort_of(instruction) or merge_sort_of(instruction)
    scratch = [context.scratch(element_type, count) for element_type, count in sorter.scratch()]
    operands = [*context.operands(instruction), *scratch]
    context.kernel(instruction.name, sorter.emit(), operands, context.results(instruction))


def _sort_long(context: LoweringContext, instruction: HloInstruction, sort: LongSort) -> None:
    steps = sort.emit()
    scratch = [context.scratch(element_type, count) for element_type, count in sort.scratch()]
    known = {"x": context.operands(instruction), "w": scratch, "out": context.results(instruction)}
    numbers = itertools.count()
    ends: list[Label] = []
    for when, some in itertools.groupby(steps, lambda step: step.when):
        if when is None:
            for end in ends:
                context.builder.place(end)
            ends = []
        else:
            (kind, number), is_first = when
            if is_first:
                ends = [context.builder.label(), context.builder.label()]
                context.builder.jump_if_false(known[kind][number], ends[0])
            else:
                context.builder.jump(ends[1])
                context.builder.place(ends.pop(0))
        for step in some:
            operands = [known[kind][number] for kind, number in step.operands]
            outputs = [known[kind][number] for kind, number in step.outputs]
            context.kernel(f"{instruction.name}.{next(numbers)}", step.kernel, operands, outputs)
    for end in ends:
        context.builder.place(end)


@register(Opcode.TOPK, how="a kernel of its own that selects; for a large k, a sort")
def _topk(context: LoweringContext, instruction: HloInstruction) -> None:
    if instruction.shape.elements[0].num_elements:
        kernel = emit_topk(instruction)
        context.kernel(instruction.name, kernel, context.operands(instruction), context.results(instruction))
