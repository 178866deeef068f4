"""Whole calls in machine code: from the arrays of a call to the arrays of its result.

In Python a call of a small program spends its time on the objects around it: a frame for the runner, one for each
result's buffer, lists of addresses. Here three native functions do the same through CPython's C API:

    run_arrays(block, arrays)     a runner (`hlo/runners.py`): a list or tuple of arrays to the result
    call_sites(block, arguments)  the same for the arguments of a call, if they are those of a known call
    complete_call(call, table)    what both do: makes buffers of results, runs the program, makes arrays

They read and write slots of objects directly, since the offset of a slot is known (`hlo/support/slots.py`); types are
compared by address. All else goes through functions of the stable C API, whose addresses are in one table, `_api`. The
functions hold the GIL, but for the program itself if it is not brief.

Whatever is unusual is left to Python: an array whose elements are in no buffer yet, a buffer of another class, no free
block of memory, a thread pool that is not started. Then nothing has been done: `run_arrays` calls the runner in Python,
and `call_sites` returns NotImplemented. A Python without the GIL has no such runners.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType
from typing import Any, NamedTuple

import numpy as np

from ...hlo.array_address import ARRAY_DATA, ARRAY_DIMENSIONS, ARRAY_DTYPE, ARRAY_FLAGS, ARRAY_RANK, HAS_FIELDS
from ...hlo.backend import DeviceBuffer
from ...hlo.host_buffers import USABLE
from ...hlo.runners import ArraySlots, CallSites, NativeRunner, SiteParameter, ThreadSettings
from ...hlo.support.once import once
from ...hlo.support.slots import HAS_SLOTS, TYPE_OFFSET, slot_offset
from ...hlo.timeline.spans import RECORDERS
from .call import BRIEF, EXECUTE, FAILED, PARALLEL, POOL, WORDS_OFFSET, builtin_function, definition
from .executor import native_function
from .kernel import KernelSource
from .program import Program
from .store import default_store

_FUNCTIONS = (
    "PyTuple_Size", "PyTuple_GetItem", "PyTuple_New", "PyTuple_SetItem", "PySequence_GetItem", "PyList_Size",
    "PyList_GetItem", "PyList_SetSlice", "PyList_Append", "PyType_GenericAlloc", "PyLong_AsLongLong",
    "PyObject_GetAttr", "PyObject_Vectorcall", "PyErr_Occurred", "PyErr_Clear", "Py_IncRef", "Py_DecRef",
    "PyEval_SaveThread", "PyEval_RestoreThread",
)  # fmt: skip
_OBJECTS = ("NONE", "UNDONE", "TRUE", "RECORDERS", "ARRAY", "RESULT", "NUMPY")
"""Objects of Python, by address: None, NotImplemented, True, the recorders of timelines, and classes."""
_OFFSETS = ("AVAL", "BUFFER", "PLACE", "FREE", "ADDRESS", "BYTES", "SHAPE")
"""Of slots: three of an array, four of a result's buffer."""
_NAMES = (*_FUNCTIONS, *_OBJECTS, *_OFFSETS, "COMPLETE")
_KINDS = 8 * len(_NAMES)
"""Where the classes of buffers begin in the table: a class, the offset of its slot `address`; at the end 0."""

# Words of a runner's block; then the words of each result, then the addresses of captured arrays.
_API, _PROGRAM, _ARGUMENTS, _INPUTS, _RESULTS, _TABLE, _ARENA, _FINISH, _SLOW, _HEAD = range(10)
"""`_INPUTS`: the number of arguments and captured arrays. `_TABLE`: the words that bases need. `_ARENA`: the bin of its
memory; 0: none. `_FINISH`: 0 if the result is one array, 1 if it is a tuple, else a function of the tuple."""
_RESULT_AVAL, _RESULT_BIN, _RESULT_BYTES, _RESULT_SHAPE, _RESULT_MAKER, _RESULT_WORDS = range(6)
"""`_RESULT_BIN`: 0 if `_RESULT_MAKER` makes the buffer."""

# Words of a site's block; then those of each parameter: the type, the bytes of its words, the type of a number and
# its form, the dtype, the dimensions.
_CONTEXT, _COUNT, _CALL, _SITE_HEAD = range(4)
_PARAMETER_AVAL, _PARAMETER_BYTES, _NUMBER, _NUMBER_FORM, _PARAMETER_DTYPE, _PARAMETER_RANK, _PARAMETER_HEAD = range(7)
_FORMS: dict[tuple[type[Any] | None, int], int] = {(float, 4): 1, (float, 8): 2, (int, 4): 3, (int, 8): 4, (bool, 1): 5}
"""The numbers of Python: their types, and the bytes that they have in memory."""

