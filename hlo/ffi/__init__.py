"""XLA's typed foreign functions: the C interface by which a custom call reaches a handler in a native library.

`structs.py` has the layout of the interface's structures, `attributes.py` writes the attributes of a call into memory,
`plans.py` the frame of a call, `handlers.py` and `types.py` are the registered handlers and types. The functions that a
handler may call are native code of a backend (`numba_backend/runtime/ffi.py`), which `Runtime` has the addresses of.

Source: XLA's header `xla/ffi/api/c_api.h`, versions 0.3 (jaxlib 0.10) to 0.5.
"""
