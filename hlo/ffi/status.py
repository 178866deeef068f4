"""Calls of native functions of XLA's older interfaces, which report errors by a status.

    API_VERSION_STATUS_RETURNING          void f(void* out, void** in, Status*)
    API_VERSION_STATUS_RETURNING_UNIFIED  void f(void* out, void** in, char* opaque, size_t size, Status*)

The opaque bytes are the call's backend_config. XLA has withdrawn both; jaxlib 0.10 still calls them on the CPU. They
are called through ctypes, not as rows of a program.

The status is XLA's class XlaCustomCallStatus_, a `std::optional<std::string>`. A library has its own functions that set
it, so the layout is that of its C++ library, GNU's on Linux: pointer to the characters, length, 16 bytes, and a byte
that is not 0 if there is a message, which is then an error. Source: xla/service/custom_call_status.cc.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from ..custom_call_targets.call import Call
from ..errors import CustomCallError
from ..ops.custom_call import CustomCallApiVersion

_WORDS = 5
_FLAG = 32
_POINTER = ctypes.c_void_p
_RETURNING = ctypes.CFUNCTYPE(None, _POINTER, _POINTER, _POINTER)
_UNIFIED = ctypes.CFUNCTYPE(None, _POINTER, _POINTER, ctypes.c_char_p, ctypes.c_size_t, _POINTER)


def function_with_status(address: int, call: Call) -> Callable[[object, object], None]:
    """A function of `out` and `in` that calls the native function at an address. CustomCallError for its error."""
    opaque = call.text.encode("utf-8", "surrogateescape")

    def run(out: object, given: object) -> None:
        status = (ctypes.c_uint64 * _WORDS)()
        place = ctypes.addressof(status)
        if call.api_version is CustomCallApiVersion.STATUS_RETURNING:
            _RETURNING(address)(out, given, place)
        else:
            _UNIFIED(address)(out, given, opaque, len(opaque), place)
        if ctypes.c_uint8.from_address(place + _FLAG).value:
            # The characters of a long message are not freed: only the library knows its allocator.
            message = ctypes.string_at(status[0], status[1]).decode("utf-8", "backslashreplace")
            error = CustomCallError(f"INTERNAL: {message}")
            error.add_note(f"raised by the function of custom call {call.target!r}")
            raise error

    return run
