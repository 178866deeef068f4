"""The layout of the C structures of XLA's typed FFI on machines with 64-bit pointers, and its numbers.

Each structure is a sequence of 8-byte words: its own size in bytes, a pointer to extensions (0), then the fields named
here. A field of 32 bits is the lower half of its word, for the machines that hloom runs on are little-endian.

Source: `xla/ffi/api/c_api.h`, version 0.5. The structures of version 0.3 are the same but for `Handler_Register_Args`,
which has no handler for the stage "record", and for two entries that the table of functions did not have.
"""

from __future__ import annotations

from ..element_type import ElementType

MAJOR, MINOR = 0, 5
"""The newest version of the interface that is known here."""

WORD = 8

# The frame of a call; the words after its own size and its extensions.
FRAME_API, FRAME_CONTEXT, FRAME_STAGE, FRAME_ARGS, FRAME_RETS, FRAME_ATTRS, FRAME_FUTURE = 2, 3, 4, 5, 10, 15, 21
FRAME_WORDS = 22
FRAME_SIZE = FRAME_FUTURE * WORD
"""The size that a frame states: handlers compare it with that of their header, which leaves out the future."""

# Arguments and results: size, extensions, count, kinds, pointers to buffers. Attributes have names before the last.
LIST_WORDS, ATTRS_WORDS = 5, 6
BUFFER_DTYPE, BUFFER_DATA, BUFFER_RANK, BUFFER_DIMS = 2, 3, 4, 5
BUFFER_WORDS = 6
KIND_BUFFER = 1
"""The kind of an argument and of a result."""

ARRAY, DICTIONARY, SCALAR, STRING = 1, 2, 3, 4
"""The kinds of attributes."""

STAGES = ("instantiate", "prepare", "initialize", "execute")
"""The stages in which a handler may be called, by number."""

METADATA_EXTENSION = 1
COMMAND_BUFFER_COMPATIBLE = 1
"""A trait of handlers. It says something about GPUs only."""

ERROR_CODES = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
    "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
    "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip
"""By number."""

FUNCTIONS = (
    "Error_Create", "Error_GetDetails", "Error_Destroy", "Handler_Register", "Stream_Get", "Type_Register",
    "InvokeContext_Get", "State_Set", "State_Get", "DeviceMemory_Allocate", "DeviceMemory_Free", "ThreadPool_Schedule",
    "ThreadPool_NumThreads", "Future_Create", "Future_SetAvailable", "Future_SetError", "RunId_Get",
    "DeviceOrdinal_Get", "InvokeContext_FindExtension", "CustomOptions_Get",
)  # fmt: skip
"""The entries of the table of functions, in their order. Version 0.3 calls the second one Error_GetMessage, the seventh
one ExecutionContext_Get, and lacks the last two."""

TOKEN = 17
"""The data type of a token."""

_E = ElementType
DATA_TYPES: dict[ElementType, int] = {
    _E.PRED: 1, _E.S1: 30, _E.S2: 26, _E.S4: 21, _E.S8: 2, _E.S16: 3, _E.S32: 4, _E.S64: 5,
    _E.U1: 31, _E.U2: 27, _E.U4: 22, _E.U8: 6, _E.U16: 7, _E.U32: 8, _E.U64: 9,
    _E.F16: 10, _E.F32: 11, _E.F64: 12, _E.BF16: 16, _E.C64: 15, _E.C128: 18,
    _E.F8E5M2: 19, _E.F8E3M4: 29, _E.F8E4M3: 28, _E.F8E4M3FN: 20, _E.F8E4M3B11FNUZ: 23, _E.F8E5M2FNUZ: 24,
    _E.F8E4M3FNUZ: 25, _E.F4E2M1FN: 32, _E.F8E8M0FNU: 33,
}  # fmt: skip
"""XLA's PrimitiveType, by element type."""