# Words of the sites' block; then their addresses, then 0.
_SITES_API, _THREAD, _RUNNING, _CONTEXT_OFFSET, _SITES_HEAD = range(5)
MOST_SITES = 16

_CONSTANTS = {
    "block": WORDS_OFFSET, "type": TYPE_OFFSET, "kinds": _KINDS, "usable": USABLE,
    "numpy_data": ARRAY_DATA, "numpy_rank": ARRAY_RANK, "numpy_dimensions": ARRAY_DIMENSIONS,
    "numpy_descr": ARRAY_DTYPE, "numpy_flags": ARRAY_FLAGS,
    "api": 8 * _API, "program": 8 * _PROGRAM, "arguments": 8 * _ARGUMENTS, "inputs": 8 * _INPUTS,
    "results": 8 * _RESULTS, "table": 8 * _TABLE, "arena": 8 * _ARENA, "finish": 8 * _FINISH, "slow": 8 * _SLOW,
    "first_result": 8 * _HEAD, "result_bytes": 8 * _RESULT_WORDS,
    "bin": 8 * _RESULT_BIN, "nbytes": 8 * _RESULT_BYTES, "shape": 8 * _RESULT_SHAPE, "maker": 8 * _RESULT_MAKER,
    "context": 8 * _CONTEXT, "count": 8 * _COUNT, "call": 8 * _CALL, "first_parameter": 8 * _SITE_HEAD,
    "parameter_bytes": 8 * _PARAMETER_BYTES, "dtype": 8 * _PARAMETER_DTYPE, "rank": 8 * _PARAMETER_RANK,
    "dimensions": 8 * _PARAMETER_HEAD, "number": 8 * _NUMBER, "form": 8 * _NUMBER_FORM, "float": object.__basicsize__,
    "thread": 8 * _THREAD, "running": 8 * _RUNNING,
    "context_offset": 8 * _CONTEXT_OFFSET, "first_site": 8 * _SITES_HEAD,
    "parallel": 8 * PARALLEL, "brief": 8 * BRIEF, "execute": 8 * EXECUTE, "failed": 8 * FAILED, "pool": 8 * POOL,
}  # fmt: skip
"""Names of constants in the texts; names of the table's words are read from `api`."""


def _function(name: str, text: str) -> KernelSource:
    words = {name: f"load(api + {8 * index})" for index, name in enumerate(_NAMES)}
    return native_function(name, text.format(**_CONSTANTS, **words), 2)


_TAKE = """\
            size = call1({PyList_Size}, free)
            if size == 0:
                state = 1
            else:
                address = call2({PyList_GetItem}, free, size - 1)
                call1({Py_IncRef}, address)
                call4({PyList_SetSlice}, free, size - 1, size, 0)
"""
"""Take the last address of the bin `free`; `state` is 1 if there is none."""

