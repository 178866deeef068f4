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
from ..ops.elementwise import MapAttributes
from ..ops.movement import BroadcastAttributes, DynamicSliceAttributes
from ..ops.random import RandomDistribution, RngAttributes
from ..ops.structure import GetTupleElementAttributes
from ..shape import Shape
from .core import Handle, Integers, effect, operation
from .handle import Computation
from .reductions import Reductions

TRACE_TARGET = "hloom.trace"
"""The custom call that `trace` makes."""


class ComputationBuilder(Reductions):
    """Builds a computation, operation by operation: the client interface of XLA's first years.

        builder = ComputationBuilder("axpy")
        alpha = builder.parameter(0, Shape.parse("f32[]"), "alpha")
        x = builder.parameter(1, Shape.parse("f32[10]"), "x")
        y = builder.parameter(2, Shape.parse("f32[10]"), "y")
        builder.add(builder.mul(alpha, x), y)
        axpy = builder.build()

    Methods are those of the seeds' C++ class in snake_case, with a `_` behind Python's keywords. Each takes and gives
    ComputationDataHandles. Shapes are inferred at once; an error is noted and raised by `build`, or at once after
    `set_die_immediately_on_error(True)`. It names the method, the operands' shapes, the violated rule and the user's
    line. What comes out is today's HLO: `docs/ops.md` lists where that differs from the interface's documents.
    """

    # ---- tuples

    @operation
    def tuple(self, elements: Sequence[Handle]) -> Handle:
        """A tuple of any values."""
        return self._enqueue(Opcode.TUPLE, elements)

    @operation
    def get_tuple_element(self, tuple_data: Handle, index: int) -> Handle:
        """Element `index` of a tuple."""
        (position,) = self._integers([index], "the index")
        return self._enqueue(Opcode.GET_TUPLE_ELEMENT, [tuple_data], GetTupleElementAttributes(position))

    # ---- computations

    @operation
    def call(self, computation: Computation, operands: Sequence[Handle]) -> Handle:
        """What `computation` returns for `operands`, one a parameter."""
        return self._enqueue(Opcode.CALL, operands, CallAttributes(self._called(computation)))

    @operation
    def while_(self, condition: Computation, body: Computation, init: Handle) -> Handle:
        """`init`, and then what `body` returns for it, again and again, as long as `condition` returns true for it."""
        attributes = WhileAttributes(self._called(condition), self._called(body))
        return self._enqueue(Opcode.WHILE, [init], attributes)

    @operation
    def map(
        self,
        operands: Sequence[Handle],
        computation: Computation,
        static_operands: Sequence[Handle] = (),
        dimensions: Integers | None = None,
    ) -> Handle:
        """`computation` applied to the scalars that stand at one place of all `operands`, for each place.

        `static_operands` are given to it as a whole behind the scalars. `dimensions`, if given, are all dimensions of
        the operands, in order. HLO's map knows no static operands: scalars among them are broadcast, and with arrays
        the result is made by a loop.
        """
        called = self._called(computation)
        if not operands:
            self._refuse("there must be an operand to map over", "map_c1")
        shape = self._array(operands[0])
        places = tuple(range(shape.rank)) if dimensions is None else self._integers(dimensions, "dimensions")
        if any(self._instruction(o).shape.dimensions for o in static_operands):
            return self._map_by_loop(operands, computation, static_operands, places)
        splats = [
            self._enqueue(
                Opcode.BROADCAST, [o], BroadcastAttributes(()), Shape.array(self._array(o).element, shape.dimensions)
            )
            for o in static_operands
        ]
        mapped = [*operands, *splats]
        return self._enqueue(Opcode.MAP, mapped, MapAttributes(places, called))

    @operation
    def custom_call(self, call_target_name: str, operands: Sequence[Handle], shape: Shape) -> Handle:
        """What the function registered as `call_target_name` makes of `operands`: a value of type `shape`."""
        attributes = CustomCallAttributes(self._of_kind(call_target_name, str, "the target"))
        return self._enqueue(Opcode.CUSTOM_CALL, operands, attributes, self._of_kind(shape, Shape, "the shape"))

    @operation
    def custom_call_op(self, call_target_name: str, operands: Sequence[Handle], shape: Shape) -> Handle:
        """As `custom_call`."""
        return self.custom_call(call_target_name, operands, shape)

    @effect
    def trace(self, tag: str, operand: Handle) -> None:
        """Log `tag` and the operand when the computation runs (level INFO of the logger `hloom.trace`)."""
        config = self._of_kind(tag, str, "the tag")
        attributes = CustomCallAttributes(TRACE_TARGET, backend_config=config, has_side_effect=True)
        self._enqueue(Opcode.CUSTOM_CALL, [operand], attributes, Shape.tuple(()))

    # ---- queues; all of one computation are used in the order in which they are enqueued

    @operation
    def infeed(self, shape: Shape, config: str = "") -> Handle:
        """The next value of the queue into the device; it must be of type `shape`."""
        result = Shape.tuple([self._of_kind(shape, Shape, "the shape"), Shape.token()])
        fed = self._enqueue(Opcode.INFEED, [self._token()], InfeedAttributes(config), result)
        self._session.token = self._enqueue(Opcode.GET_TUPLE_ELEMENT, [fed], GetTupleElementAttributes(1)).instruction
        return self._enqueue(Opcode.GET_TUPLE_ELEMENT, [fed], GetTupleElementAttributes(0))

    @effect
    def outfeed(self, operand: Handle, shape: Shape | None = None, outfeed_config: str = "") -> None:
        """Put the operand into the queue out of the device. `shape`: its type, with the layout wanted."""
        shape = self._instruction(operand).shape if shape is None else self._of_kind(shape, Shape, "the shape")
        attributes = OutfeedAttributes(shape, outfeed_config)
        self._session.token = self._enqueue(Opcode.OUTFEED, [operand, self._token()], attributes).instruction

    # ---- random numbers, from the process's own state

    @operation
    def rng_normal(self, mu: Handle, sigma: Handle, shape: Shape) -> Handle:
        """Normally distributed numbers of mean `mu` and standard deviation `sigma`."""
        return self._rng([mu, sigma], RandomDistribution.NORMAL, shape)

    @operation
    def rng_uniform(self, a: Handle, b: Handle, shape: Shape) -> Handle:
        """Numbers uniformly distributed in [a, b)."""
        return self._rng([a, b], RandomDistribution.UNIFORM, shape)

    @operation
    def rng_bernoulli(self, mean: Handle, shape: Shape) -> Handle:
        """1 with probability `mean`, else 0."""
        return self._rng([mean], RandomDistribution.BERNOULLI, shape)

    # ---- what the others use

    def _rng(self, parameters: Sequence[Handle], distribution: RandomDistribution, shape: Shape) -> Handle:
        found = self._of_kind(shape, Shape, "the shape")
        return self._enqueue(Opcode.RNG, parameters, RngAttributes(distribution), found)

    def _token(self) -> Handle:
        """What the next use of a queue comes after."""
        if self._session.token is None:
            self._session.token = self._enqueue(Opcode.AFTER_ALL, ()).instruction
        return Handle(self._session, self._session.token)

    def _map_by_loop(
        self, operands: Sequence[Handle], computation: Computation, static: Sequence[Handle], places: Sequence[int]
    ) -> Handle:
        """One call an element, in row-major order. The loop's state: place, result so far, operands, static operands.

        map_c1: the operands have the same dimensions; map_c2: `dimensions` are all of these, in order; map_c3: the
        computation returns a scalar. What it takes is checked by its call.
        """
        shapes = [self._array(o) for o in operands]
        sizes = shapes[0].dimensions
        if any(s.dimensions != sizes for s in shapes):
            self._refuse("the operands must have the same dimensions", "map_c1")
        if list(places) != list(range(len(sizes))):
            self._refuse(f"dimensions {list(places)} must be all {len(sizes)} dimensions, in order", "map_c2")
        result = computation.result_shape
        if not result.is_scalar:
            self._refuse(f"computation {computation.name} returns {result}, not a scalar", "map_c3")
        count = math.prod(sizes)
        flat = [self.reshape(o, (count,)) for o in operands]
        output = self.broadcast(self._literal(np.zeros((), result.element.dtype)), (count,))
        if not count:
            return self.reshape(output, sizes)
        init = self.tuple([self._literal(np.zeros((), np.int64)), output, *flat, *static])
        body = _map_body(self, computation, len(flat), init.shape)
        condition = _map_condition(self, count, init.shape)
        mapped = self.get_tuple_element(self.while_(condition, body, init), 1)
        return self.reshape(mapped, sizes)


