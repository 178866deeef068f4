"""Elementary functions outside of jit: the backend's own code, so that they equal compiled programs bit for bit.

NumPy's `exp` and the backend's differ in the last bit of many numbers, both within an ulp of the truth; a program that
gives other results under jit is hard to trust all the same. `hlo/elementary.py` lists the ops and types; all others
stay NumPy's calls. The evaluator defines the functions.

A function is a program of one op for each combination of types; all sizes share its kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..hlo.array_address import DATA_POINTERS, WORD_SHIFT
from ..hlo.builder import make_computation, make_instruction, make_parameter, make_tuple
from ..hlo.errors import UnsupportedError
from ..hlo.ir import NO_ATTRIBUTES, Attributes, HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.ops.movement import BroadcastAttributes
from ..hlo.shape import Shape
from .arrays.array import Array
from .aval import ShapedArray
from .caches import MAX_PROGRAMS, on_clear
from .execution import compile_module, module_of, runner
from .settings.context import current_context
from .trees import tree

_O = Opcode
_Run = Callable[[Sequence[Array]], Any]
_runs: dict[object, _Run] = {}
"""Emptied when it has MAX_PROGRAMS: to keep an order of use takes as long as some functions."""
on_clear(_runs.clear)
_UNSUPPORTED: set[object] = set()
on_clear(_UNSUPPORTED.clear)


def run_function(opcode: Opcode, arrays: Sequence[Array], attributes: Attributes, shape: Shape) -> Array | None:
    """The op on concrete arrays, with scalars broadcast; the result is strongly typed. None where the backend has no
    such function, as the reference has none."""
    context = current_context()
    key: tuple[object, ...] = (opcode, context, *[a.aval for a in arrays])
    if attributes is not NO_ATTRIBUTES:
        key = (*key, attributes)
    run = _runs.get(key)
    if run is None:
        if context.backend == "evaluator" or not shape.num_elements or key in _UNSUPPORTED:
            return None
        if len(_runs) >= MAX_PROGRAMS:
            _runs.clear()
        try:
            run = _runs[key] = _made(opcode, [a.aval for a in arrays], attributes, shape)
        except UnsupportedError:
            _UNSUPPORTED.add(key)
            return None
    found: Array = run(arrays)
    return found


def _made(opcode: Opcode, avals: Sequence[ShapedArray], attributes: Attributes, shape: Shape) -> _Run:
    parameters = [make_parameter(k, aval.hlo) for k, aval in enumerate(avals)]
    op = HloInstruction(opcode, shape, tuple([_broadcast(p, shape) for p in parameters]), attributes)
    module = module_of(opcode.value, make_computation("main", make_tuple([op]), parameters))
    aval = ShapedArray(shape.dimensions, shape.element.dtype)
    executable = compile_module(module, is_function=True)
    if shape.byte_size <= _SMALL and executable.device is None and executable.result_shapes[0] == shape:
        direct = executable.direct_call()
        if direct is not None:
            return _to_numpy(direct[1], len(avals), aval)
    return runner(executable, (), (aval,), tree.structure(0), ())


_SMALL = 1 << 15
"""The largest result, in bytes, that uses memory of NumPy: the next operation is usually a call of NumPy, and making a
NumPy view of the backend's memory takes longer than such a function. Larger memory is recycled."""


def _to_numpy(run_program: Callable[[list[int]], None], count: int, aval: ShapedArray) -> _Run:
    """As `runner` for one result, which is a NumPy array. `count`: of the arguments."""
    new, empty, dimensions, dtype = Array.__new__, np.empty, aval.shape, aval.dtype

    def run_from_one(arrays: Sequence[Array]) -> Array:
        (argument,) = arrays
        buffer = argument._buffer  # held here: another thread may delete the array meanwhile
        view = empty(dimensions, dtype)
        run_program([buffer.address, DATA_POINTERS[id(view) >> WORD_SHIFT]])
        result = new(Array)
        result._placed = None
        result.aval = aval
        result._view = view
        return result

    def run_from_many(arrays: Sequence[Array]) -> Array:
        buffers = [array._buffer for array in arrays]
        view = empty(dimensions, dtype)
        addresses = [buffer.address for buffer in buffers]
        addresses.append(DATA_POINTERS[id(view) >> WORD_SHIFT])
        run_program(addresses)
        result = new(Array)
        result._placed = None
        result.aval = aval
        result._view = view
        return result

    return run_from_one if count == 1 else run_from_many


def _broadcast(operand: HloInstruction, shape: Shape) -> HloInstruction:
    if operand.shape.dimensions == shape.dimensions:
        return operand
    full = Shape.array(operand.shape.element, shape.dimensions)
    return make_instruction(_O.BROADCAST, (operand,), BroadcastAttributes(()), shape=full)