_COMPLETE_CALL = """
def complete_call(call, table):
    api = load(call + {api})
    program = load(call + {program})
    pool = 0
    if load(program + {parallel}) != 0:
        pool = load(load(program + {pool}))
        if pool == 0:
            return 1
    results = load(call + {results})
    made = stack(results + 1)
    target = table + 8 + load(call + {inputs}) * 8
    result = call + {first_result}
    state = 0
    address = 0
    buffer = 0
    index = 0
    while state == 0 and index < results:
        free = load(result + {bin})
        if free == 0:
            buffer = call4({PyObject_Vectorcall}, load(result + {maker}), 0, 0, 0)
            if buffer == 0:
                state = 2
            else:
                address = load(buffer + {ADDRESS})
        else:
""" + _TAKE + """\
                buffer = call2({PyType_GenericAlloc}, {RESULT}, 0)
                if buffer == 0:
                    call2({PyList_Append}, free, address)
                    call1({Py_DecRef}, address)
                    state = 2
                else:
                    call1({Py_IncRef}, free)
                    call1({Py_IncRef}, load(result + {nbytes}))
                    call1({Py_IncRef}, load(result + {shape}))
                    store(buffer + {FREE}, free)
                    store(buffer + {ADDRESS}, address)
                    store(buffer + {BYTES}, load(result + {nbytes}))
                    store(buffer + {SHAPE}, load(result + {shape}))
        if state == 0:
            store(target + index * 8, call1({PyLong_AsLongLong}, address))
            store(made + index * 8, buffer)
            index += 1
            result += {result_bytes}
    free = load(call + {arena})
    if free != 0:
        if state == 0:
""" + _TAKE + """\
                store(target + results * 8, call1({PyLong_AsLongLong}, address))
        else:
            free = 0
        if state != 0:
            free = 0
    if state == 0:
        status = 0
        if load(program + {brief}) != 0:
            status = call3(load(load(program + {execute})), program, table, pool)
        else:
            saved = call0({PyEval_SaveThread})
            status = call3(load(load(program + {execute})), program, table, pool)
            call1({PyEval_RestoreThread}, saved)
        if status != 0:
            state = 2
            if call0({PyErr_Occurred}) == 0:
                store(table, {NONE})
                call4({PyObject_Vectorcall}, load(program + {failed}), table, 1, 0)
        if free != 0:
            call2({PyList_Append}, free, address)
            call1({Py_DecRef}, address)
    finish = load(call + {finish})
    found = 0
    if state == 0 and finish != 0:
        found = call1({PyTuple_New}, results)
        if found == 0:
            state = 2
    done = 0
    result = call + {first_result}
    while state == 0 and done < results:
        array = call2({PyType_GenericAlloc}, {ARRAY}, 0)
        if array == 0:
            state = 2
        else:
            call1({Py_IncRef}, {NONE})
            call1({Py_IncRef}, load(result))
            store(array + {PLACE}, {NONE})
            store(array + {AVAL}, load(result))
            store(array + {BUFFER}, load(made + done * 8))
            if finish == 0:
                found = array
            else:
                call3({PyTuple_SetItem}, found, done, array)
            done += 1
            result += {result_bytes}
    if state != 0:
        while done < index:
            call1({Py_DecRef}, load(made + done * 8))
            done += 1
        if found != 0:
            call1({Py_DecRef}, found)
        if state == 1:
            return 1
        return 0
    if finish > 1:
        store(table, found)
        array = call4({PyObject_Vectorcall}, finish, table, 1, 0)
        call1({Py_DecRef}, found)
        return array
    return found
"""
COMPLETE_CALL = _function("complete_call", _COMPLETE_CALL)
"""`PyObject *complete_call(call, table)`: the table has the addresses of the inputs, after a 0. It returns the result;
0 with an exception; 1 if something is unusual, and nothing has been done."""

_HOLD = """\
                call1({Py_IncRef}, buffer)
                store(held + holds * 8, buffer)
                holds += 1
                kind = load(buffer + {type})
                entry = api + {kinds}
                while load(entry) != 0:
                    if load(entry) == kind:
                        break
                    entry += 16
                if load(entry) == 0:
                    usual = 0
                else:
                    store(table + index * 8, call1({PyLong_AsLongLong}, load(buffer + load(entry + 8))))
"""
"""Hold a buffer until the call ends, since another thread may delete its array, and put its address into the table."""

_FINISH_CALL = """\
    result = 1
    if usual != 0:
        captured = call + {first_result} + load(call + {results}) * {result_bytes}
        inputs = load(call + {inputs})
        while index < inputs:
            index += 1
            store(table + index * 8, load(captured))
            captured += 8
        result = call2({COMPLETE}, call, table)
    while holds > 0:
        holds -= 1
        call1({Py_DecRef}, load(held + holds * 8))
"""
"""Add captured arrays, complete the call, and let go of the buffers."""

RUN_ARRAYS = _function(
    "run_arrays",
    """
def run_arrays(block, arrays):
    call = block + {block}
    api = load(call + {api})
    count = load(call + {arguments})
    table = stack(load(call + {table}))
    held = stack(count + 1)
    store(table, 0)
    usual = 1
    holds = 0
    index = 0
    while usual != 0 and index < count:
        item = call2({PySequence_GetItem}, arrays, index)
        index += 1
        if item == 0:
            usual = 0
        else:
            buffer = 0
            if load(item + {type}) == {ARRAY}:
                buffer = load(item + {BUFFER})
            if buffer == 0:
                usual = 0
            else:
""" + _HOLD + """\
            call1({Py_DecRef}, item)
""" + _FINISH_CALL + """\
    if result == 1:
        call0({PyErr_Clear})
        store(table, arrays)
        return call4({PyObject_Vectorcall}, load(call + {slow}), table, 1, 0)
    return result
""",
)
"""`PyObject *run_arrays(PyObject *block, PyObject *arrays)`."""

