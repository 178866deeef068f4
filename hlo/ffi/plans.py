"""The plan of a typed call: all of its frame that is known when a program is compiled.

Native code (`numba_backend/runtime/ffi.py`) copies the plan's frame onto the stack, fills in the addresses of the
arrays, and calls the handler of each stage. Its one argument is the address of a row of words:

    plan, bytes from the row to the run's word, device words or 0, address of each argument and each result

The run's word is 0 when a program starts; it gets the number of the run if a handler asks for it. The device words are
the replica and the partition, 32 bits each.

A handler has one state for each program that calls it (for each call in it): its stage "instantiate" makes the state
when the program is compiled, and it is destroyed with the program. The stages "prepare" and "initialize" run right
before each execution, with the same frame, and their states are destroyed after it.
"""

from __future__ import annotations

import ctypes
import weakref
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ..collectives.communicator import current_communicator
from ..shape import Shape
from .attributes import attribute_words
from .handlers import TypedHandler, raise_error
from .memory import Memory
from .structs import (
    BUFFER_DIMS,
    BUFFER_DTYPE,
    BUFFER_RANK,
    BUFFER_WORDS,
    DATA_TYPES,
    FRAME_API,
    FRAME_ARGS,
    FRAME_ATTRS,
    FRAME_RETS,
    FRAME_SIZE,
    FRAME_WORDS,
    KIND_BUFFER,
    LIST_WORDS,
    TOKEN,
    WORD,
)  # fmt: skip

T = TypeVar("T")

CONTEXT_WORDS = 10
"""The words that native code has while a handler runs: plan, address of the state of "instantiate", the states of
"prepare" and "initialize" (type, object, deleter), address of the run's word, number of the device."""

# The words of a plan.
(
    BLOCK_WORDS, COUNT, ARGUMENTS, PROTOTYPE, HANDLERS, STATE, TYPES, POOL, REPORT, CALLBACKS, CALL_PYTHON, RUNS,
    OPTIONS, PARTITIONS,
) = (*range(5), *range(8, 17))  # fmt: skip
ROW_HEAD = 3
"""The words of a row before the addresses."""


def buffers_of(shapes: Sequence[Shape]) -> list[Shape]:
    """The types of the buffers that a handler gets for values of these types: arrays and tokens. Each token is a buffer
    without an address, though it has no leaf."""
    found: list[Shape] = []
    for shape in shapes:
        inner = shape.tuple_shapes
        found += [shape] if inner is None or shape.is_token else buffers_of(inner)
    return found


def _with_tokens(buffers: Sequence[Shape], leaves: Sequence[T], nowhere: T) -> list[T]:
    places = iter(leaves)
    return [nowhere if shape.is_token else next(places) for shape in buffers]


class TypedCall:
    """One call of a handler in a program. It holds the state that the handler made for it."""

    def __init__(
        self, handler: TypedHandler, operands: Sequence[Shape], results: Sequence[Shape],
        attributes: Mapping[str, Any], *, partitions: int = 1, raises: bool,
    ) -> None:  # fmt: skip
        """`operands`, `results`: the types of the buffers, see `buffers_of`. `attributes`: see `attributes.py`.
        `raises`: whether native code calls Python with an error; otherwise it returns the error's address."""
        self.handler, self._memory = handler, Memory()
        self._operands, self._results = operands, results
        runtime = handler.runtime
        runtime.start()
        self._attributes = attribute_words(self._memory, attributes)
        self._state = array("q", [0, 0, 0])
        self._report = _reporter(handler.name) if raises else None
        self._partitions = partitions
        instantiate, *others = handler.stages
        if instantiate:
            weakref.finalize(self, _destroy, self._state, handler.owner).atexit = False
            plan = self._plan((), (), (instantiate, 0, 0, 0), None)
            self._call([plan, WORD * ROW_HEAD, 0, 0])
        self.address: int = self._plan(operands, results, (0, *others), self._report)
        """The address of the plan."""

    def _plan(
        self, operands: Sequence[Shape], results: Sequence[Shape], stages: Sequence[int], report: object
    ) -> int:
        runtime, memory = self.handler.runtime, self._memory
        count = len(operands) + len(results)
        frame = [0] * FRAME_WORDS
        frame[0], frame[FRAME_API] = FRAME_SIZE, runtime.api
        kinds = memory.numbers([KIND_BUFFER] * count)
        for place, found in ((FRAME_ARGS, operands), (FRAME_RETS, results)):
            frame[place : place + 4] = [LIST_WORDS * WORD, 0, len(found), kinds]
        frame[FRAME_ATTRS : FRAME_ATTRS + len(self._attributes)] = self._attributes
        block = [*frame, *[0] * (CONTEXT_WORDS + count)]
        for shape in (*operands, *results):
            block += _buffer(memory, shape)
        return memory.words([
            *(len(block), count, len(operands), memory.words(block), *stages, self._state.buffer_info()[0]),
            *(runtime.types, runtime.pool, 0 if report is None else id(report), runtime.callbacks),
            *(runtime.call_python, runtime.runs, runtime.options, self._partitions),
        ])  # fmt: skip

    def run(self, operands: Sequence[int], results: Sequence[int]) -> None:
        """Call the handler with arrays at these addresses, one for each leaf, as the device that this thread is.
        CustomCallError if it fails."""
        self.handler.runtime.start()
        places = self.places(operands, results, 0)
        device = array("i", [0, current_communicator().device])
        self._call([self.address, WORD * (ROW_HEAD + len(places)), device.buffer_info()[0], *places, 0])

    def places(self, operands: Sequence[T], results: Sequence[T], nowhere: T) -> list[T]:
        """The places of all buffers for those of the leaves; tokens are nowhere."""
        return [*_with_tokens(self._operands, operands, nowhere), *_with_tokens(self._results, results, nowhere)]

    def _call(self, words: Sequence[int]) -> None:
        row = array("q", words)
        error = _CALL(self.handler.runtime.call)(row.buffer_info()[0])
        if error:
            raise_error(error, self.handler.name)


_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


def _buffer(memory: Memory, shape: Shape) -> list[int]:
    """The words of the structure Buffer, without an address."""
    words = [0] * BUFFER_WORDS
    words[0] = BUFFER_WORDS * WORD
    dims = () if shape.is_token else shape.dimensions
    words[BUFFER_DTYPE] = TOKEN if shape.is_token else DATA_TYPES[shape.element]
    words[BUFFER_RANK], words[BUFFER_DIMS] = len(dims), memory.words(dims)
    return words


def _destroy(state: array[int], owner: object) -> None:
    """Destroy the state of a call, while `owner` keeps the code for that."""
    _, address, deleter = state
    if address and deleter:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(address)


def _reporter(name: str) -> Callable[[int], None]:
    """A function that raises the error with its address at an address."""

    def report(words: int) -> None:
        raise_error(ctypes.c_int64.from_address(words).value, name)

    return report
