"""Kernel text -> object code. Numba and LLVM are imported here, and only when a kernel must be compiled."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

from .cpus import available_cpus
from .kernel import KernelSource, Parameter


def compile_kernel(source: str, name: str, parameters: Sequence[Parameter]) -> bytes:
    """Compile one kernel for this CPU to an object file, which defines `KernelSource(...).symbol`.

    Raises KernelCompilationError, whose message lists the source with line numbers.
    """
    return compile_kernels([KernelSource(name, source, tuple(parameters))])[0]


def compile_kernels(kernels: Sequence[KernelSource]) -> list[bytes]:
    """Compile several kernels. LLVM, which takes most of the time, runs in threads, without the GIL."""
    if not kernels:
        return []
    frontend = import_module(".numba_frontend", __package__)
    emit_object = import_module(".llvm_backend", __package__).emit_object
    if len(kernels) == 1:
        code: bytes = emit_object(frontend.to_llvm(kernels[0], _scope(kernels[0])))
        return [code]
    with ThreadPoolExecutor(min(available_cpus(), len(kernels)), thread_name_prefix="hloom-llvm") as llvm:
        pending = [llvm.submit(emit_object, frontend.to_llvm(kernel, _scope(kernel))) for kernel in kernels]
        return [result.result() for result in pending]


def _scope(kernel: KernelSource) -> dict[str, object]:
    module = import_module(".dialect" if kernel.convention == "kernel" else ".machine", __package__)
    scope: dict[str, object] = module.SCOPE
    return scope
