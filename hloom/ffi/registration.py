"""Registration of native code: handlers of XLA's typed FFI, types of their states, capsules. JAX's names.

A capsule holds the address of a C function. A handler, `XLA_FFI_Error* handler(XLA_FFI_CallFrame*)`, comes from C++
that is compiled with XLA's header (`include_dir`), or from any code that follows `hlo/ffi/`.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Mapping
from typing import Any

from ..hlo.custom_calls import register_batch_partitionable, register_native
from ..hlo.errors import UnsupportedError
from ..hlo.ffi.handlers import make_handler
from ..hlo.ffi.structs import STAGES
from ..hlo.ffi.types import register_type
from ..hlo.support.native_function import NativeFunction
from ..numba_backend.runtime.ffi import deleter_at, ffi_runtime

_CPU = ("cpu", "host")


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any) -> None:
    """Let custom calls of target `name` run native code. JAX's `ffi.register_ffi_target`.

    fn: a PyCapsule with the address of a handler of XLA's typed FFI, or a dictionary of capsules by stage:
    "instantiate", "prepare", "initialize" and "execute". "instantiate" runs when a program is compiled, and makes the
    state of that program's call; "prepare" and "initialize" run right before each "execute".
    platform: code for another one than "cpu" is not used.
    api_version: 1 for the typed FFI; 0 for a function of an older interface, such as `void(void* out, void** in)`.
    kwargs: `traits`, which XLA asks about GPUs only.

    The same code may be registered again. JaxRuntimeError for a name that has other code, for a handler that cannot
    answer a request for its metadata, or whose types are not registered; UnsupportedError for a handler that was
    compiled for a newer version of the interface; TypeError if `fn` is no capsule.
    """
    if unknown := kwargs.keys() - {"traits"}:
        raise TypeError(f"register_ffi_target() got an unexpected keyword argument {min(unknown)!r}")
    if api_version not in (0, 1):
        raise ValueError(f"register_ffi_target: api_version must be 0 or 1, not {api_version!r}")
    stages = dict(fn) if isinstance(fn, Mapping) else {"execute": fn}
    if unknown := stages.keys() - set(STAGES):
        raise ValueError(f"register_ffi_target: {min(unknown)!r} is no stage; the stages are {', '.join(STAGES)}")
    if "execute" not in stages:
        raise ValueError("register_ffi_target: there is no handler for the stage 'execute'")
    addresses = [_address(f"the handler of {name!r}", stages[s]) if s in stages else 0 for s in STAGES]
    if platform.lower() not in _CPU:
        return
    if api_version == 1:
        register_native(name, make_handler(name, addresses, fn, ffi_runtime()))
    elif len(stages) > 1:
        raise ValueError("register_ffi_target: stages need api_version=1")
    else:
        register_native(name, NativeFunction(addresses[-1], fn))


def register_ffi_type(name: str, type_registration: Mapping[str, Any], platform: str = "cpu") -> None:
    """Register a type of states of handlers. JAX's `ffi.register_ffi_type`.

    type_registration: a dictionary with `type_id`, a PyCapsule with the address of an XLA_FFI_TypeId, which gets the
    number of the type; and perhaps `type_info`, one with the address of an XLA_FFI_TypeInfo, which has the function
    that destroys a state.

    ValueError for a name that has another number.
    """
    if "type_id" not in type_registration:
        raise ValueError(f"register_ffi_type: the type {name!r} needs a capsule `type_id`")
    number = ctypes.c_int64.from_address(_address(f"type_id of {name!r}", type_registration["type_id"]))
    info = type_registration.get("type_info")
    if platform.lower() in _CPU:
        deleter = 0 if info is None else deleter_at(_address(f"type_info of {name!r}", info))
        number.value = register_type(name, number.value, deleter)


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """UnsupportedError: JAX has withdrawn it. `register_ffi_type(name, {"type_id": obj})` does it."""
    raise UnsupportedError(
        "register_ffi_type_id is not supported after jaxlib version 381: "
        "register_ffi_type(name, {'type_id': capsule}) registers a type"
    )


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Say that devices may share the batches of calls of a target. JAX's name.

    A call states the number of its batch dimensions, the first ones of all operands and results, by the frontend
    attribute `num_batch_dims` (`ffi_lowering(..., extra_attributes=...)`, or HLO text).
    """
    register_batch_partitionable(name)


def pycapsule(funcptr: Any) -> Any:
    """A PyCapsule with the address of a ctypes function, or an address. JAX's `ffi.pycapsule`.

    The function must live as long as programs that call it: a function of a loaded library does. The capsule keeps a
    function that ctypes has made of Python code.

    >>> import ctypes
    >>> type(ffi.pycapsule(ctypes.CDLL(None).strlen)).__name__
    'PyCapsule'
    """
    if isinstance(funcptr, int):
        address: int | None = funcptr
    else:
        address = ctypes.cast(funcptr, ctypes.c_void_p).value
    if not address:
        raise ValueError("pycapsule: the address of the function is null")
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        ("PyCapsule_New", ctypes.pythonapi)
    )
    capsule = new(address, None, None)
    if not isinstance(funcptr, int):
        _owned[address] = funcptr
    return capsule


_owned: dict[int, object] = {}
"""Functions in capsules. A capsule can own nothing without a destructor, and there are few such functions."""


def _address(what: str, capsule: Any) -> int:
    """The address in a capsule."""
    if type(capsule).__name__ != "PyCapsule":
        raise TypeError(f"{what} must be a PyCapsule (hloom.ffi.pycapsule makes one), not {type(capsule).__name__}")
    get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    address: int = get(capsule, get_name(capsule))
    return address


def include_dir() -> str:
    """The folder with XLA's header `xla/ffi/api/ffi.h`, which an installed jaxlib has. JAX's `ffi.include_dir`.

    UnsupportedError where jaxlib is not installed.
    """
    found = importlib.util.find_spec("jaxlib")
    for folder in (found and found.submodule_search_locations) or []:
        path = os.path.join(folder, "include")
        if os.path.isdir(path):
            return path
    raise UnsupportedError(
        "include_dir: XLA's headers come with jaxlib, which is not installed here; hloom has none of its own"
    )
