"""Compiling computations through the chosen backend, and running them on concrete arrays."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, TypeVar

from ..hlo.backend import (
    ALLOWS_EXCESS,
    AUTOTUNE,
    DEFAULT_KERNEL_COMPILER,
    KERNEL_COMPILER,
    MEMORY_BUDGET,
    SCHEDULES,
    DeviceBuffer,
    Executable,
    get_compiler,
)
from ..hlo.builder import make_computation, make_instruction, make_module, make_parameter, make_tuple
from ..hlo.errors import UnsupportedError
from ..hlo.host_buffers import HostBuffer, held_alone
from ..hlo.ir import Attributes, HloComputation, HloInstruction, HloModule, InputOutputAlias
from ..hlo.opcode import Opcode
from ..hlo.ops.control_flow import CallAttributes, WhileAttributes
from ..hlo.runners import ArraySlots
from ..hlo.shape import Shape
from ..hlo.stream_executor import StreamExecutor
from ..hlo.structural_key import structural_key
from ..hlo.support.garbage import collecting_seldom
from ..hlo.support.snapshots import snapshot
from ..hlo.target import Target
from ..hlo.timeline.spans import Track, spanning
from .arrays.array import DELETED, OTHER_FORMS, Array
from .aval import ShapedArray, aval_of_shape
from .caches import BoundedCache, on_clear
from .layers import LAYERS
from .profiling.logs import LOG_COMPILES, compiling, timed
from .profiling.monitoring import COMPILE_EVENT, DURATIONS
from .settings.context import Context, current_context
from .trees import tree
from .trees.treedef import spec_of

_buffers = attrgetter("_buffer")
T = TypeVar("T")


BEFORE_COMPILING: list[Callable[[], object]] = []
"""Functions that are called before each program is compiled. They may raise."""

ON_COMPILING: list[Callable[[HloModule, str | Target, Sequence[int]], object]] = []
"""Functions that are called with each module that is compiled for a jitted function, its target and donated parameters.
Elementary operations outside of jit are not among them."""

BEFORE_DONATING: list[Callable[[], object]] = []
"""Functions that are called before arrays are given away."""


CompileOptions = frozenset[tuple[str, object]]
"""Settings of a context, and their values, for one program."""

_ATTRIBUTES = {"autotune": AUTOTUNE, "excess_precision": ALLOWS_EXCESS}
"""The frontend attributes that stand for settings of a context."""


def check_is_alone(options: CompileOptions) -> None:
    """UnsupportedError for options that a program over several devices does not have."""
    if "schedules" in dict(options):
        raise UnsupportedError("schedule: a program over several devices has no kernels of one device to name")


def compile_module(
    module: HloModule, *, target: str | Target | None = None, donated: Sequence[int] = (),
    options: CompileOptions = frozenset(), is_function: bool = False,
) -> Executable:  # fmt: skip
    """Compile with the backend that `hloom.config.hloom_backend` names, for `hloom.config.hloom_target` or another.
    `options`: settings of this program, in place of the context's. `is_function`: it is one elementary function
    (`Compiler.compile_function`)."""
    for ask in BEFORE_COMPILING:
        ask()
    if target is None:
        target = current_context().target
    with spanning(Track.COMPILING, "load the compiler"):
        compiler = get_compiler(current_context().backend)
    module = with_options(module, options, is_function)
    if current_context().compiler != DEFAULT_KERNEL_COMPILER:
        chosen = KERNEL_COMPILER, current_context().compiler
        module = replace(module, frontend_attributes=(*module.frontend_attributes, chosen))
    if not is_function:
        for look in ON_COMPILING:
            look(module, target, donated)
    compile = compiler.compile_function if is_function else partial(compiler.compile, donated=donated)
    if not LOG_COMPILES.value and not DURATIONS:
        with collecting_seldom():
            return compile(module, target=target)
    compiling(module.name, [str(p.shape) for p in module.entry.parameters])
    with timed(f"compilation of {module.name}", COMPILE_EVENT), collecting_seldom():
        return compile(module, target=target)


def with_options(module: HloModule, options: CompileOptions, is_function: bool = False) -> HloModule:
    """The module with the attributes that stand for the settings of its program, and of the context. One elementary
    function has no budget: there is nothing to compute again."""
    given, context = dict(options), current_context()
    asked = [attribute for name, attribute in _ATTRIBUTES.items() if given.get(name) or getattr(context, name)]
    if text := given.get("schedules"):
        asked.insert(0, (SCHEDULES, str(text)))
    if (budget := given.get("memory_budget", context.memory_budget)) and not is_function:
        asked.append((MEMORY_BUDGET, str(budget)))
    return replace(module, frontend_attributes=(*module.frontend_attributes, *asked)) if asked else module


def module_of(name: str, entry: HloComputation, donated: Sequence[int] = ()) -> HloModule:
    """A module; each donated parameter's memory is offered to one result of its type."""
    module = make_module(name, entry, input_output_aliases=aliases_for(entry, donated))
    for look_at in _lookers:
        look_at(module)
    return module


