"""The native code that calls handlers of XLA's typed FFI, and the functions that handlers call.

`call_ffi` fills in the frame of a call, calls the handler of each stage, and waits for its future; it runs tasks while
it waits. The others are the
entries of XLA's table of functions, each `XLA_FFI_Error* entry(Args* args)`. All run without Python and without the
GIL, in any thread, but for the registration of handlers and types. `hlo/ffi/` has the layouts of the structures.

An error is words for its code and its length, then the message. A future is a word that says whether it is complete,
then its error. Scratch memory has before it the address of its allocation.
"""

from __future__ import annotations

import ctypes
import textwrap
from array import array
from collections.abc import Callable
from typing import Any

from ...hlo.custom_calls import register_native
from ...hlo.errors import HloError
from ...hlo.ffi.handlers import Runtime, make_handler
from ...hlo.ffi.plans import (
    ARGUMENTS,
    BLOCK_WORDS,
    CALL_PYTHON,
    CALLBACKS,
    CONTEXT_WORDS,
    COUNT,
    HANDLERS,
    OPTIONS,
    PARTITIONS,
    POOL,
    PROTOTYPE,
    REPORT,
    ROW_HEAD,
    RUNS,
    STATE,
    TYPES,
)  # fmt: skip
from ...hlo.ffi.structs import (
    ATTRS_WORDS,
    BUFFER_DATA,
    BUFFER_WORDS,
    ERROR_CODES,
    FRAME_ARGS,
    FRAME_CONTEXT,
    FRAME_FUTURE,
    FRAME_RETS,
    FRAME_STAGE,
    FRAME_WORDS,
    FUNCTIONS,
    MAJOR,
    MINOR,
    STAGES,
    WORD,
)  # fmt: skip
from ...hlo.ffi.types import register_type, types_address
from ...hlo.support.once import once
from . import callbacks
from .executor import native_function
from .kernel import KernelSource
from .store import default_store
from .threads import RUN_TASKS, SCHEDULE, TASKS, THREADS, back_off, pool_address, pool_pointer

# The words of a context, in bytes: the plan, the state of "instantiate", of "prepare" and of "initialize", the address
# of the run's word, the number of the device. A state is the number of its type, the object, and its deleter.
_PLAN, _INSTANCE, _PREPARED, _INITIALIZED, _RUN, _DEVICE = 0, 8, 16, 40, 64, 72
_STATE_BYTES = 24
_LEAST_ALIGNMENT = 64


def _of_plan(word: int, plan: str = "plan") -> str:
    return f"load({plan} + {WORD * word})"


CALL_FFI = native_function(
    "call_ffi",
    f"""
def call_ffi(row):
    plan = load(row)
    count = {_of_plan(COUNT)}
    block = stack({_of_plan(BLOCK_WORDS)})
    copy_bytes(block, {_of_plan(PROTOTYPE)}, {_of_plan(BLOCK_WORDS)} * {WORD})
    context = block + {WORD * FRAME_WORDS}
    pointers = context + {WORD * CONTEXT_WORDS}
    buffers = pointers + count * {WORD}
    store(block + {WORD * FRAME_CONTEXT}, context)
    store(block + {WORD * (FRAME_ARGS + 4)}, pointers)
    store(block + {WORD * (FRAME_RETS + 4)}, pointers + {_of_plan(ARGUMENTS)} * {WORD})
    for i in range(count):
        store(pointers + i * {WORD}, buffers + i * {WORD * BUFFER_WORDS})
        store(buffers + i * {WORD * BUFFER_WORDS} + {WORD * BUFFER_DATA}, load(row + {WORD * ROW_HEAD} + i * {WORD}))
    store(context, plan)
    store(context + {_INSTANCE}, {_of_plan(STATE)})
    store(context + {_RUN}, row + load(row + 8))
    device = load(row + 16)
    if device != 0:
        store(context + {_DEVICE}, load_s32(device) * {_of_plan(PARTITIONS)} + load_s32(device + 4))
    error = 0
    for stage in range({len(STAGES)}):
        handler = load(plan + {WORD * HANDLERS} + stage * {WORD})
        if error == 0 and handler != 0:
            store(block + {WORD * FRAME_STAGE}, stage)
            store(block + {WORD * FRAME_FUTURE}, 0)
            error = call1(handler, block)
            future = load(block + {WORD * FRAME_FUTURE})
            if error == 0 and future != 0:
                pool = load({_of_plan(POOL)})
                waited = 0
                while atomic_load(future) == 0:
                    if atomic_load(pool + {TASKS}) != 0:
                        call1(load(pool + {RUN_TASKS}), pool)
{back_off(20)}
                error = load(future + 8)
                c_free(future)
    for k in range(2):
        state = context + {_PREPARED} + k * {_STATE_BYTES}
        if load(state) != 0 and load(state + 16) != 0:
            call1(load(state + 16), load(state + 8))
    if error != 0 and {_of_plan(REPORT)} != 0:
        words = stack(1)
        store(words, error)
        return call3({_of_plan(CALL_PYTHON)}, {_of_plan(CALLBACKS)}, {_of_plan(REPORT)}, words)
    return error
""",
    1,
)
"""`int64 call_ffi(row)`: 0, the address of an error, or 1 if it has called Python with the error."""


