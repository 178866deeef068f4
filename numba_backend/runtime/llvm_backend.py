"""LLVM IR text -> optimised object code, and object code -> addresses. Needs llvmlite, not Numba.

Every object is optimised for the CPU that this process runs on; `target_description` says which that is, and is part of
every kernel's key in the store.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import Any

import llvmlite
import llvmlite.binding as llvm

_lock = threading.RLock()


@functools.cache
def _native_target() -> tuple[str, str, str]:
    """(triple, CPU name, feature string) of this process; initialises LLVM's native target."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@functools.cache
def target_description() -> str:
    """What the machine code depends on besides its source: llvmlite's version, triple, CPU and its features."""
    return " ".join((f"llvmlite {llvmlite.__version__}", *_native_target()))


@functools.cache
def target_machine() -> Any:
    """LLVM's target machine for this CPU; position-independent code, so that objects load anywhere."""
    triple, cpu, features = _native_target()
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(cpu=cpu, features=features, opt=3, reloc="pic", codemodel="default", jit=True)


@functools.cache
def module_header() -> tuple[str, str]:
    """(triple, data layout) that a module must carry."""
    return _native_target()[0], str(target_machine().target_data)


def optimise(module: Any) -> None:
    """Run LLVM's pipeline, once, on a parsed module."""
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = True
    builder = llvm.create_pass_builder(target_machine(), options)
    builder.getModulePassManager().run(module, builder)


def emit_object(text: str) -> bytes:
    """Optimise a module of LLVM IR and translate it to an object file. Raises RuntimeError for invalid IR."""
    with _lock:
        module = llvm.parse_assembly(text)
        optimise(module)
        return bytes(target_machine().emit_object(module))


@functools.cache
def _engine() -> Any:
    """One engine for all objects. It is never disposed: worker threads may sleep inside its code until the end."""
    triple, cpu, features = _native_target()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, jit=True)
    backing = llvm.parse_assembly(f'target triple = "{triple}"\n')
    engine = llvm.create_mcjit_compiler(backing, machine)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))
    return engine


def load_objects(objects: list[tuple[str, bytes]]) -> list[int]:
    """Load object files [(symbol, code), ...] into this process; the symbols' addresses.

    The code stays loaded until the process ends. Raises RuntimeError for what is not an object file, or does not define
    its symbol.
    """
    with _lock:
        engine = _engine()
        for _, code in objects:
            engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        addresses = [engine.get_function_address(symbol) for symbol, _ in objects]
    for (symbol, _), address in zip(objects, addresses):
        if not address:
            raise RuntimeError(f"the object file does not define {symbol}")
    return addresses
