"""The native functions of whole calls (`array_calls.py`), and the words of their blocks.

    run_arrays(block, arrays)       a runner (`hlo/runners.py`): a list or tuple of arrays to the result
    call_function(f, args, names)   calls a jitted function: `tp_call` of its class, which Python calls
    call_sites(block, arguments, 2) the same as a function of Python, whose arguments are a tuple and a dictionary
    run_known(sites, args, names)   the part of these two that finds the program of a known call, and runs it
    complete_call(call, table, donors)
                                    the part of all that makes buffers of results, runs the program and makes arrays
    wait_for(f, args, names)        calls `block_until_ready`: `tp_call` of its class
    free_result(buffer)             gives the memory of a small result back: `tp_finalize` of its class

They read and write slots of objects and parts of containers directly, since their offsets are known
(`hlo/support/slots.py`); types are compared by address. All else goes through functions of the stable C API, whose
addresses are in one table. The functions hold the GIL, but for the program itself if it is not brief.

Whatever is unusual is left to Python: an array whose elements are in no buffer yet, a buffer of another class, no free
block of memory, a thread pool that is not started, a donated array whose memory something else can see. Then nothing
has been done: `run_arrays` calls the runner in Python, `call_function` the method `__call__`, and `call_sites` returns
NotImplemented.
"""

from __future__ import annotations

from textwrap import indent
from typing import Any

from ...hlo.array_address import ARRAY_BASE, ARRAY_DATA, ARRAY_DIMENSIONS, ARRAY_DTYPE, ARRAY_FLAGS, ARRAY_RANK
from ...hlo.host_buffers import USABLE
from ...hlo.support.slots import (
    BASE_OFFSET,
    DIGITS_OFFSET,
    FINALIZE_OFFSET,
    LIST_OFFSET,
    ROOM_OFFSET,
    SIZE_OFFSET,
    TYPE_OFFSET,
)
from .call import BRIEF, EXECUTE, FAILED, PARALLEL, POOL, WORDS_OFFSET
from .executor import native_function
from .kernel import KernelSource

FUNCTIONS = (
    "PyTuple_New", "PyTuple_SetItem", "PySequence_GetItem", "PySequence_Concat", "PyList_Append", "PyDict_Next",
    "PyDict_GetItemWithError", "PyThreadState_Get", "PyThreadState_GetID", "PyUnicode_Compare", "PyType_GenericAlloc",
    "PyLong_AsLongLong", "PyObject_GetAttr", "PyObject_Vectorcall", "PyObject_Call", "PyErr_Occurred", "PyErr_Clear",
    "PyErr_Fetch", "PyErr_NormalizeException", "PyException_SetTraceback", "Py_IncRef", "Py_DecRef",
    "PyEval_SaveThread", "PyEval_RestoreThread",
)  # fmt: skip
_OBJECTS = (
    "NONE", "UNDONE", "TRUE", "RECORDERS", "ARRAY", "RESULT", "NUMPY", "TEXT", "ATTRIBUTES", "LARGE", "DELETED",
    "HOOKS", "HOST",
)  # fmt: skip
"""Objects of Python, by address: None, NotImplemented, True, the recorders of timelines, classes, the name of the
attribute `__dict__`; the class of large results, the absence of deleted arrays, the list of functions that are
called before arrays are donated, and the class of buffers that are NumPy arrays; 0 where their fields are not known."""
_OFFSETS = (
    "AVAL", "BUFFER", "PLACE", "ABSENCE", "FORM", "SECOND_FORM", "THIRD_FORM", "FOURTH_FORM",
    "FREE", "ADDRESS", "BYTES", "SHAPE", "HOST_ARRAY", "HOST_ADDRESS",
)  # fmt: skip
"""Of slots: eight of an array (`ArraySlots`), four of a result's buffer, two of a buffer that is a NumPy array."""
_NAMES = (*FUNCTIONS, *_OBJECTS, *_OFFSETS, "PARTS", "TWO_DIGITS", "COMPLETE", "RUN_KNOWN", "CALL", "RAISE", "WAIT")
CALL_WORD, RAISE_WORD, WAIT_WORD = (_NAMES.index(name) for name in ("CALL", "RAISE", "WAIT"))
"""Where the table has what `call_function` calls for unknown calls and for errors (`take_calls`), and what `wait_for`
calls for other arguments (`take_waits`)."""
_KINDS = 8 * len(_NAMES)
"""Where the classes of buffers begin in the table: a class, the offset of its slot `address`; at the end 0."""

