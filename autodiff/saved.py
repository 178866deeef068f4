"""`print_saved_residuals`: the values that a function's backward pass gets from its forward pass, and where they come
from. It traces the function and runs nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..hlo.instruction import HloInstruction
from ..hlo.opcode import Opcode
from ..tracer.arguments import NO_STATICS, abstract, check_function, leaf_describer, leaf_names
from ..tracer.arrays.array import as_value
from ..tracer.aval import ShapedArray, aval_of_shape
from ..tracer.core import Value, call_of
from ..tracer.ops import is_inexact
from ..tracer.recording import HloTracer, trace_to_computation
from ..tracer.traced import JIT
from ..tracer.trees import tree
from .linearize import linearize_flat
from .operations import NAME, operation_of
from .remat import CHECKPOINT


def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[ShapedArray, str]]:
    """For each value that is kept: its type, and where it comes from. Arguments first."""
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

    computation = trace_to_computation(run, avals, getattr(f, "__name__", "function"), tracks_varying=True).computation
    place = {p: k for k, p in enumerate(computation.parameters)}
    kept.sort(key=lambda i: place.get(i, len(place)))  # the others stay in the order in which they are used
    found = [(aval_of_shape(i.shape), _origin(i, names)) for i in kept]
    return [*found, *((aval, "from a constant") for aval in constants)]


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


def _origin(instruction: HloInstruction, names: Sequence[str]) -> str:
    if instruction.opcode is Opcode.PARAMETER:
        number = instruction.attributes.number
        return f"from the argument {names[number]}" if number < len(names) else "from a constant"
    source, name = _made_by(instruction)
    metadata = source.metadata or instruction.metadata
    line = f" from {metadata.source_file}:{metadata.source_line}" if metadata and metadata.source_file else ""
    return f"{name}{line}"


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