CALL_SITES = _function(
    "call_sites",
    """
def call_sites(block, arguments):
    sites = block + {block}
    api = load(sites)
    site = 0
    count = 0
    if call1({PyList_Size}, {RECORDERS}) == 0:
        settings = call2({PyObject_GetAttr}, load(sites + {thread}), load(sites + {running}))
        if settings == 0:
            return 0
        context = 0
        if settings != {NONE}:
            context = load(settings + load(sites + {context_offset}))
        call1({Py_DecRef}, settings)
        count = call1({PyTuple_Size}, arguments)
        at = sites + {first_site}
        site = load(at)
        while site != 0:
            if load(site + {context}) == context and load(site + {count}) == count:
                parameter = site + {first_parameter}
                index = 0
                while index < count:
                    item = call2({PyTuple_GetItem}, arguments, index)
                    kind = load(item + {type})
                    if kind == {ARRAY}:
                        if load(item + {AVAL}) != load(parameter) or load(item + {PLACE}) != {NONE}:
                            break
                    elif kind == {NUMPY}:
                        rank = load(parameter + {rank})
                        if load(item + {numpy_descr}) != load(parameter + {dtype}):
                            break
                        if load_s32(item + {numpy_rank}) != rank:
                            break
                        if load_s32(item + {numpy_flags}) & {usable} != {usable}:
                            break
                        extent = load(item + {numpy_dimensions})
                        expected = parameter + {dimensions}
                        while rank > 0:
                            if load(extent) != load(expected):
                                break
                            extent += 8
                            expected += 8
                            rank -= 1
                        if rank > 0:
                            break
                    elif kind != load(parameter + {number}):
                        break
                    parameter += load(parameter + {parameter_bytes})
                    index += 1
                if index == count:
                    break
            at += 8
            site = load(at)
    if site == 0:
        call1({Py_IncRef}, {UNDONE})
        return {UNDONE}
    owner = site - {block}
    call1({Py_IncRef}, owner)
    call = load(site + {call})
    table = stack(load(call + {table}))
    held = stack(count + count + 1)
    store(table, 0)
    parameter = site + {first_parameter}
    usual = 1
    holds = 0
    index = 0
    while usual != 0 and index < count:
        item = call2({PyTuple_GetItem}, arguments, index)
        kind = load(item + {type})
        form = load(parameter + {form})
        parameter += load(parameter + {parameter_bytes})
        index += 1
        if kind == {NUMPY}:
            store(table + index * 8, load(item + {numpy_data}))
        elif kind != {ARRAY}:
            value = 0
            if form == 1:
                value = load(item + {float})
                bits = narrow(value)
                if bits & 0x7fffffff == 0x7f800000 and value & 0x7fffffffffffffff != 0x7ff0000000000000:
                    usual = 0
                value = bits
            elif form == 2:
                value = load(item + {float})
            elif form == 5:
                if item == {TRUE}:
                    value = 1
            else:
                value = call1({PyLong_AsLongLong}, item)
                if form == 3 and (value < -0x80000000 or value > 0x7fffffff):
                    usual = 0
                elif value == -1 and call0({PyErr_Occurred}) != 0:
                    call0({PyErr_Clear})
                    usual = 0
            numbers = held + (count + index) * 8
            store(numbers, value)
            store(table + index * 8, numbers)
        else:
            buffer = load(item + {BUFFER})
            if buffer == 0:
                usual = 0
            else:
""" + _HOLD + _FINISH_CALL + """\
    call1({Py_DecRef}, owner)
    if result == 1:
        call1({Py_IncRef}, {UNDONE})
        return {UNDONE}
    return result
""",
)
"""`PyObject *call_sites(PyObject *block, PyObject *arguments)`: the arguments are a tuple."""

CALL_FUNCTIONS = (COMPLETE_CALL, RUN_ARRAYS, CALL_SITES)


class _Block(bytes):
    """Words in memory that stay where they are, and references to the objects that must live as long."""

    kept: Any

    @property
    def address(self) -> int:
        """The address of the words."""
        return id(self) + WORDS_OFFSET


class BufferClasses(NamedTuple):
    """The classes of buffers, all with a slot `address`."""

    small: type[Any]
    """Of small results: with the slots `_free`, `address`, `nbytes` and `shape`. `address` is at the same place in the
    class of large ones."""
    all: tuple[type[Any], ...]
    """Those that arguments may have, the commonest first."""


class ResultMaker(NamedTuple):
    """How a call makes the buffer of a result."""

    make: Callable[[], Any]
    bin: list[int] | None
    """The bin of its memory; None if `make` is to be called."""
    nbytes: int
    shape: object


