"""The evaluator's rule table, its interpreter, and its public functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import Context, ContextVar
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from ..collectives.communicator import ALONE, as_device, current_communicator
from ..effects import ACTING, has_side_effect, live_instructions
from ..errors import EmptyQueueError, ExecutionError
from ..ir import Attributes, HloComputation, HloInstruction, HloModule
from ..opcode import Opcode
from ..physical_array import to_physical
from ..rules import RulesByFamily
from ..shape import Shape, is_beyond_numpy
from ..support.memory_pressure import relieve
from ..support.value_tree import leaves_of, value_of

NDArray: TypeAlias = np.ndarray[Any, Any]
Value: TypeAlias = "NDArray | tuple[Value, ...]"
"""An instruction's value: an array (never a NumPy scalar), or a tuple of values."""

Rule: TypeAlias = Callable[..., Any]
"""rule(shape, attributes, *operands) -> Value of the instruction's `shape`.

Arrays are never written to, and may share memory with operands. NumPy's floating-point warnings are off while a rule
runs; a rule that runs computations calls `interpret`.
"""

EVALUATE: RulesByFamily[Rule] = RulesByFamily("evaluation")

# NumPy keeps its error state in a context variable (since 2.0). Running in a copy of a context that ignores all errors
# does the same as `np.errstate(all="ignore")` in a tenth of the time, which matters in eager execution.
_QUIET = Context()
_QUIET.run(np.seterr, all="ignore")


def evaluate_op(opcode: Opcode, operands: Sequence[Value], attributes: Attributes, shape: Shape) -> Any:
    """The value of one op on concrete operands: eager execution. UnsupportedError if the op has no value here.

    `shape` is the result's, as the op's shape rule infers it (`builder.check_shape`): nothing is checked here.
    """
    try:
        return _QUIET.copy().run(EVALUATE[opcode], shape, attributes, *operands)
    except MemoryError:
        if opcode in _HAS_EFFECTS or not relieve():
            raise
    return _QUIET.copy().run(EVALUATE[opcode], shape, attributes, *operands)


_HAS_EFFECTS = ACTING | frozenset({Opcode.CUSTOM_CALL, Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL})
"""Ops that may act on the world: they are not tried again when memory is short. The ops in their computations are tried
again one by one."""


def evaluate_computation(
    computation: HloComputation, arguments: Sequence[Value], observer: Observer | None = None
) -> Any:
    """The root's value of `computation`, for one argument for each parameter. Nothing is checked.

    `observer` is called after each instruction, in called computations too. A custom call that acts and returns nothing
    is then left out: the computation before it has run.

    >>> import numpy as np
    >>> from hloom import hlo
    >>> module = hlo.parse("ENTRY main { x = f32[3] parameter(0) ROOT y = f32[3] negate(x) }")
    >>> hlo.evaluate_computation(module.entry, [np.ones(3, np.float32)])
    array([-1., -1., -1.], dtype=float32)
    """
    context = _QUIET.copy()
    if observer is not None:
        context.run(_OBSERVER.set, observer)
    return context.run(interpret, computation, arguments)


Observer: TypeAlias = Callable[[HloInstruction, Value], None]
_OBSERVER: ContextVar[Observer | None] = ContextVar("observer", default=None)


def evaluate(module: HloModule, *arguments: Any) -> list[NDArray]:
    """Run `module` on `arguments`, one array-like for each leaf of the entry's parameters; return the result's leaves.

    ExecutionError if their number, dtypes or dimensions are not the parameters', or if it needs several devices.

    >>> import numpy as np
    >>> from hloom import hlo
    >>> module = hlo.parse("ENTRY main { x = f32[3] parameter(0) ROOT y = f32[3] negate(x) }")
    >>> hlo.evaluate(module, np.arange(3, dtype=np.float32))
    [array([-0., -1., -2.], dtype=float32)]
    """
    device = current_communicator()
    if (module.replica_count, module.num_partitions) != (device.num_replicas, device.num_partitions):
        if module.replica_count * module.num_partitions > 1:
            devices = f"{module.replica_count} replicas and {module.num_partitions} partitions"
            raise ExecutionError(
                f"module {module.name} is for {devices}: `evaluate_on_devices` takes the arguments of each of them"
            )
        device = ALONE
    with as_device(device):
        return list(leaves_of(evaluate_computation(module.entry, checked_arguments(module, arguments))))


