"""Whole calls in machine code: from the arrays of a call to the arrays of its result.

In Python a call of a small program spends its time on the objects around it: a frame for the runner, one for each
result's buffer, lists of addresses. Here native functions (`array_calls_code.py`) do the same through CPython's C API;
this module makes their blocks of words. A Python without the GIL has no such runners.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Mapping, Sequence
from types import BuiltinFunctionType
from typing import Any, NamedTuple

import numpy as np

from ...hlo.array_address import HAS_FIELDS
from ...hlo.backend import DeviceBuffer
from ...hlo.runners import (
    NO_SITES,
    ArraySlots,
    CallableSlots,
    CallSites,
    NativeRunner,
    SiteContainer,
    SiteParameter,
    SitesBlock,
    ThreadSettings,
)
from ...hlo.support.once import once
from ...hlo.support.slots import CALL_OFFSET, FINALIZE_OFFSET, HAS_SLOTS, PARTS_OFFSET, TWO_DIGITS, slot_offset
from ...hlo.timeline.spans import RECORDERS
from .array_calls_code import (
    ADDRESS_SLOT,
    BIN_SLOT,
    CALL_FUNCTION,
    CALL_FUNCTIONS,
    CALL_SITES,
    CALL_WORD,
    CONSTANTS,
    CONTAINER_FORMS,
    FUNCTIONS,
    MOST_OBJECTS,
    NUMBER_FORMS,
    PARAMETER_HEAD,
    PARAMETERS,
    RAISE_WORD,
    RUN_ARRAYS,
    SITES_HEAD,
    SITES_SLOT,
    WAIT_FOR,
    WAIT_WORD,
)
from .call import MANY_ARGUMENTS, WORDS_OFFSET, builtin_function, definition
from .program import Program
from .store import default_store

MOST_SITES = 16
"""The most calls of one function that need no look-up."""
_ATTRIBUTES = "__dict__"
_MOST_ARRAYS = 2048
"""Arguments and results of a runner: their addresses are on the stack, which is small in some threads."""


class _Block(SitesBlock):
    """Words in memory, and references to the objects that must live as long."""

    @property
    def address(self) -> int:
        """The address of the words."""
        return id(self) + WORDS_OFFSET


def _word(block: SitesBlock, place: int) -> ctypes.c_int64:
    return ctypes.c_int64.from_address(id(block) + WORDS_OFFSET + 8 * place)


class BufferClasses(NamedTuple):
    """The classes of buffers, all with a slot `address`."""

    small: type[Any]
    """Of small results: with the slots `_free`, `address`, `nbytes` and `shape`. `address` is at the same place in the
    class of large ones."""
    large: type[Any]
    """Of all other results. Nothing sees the memory of a result without a reference to the buffer."""
    host: type[Any]
    """Of NumPy arrays, with the slots `_array` and `address`."""
    all: tuple[type[Any], ...]
    """Those that arguments may have, the commonest first."""


class ResultMaker(NamedTuple):
    """How a call makes the buffer of a result."""

    make: Callable[[], Any]
    bin: list[int] | None
    """The bin of its memory; None if `make` is to be called."""
    nbytes: int
    shape: object
    taken: int | None
    """The number of the argument whose buffer the result takes; None: a new one is made."""


@once
def _api(arrays: ArraySlots, buffers: BufferClasses) -> array[int]:
    """The table of the native functions."""
    functions = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in FUNCTIONS]
    objects: list[object] = [None, NotImplemented, True, RECORDERS, arrays.kind, buffers.small, np.ndarray, str]
    objects += [_ATTRIBUTES, buffers.large, arrays.deleted, arrays.before_taking]
    names = arrays.aval, arrays.buffer, arrays.place, arrays.absence, *arrays.forms
    offsets = [slot_offset(arrays.kind, name) for name in names]
    offsets += [slot_offset(buffers.small, name) for name in ("_free", "address", "nbytes", "shape")]
    offsets += [slot_offset(buffers.host, name) for name in ("_array", "address")]
    complete, _, run_known, _, _, free, _ = default_store().get_many(CALL_FUNCTIONS)
    words = [*map(id, objects), id(buffers.host) if HAS_FIELDS else 0, *offsets, PARTS_OFFSET, TWO_DIGITS]
    table = array("q", [*functions, *words, complete, run_known, 0, 0, 0])
    for kind in buffers.all:
        table.extend([id(kind), slot_offset(kind, "address")])
    table.append(0)
    if [slot_offset(buffers.small, name) for name in ("_free", "address")] == [BIN_SLOT, ADDRESS_SLOT]:
        ctypes.c_size_t.from_address(id(buffers.small) + FINALIZE_OFFSET).value = free
    return table


@once
def _definitions() -> tuple[Any, Any]:
    doc = b"run_arrays(arrays): run the program on a list or tuple of arrays."
    others = b"call_sites(args, kwargs): the result of a known call, or NotImplemented."
    return definition(RUN_ARRAYS, doc), definition(CALL_SITES, others, MANY_ARGUMENTS)


def _take_calls(functions: CallableSlots, api: array[int]) -> None:
    """Machine code becomes `tp_call` of the class, once. Setting `__call__` undoes that, as for any class."""
    if _word(NO_SITES, 0).value or slot_offset(functions.kind, functions.sites) != SITES_SLOT:
        return
    call = ctypes.c_size_t.from_address(id(functions.kind) + CALL_OFFSET)
    api[CALL_WORD], api[RAISE_WORD] = call.value, id(functions.raises)
    _word(NO_SITES, 0).value = api.buffer_info()[0]
    call.value = default_store().get(CALL_FUNCTION)


def _take_waits(function: Any, api: array[int]) -> None:
    """Machine code becomes `tp_call` of the function's class, once."""
    kind, known = type(function), _word(function._block, 0)
    if known.value or slot_offset(kind, "_block") != SITES_SLOT:
        return
    call = ctypes.c_size_t.from_address(id(kind) + CALL_OFFSET)
    api[WAIT_WORD] = call.value
    known.value = api.buffer_info()[0]
    call.value = default_store().get(WAIT_FOR)