_lookers: list[Callable[[HloModule], None]] = []


def look_at_modules(look_at: Callable[[HloModule], None]) -> None:
    """From now on `look_at` is called on each module that is lowered, which it may refuse by an error."""
    if look_at not in _lookers:
        _lookers.append(look_at)


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


# ---- running


def runner(
    executable: Executable,
    captured: Sequence[Array],
    out_avals: Sequence[ShapedArray],
    out_tree: Any,
    donated: Sequence[int],
) -> Callable[[Sequence[Array]], Any]:
    """A function from the arrays of a call (one for each leaf) to its result; the fastest one for these types."""
    call, extra, device = executable.call, [a._buffer for a in captured], executable.device
    new, avals, count = Array.__new__, tuple(out_avals), len(out_avals)
    unflatten = None if out_tree == _TUPLE_OF.get(len(avals)) else spec_of(out_tree).unflatten
    direct = None if donated else executable.direct_call()
    makers, run_program = direct or ((), _no_program)
    if direct is not None and len(makers) != count:
        raise ValueError(f"the program has {count} results, the backend has {len(makers)}")
    made_of = tuple(zip(avals, makers))

    def run(arrays: Sequence[Array]) -> Any:
        buffers = donations(arrays, donated, device) if donated else [array._buffer for array in arrays]
        made = call(buffers + extra if extra else buffers)
        if len(made) != count:  # zip's own test takes ten times as long
            raise ValueError(f"the program has {count} results, the backend gave {len(made)}")
        leaves = []
        for aval, buffer in zip(avals, made):
            leaf = new(Array)
            leaf._placed = None
            leaf.aval = aval
            leaf._buffer = buffer
            leaves.append(leaf)
        return tuple(leaves) if unflatten is None else unflatten(leaves)

    def run_to_many(arrays: Sequence[Array]) -> Any:
        buffers = [array._buffer for array in arrays]
        if extra:
            buffers += extra
        addresses = [buffer.address for buffer in buffers]
        leaves = []
        for aval, make in made_of:
            leaf = new(Array)
            leaf._placed = None
            leaf.aval = aval
            leaf._buffer = made = make()
            addresses.append(made.address)
            leaves.append(leaf)
        run_program(addresses)
        return tuple(leaves) if unflatten is None else unflatten(leaves)

    def run_to_one(arrays: Sequence[Array]) -> Array:
        result = new(Array)
        result._placed = None
        result.aval = only
        (result._buffer,) = call(list(map(_buffers, arrays)))
        return result

    def run_from_one(arrays: Sequence[Array]) -> Array:
        (argument,) = arrays
        buffer = argument._buffer  # held here: another thread may delete or donate the array meanwhile
        result = new(Array)
        result._placed = None
        result.aval = only
        result._buffer = made = make()
        run_program([buffer.address, made.address])
        return result

    def run_from_two(arrays: Sequence[Array]) -> Array:
        first, second = arrays
        one, other = first._buffer, second._buffer
        result = new(Array)
        result._placed = None
        result.aval = only
        result._buffer = made = make()
        run_program([one.address, other.address, made.address])
        return result

    def run_from_many(arrays: Sequence[Array]) -> Array:
        buffers = [array._buffer for array in arrays]
        result = new(Array)
        result._placed = None
        result.aval = only
        result._buffer = made = make()
        buffers.append(made)
        run_program([buffer.address for buffer in buffers])
        return result

    is_leaf = len(avals) == 1 and tree.treedef_is_strict_leaf(out_tree)
    found: Callable[[Sequence[Array]], Any] = run if direct is None else run_to_many
    if is_leaf and not extra and not donated:
        only = avals[0]
        found = run_to_one
        if direct is not None:
            (make,) = makers
            found = {1: run_from_one, 2: run_from_two}.get(len(executable.parameter_shapes), run_from_many)
    if direct is None and not donated:
        return found
    finish = None if is_leaf else tuple if unflatten is None else unflatten
    return executable.native_runner(found, _SLOTS, extra, avals, finish, donated)