def _map_condition(builder: ComputationBuilder, count: int, state_shape: Shape) -> Computation:
    """Is there a place left?"""
    sub = builder.create_sub_builder("map_condition")
    state = sub.parameter(0, state_shape, "state")
    sub.lt(sub.get_tuple_element(state, 0), sub.constant_r0(np.int64(count)))
    return sub.build()


def _map_body(builder: ComputationBuilder, computation: Computation, mapped: int, state_shape: Shape) -> Computation:
    """result[place] = computation(elements at place..., static operands...); place + 1."""
    sub = builder.create_sub_builder("map_body")
    state = sub.parameter(0, state_shape, "state")
    values = [sub.get_tuple_element(state, k) for k in range(len(state_shape.elements))]
    place, output, flat, static = values[0], values[1], values[2 : 2 + mapped], values[2 + mapped :]
    one = DynamicSliceAttributes((1,))
    scalars = []
    for array in flat:
        piece = sub._enqueue(Opcode.DYNAMIC_SLICE, [array, place], one)
        scalars.append(sub.reshape(piece, ()))
    element = sub.reshape(sub.call(computation, [*scalars, *static]), (1,))
    updated = sub.dynamic_update_slice(output, element, [place])
    sub.tuple([sub.add(place, sub.constant_r0(np.int64(1))), updated, *flat, *static])
    return sub.build()