def _refuse(code: str, message: str, indent: int) -> str:
    """Statements that return a new error."""
    data = message.encode()
    padded = data + bytes(WORD - len(data) % WORD)
    lines = [
        f"error = c_malloc({16 + len(padded)})",
        f"store(error, {ERROR_CODES.index(code)})",
        f"store(error + 8, {len(data)})",
        *[f"store(error + {16 + 8 * k}, {word})" for k, word in enumerate(array("q", padded))],
        "return error",
    ]
    return textwrap.indent("\n".join(lines), " " * indent)


def _state() -> str:
    """Statements that find the state that `State_Set` and `State_Get` are about. In version 0.2 their arguments had no
    stage, and meant "instantiate"."""
    return f"""
    context = load(args + 16)
    stage = 0
    fields = args + 24
    if load(args) != 40:
        stage = load_s32(args + 24)
        fields = args + 32
    if stage > 2:
{_refuse("INVALID_ARGUMENT", "the stage 'execute' has no state", 8)}
    state = load(context + {_INSTANCE})
    if stage > 0:
        state = context + {_PREPARED - _STATE_BYTES} + stage * {_STATE_BYTES}
    type = load(load(fields))"""


_TEXTS = {
    "Error_Create": """
    message = load(args + 16)
    count = c_strlen(message) + 1
    error = c_malloc(16 + count)
    store(error, load_s32(args + 24))
    store(error + 8, count - 1)
    copy_bytes(error + 16, message, count)
    return error""",
    "Error_GetDetails": """
    error = load(args + 16)
    store(args + 24, error + 16)
    if load(args) > 32:
        store(args + 32, load(error))
    return 0""",
    "Error_Destroy": """
    c_free(load(args + 16))
    return 0""",
    "Stream_Get": _refuse("UNIMPLEMENTED", "there is no stream: the platform is the CPU", 4),
    "InvokeContext_Get": _refuse("NOT_FOUND", "there is no user data of this type in the execution context", 4),
    "State_Set": f"""{_state()}
    node = atomic_load(load(load(context) + {WORD * TYPES}))
    while node != 0 and load(node + 8) != type:
        node = load(node)
    if node == 0:
{_refuse("INVALID_ARGUMENT", "the type of the state is not registered", 8)}
    if load(state) != 0:
{_refuse("FAILED_PRECONDITION", "the state is set already", 8)}
    store(state, type)
    store(state + 8, load(fields + 8))
    store(state + 16, load(node + 16))
    return 0""",
    "State_Get": f"""{_state()}
    if load(state) == 0:
{_refuse("NOT_FOUND", "the state is not set", 8)}
    if load(state) != type:
{_refuse("INVALID_ARGUMENT", "the state has another type", 8)}
    store(fields + 8, load(state + 8))
    return 0""",
    "DeviceMemory_Allocate": f"""
    count = load(args + 24)
    alignment = load(args + 32)
    if alignment < 1 or alignment & (alignment - 1) != 0 or alignment > 65536:
{_refuse("INVALID_ARGUMENT", "an alignment must be a power of two, at most 65536", 8)}
    if alignment < {_LEAST_ALIGNMENT}:
        alignment = {_LEAST_ALIGNMENT}
    block = 0
    if count >= 0 and count < {1 << 60}:
        block = c_malloc(count + alignment + 8)
    if block == 0:
{_refuse("RESOURCE_EXHAUSTED", "there is not so much memory", 8)}
    data = (block + 8 + alignment - 1) & (0 - alignment)
    store(data - 8, block)
    store(args + 40, data)
    return 0""",
    "DeviceMemory_Free": """
    data = load(args + 32)
    if data != 0:
        c_free(load(data - 8))
    return 0""",
    "ThreadPool_Schedule": f"""
    pool = load(load(load(load(args + 16)) + {WORD * POOL}))
    call3(load(pool + {SCHEDULE}), pool, load(args + 24), load(args + 32))
    return 0""",
    "ThreadPool_NumThreads": f"""
    pool = load(load(load(load(args + 16)) + {WORD * POOL}))
    store(load(args + 24), load(pool + {THREADS}))
    return 0""",
    "Future_Create": """
    future = c_malloc(16)
    store(future, 0)
    store(future + 8, 0)
    store(args + 16, future)
    return 0""",
    "Future_SetAvailable": """
    atomic_store(load(args + 16), 1)
    return 0""",
    "Future_SetError": f"""
    if load(args + 24) == 0:
{_refuse("INVALID_ARGUMENT", "the error of a future must not be null", 8)}
    future = load(args + 16)
    store(future + 8, load(args + 24))
    atomic_store(future, 1)
    return 0""",
    "RunId_Get": f"""
    context = load(args + 16)
    word = load(context + {_RUN})
    run = atomic_load(word)
    if run == 0:
        run = atomic_add(load(load(context) + {WORD * RUNS}), 1) + 1
        if compare_exchange(word, 0, run) == 0:
            run = atomic_load(word)
    store(args + 24, run)
    return 0""",
    "DeviceOrdinal_Get": f"""
    store(args + 24, load(load(args + 16) + {_DEVICE}))
    return 0""",
    "InvokeContext_FindExtension": """
    store(args + 32, 0)
    return 0""",
    "CustomOptions_Get": f"""
    store(args + 24, load(load(load(args + 16)) + {WORD * OPTIONS}))
    return 0""",
}
"""The entries that are native, by name: the statements of each."""


