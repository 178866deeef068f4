"""Compiling computations through the chosen backend, and running them on concrete arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ..hlo.attributes import WhileAttributes
from ..hlo.backend import Executable, get_compiler
from ..hlo.builder import make_computation, make_instruction, make_module, make_parameter, make_tuple
from ..hlo.ir import HloComputation, HloModule, InputOutputAlias
from ..hlo.opcode import Opcode
from ..hlo.shape import Shape
from .array import Array
from .aval import aval_of_shape
from .config import config


def compile_module(module: HloModule, *, target: str = "cpu", donated: Sequence[int] = ()) -> Executable:
    """Compile with the backend that `hloom.config.hloom_backend` names."""
    return get_compiler(config.hloom_backend).compile(module, target=target, donated=donated)


def module_of(name: str, entry: HloComputation, donated: Sequence[int] = ()) -> HloModule:
    """A module; each donated parameter's memory is offered to one result of its type."""
    return make_module(name, entry, input_output_aliases=aliases_for(entry, donated))


def aliases_for(entry: HloComputation, donated: Sequence[int]) -> tuple[InputOutputAlias, ...]:
    """Pair donated parameters with results of the same type, in order, as JAX does."""
    free: dict[Shape, list[int]] = {}
    for k, shape in enumerate(entry.root.shape.elements):
        free.setdefault(shape, []).append(k)
    found = []
    for number in sorted(donated):
        candidates = free.get(entry.parameters[number].shape)
        if candidates:
            found.append(InputOutputAlias((candidates.pop(0),), number))
    return tuple(sorted(found, key=lambda a: a.output_index))


def run(executable: Executable, arrays: Sequence[Array]) -> list[Array]:
    """Run on arrays of the parameters' types; the results are strongly typed."""
    shapes = executable.result_shapes
    results = executable.call([a._buffer for a in arrays])
    return [Array.from_buffer(aval_of_shape(s), b) for s, b in zip(shapes, results, strict=True)]


def run_call(computation: HloComputation, arrays: Sequence[Array]) -> list[Array]:
    """Call a computation of flat parameters whose root is a tuple. Compiled once while it is in use."""
    return run(_compiled_call(computation, config.hloom_backend), arrays)


def run_while(condition: HloComputation, body: HloComputation, arrays: Sequence[Array]) -> list[Array]:
    """Run a loop whose computations take one tuple."""
    return run(_compiled_while(condition, body, config.hloom_backend), arrays)


# Computations are hashed by identity, so these caches hold on to some that will not come back: they are bounded.


@lru_cache(maxsize=256)
def _compiled_call(computation: HloComputation, backend: str) -> Executable:
    return compile_module(module_of(computation.name, computation))


@lru_cache(maxsize=256)
def _compiled_while(condition: HloComputation, body: HloComputation, backend: str) -> Executable:
    elements = body.parameters[0].shape.elements
    parameters = [make_parameter(k, s) for k, s in enumerate(elements)]
    loop = make_instruction(Opcode.WHILE, [make_tuple(parameters)], WhileAttributes(condition, body))
    return compile_module(module_of("while", make_computation("main", loop, parameters)))