# Words of a runner's block; then the words of each result, the addresses of captured arrays, and two words for each
# donated argument: its number, and the references that its buffer then has.
_API, _PROGRAM, _ARGUMENTS, _INPUTS, _RESULTS, _TABLE, _ARENA, _FINISH, _SLOW, _DONATED, _HEAD = range(11)
"""`_INPUTS`: the number of arguments and captured arrays. `_TABLE`: the words that bases need. `_ARENA`: the bin of its
memory; 0: none. `_FINISH`: 0 if the result is one array, 1 if it is a tuple, else a function of the tuple."""
_RESULT_AVAL, _RESULT_BIN, _RESULT_BYTES, _RESULT_SHAPE, _RESULT_MAKER, _RESULT_TAKEN, _RESULT_WORDS = range(7)
"""`_RESULT_BIN`: 0 if `_RESULT_MAKER` makes the buffer. `_RESULT_TAKEN`: not 0 if the result takes the buffer of an
argument, whose number is one less."""

# Words of a site's block; then the words of each container and of each parameter, and for each constant the offset of
# its word in `objects` and its address.
_CONTEXT, _CALL, _CONTAINERS, _COUNT, PARAMETERS, _FIXED, CONSTANTS, _SITE_HEAD = range(8)
"""`_CONTAINERS`, `_COUNT`, `_FIXED`: how many containers, parameters and constants there are. `PARAMETERS`,
`CONSTANTS`: where their words begin."""
_CONTAINER_PLACE, _KIND, _CONTAINER_FORM, _PARTS, _CONTAINER_HEAD = range(5)
"""The offset of its word in `objects`, its class and the form of that, the number of its parts; then the keys of a
dictionary."""
(
    _PARAMETER_PLACE, _PARAMETER_AVAL, _PARAMETER_BYTES, _NUMBER, _NUMBER_FORM, _SCALAR, _PARAMETER_DTYPE,
    _PARAMETER_RANK, PARAMETER_HEAD,
) = range(9)  # fmt: skip
"""The offset of its word in `objects`, the type of its array, the bytes of these words, the class of a number of Python
and the form of that, the class of NumPy's scalars, the dtype, the rank; then the dimensions. 0: no such argument."""
CONTAINER_FORMS: dict[type[Any], int] = {tuple: 1, list: 2, dict: 3}
"""The forms of containers: named tuples are tuples; None, a container without parts, has 0."""
NUMBER_FORMS: dict[tuple[type[Any] | None, int], int] = {
    (float, 4): 1, (float, 8): 2, (int, 4): 3, (int, 8): 4, (bool, 1): 5,
}  # fmt: skip
"""The numbers of Python: their types, and the bytes that they have in memory."""

# Words of the block of all sites of a function; then their addresses, then 0.
_SITES_API, _THREAD, _RUNNING, _CONTEXT_OFFSET, _LAST_THREAD, _LAST_ATTRIBUTES, MOST_OBJECTS, SITES_HEAD = range(8)
"""`_LAST_THREAD`, `_LAST_ATTRIBUTES`: the number of the thread that called last, which no other thread ever gets, and
its dictionary of attributes in `_THREAD`, which lives as long as the thread. `MOST_OBJECTS`: the most objects that the
calls of a site have: containers and what is in them."""