class _Runner(_Block, NativeRunner):
    """The block of `run_arrays`."""

    api: array[int]

    def take_calls(self, functions: CallableSlots) -> None:
        _take_calls(functions, self.api)

    def take_waits(self, function: object) -> None:
        _take_waits(function, self.api)

    def add_site(
        self, sites: CallSites | None, where: ThreadSettings, context: object,
        containers: Sequence[SiteContainer], parameters: Sequence[SiteParameter], constants: Mapping[int, object],
    ) -> CallSites:  # fmt: skip
        words = array("q", [id(context), self.address, len(containers), len(parameters), 0, len(constants), 0])
        for container in containers:
            form = next((form for kind, form in CONTAINER_FORMS.items() if issubclass(container.kind, kind)), 0)
            words.extend([8 * container.place, id(container.kind), form, container.parts, *map(id, container.keys)])
        words[PARAMETERS] = 8 * len(words)
        for parameter in parameters:
            dtype, scalar = (parameter.dtype, parameter.scalar) if HAS_FIELDS else (None, None)
            dimensions = () if dtype is None else parameter.shape
            form = NUMBER_FORMS.get((parameter.number, parameter.number_bytes), 0)
            words.extend([8 * parameter.place, id(parameter.aval), 8 * (PARAMETER_HEAD + len(dimensions))])
            words.extend([id(parameter.number) if form else 0, form, 0 if scalar is None else id(scalar)])
            words.extend([0 if dtype is None else id(dtype), len(dimensions), *dimensions])
        words[CONSTANTS] = 8 * len(words)
        for place, value in constants.items():
            words.extend([8 * place, id(value)])
        site = _Block(words.tobytes())
        site.kept = self, context, containers, parameters, constants
        if sites is None:
            sites = _Sites(self.api, where)
        assert isinstance(sites, _Sites)
        sites.add(site, 2 + sum(container.parts for container in containers))
        return sites


class _Sites(CallSites):
    """The sites of a function. Other threads may read the block while `add` writes into it."""

    def __init__(self, api: array[int], where: ThreadSettings) -> None:
        head = [api.buffer_info()[0], id(where.thread), id(where.running), slot_offset(where.settings, where.context)]
        self.block = _Block(array("q", [*head, 0, 0, 2, *[0] * (MOST_SITES + 1)]).tobytes())
        self._sites: list[_Block] = []
        self.block.kept = self._sites, where, api
        self.call = builtin_function(_definitions()[1], self.block)

    def add(self, site: _Block, objects: int) -> None:
        """Add a site whose calls have so many objects, if there is room."""
        if len(self._sites) < MOST_SITES and site not in self._sites:
            self._sites.append(site)
            most = _word(self.block, MOST_OBJECTS)
            most.value = max(most.value, objects)
            for place, known in enumerate(self._sites[:MOST_SITES]):  # all of them: another thread may add one
                _word(self.block, SITES_HEAD + place).value = known.address

    def clear(self) -> None:
        _word(self.block, SITES_HEAD).value = 0
        for place in range(1, MOST_SITES):
            _word(self.block, SITES_HEAD + place).value = 0
        self._sites.clear()


def runner(
    program: Program, slow: Callable[[Sequence[Any]], Any], arrays: ArraySlots, buffers: BufferClasses,
    count: int, captured: Sequence[DeviceBuffer], avals: Sequence[object], makers: Sequence[ResultMaker],
    arena: list[int] | None, finish: Callable[[Sequence[Any]], Any] | None, donated: Sequence[int],
) -> Callable[[Sequence[Any]], Any] | None:  # fmt: skip
    """A runner of a program with `count` arguments; None where there can be none.

    `slow`: the runner that is called where something is unusual. `arena`: the bin of memory whose address is the last
    base; None: there is none. `finish`: a function of the tuple of results; None: the result is the only array.
    `donated`: the numbers of the arguments that the call deletes.
    """
    if not HAS_SLOTS or type(program.run) is not BuiltinFunctionType:
        return None
    inputs = count + len(captured)
    if inputs + len(makers) > _MOST_ARRAYS:
        return None
    api = _api(arrays, buffers)
    finishing = 0 if finish is None else 1 if finish is tuple else id(finish)
    words = array("q", [api.buffer_info()[0], program.address, count, inputs, len(makers)])
    words.extend([inputs + len(makers) + 2, 0 if arena is None else id(arena), finishing, id(slow), len(donated)])
    for aval, maker in zip(avals, makers, strict=True):
        words.extend([id(aval), 0 if maker.bin is None else id(maker.bin)])
        words.extend([id(maker.nbytes), id(maker.shape), id(maker.make), 0 if maker.taken is None else maker.taken + 1])
    words.extend([buffer.address for buffer in captured])
    taken = [maker.taken for maker in makers]
    for number in donated:  # while the call holds the buffer, its array does, and a result that takes it
        words.extend([number, 3 if number in taken else 2])
    block = _Runner(words.tobytes())
    block.api = api
    block.kept = program, slow, captured, avals, makers, arena, finish
    return builtin_function(_definitions()[0], block)
