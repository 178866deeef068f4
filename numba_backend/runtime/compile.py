"""Kernel text -> object code. Numba and LLVM are imported here, and only when a kernel must be compiled."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib import import_module
from queue import SimpleQueue

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
    texts: SimpleQueue[tuple[int, str] | None] = SimpleQueue()
    objects: list[bytes | Exception] = [b""] * len(kernels)
    wanted = True

    def work(finished: threading.Event) -> None:
        while (found := texts.get()) is not None:
            number, text = found
            if wanted:
                try:
                    objects[number] = emit_object(text)
                except Exception as error:
                    objects[number] = error
        finished.set()

    finished = [threading.Event() for _ in range(min(available_cpus(), len(kernels)))]
    for event in finished:
        threading.Thread(target=work, args=(event,), name="hloom-llvm").start()
    try:
        for number, kernel in enumerate(kernels):
            texts.put((number, frontend.to_llvm(kernel, _scope(kernel))))
    except BaseException:
        wanted = False
        raise
    finally:
        for _ in finished:
            texts.put(None)
        _wait(finished)
    return [_object(found) for found in objects]


def _object(found: bytes | Exception) -> bytes:
    if isinstance(found, Exception):
        raise found
    return found


def _wait(events: Sequence[threading.Event]) -> None:
    """Wait for all, and raise an interrupt only then: a fork must not find a thread in LLVM that nobody waits for."""
    interrupt: BaseException | None = None
    while not all(event.is_set() for event in events):
        try:
            for event in events:
                event.wait()
        except BaseException as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


def _scope(kernel: KernelSource) -> dict[str, object]:
    module = import_module(".dialect" if kernel.convention == "kernel" else ".machine", __package__)
    scope: dict[str, object] = module.SCOPE
    return scope