SITES_SLOT = object.__basicsize__
"""The offset of the first slot in a jitted function."""
BIN_SLOT, ADDRESS_SLOT = object.__basicsize__, object.__basicsize__ + 8
"""The offsets of `_free` and `address` in memory of a small result."""

_CONSTANTS = {
    "block": WORDS_OFFSET, "type": TYPE_OFFSET, "size": SIZE_OFFSET, "items": LIST_OFFSET, "kinds": _KINDS,
    "usable": USABLE, "numpy_data": ARRAY_DATA, "numpy_base": ARRAY_BASE, "numpy_rank": ARRAY_RANK,
    "numpy_dimensions": ARRAY_DIMENSIONS, "numpy_descr": ARRAY_DTYPE, "numpy_flags": ARRAY_FLAGS,
    "api": 8 * _API, "program": 8 * _PROGRAM, "arguments": 8 * _ARGUMENTS, "inputs": 8 * _INPUTS,
    "results": 8 * _RESULTS, "table": 8 * _TABLE, "arena": 8 * _ARENA, "finish": 8 * _FINISH, "slow": 8 * _SLOW,
    "donated": 8 * _DONATED, "taken": 8 * _RESULT_TAKEN,
    "first_result": 8 * _HEAD, "result_bytes": 8 * _RESULT_WORDS,
    "bin": 8 * _RESULT_BIN, "nbytes": 8 * _RESULT_BYTES, "shape": 8 * _RESULT_SHAPE, "maker": 8 * _RESULT_MAKER,
    "context": 8 * _CONTEXT, "call": 8 * _CALL, "containers": 8 * _CONTAINERS, "count": 8 * _COUNT,
    "fixed": 8 * _FIXED, "constants": 8 * CONSTANTS, "parameters": 8 * PARAMETERS,
    "first_container": 8 * _SITE_HEAD, "container_place": 8 * _CONTAINER_PLACE,
    "kind": 8 * _KIND, "container_form": 8 * _CONTAINER_FORM, "parts": 8 * _PARTS, "first_key": 8 * _CONTAINER_HEAD,
    "parameter_place": 8 * _PARAMETER_PLACE, "parameter_aval": 8 * _PARAMETER_AVAL, "scalar": 8 * _SCALAR,
    "parameter_bytes": 8 * _PARAMETER_BYTES, "dtype": 8 * _PARAMETER_DTYPE, "rank": 8 * _PARAMETER_RANK,
    "dimensions": 8 * PARAMETER_HEAD, "number": 8 * _NUMBER, "form": 8 * _NUMBER_FORM, "value": object.__basicsize__,
    "sites": SITES_SLOT, "most_objects": 8 * MOST_OBJECTS, "thread": 8 * _THREAD, "running": 8 * _RUNNING,
    "context_offset": 8 * _CONTEXT_OFFSET, "last_thread": 8 * _LAST_THREAD, "last_attributes": 8 * _LAST_ATTRIBUTES,
    "room": ROOM_OFFSET, "base": BASE_OFFSET, "finalize": FINALIZE_OFFSET, "digits": DIGITS_OFFSET, "own_bin": BIN_SLOT,
    "own_address": ADDRESS_SLOT, "first_site": 8 * SITES_HEAD,
    "parallel": 8 * PARALLEL, "brief": 8 * BRIEF, "execute": 8 * EXECUTE, "failed": 8 * FAILED, "pool": 8 * POOL,
}  # fmt: skip
"""Names of constants in the texts; names of the table's words are read from `api`."""


def _function(name: str, text: str, count: int = 2) -> KernelSource:
    words = {name: f"load(api + {8 * index})" for index, name in enumerate(_NAMES)}
    return native_function(name, text.format(**_CONSTANTS, **words), count)


