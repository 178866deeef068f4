"""`print_saved_residuals`: the values that a function's backward pass gets from its forward pass, and where they come
from. It traces the function and runs nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ..hlo.instruction import HloInstruction
from ..hlo.metadata import PlacedMetadata, line_of
from ..hlo.opcode import Opcode
from ..tracer.arguments import NO_STATICS, abstract, check_function, leaf_describer, leaf_names
from ..tracer.arrays.array import as_value
from ..tracer.aval import ShapedArray, aval_of_shape
from ..tracer.core import Value, call_of, exact_places
from ..tracer.ops import is_inexact
from ..tracer.recording import HloTracer, trace_to_computation
from ..tracer.traced import JIT
from ..tracer.trees import tree
from .linearize import linearize_flat
from .operations import NAME, operation_of
from .remat import CHECKPOINT


def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[ShapedArray, str]]:
    """For each value that is kept: its type, and where it comes from. JAX's order: literals, constants, arguments, and
    other values in the order in which they are computed."""
    check_function(f, "saved_residuals")
    leaves, structure = tree.flatten((args, kwargs))
    names = leaf_names(f, args, kwargs, NO_STATICS)
    describe = leaf_describer(f, args, kwargs)
    avals = [abstract(leaf, partial(describe, k)) for k, leaf in enumerate(leaves)]
    kept: list[HloInstruction] = []
    constants: list[ShapedArray] = []

    def run(values: list[Value]) -> list[Value]:
        def flat(values: list[Value]) -> list[Value]:
            positional, keywords = tree.unflatten(structure, values)
            return [as_value(leaf) for leaf in tree.leaves(f(*positional, **keywords))]

        results, program = linearize_flat(flat, values, [is_inexact(a.dtype) for a in avals])
        _, residuals = program.computation("residuals")
        for value in residuals:
            if isinstance(value, HloTracer):
                kept.append(value.instruction)
            else:
                constants.append(value.aval)
        return results

    with exact_places():
        trace_to_computation(run, avals, getattr(f, "__name__", "function"), tracks_varying=True)
    found = [_Residual(_LITERAL if not aval.shape else _CONSTANT, aval, _TEXTS[bool(aval.shape)]) for aval in constants]
    found += [_residual(i, names) for i in kept]
    return [(r.aval, r.origin) for r in sorted(found, key=lambda r: r.order)]


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print a line for each value that the backward pass of ``f(*args, **kwargs)`` gets from its forward pass: its
    type, and which argument or operation it comes from. JAX's `print_saved_residuals`.

    >>> hloom.ad_checkpoint.print_saved_residuals(lambda x: jnp.sin(x) * 3, 1.0)
    f32[] output of cos from ...
    """
    for aval, origin in saved_residuals(f, *args, **kwargs):
        print(f"{_short(aval)} {origin}")


def _short(aval: ShapedArray) -> str:
    """The type as JAX writes it: ``f32[2,3]``, ``i32[]``."""
    name = re.sub("^s(?=[0-9])", "i", aval.hlo.element.value).replace("pred", "bool")
    return f"{name}[{','.join(map(str, aval.shape))}]"


class _Residual(NamedTuple):
    order: tuple[int, ...]
    aval: ShapedArray
    origin: str


_LITERAL, _CONSTANT, _ARGUMENT, _COMPUTED = (0,), (1,), 2, 3
_TEXTS = "from a literal", "from a constant"


def _residual(instruction: HloInstruction, names: Sequence[str]) -> _Residual:
    aval = aval_of_shape(instruction.shape)
    if instruction.opcode is Opcode.PARAMETER:
        number = instruction.attributes.number
        if number < len(names):
            return _Residual((_ARGUMENT, number), aval, f"from the argument {names[number]}")
        return _Residual(_CONSTANT, aval, _TEXTS[1])
    if instruction.opcode is Opcode.CONSTANT:
        return _Residual(_CONSTANT if aval.shape else _LITERAL, aval, _TEXTS[bool(aval.shape)])
    source, name = _made_by(instruction)
    outer = instruction.operands[0] if instruction.opcode is Opcode.GET_TUPLE_ELEMENT else instruction
    order = (_COMPUTED, *(i.metadata.order for i in (outer, source) if isinstance(i.metadata, PlacedMetadata)))
    metadata = source.metadata or instruction.metadata
    if metadata is None or not metadata.source_file:
        return _Residual(order, aval, name)
    place = metadata if isinstance(metadata, PlacedMetadata) else line_of(metadata)
    return _Residual(order, aval, f"{name} from {place}")


def _made_by(instruction: HloInstruction) -> tuple[HloInstruction, str]:
    """The operation that computes a value, and its name. A checkpoint is looked into."""
    if instruction.opcode is not Opcode.GET_TUPLE_ELEMENT:
        return instruction, f"output of {operation_of(instruction).primitive}"
    source, index = instruction.operands[0], instruction.attributes.index
    if source.opcode is not Opcode.CALL:
        return _made_by(source)
    call = call_of(source.attributes)
    if call.primitive is NAME:
        return source, f"named {call.params!r}"
    if call.primitive is JIT:
        return source, f"output of jitted function {call.label!r}"
    if call.primitive is CHECKPOINT:
        result = source.attributes.to_apply.root.operands[index]
        if result.opcode is not Opcode.PARAMETER:
            return _made_by(result)
    return source, f"output of {operation_of(source).primitive}"