@once
def _api(arrays: ArraySlots, buffers: BufferClasses) -> array[int]:
    """The table of the native functions."""
    functions = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in _FUNCTIONS]
    objects = (None, NotImplemented, True, RECORDERS, arrays.kind, buffers.small, np.ndarray)
    offsets = [slot_offset(arrays.kind, name) for name in (arrays.aval, arrays.buffer, arrays.place)]
    offsets += [slot_offset(buffers.small, name) for name in ("_free", "address", "nbytes", "shape")]
    complete, *_ = default_store().get_many(CALL_FUNCTIONS)
    table = array("q", [*functions, *map(id, objects), *offsets, complete])
    for kind in buffers.all:
        table.extend([id(kind), slot_offset(kind, "address")])
    table.append(0)
    return table


@once
def _definitions() -> tuple[Any, Any]:
    doc = b"run_arrays(arrays): run the program on a list or tuple of arrays."
    others = b"call_sites(arguments): the result of a known call, or NotImplemented."
    return definition(RUN_ARRAYS, doc), definition(CALL_SITES, others)


class _Runner(_Block, NativeRunner):
    """The block of `run_arrays`."""

    api: array[int]

    def add_site(
        self, sites: CallSites | None, where: ThreadSettings, context: object, parameters: Sequence[SiteParameter]
    ) -> CallSites:
        words = array("q", [id(context), len(parameters), self.address])
        for parameter in parameters:
            dtype = parameter.dtype if HAS_FIELDS else None
            dimensions = () if dtype is None else parameter.shape
            form = _FORMS.get((parameter.number, parameter.number_bytes), 0)
            words.extend([id(parameter.aval), 8 * (_PARAMETER_HEAD + len(dimensions))])
            words.extend([id(parameter.number) if form else 0, form])
            words.extend([0 if dtype is None else id(dtype), len(dimensions), *dimensions])
        site = _Block(words.tobytes())
        site.kept = self, context, parameters
        if sites is None:
            sites = _Sites(self.api, where)
        assert isinstance(sites, _Sites)
        sites.add(site)
        return sites


class _Sites(CallSites):
    """The sites of a function. Other threads may read the block while `add` writes into it."""

    def __init__(self, api: array[int], where: ThreadSettings) -> None:
        head = [api.buffer_info()[0], id(where.thread), id(where.running), slot_offset(where.settings, where.context)]
        self._block = _Block(array("q", [*head, *[0] * (MOST_SITES + 1)]).tobytes())
        self._sites: list[_Block] = []
        self._block.kept = self._sites, where, api
        self.call = builtin_function(_definitions()[1], self._block)

    def add(self, site: _Block) -> None:
        """Add a site, if there is room."""
        if len(self._sites) < MOST_SITES:
            self._sites.append(site)
            for place, known in enumerate(self._sites[:MOST_SITES]):  # all of them: another thread may add one
                self._word(place).value = known.address

    def _word(self, place: int) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(self._block.address + 8 * (_SITES_HEAD + place))


def runner(
    program: Program, slow: Callable[[Sequence[Any]], Any], arrays: ArraySlots, buffers: BufferClasses,
    count: int, captured: Sequence[DeviceBuffer], avals: Sequence[object], makers: Sequence[ResultMaker],
    arena: list[int] | None, finish: Callable[[Sequence[Any]], Any] | None,
) -> Callable[[Sequence[Any]], Any] | None:  # fmt: skip
    """A runner of a program with `count` arguments; None where there can be none.

    `slow`: the runner that is called where something is unusual. `arena`: the bin of memory whose address is the last
    base; None: there is none. `finish`: a function of the tuple of results; None: the result is the only array.
    """
    if not HAS_SLOTS or type(program.run) is not BuiltinFunctionType:
        return None
    api, inputs = _api(arrays, buffers), count + len(captured)
    finishing = 0 if finish is None else 1 if finish is tuple else id(finish)
    words = array("q", [api.buffer_info()[0], program.address, count, inputs, len(makers)])
    words.extend([inputs + len(makers) + 2, 0 if arena is None else id(arena), finishing, id(slow)])
    for aval, maker in zip(avals, makers, strict=True):
        words.extend([id(aval), 0 if maker.bin is None else id(maker.bin)])
        words.extend([id(maker.nbytes), id(maker.shape), id(maker.make)])
    words.extend([buffer.address for buffer in captured])
    block = _Runner(words.tobytes())
    block.api = api
    block.kept = program, slow, captured, avals, makers, arena, finish
    return builtin_function(_definitions()[0], block)
