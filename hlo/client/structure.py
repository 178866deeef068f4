"""ComputationBuilder's operations that structure a program: tuples, calls, loops, map, queues, random numbers.

Source: the sections "Call", "CustomCall", "GetTupleElement", "Infeed", "Map", "RngBernoulli", "RngNormal",
"RngUniform", "Tuple", "While", and the seeds' C++ interface.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..opcode import Opcode
from ..ops.asynchronous import InfeedAttributes, OutfeedAttributes
from ..ops.control_flow import CallAttributes, WhileAttributes
from ..ops.custom_call import CustomCallAttributes
from ..ops.elementwise import CompareAttributes, ComparisonDirection, MapAttributes
from ..ops.movement import BroadcastAttributes, DynamicSliceAttributes
from ..ops.random import RandomDistribution, RngAttributes
from ..ops.structure import GetTupleElementAttributes
from ..shape import Shape
from .constants import constant_r0, literal, parameter
from .construction import Construction, Handle, Integers, called, integer, integers, of_kind, refuse
from .elementwise import apply_binary
from .handle import Computation
from .movement import broadcast, dynamic_update_slice, reshape

TRACE_TARGET = "hloom.trace"
"""The custom call that `trace` makes."""


# ---- tuples


def tuple_(build: Construction, elements: Sequence[Handle]) -> Handle:
    """A tuple of any values."""
    return build.enqueue(Opcode.TUPLE, elements)


def get_tuple_element(build: Construction, tuple_data: Handle, index: int) -> Handle:
    """Element `index` of a tuple."""
    position = integer(index, "the index")
    return build.enqueue(Opcode.GET_TUPLE_ELEMENT, [tuple_data], GetTupleElementAttributes(position))


# ---- computations


def call(build: Construction, computation: Computation, operands: Sequence[Handle]) -> Handle:
    """The result of calling `computation` on `operands`, one for each parameter."""
    return build.enqueue(Opcode.CALL, operands, CallAttributes(called(computation)))


def while_(build: Construction, condition: Computation, body: Computation, init: Handle) -> Handle:
    """Starts with `init` and applies `body` to the state as long as `condition` returns true for it."""
    attributes = WhileAttributes(called(condition), called(body))
    return build.enqueue(Opcode.WHILE, [init], attributes)


def map_(
    build: Construction,
    operands: Sequence[Handle],
    computation: Computation,
    static_operands: Sequence[Handle] = (),
    dimensions: Integers | None = None,
) -> Handle:
    """`computation` applied to the scalars at one index of all `operands`, for each index.

    It gets the whole `static_operands` after the scalars. `dimensions`, if given, are all dimensions of the operands,
    in order. HLO's map has no static operands: scalars among them are broadcast; with arrays among them the result is
    made by a loop.
    """
    applied = called(computation)
    if not operands:
        refuse("there must be an operand to map over", "map_c1")
    shape = build.array(operands[0])
    places = tuple(range(shape.rank)) if dimensions is None else integers(dimensions, "dimensions")
    if any(build.shape(o).dimensions for o in static_operands):
        return _map_by_loop(build, operands, computation, static_operands, places)
    splats = [
        build.enqueue(
            Opcode.BROADCAST, [o], BroadcastAttributes(()), Shape.array(build.array(o).element, shape.dimensions)
        )
        for o in static_operands
    ]
    mapped = [*operands, *splats]
    return build.enqueue(Opcode.MAP, mapped, MapAttributes(places, applied))


def custom_call(build: Construction, call_target_name: str, operands: Sequence[Handle], shape: Shape) -> Handle:
    """The result, of type `shape`, of the function registered as `call_target_name` on `operands`."""
    attributes = CustomCallAttributes(of_kind(call_target_name, str, "the target"))
    return build.enqueue(Opcode.CUSTOM_CALL, operands, attributes, of_kind(shape, Shape, "the shape"))


def custom_call_op(build: Construction, call_target_name: str, operands: Sequence[Handle], shape: Shape) -> Handle:
    """As `custom_call`."""
    return custom_call(build, call_target_name, operands, shape)


def trace(build: Construction, tag: str, operand: Handle) -> None:
    """Log `tag` and the operand when the computation runs (level INFO of the logger `hloom.trace`)."""
    config = of_kind(tag, str, "the tag")
    attributes = CustomCallAttributes(TRACE_TARGET, backend_config=config, has_side_effect=True)
    build.enqueue(Opcode.CUSTOM_CALL, [operand], attributes, Shape.tuple(()))


# ---- queues; a computation uses them in the order in which the uses are enqueued


def infeed(build: Construction, shape: Shape, config: str = "") -> Handle:
    """The next value of the queue into the device; it must be of type `shape`."""
    result = Shape.tuple([of_kind(shape, Shape, "the shape"), Shape.token()])
    fed = build.enqueue(Opcode.INFEED, [_token(build)], InfeedAttributes(config), result)
    build.token = build.enqueue(Opcode.GET_TUPLE_ELEMENT, [fed], GetTupleElementAttributes(1)).instruction
    return build.enqueue(Opcode.GET_TUPLE_ELEMENT, [fed], GetTupleElementAttributes(0))


def outfeed(build: Construction, operand: Handle, shape: Shape | None = None, outfeed_config: str = "") -> None:
    """Put the operand into the queue out of the device. `shape`: its type, with the layout wanted."""
    shape = build.shape(operand) if shape is None else of_kind(shape, Shape, "the shape")
    attributes = OutfeedAttributes(shape, outfeed_config)
    build.token = build.enqueue(Opcode.OUTFEED, [operand, _token(build)], attributes).instruction


# ---- random numbers, from the process's state


def rng_normal(build: Construction, mu: Handle, sigma: Handle, shape: Shape) -> Handle:
    """Normally distributed numbers of mean `mu` and standard deviation `sigma`."""
    return _rng(build, [mu, sigma], RandomDistribution.NORMAL, shape)


def rng_uniform(build: Construction, a: Handle, b: Handle, shape: Shape) -> Handle:
    """Numbers uniformly distributed in [a, b)."""
    return _rng(build, [a, b], RandomDistribution.UNIFORM, shape)


def rng_bernoulli(build: Construction, mean: Handle, shape: Shape) -> Handle:
    """1 with probability `mean`, else 0."""
    return _rng(build, [mean], RandomDistribution.BERNOULLI, shape)


# ---- helpers


def _rng(build: Construction, parameters: Sequence[Handle], distribution: RandomDistribution, shape: Shape) -> Handle:
    found = of_kind(shape, Shape, "the shape")
    return build.enqueue(Opcode.RNG, parameters, RngAttributes(distribution), found)


def _token(build: Construction) -> Handle:
    """The token that the next use of a queue follows."""
    if build.token is None:
        build.token = build.enqueue(Opcode.AFTER_ALL, ()).instruction
    return Handle(build, build.token)


def _map_by_loop(
    build: Construction,
    operands: Sequence[Handle],
    computation: Computation,
    static: Sequence[Handle],
    places: Sequence[int],
) -> Handle:
    """One call for each element, in row-major order. The loop's state: index, result so far, operands, static operands.

    map_c1: the operands have the same dimensions; map_c2: `dimensions` are all of these, in order; map_c3: the
    computation returns a scalar. The call checks its parameters.
    """
    shapes = [build.array(o) for o in operands]
    sizes = shapes[0].dimensions
    if any(s.dimensions != sizes for s in shapes):
        refuse("the operands must have the same dimensions", "map_c1")
    if list(places) != list(range(len(sizes))):
        refuse(f"dimensions {list(places)} must be all {len(sizes)} dimensions, in order", "map_c2")
    result = computation.result_shape
    if not result.is_scalar:
        refuse(f"computation {computation.name} returns {result}, not a scalar", "map_c3")
    count = math.prod(sizes)
    flat = [reshape(build, o, (count,)) for o in operands]
    output = broadcast(build, literal(build, np.zeros((), result.element.dtype)), (count,))
    if not count:
        return reshape(build, output, sizes)
    init = tuple_(build, [literal(build, np.zeros((), np.int64)), output, *flat, *static])
    body = _map_body(computation, len(flat), init.shape)
    condition = _map_condition(count, init.shape)
    mapped = get_tuple_element(build, while_(build, condition, body, init), 1)
    return reshape(build, mapped, sizes)


def _map_condition(count: int, state_shape: Shape) -> Computation:
    """Is the index in range?"""
    sub = _inner()
    state = parameter(sub, 0, state_shape, "state")
    place = get_tuple_element(sub, state, 0)
    below = CompareAttributes(ComparisonDirection.LT)
    apply_binary(sub, Opcode.COMPARE, place, constant_r0(sub, np.int64(count)), (), below)
    return Computation(sub.finish("map_condition"))


def _map_body(computation: Computation, mapped: int, state_shape: Shape) -> Computation:
    """result[place] = computation(elements at place..., static operands...); place + 1."""
    sub = _inner()
    state = parameter(sub, 0, state_shape, "state")
    values = [get_tuple_element(sub, state, k) for k in range(len(state_shape.elements))]
    place, output, flat, static = values[0], values[1], values[2 : 2 + mapped], values[2 + mapped :]
    one = DynamicSliceAttributes((1,))
    scalars = [reshape(sub, sub.enqueue(Opcode.DYNAMIC_SLICE, [array, place], one), ()) for array in flat]
    element = reshape(sub, call(sub, computation, [*scalars, *static]), (1,))
    updated = dynamic_update_slice(sub, output, element, [place])
    following = apply_binary(sub, Opcode.ADD, place, constant_r0(sub, np.int64(1)))
    tuple_(sub, [following, updated, *flat, *static])
    return Computation(sub.finish("map_body"))


def _inner() -> Construction:
    """A construction for a computation that map's loop calls."""
    sub = Construction()
    sub.method = "map"
    return sub
