"""Compile kernel text to object code. LLVM is imported here, and only when a kernel must be compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from queue import SimpleQueue

from ...hlo.support.memory_pressure import allocating
from ...hlo.support.progress import current
from ...hlo.system import system
from ...hlo.timeline.spans import Track, spanning
from ..cpus import available_cpus
from .kernel import KernelSource
from .uninterrupted import NO_LOCK, Call, Unwanted, uninterrupted

_LLVM_BYTES = 8 << 20
"""Enough for kernels of ordinary size. LLVM ends the process where it finds no memory."""


def compile_kernels(kernels: Sequence[KernelSource]) -> list[bytes]:
    """Compile kernels for this CPU to object files, which define their `KernelSource.symbol`. LLVM, which takes most of
    the time, runs in threads, without the GIL. The longest text is the first, lest a thread begins with it when the
    others have finished.

    Raises KernelCompilationError, whose message lists the source with line numbers.
    """
    return uninterrupted(lambda unwanted: _compile(kernels, unwanted)) if kernels else []


def _compile(kernels: Sequence[KernelSource], unwanted: Callable[[], bool]) -> list[bytes]:
    frontend = import_module(".frontend", __package__)
    emit_object = import_module(".llvm_backend", __package__).emit_object
    allocating(system.check_address_space, _LLVM_BYTES, "the compiler")
    shown = current()
    shown.stage("LLVM", len(kernels), "kernels")
    if len(kernels) == 1:
        text = _text_of(kernels[0], frontend.to_llvm)
        with spanning(Track.COMPILING, f"LLVM {kernels[0].name}"):
            code: bytes = emit_object(text)
        shown.advance()
        return [code]
    texts: SimpleQueue[tuple[int, str] | None] = SimpleQueue()
    objects: list[bytes | Exception] = [Unwanted()] * len(kernels)

    def work() -> None:
        """Take texts until None comes."""
        while (found := texts.get()) is not None:
            number, text = found
            if not unwanted():
                try:
                    with spanning(Track.COMPILING, f"LLVM {kernels[number].name}"):
                        objects[number] = emit_object(text)
                    shown.advance()
                except Exception as error:
                    objects[number] = error

    # A fork must not find a thread in LLVM without its waiter, so nothing comes between `start` and `wait`.
    workers = [Call(lambda _: work(), NO_LOCK) for _ in range(min(available_cpus(), len(kernels)))]
    try:
        workers = [worker for worker in workers if worker.start()]
        for number in sorted(range(len(kernels)), key=lambda k: len(kernels[k].source), reverse=True):
            if unwanted():
                break
            texts.put((number, _text_of(kernels[number], frontend.to_llvm)))
    finally:
        for _ in workers:
            texts.put(None)
        for worker in workers:
            worker.wait()
    for worker in workers:
        if worker.error is not None:
            raise worker.error
    texts.put(None)
    work()  # the rest, if no thread could be started
    return [_object(found) for found in objects]


def _text_of(kernel: KernelSource, to_llvm: Callable[..., str]) -> str:
    with spanning(Track.COMPILING, f"to LLVM IR {kernel.name}"):
        return to_llvm(kernel, _scope(kernel))


def _object(found: bytes | Exception) -> bytes:
    if isinstance(found, Exception):
        raise found
    return found


def _scope(kernel: KernelSource) -> dict[str, object]:
    module = import_module(".dialect" if kernel.convention == "kernel" else ".machine", __package__)
    scope: dict[str, object] = module.SCOPE
    return scope