_SLOTS = ArraySlots(Array, "aval", "_buffer", "_placed", "_absence", DELETED, OTHER_FORMS, BEFORE_DONATING)


def _no_program(addresses: list[int]) -> None:
    raise AssertionError("a program that is called with buffers")


_TUPLE_OF = {n: tree.structure((0,) * n) for n in range(32)}


class _Holder:
    __slots__ = ("buffer",)

    def __init__(self, buffer: DeviceBuffer) -> None:
        self.buffer = buffer


def donations(
    arrays: Sequence[Array], donated: Sequence[int], device: StreamExecutor | None
) -> list[DeviceBuffer]:
    """The buffers for a call that may overwrite the `donated` arrays, which are deleted from now on.

    `device`: the executable's. A donated buffer on another device is copied: it could not become a result.

    DeletedArrayError if one of the arrays is deleted already; unless another thread has just done that, no array of
    this call is given up then.
    """
    for prepare in BEFORE_DONATING:
        prepare()
    for array in arrays:
        _ = array._buffer
    del _
    buffers: list[Any] = [array._buffer for array in arrays]
    for k in donated:
        buffers[k] = None
    first: dict[int, int] = {}
    for k in donated:
        same = first.setdefault(id(arrays[k]), k)
        buffers[k] = _own_buffer(arrays[k], device) if same == k else _copied(buffers[same])
    return buffers


def _own_buffer(array: Array, device: StreamExecutor | None) -> DeviceBuffer:
    """The buffer of an array that is given away: a copy if anything else can see the same memory, or if that is not the
    memory of `device`.

    A user's NumPy view, another Array over it, a program that captured it, or a thread that is reading it can see it.
    They all hold a reference to the buffer or to the owner of its memory.
    """
    holder = _Holder(array.given_up())
    if held_alone(holder, "buffer") and holder.buffer.device is device and holder.buffer.is_exclusive():
        return holder.buffer
    return _copied(holder.buffer)


def _copied(buffer: DeviceBuffer) -> DeviceBuffer:
    with spanning(Track.COPIES, "copy of a donated array", bytes=buffer.shape.byte_size):
        return HostBuffer(buffer.__array__(copy=True), buffer.shape)


def run_flat(executable: Executable, arrays: Sequence[Array]) -> list[Array]:
    """Run on arrays of the parameters' types; the results, strongly typed."""
    results = executable.call(list(map(_buffers, arrays)))
    return [Array.from_buffer(aval_of_shape(s), b) for s, b in zip(executable.result_shapes, results, strict=True)]


def run_call(computation: HloComputation, arrays: Sequence[Array]) -> list[Array]:
    """Call a computation with flat parameters and a tuple as its root, by the bottom trace: a layer may defer it."""
    top = LAYERS.top
    return run_compiled(computation, arrays) if top is None else top.run_program(computation, arrays)


def run_compiled(computation: HloComputation, arrays: Sequence[Array]) -> list[Array]:
    """Call a computation with flat parameters and a tuple as its root now. Compiled once, while it is in use."""
    return run_flat(kept_by(computation, (None, current_context()), partial(_compiled_call, computation)), arrays)


