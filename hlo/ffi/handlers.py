"""Handlers of typed custom calls: native functions `XLA_FFI_Error* handler(XLA_FFI_CallFrame* frame)`, by stage.

A handler says which version of the interface it was compiled for, and what its traits are, when it is called with a
frame that has the extension for metadata. That happens once, when it is registered.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from typing import ClassVar

from ..errors import CustomCallError, UnsupportedError
from ..support.native_function import NativeFunction
from ..support.records import dataclass
from ..system import system
from .structs import (
    ATTRS_WORDS,
    ERROR_CODES,
    FRAME_API,
    FRAME_ARGS,
    FRAME_ATTRS,
    FRAME_RETS,
    FRAME_SIZE,
    FRAME_STAGE,
    FRAME_WORDS,
    LIST_WORDS,
    MAJOR,
    METADATA_EXTENSION,
    MINOR,
    STAGES,
    WORD,
)  # fmt: skip

_EXECUTE = STAGES.index("execute")


@dataclass(frozen=True, slots=True)
class Runtime:
    """The native code that calls handlers, and that handlers call, as addresses in this process."""

    api: int
    """The table of functions, XLA_FFI_Api."""
    call: int
    """`call(row)`, see `plans.py`."""
    call_python: int
    callbacks: int
    """The table that `call_python` takes."""
    types: int
    """A word with the address of the first registered type."""
    pool: int
    """A word with the address of the thread pool."""
    runs: int
    """A word: the number of the last run."""
    options: int
    """Attributes without any."""
    start: Callable[[], object]
    """Starts the thread pool, unless it runs."""


@dataclass(frozen=True, slots=True)
class TypedHandler(NativeFunction):
    """A registered handler; `address` is that of the stage "execute"."""

    name: str
    stages: tuple[int, int, int, int]
    """The address for each stage; 0: nothing happens in it."""
    traits: int
    runtime: Runtime
    is_typed: ClassVar[bool] = True


def make_handler(name: str, stages: Sequence[int], owner: object, runtime: Runtime) -> TypedHandler:
    """The handler with these addresses by stage, after each was asked for its metadata. CustomCallError if one cannot
    answer, UnsupportedError if it was compiled for another version of the interface."""
    assert len(stages) == len(STAGES) and stages[_EXECUTE]
    traits = 0
    for stage, address in enumerate(stages):
        if address:
            found = _metadata(name, stage, address, runtime)
            traits = found if stage == _EXECUTE else traits
    instantiate, prepare, initialize, execute = stages
    return TypedHandler(execute, owner, name, (instantiate, prepare, initialize, execute), traits, runtime)


def _metadata(name: str, stage: int, address: int, runtime: Runtime) -> int:
    """The traits of the handler of one stage."""
    # Metadata: size, version (size, extensions, two numbers), traits, type of the state.
    metadata = array("q", [6 * WORD, 3 * WORD, 0, -1, 0, 0])
    extension = array("q", [4 * WORD, METADATA_EXTENSION, 0, metadata.buffer_info()[0]])
    frame = array("q", bytes(WORD * FRAME_WORDS))
    frame[0], frame[1] = FRAME_SIZE, extension.buffer_info()[0]
    frame[FRAME_API], frame[FRAME_STAGE] = runtime.api, stage
    frame[FRAME_ARGS] = frame[FRAME_RETS] = LIST_WORDS * WORD
    frame[FRAME_ATTRS] = ATTRS_WORDS * WORD
    error = _HANDLER(address)(frame.buffer_info()[0])
    if error:
        raise_error(error, name)
    major, minor = ctypes.c_int32.from_buffer(metadata, 3 * WORD).value, ctypes.c_int32.from_buffer(metadata, 28).value
    if major == -1:
        raise CustomCallError(
            f"custom call {name!r}: its handler for the stage {STAGES[stage]!r} does not answer XLA's request for "
            "metadata, so it is no handler of the typed FFI; a function of another kind is registered with "
            "hloom.register_custom_call"
        )
    if major != MAJOR or minor > MINOR:
        raise UnsupportedError(
            f"custom call {name!r}: its handler was compiled for version {major}.{minor} of XLA's FFI; hloom has "
            f"{MAJOR}.0 to {MAJOR}.{MINOR}"
        )
    return ctypes.c_uint32.from_buffer(metadata, 4 * WORD).value


_HANDLER = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
_free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(("free", system.c_library()))


def raise_error(address: int, name: str) -> None:
    """Raise the error at an address, which is then destroyed: words for the code and the length, then the message.
    CustomCallError with XLA's text, the name of the code before the message."""
    code, length = ctypes.c_int64.from_address(address).value, ctypes.c_int64.from_address(address + 8).value
    message = ctypes.string_at(address + 16, length).decode("utf-8", "backslashreplace")
    _free(address)
    word = ERROR_CODES[code] if 0 <= code < len(ERROR_CODES) else f"code {code}"
    error = CustomCallError(f"{word}: {message}")
    error.add_note(f"raised by the handler of custom call {name!r}")
    raise error
