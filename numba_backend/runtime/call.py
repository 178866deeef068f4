"""Call a program from Python: a built-in function object with native code, so that a call costs as little as a call
of a C extension.

Through ctypes a call costs 0.4 us, three times the run time of a small program. Here the runtime's own `call_program`,
compiled and stored like every kernel, follows CPython's calling convention for built-in functions of one argument: it
takes the bases from the given sequence, calls the executor, and returns None. It calls CPython's functions through a
table of their addresses.

    run = program_function(block)         block: a ProgramBlock, the words of a program
    run([x_address, y_address])           as fast as a call of a C extension

`block.slow`, in Python, handles all unusual cases (too few bases, a value that is no integer, a pool not started yet, a
program that stops). A program that is known to be brief keeps the GIL: giving it up takes longer than the program, and
in a process with other busy Python threads getting it back can take milliseconds.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from ...hlo.support.once import once
from .executor import HEADER_WORDS, native_function
from .executor_hook import HOOK_WORD, hook_address
from .kernel import KernelSource
from .store import default_store
from .threads import pool_pointer

# Words of a program's header for `call_program` (the first 9 words are for the executor). EXECUTE is the address of the
# word that has the executor's address: recorder.py changes it.
BASES, PARALLEL, BRIEF, SLOW, FAILED, EXECUTE, API, POOL = range(9, 17)
assert POOL == HEADER_WORDS - 1 and EXECUTE == HOOK_WORD

_FUNCTIONS = (
    "PySequence_Size", "PySequence_GetItem", "PyLong_AsLongLong", "PyErr_Occurred", "PyErr_Clear", "Py_DecRef",
    "Py_IncRef", "PyEval_SaveThread", "PyEval_RestoreThread", "PyObject_Vectorcall",
)  # fmt: skip
_SIZE, _ITEM, _INTEGER, _OCCURRED, _CLEAR, _DECREF, _INCREF, _SAVE, _RESTORE, _VECTORCALL = (
    f"load(api + {8 * index})" for index in range(len(_FUNCTIONS))
)
_NONE = f"load(api + {8 * len(_FUNCTIONS)})"

WORDS_OFFSET = bytes.__basicsize__ - 1
"""The offset of the bytes in a bytes object."""


def _word(index: int) -> str:
    return f"load(program + {8 * index})"


_CALL_PROGRAM = f"""
def call_program(block, bases):
    program = block + {WORDS_OFFSET}
    api = {_word(API)}
    count = {_word(BASES)}
    table = stack(count + 1)
    usual = call1({_SIZE}, bases) >= count
    store(table, 0)
    index = 0
    while usual and index < count:
        item = call2({_ITEM}, bases, index)
        if item == 0:
            usual = False
        else:
            value = call1({_INTEGER}, item)
            call1({_DECREF}, item)
            if value == -1:
                usual = call0({_OCCURRED}) == 0
            index += 1
            store(table + index * 8, value)
    pool = load({_word(POOL)})
    if not usual or ({_word(PARALLEL)} != 0 and pool == 0):
        call0({_CLEAR})
        store(table, bases)
        return call4({_VECTORCALL}, {_word(SLOW)}, table, 1, 0)
    if {_word(PARALLEL)} == 0:
        pool = 0
    if {_word(BRIEF)}:
        status = call3(load({_word(EXECUTE)}), program, table, pool)
    else:
        state = call0({_SAVE})
        status = call3(load({_word(EXECUTE)}), program, table, pool)
        call1({_RESTORE}, state)
    if status != 0:
        if call0({_OCCURRED}) != 0:
            return 0
        store(table, bases)
        return call4({_VECTORCALL}, {_word(FAILED)}, table, 1, 0)
    call1({_INCREF}, {_NONE})
    return {_NONE}
"""


CALLER = native_function("call_program", _CALL_PROGRAM, 2)
"""`PyObject *call_program(PyObject *block, PyObject *bases)`."""


class ProgramBlock(bytes):
    """The words of a program, and references to the objects that must live as long."""

    slow: Callable[[Sequence[int]], None]
    failed: Callable[[Sequence[int]], None]
    kept: object

    @property
    def address(self) -> int:
        """The address of the words."""
        return id(self) + WORDS_OFFSET


class _MethodDefinition(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


_ONE_ARGUMENT, MANY_ARGUMENTS = 0x0008, 0x0080  # METH_O, METH_FASTCALL


@once
def _api() -> array[int]:
    """The table of addresses that the header's word API points to."""
    functions = (getattr(ctypes.pythonapi, name) for name in _FUNCTIONS)
    return array("q", [*(ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions), id(None)])


def definition(function: KernelSource, doc: bytes, arguments: int = _ONE_ARGUMENT) -> object:
    """CPython's record of a native function. `arguments`: the calling convention. After the block, the function takes
    one object, or, with `MANY_ARGUMENTS`, the address of objects and their number. The record must outlive all its
    functions."""
    name = function.name.encode()
    return _MethodDefinition(name, default_store().get(function), arguments, doc)


@once
def _definition() -> object:
    return definition(CALLER, b"run(bases): run the program with these addresses as its bases.")


def header_words(bases: int, parallel: bool, brief: bool, slow: object, failed: object) -> list[int]:
    """The words BASES to POOL of a program's header; the block must keep `slow` and `failed` alive."""
    api, _ = _api().buffer_info()
    return [bases, parallel, brief, id(slow), id(failed), hook_address(), api, pool_pointer()]


def program_function(block: ProgramBlock) -> Callable[[Sequence[int]], None]:
    """The built-in function of one argument that runs the program in `block`; it keeps the block alive."""
    return builtin_function(_definition(), block)


def builtin_function(definition: Any, block: bytes) -> Callable[..., Any]:
    """A built-in function; native code gets the block, which the function keeps alive, and the arguments."""
    create = ctypes.pythonapi.PyCFunction_NewEx
    create.restype, create.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    function: Callable[..., Any] = create(ctypes.addressof(definition), block, None)
    return function