def run_while(condition: HloComputation, body: HloComputation, arrays: Sequence[Array]) -> list[Array]:
    """Run a loop with computations that take one tuple."""
    make = partial(_compiled_while, condition, body)
    return run_flat(kept_by(body, (condition, current_context()), make), arrays)


def run_branch(computation: HloComputation, arrays: Sequence[Array]) -> list[Array]:
    """Run a branch: a computation that takes one tuple and returns one."""
    make = partial(_compiled_branch, computation)
    return run_flat(kept_by(computation, ("branch", current_context()), make), arrays)


def run_op(opcode: Opcode, arrays: Sequence[Array], attributes: Attributes, shape: Shape) -> list[Array]:
    """Run one op as a separate program: its result, or the elements of the tuple that it returns."""
    shapes = tuple([a.aval.hlo for a in arrays])
    return run_flat(_compiled_op(opcode, shapes, attributes, shape, current_context()), arrays)


_programs: BoundedCache[Executable] = BoundedCache(1024)
"""By structural key and context: equal computations share one program. It holds on to programs that will not come back,
so it is bounded."""
on_clear(_programs.clear)
_keepers: weakref.WeakSet[HloComputation] = weakref.WeakSet()


def kept_by(computation: HloComputation, key: Hashable, make: Callable[[], T]) -> T:
    """The result of `make`, compiled once. It is kept in `computation` and dies with it, as must the user's functions
    that the program calls."""
    programs: dict[Hashable, Any] | None = vars(computation).get(_PROGRAMS)
    if programs is None:
        programs = vars(computation).setdefault(_PROGRAMS, {})
        _keepers.add(computation)
    found: T | None = programs.get(key)
    return programs.setdefault(key, make()) if found is None else found


_PROGRAMS = "_programs"


def _drop_kept() -> None:
    for computation in snapshot(_keepers):
        vars(computation).pop(_PROGRAMS, None)


on_clear(_drop_kept)


def _compiled_call(computation: HloComputation) -> Executable:
    return _program_of(lambda: module_of(computation.name, computation), "call", computation)


def _compiled_while(condition: HloComputation, body: HloComputation) -> Executable:
    def make() -> HloModule:
        elements = body.parameters[0].shape.elements
        parameters = [make_parameter(k, s) for k, s in enumerate(elements)]
        loop = make_instruction(Opcode.WHILE, [make_tuple(parameters)], WhileAttributes(condition, body))
        return module_of("while", make_computation("main", loop, parameters))

    return _program_of(make, "while", condition, body)


def _compiled_branch(computation: HloComputation) -> Executable:
    def make() -> HloModule:
        elements = computation.parameters[0].shape.elements
        parameters = [make_parameter(k, s) for k, s in enumerate(elements)]
        call = make_instruction(Opcode.CALL, [make_tuple(parameters)], CallAttributes(computation))
        return module_of(computation.name, make_computation("main", call, parameters))

    return _program_of(make, "branch", computation)


def _program_of(make: Callable[[], HloModule], kind: str, *computations: HloComputation) -> Executable:
    """The program of the module that `make` makes from `computations`; equal computations share one."""
    keys = tuple([structural_key(c) for c in computations])
    if None in keys:
        return compile_module(make())
    key = (kind, current_context(), *keys)
    found = _programs.get(key)
    if found is None:
        found = _programs[key] = compile_module(make())
    return found


@lru_cache(maxsize=1024)
def _compiled_op(
    opcode: Opcode, operands: tuple[Shape, ...], attributes: Attributes, shape: Shape, context: Context
) -> Executable:
    parameters = [make_parameter(k, s) for k, s in enumerate(operands)]
    op = HloInstruction(opcode, shape, tuple(parameters), attributes)
    root = op if shape.is_tuple else make_tuple([op])
    return compile_module(module_of(opcode.value, make_computation("main", root, parameters)))


on_clear(_compiled_op.cache_clear)
