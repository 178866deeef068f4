"""Kernel text -> object code. Numba and LLVM are imported here, and only when a kernel must be compiled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from queue import SimpleQueue

from .cpus import available_cpus
from .kernel import KernelSource, Parameter
from .uninterrupted import Unwanted, uninterrupted


def compile_kernel(source: str, name: str, parameters: Sequence[Parameter]) -> bytes:
    """Compile one kernel for this CPU to an object file, which defines `KernelSource(...).symbol`.

    Raises KernelCompilationError, whose message lists the source with line numbers.
    """
    return compile_kernels([KernelSource(name, source, tuple(parameters))])[0]


def compile_kernels(kernels: Sequence[KernelSource]) -> list[bytes]:
    """Compile several kernels. LLVM, which takes most of the time, runs in threads, without the GIL."""
    return uninterrupted(lambda unwanted: _compile(kernels, unwanted)) if kernels else []


def _compile(kernels: Sequence[KernelSource], unwanted: Callable[[], bool]) -> list[bytes]:
    frontend = import_module(".numba_frontend", __package__)
    emit_object = import_module(".llvm_backend", __package__).emit_object
    if len(kernels) == 1:
        code: bytes = emit_object(frontend.to_llvm(kernels[0], _scope(kernels[0])))
        return [code]
    texts: SimpleQueue[tuple[int, str] | None] = SimpleQueue()
    objects: list[bytes | Exception] = [Unwanted()] * len(kernels)

    def work() -> None:
        while (found := texts.get()) is not None:
            number, text = found
            if not unwanted():
                try:
                    objects[number] = emit_object(text)
                except Exception as error:
                    objects[number] = error

    workers = [threading.Thread(target=work, name="hloom-llvm") for _ in range(min(available_cpus(), len(kernels)))]
    for worker in workers:
        worker.start()
    try:
        for number, kernel in enumerate(kernels):
            if unwanted():
                break
            texts.put((number, frontend.to_llvm(kernel, _scope(kernel))))
    finally:
        for _ in workers:
            texts.put(None)
        for worker in workers:  # a fork must not find a thread in LLVM that nobody waits for
            worker.join()
    return [_object(found) for found in objects]


def _object(found: bytes | Exception) -> bytes:
    if isinstance(found, Exception):
        raise found
    return found


def _scope(kernel: KernelSource) -> dict[str, object]:
    module = import_module(".dialect" if kernel.convention == "kernel" else ".machine", __package__)
    scope: dict[str, object] = module.SCOPE
    return scope