def _store_address(place: str, address: str, depth: int) -> str:
    """Statements that store the address that an integer of Python is. Nearly all have two digits."""
    text = f"""\
number = {address}
digits = load(number + {{digits}})
if load(number + {{size}}) == {{TWO_DIGITS}}:
    store({place}, (digits & 0x3fffffff) | ((digits >> 32) << 30))
else:
    store({place}, call1({{PyLong_AsLongLong}}, number))
"""
    return indent(text, " " * depth)


_TAKE = """\
            size = load(free + {size}) - 1
            if size < 0:
                state = 1
            else:
                address = load(load(free + {items}) + size * 8)
                store(free + {size}, size)
"""
"""Take the last address of the bin `free`; `state` is 1 if there is none."""

_COMPLETE_CALL = (
    """
def complete_call(call, table, donors):
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
        taken = load(result + {taken})
        if taken != 0:
            state = 1
            array = load(donors + taken * 8 - 8)
            if array != 0:
                buffer = load(array + {BUFFER})
                if buffer != 0:
                    kind = load(buffer + {type})
                    if kind == {RESULT} or kind == {LARGE}:
                        address = load(buffer + {ADDRESS})
                        state = 0
                    elif kind == {HOST}:
                        address = load(buffer + {HOST_ADDRESS})
                        state = 0
                    if state == 0:
                        call1({Py_IncRef}, buffer)
        elif free == 0:
            buffer = call4({PyObject_Vectorcall}, load(result + {maker}), 0, 0, 0)
            if buffer == 0:
                state = 2
            else:
                address = load(buffer + {ADDRESS})
        else:
"""
    + _TAKE
    + """\
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
"""
    + _store_address("target + index * 8", "address", 12)
    + """\
            store(made + index * 8, buffer)
            index += 1
            result += {result_bytes}
    free = load(call + {arena})
    if free != 0:
        if state == 0:
"""
    + _TAKE
    + _store_address("target + results * 8", "address", 16)
    + """\
        else:
            free = 0
        if state != 0:
            free = 0
    donated = load(call + {donated})
    entry = call + {first_result} + results * {result_bytes} + (load(call + {inputs}) - load(call + {arguments})) * 8
    left = 0
    if state == 0:
        left = donated
        if donated != 0 and load({HOOKS} + {size}) != 0:
            state = 1
    while state == 0 and left > 0:
        left -= 1
        array = load(donors + load(entry + left * 16) * 8)
        if array == 0:
            state = 1
        else:
            buffer = load(array + {BUFFER})
            forms = load(array + {ABSENCE}) | load(array + {FORM}) | load(array + {SECOND_FORM})
            if buffer == 0 or (forms | load(array + {THIRD_FORM}) | load(array + {FOURTH_FORM})) != 0:
                state = 1
            elif load_s32(buffer) != load(entry + left * 16 + 8):
                state = 1
            else:
                kind = load(buffer + {type})
                if kind == {HOST}:
                    owner = load(buffer + {HOST_ARRAY})
                    if load(owner + {type}) != {NUMPY} or load_s32(owner) != 1 or load(owner + {numpy_base}) != 0:
                        state = 1
                elif kind != {RESULT} and kind != {LARGE}:
                    state = 1
    if state == 0:
        while donated > 0:
            array = load(donors + load(entry) * 8)
            buffer = load(array + {BUFFER})
            store(array + {BUFFER}, 0)
            call1({Py_IncRef}, {DELETED})
            store(array + {ABSENCE}, {DELETED})
            call1({Py_DecRef}, buffer)
            entry += 16
            donated -= 1
    elif free != 0:
        call2({PyList_Append}, free, address)
        call1({Py_DecRef}, address)
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
)
COMPLETE_CALL = _function("complete_call", _COMPLETE_CALL, 3)
"""`PyObject *complete_call(call, table, PyObject **donors)`: the table has the addresses of the inputs, after a 0. It
returns the result; 0 with an exception; 1 if something is unusual, and nothing has been done.

`donors` has each argument that is an array, else 0; it is not read if the program is given no argument. The caller
holds these arrays and their buffers. No code of Python runs between the comparison of what donated arrays hold and
their deletion, so no other thread comes to see the memory that the program will overwrite."""

_EACH_ARGUMENT = """\
    donors = stack(count + 1)
    donated = load(call + {donated})
    store(table, 0)
    usual = 1
    holds = 0
    index = 0
    while usual != 0 and index < count:
        store(donors + index * 8, 0)
"""
"""The head of a loop over arguments, while nothing is unusual. `holds`: how many objects `held` has."""

_HOLD = """\
                if donated != 0:
                    call1({Py_IncRef}, item)
                    store(donors + index * 8 - 8, item)
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
""" + _store_address("table + index * 8", "load(buffer + load(entry + 8))", 20)
"""Hold a buffer until the call ends, since another thread may delete its array, and put its address into the table."""

_FINISH_CALL = """\
    result = 1
    seen = index
    if usual != 0:
        captured = call + {first_result} + load(call + {results}) * {result_bytes}
        inputs = load(call + {inputs})
        while index < inputs:
            index += 1
            store(table + index * 8, load(captured))
            captured += 8
        result = call3({COMPLETE}, call, table, donors)
    while holds > 0:
        holds -= 1
        call1({Py_DecRef}, load(held + holds * 8))
    while donated != 0 and seen > 0:
        seen -= 1
        item = load(donors + seen * 8)
        if item != 0:
            call1({Py_DecRef}, item)
"""
"""Add captured arrays, complete the call, and let go of the buffers and of the arrays."""

RUN_ARRAYS = _function(
    "run_arrays",
    """
def run_arrays(block, arrays):
    call = block + {block}
    api = load(call + {api})
    count = load(call + {arguments})
    table = stack(load(call + {table}))
    held = stack(count + 1)
"""
    + _EACH_ARGUMENT
    + """\
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
"""
    + _HOLD
    + """\
            call1({Py_DecRef}, item)
"""
    + _FINISH_CALL
    + """\
    if result == 1:
        call0({PyErr_Clear})
        store(table, arrays)
        return call4({PyObject_Vectorcall}, load(call + {slow}), table, 1, 0)
    return result
""",
)
"""`PyObject *run_arrays(PyObject *block, PyObject *arrays)`."""

RUN_KNOWN = _function(
    "run_known",
    """
def run_known(sites, arguments, names):
    api = load(sites)
    at = sites + {first_site}
    site = load(at)
    if site == 0 or load({RECORDERS} + {size}) != 0:
        return {UNDONE}
    caller = call1({PyThreadState_GetID}, call0({PyThreadState_Get}))
    if caller != load(sites + {last_thread}):
        attributes = call2({PyObject_GetAttr}, load(sites + {thread}), {ATTRIBUTES})
        if attributes == 0:
            return 0
        store(sites + {last_thread}, caller)
        store(sites + {last_attributes}, attributes)
        call1({Py_DecRef}, attributes)
    settings = call2({PyDict_GetItemWithError}, load(sites + {last_attributes}), load(sites + {running}))
    if settings == 0:
        settings = call2({PyObject_GetAttr}, load(sites + {thread}), load(sites + {running}))
        if settings == 0:
            return 0
        call1({Py_DecRef}, settings)
    context = 0
    if settings != {NONE}:
        context = load(settings + load(sites + {context_offset}))
    count = 0
    entry = stack(3)
    objects = stack(load(sites + {most_objects}))
    store(objects, arguments)
    store(objects + 8, names)
    site = load(at)
    while site != 0:
        if load(site + {context}) == context:
            container = site + {first_container}
            left = load(site + {containers})
            target = objects + 16
            while left > 0:
                item = load(objects + load(container + {container_place}))
                kind = load(container + {kind})
                form = load(container + {container_form})
                parts = load(container + {parts})
                container += {first_key}
                if item == 0:
                    if parts != 0:
                        break
                elif load(item + {type}) != kind:
                    break
                elif form != 0:
                    if load(item + {size}) != parts:
                        break
                    index = 0
                    if form != 3:
                        part = item + {PARTS}
                        if form == 2:
                            part = load(item + {items})
                        while index < parts:
                            store(target, load(part))
                            part += 8
                            target += 8
                            index += 1
                    else:
                        store(entry, 0)
                        while index < parts:
                            call4({PyDict_Next}, item, entry, entry + 8, entry + 16)
                            key = load(entry + 8)
                            known = load(container)
                            if key != known:
                                if load(key + {type}) != {TEXT} or load(known + {type}) != {TEXT}:
                                    break
                                if call2({PyUnicode_Compare}, key, known) & 0xffffffff != 0:
                                    break
                            store(target, load(entry + 16))
                            container += 8
                            target += 8
                            index += 1
                        if index < parts:
                            break
                left -= 1
            if left == 0:
                count = load(site + {count})
                parameter = site + load(site + {parameters})
                index = 0
                while index < count:
                    item = load(objects + load(parameter + {parameter_place}))
                    kind = load(item + {type})
                    if kind == {ARRAY}:
                        if load(item + {AVAL}) != load(parameter + {parameter_aval}):
                            break
                        if load(item + {PLACE}) != {NONE}:
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
                    elif kind != load(parameter + {number}) and kind != load(parameter + {scalar}):
                        break
                    parameter += load(parameter + {parameter_bytes})
                    index += 1
                if index == count:
                    constant = site + load(site + {constants})
                    left = load(site + {fixed})
                    while left > 0:
                        if load(objects + load(constant)) != load(constant + 8):
                            break
                        constant += 16
                        left -= 1
                    if left == 0:
                        break
        at += 8
        site = load(at)
    if site == 0:
        return {UNDONE}
    owner = site - {block}
    call1({Py_IncRef}, owner)
    call = load(site + {call})
    table = stack(load(call + {table}))
    held = stack(count + count + 1)
    parameter = site + load(site + {parameters})
"""
    + _EACH_ARGUMENT
    + """\
        item = load(objects + load(parameter + {parameter_place}))
        kind = load(item + {type})
        form = load(parameter + {form})
        scalar = load(parameter + {scalar})
        parameter += load(parameter + {parameter_bytes})
        index += 1
        if kind == {ARRAY}:
            buffer = load(item + {BUFFER})
            if buffer == 0:
                usual = 0
            else:
"""
    + _HOLD
    + """\
        elif kind == {NUMPY} or kind == scalar:
            call1({Py_IncRef}, item)
            store(held + holds * 8, item)
            holds += 1
            value = item + {value}
            if kind == {NUMPY}:
                value = load(item + {numpy_data})
            store(table + index * 8, value)
        else:
            value = 0
            if form == 1:
                value = load(item + {value})
                bits = narrow(value)
                if bits & 0x7fffffff == 0x7f800000 and value & 0x7fffffffffffffff != 0x7ff0000000000000:
                    usual = 0
                value = bits
            elif form == 2:
                value = load(item + {value})
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
"""
    + _FINISH_CALL
    + """\
    call1({Py_DecRef}, owner)
    if result == 1:
        return {UNDONE}
    return result
""",
    3,
)
"""`PyObject *run_known(sites, PyObject *args, PyObject *names)`: `names` may be 0. It returns the result, 0 with an
exception, or NotImplemented, of which the caller gets no reference.

First the containers of the call are taken apart, as a site's words say: the objects in each are added to `objects`,
which begins with the tuple and the dictionary of arguments. Then the objects at the places of parameters are compared.
The settings are looked up among the attributes that this thread has in `_THREAD`; there are none if the thread has the
settings of the process, an attribute of the class. No code of Python runs from the moment when `objects` gets its
size, so no other thread adds a site with more objects: keys are compared by address, or as texts. A container may
change while the program runs, so the call holds all that the program reads."""

CALL_SITES = _function(
    "call_sites",
    """
def call_sites(block, arguments, number):
    sites = block + {block}
    api = load(sites)
    result = call3({RUN_KNOWN}, sites, load(arguments), load(arguments + 8))
    if result == {UNDONE}:
        call1({Py_IncRef}, result)
    return result
""",
    3,
)
"""`PyObject *call_sites(PyObject *block, PyObject **arguments, Py_ssize_t number)`: `number` is 2."""

CALL_FUNCTION = _function(
    "call_function",
    """
def call_function(function, arguments, names):
    known = load(function + {sites})
    if known == 0:
        return 0
    sites = known + {block}
    api = load(sites)
    result = call3({RUN_KNOWN}, sites, arguments, names)
    if result == {UNDONE}:
        return call3({CALL}, function, arguments, names)
    if result != 0:
        return result
    error = stack(3)
    call3({PyErr_Fetch}, error, error + 8, error + 16)
    call3({PyErr_NormalizeException}, error, error + 8, error + 16)
    if load(error + 16) != 0:
        call2({PyException_SetTraceback}, load(error + 8), load(error + 16))
    call1({Py_DecRef}, load(error))
    call1({Py_DecRef}, load(error + 16))
    first = call1({PyTuple_New}, 2)
    if first == 0:
        return 0
    call1({Py_IncRef}, function)
    call3({PyTuple_SetItem}, first, 0, function)
    call3({PyTuple_SetItem}, first, 1, load(error + 8))
    given = call2({PySequence_Concat}, first, arguments)
    call1({Py_DecRef}, first)
    if given == 0:
        return 0
    result = call3({PyObject_Call}, {RAISE}, given, names)
    call1({Py_DecRef}, given)
    return result
""",
    3,
)
"""`PyObject *call_function(PyObject *function, PyObject *arguments, PyObject *names)`: `names` may be 0. A function has
the block of its sites in its first slot, `SITES_SLOT`. An error is raised by a function of Python, which takes the
function, the error and the arguments."""

WAIT_FOR = _function(
    "wait_for",
    """
def wait_for(function, arguments, names):
    api = load(load(function + {sites}) + {block})
    if names == 0 and load(arguments + {size}) == 1:
        item = load(arguments + {PARTS})
        if load(item + {type}) == {ARRAY}:
            buffer = load(item + {BUFFER})
            if buffer != 0:
                kind = load(buffer + {type})
                entry = api + {kinds}
                while load(entry) != 0:
                    if load(entry) == kind:
                        call1({Py_IncRef}, item)
                        return item
                    entry += 16
    return call3({WAIT}, function, arguments, names)
""",
    3,
)
"""`PyObject *wait_for(PyObject *function, PyObject *arguments, PyObject *names)`: `names` may be 0. The contents of all
classes of buffers in the table are there when the buffer is."""

FREE_RESULT = _function(
    "free_result",
    """
def free_result(buffer):
    free = load(buffer + {own_bin})
    address = load(buffer + {own_address})
    if free != 0 and address != 0:
        size = load(free + {size})
        if size < load(free + {room}):
            store(buffer + {own_address}, 0)
            store(load(free + {items}) + size * 8, address)
            store(free + {size}, size + 1)
            return 0
    return call1(load(load(load(buffer + {type}) + {base}) + {finalize}), buffer)
""",
    1,
)
"""`void free_result(PyObject *buffer)`: the bin gets the reference to the address that the buffer had. Where the bin
has no room, the function of the base class runs `Memory.__del__`."""

CALL_FUNCTIONS = (COMPLETE_CALL, RUN_ARRAYS, RUN_KNOWN, CALL_SITES, CALL_FUNCTION, FREE_RESULT, WAIT_FOR)