def _entry(name: str, text: str) -> KernelSource:
    own = f"ffi_{name.lower()}"
    return native_function(own, f"\ndef {own}(args):\n{text.lstrip(chr(10))}\n", 1)


ENTRIES = {name: _entry(name, text) for name, text in _TEXTS.items()}
FFI_FUNCTIONS = (CALL_FFI, *ENTRIES.values())
"""All native functions of this file."""


# ---- what is done in Python: registration from native code

_ENTRY_OF_PYTHON = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)


def _span(address: int) -> str:
    """The text of a ByteSpan."""
    data, length = (ctypes.c_int64.from_address(address + WORD * k).value for k in range(2))
    return ctypes.string_at(data, length).decode("utf-8", "backslashreplace")


def _register_type(args: int) -> int:
    """Type_Register: name, pointer to the number, pointer to the structure with the deleter."""
    number = ctypes.c_int64.from_address(_word(args, 4))
    number.value = register_type(_span(args + 16), number.value, deleter_at(_word(args, 5)))
    return 0


def _register_handler(args: int) -> int:
    """Handler_Register: name, platform, handlers by stage, traits. From version 0.5 there is a fifth handler, for the
    recording of command buffers, before the traits; it is of GPUs. Handlers of other platforms are not kept."""
    name, platform = _span(args + 16), _span(args + 32)
    if platform.lower() in ("host", "cpu"):
        stages = [_word(args, 6 + k) for k in range(len(STAGES))]
        register_native(name, make_handler(name, stages, None, ffi_runtime()))
    return 0


def _word(address: int, number: int) -> int:
    return ctypes.c_int64.from_address(address + WORD * number).value


def deleter_at(info: int) -> int:
    """The deleter in the structure TypeInfo at an address; 0 without one."""
    return _word(info, 2) if info else 0


def _in_python(function: Callable[[int], int]) -> Any:
    """An entry that is a function of Python: its HloError or ValueError becomes an error of the interface."""

    def entry(args: int) -> int:
        try:
            return function(args)
        except (HloError, ValueError) as error:
            message = str(error).encode() + b"\0"
            given = ctypes.create_string_buffer(message)
            words = array("q", [4 * WORD, 0, ctypes.addressof(given), ERROR_CODES.index("INVALID_ARGUMENT")])
            create = _ENTRY_OF_PYTHON(default_store().get(ENTRIES["Error_Create"]))
            made: int = create(words.buffer_info()[0])
            return made

    return _ENTRY_OF_PYTHON(entry)


_PYTHON = {"Handler_Register": _in_python(_register_handler), "Type_Register": _in_python(_register_type)}


@once
def ffi_runtime() -> Runtime:
    """The native code of this process; the first call compiles it, unless it comes with the package."""
    store = default_store()
    call, call_python, *entries = store.get_many([CALL_FFI, callbacks.CALL_PYTHON, *ENTRIES.values()])
    addresses = dict(zip(ENTRIES, entries, strict=True))
    for name, function in _PYTHON.items():
        addresses[name] = ctypes.cast(function, ctypes.c_void_p).value or 0
    version = [3 * WORD, 0, MAJOR | MINOR << 32]
    functions = [addresses[name] for name in FUNCTIONS]
    _TABLE[:] = array("q", [WORD * (6 + len(functions)), 0, *version, 0, *functions])
    return Runtime(
        api=_TABLE.buffer_info()[0], call=call, call_python=call_python,
        callbacks=callbacks.callback_api().buffer_info()[0], types=types_address(), pool=int(pool_pointer()),
        runs=_RUNS.buffer_info()[0], options=_OPTIONS.buffer_info()[0], start=pool_address,
    )  # fmt: skip


_TABLE = array("q")
_RUNS = array("q", [0])
_OPTIONS = array("q", [ATTRS_WORDS * WORD, 0, 0, 0, 0, 0])