def checked_arguments(module: HloModule, arguments: Sequence[Any]) -> list[Value]:
    """The values of the entry's parameters, from one array-like for each leaf. ExecutionError if these do not fit."""
    leaves = [leaf for parameter in module.entry.parameters for leaf in parameter.shape.leaves()]
    if len(arguments) != len(leaves):
        raise ExecutionError(f"module {module.name} takes {len(leaves)} arrays, not {len(arguments)}")
    arrays = [np.asarray(a) for a in arguments]
    for position, (array, leaf) in enumerate(zip(arrays, leaves)):
        if array.dtype != leaf.element.dtype or array.shape != leaf.dimensions:
            found = f"an array of {array.dtype} with dimensions {list(array.shape)}"
            raise ExecutionError(f"argument {position} of module {module.name} must be {leaf}, not {found}")
    source = iter(arrays)
    return [value_of(parameter.shape, source) for parameter in module.entry.parameters]


def interpret(computation: HloComputation, arguments: Sequence[Value]) -> Any:
    """Evaluate the instructions in order, each value dropped after its last use.

    Instructions that neither the root nor a side effect needs are skipped: an unused endless loop must not run.
    """
    values: dict[HloInstruction, Value] = dict(zip(computation.parameters, arguments, strict=True))
    observer = _OBSERVER.get()
    for instruction, last_used in _steps(computation):
        if observer is None:
            values[instruction] = _value(instruction, [values[o] for o in instruction.operands])
        elif instruction.opcode is Opcode.CUSTOM_CALL and is_silent(instruction):
            values[instruction] = ()
        else:
            value = values[instruction] = _value(instruction, [values[o] for o in instruction.operands])
            observer(instruction, value)
        for operand in last_used:
            del values[operand]
    return values[computation.root]


def is_silent(instruction: HloInstruction) -> bool:
    """True if the instruction returns nothing: it is there for its side effect alone."""
    return instruction.shape.is_tuple and not instruction.shape.elements


def evaluate_all(computation: HloComputation, arguments: Sequence[Value]) -> dict[HloInstruction, Value]:
    """The values of all instructions that the root or a side effect needs, and of all parameters: to find a wrong one.
    `evaluate_computation` keeps no value longer than it is needed."""
    return _QUIET.copy().run(_all_values, computation, arguments)


def _all_values(computation: HloComputation, arguments: Sequence[Value]) -> dict[HloInstruction, Value]:
    values: dict[HloInstruction, Value] = dict(zip(computation.parameters, arguments, strict=True))
    for instruction, _ in _steps(computation):
        values[instruction] = _value(instruction, [values[o] for o in instruction.operands])
    return values


def evaluate_instruction(instruction: HloInstruction, operands: Sequence[Value]) -> Any:
    """The value of an instruction of a program, for values of its operands. Nothing is checked."""
    return _QUIET.copy().run(_value, instruction, list(operands))


def _value(instruction: HloInstruction, operands: list[Value]) -> Value:
    if instruction.opcode is Opcode.BITCAST:
        operands = [_buffer(operands[0], instruction.operands[0].shape)]
    rule = EVALUATE[instruction.opcode]
    value: Value
    try:
        try:
            value = rule(instruction.shape, instruction.attributes, *operands)
        except MemoryError:
            if has_side_effect(instruction) or not relieve():
                raise
            value = rule(instruction.shape, instruction.attributes, *operands)
    except EmptyQueueError as error:
        error.instruction = error.instruction or instruction.name
        raise
    except ValueError as error:
        if any(is_beyond_numpy(shape) for shape in (instruction.shape, *(o.shape for o in instruction.operands))):
            what = f"{instruction.opcode.value} of {instruction.shape}"
            raise MemoryError(f"no memory for {what}") from error
        raise
    return value


_Steps: TypeAlias = "tuple[tuple[HloInstruction, tuple[HloInstruction, ...]], ...]"
_known_steps: WeakKeyDictionary[HloComputation, _Steps] = WeakKeyDictionary()


def _steps(computation: HloComputation) -> _Steps:
    """The instructions to evaluate, in order, each with the values that are not needed after it."""
    known = _known_steps.get(computation)
    if known is None:
        live = live_instructions(computation)
        order = [i for i in computation.instructions if i in live and i.opcode is not Opcode.PARAMETER]
        last_use = {operand: instruction for instruction in order for operand in instruction.operands}
        last_use.pop(computation.root, None)
        known = _known_steps[computation] = tuple(
            (i, tuple([o for o in dict.fromkeys(i.operands) if last_use.get(o) is i])) for i in order
        )
    return known


def _buffer(array: Any, shape: Shape) -> Any:
    """An array whose row-major bytes are the bytes of `array` in the layout of `shape`."""
    layout = shape.array_layout
    if not layout.is_dense:
        return to_physical(array, shape)
    return array if layout.is_row_major else array.transpose(layout.minor_to_major[::-1])
