"""Programs with kernels that plain `numba.njit` compiles, with the documented globals, and that Python calls.

The rows of a program are executed here; nothing of the runtime's compiler or executor takes part.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numba
import numpy as np
from hloom.numba_backend.runtime.chain import CHAIN_ITEMS
from hloom.numba_backend.runtime.executor import WATCH_WORDS, Op
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.program import Argument, Label, ProgramBuilder

import hloom

STORED: dict[str, Any] = {
    "pred": np.uint8, "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64, "u8": np.uint8,
    "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.uint16, "bf16": np.uint16, "f32": np.float32,
    "f64": np.float64, "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip


class NoKernel(Exception):
    """The program has a row that is no kernel, no move and no jump: a product, a call of Python or of a library."""


@functools.lru_cache(maxsize=256)
def compiled(name: str, source: str) -> Any:
    """The function of a printed kernel that a user pasted into a file."""
    namespace = hloom.kernel_globals()
    exec(source, namespace)
    return numba.njit(fastmath={"contract"}, error_model="numpy", boundscheck=False)(namespace[name])


class _Memory:
    """So many elements at an address as NumPy can be told of."""

    def __init__(self, address: int, dtype: Any) -> None:
        kind = np.dtype(dtype)
        self.__array_interface__ = {
            "data": (address, False), "shape": (1 << 40,), "typestr": kind.str, "version": 3,
        }  # fmt: skip


def _value(kind: str, dtype: str, word: int) -> Any:
    if kind == "pointer":
        return np.asarray(_Memory(word, STORED[dtype])) if word else np.empty(0, STORED[dtype])
    if kind == "size":
        return word
    return np.frombuffer(word.to_bytes(8, "little", signed=True), STORED[dtype])[0]


class PlainProgram:
    """Like `Program`, for a builder's rows."""

    code_bytes = 0

    def __init__(self, builder: ProgramBuilder) -> None:
        self._rows = list(builder._rows)
        self._arguments = list(builder._arguments)
        self._kept = builder._kept
        self.bases = max((argument.base for argument in self._arguments), default=-1) + 1
        for row in self._rows:
            if row.op in (Op.GEMM, Op.CALLBACK, Op.PYTHON):
                raise NoKernel(row.op.name)
            if row.op in (Op.KERNEL, Op.CHAIN) and any(k.convention == "native" for k in _kernels(row.operands)):
                raise NoKernel("function of the runtime")

    def run(self, bases: Sequence[int]) -> None:
        at = 0
        while at < len(self._rows):
            at = self._step(self._rows[at].op, self._rows[at].operands, at, bases)

    def _step(self, op: Op, operands: tuple[Any, ...], at: int, bases: Sequence[int]) -> int:
        def address(index: int) -> int:
            argument: Argument = self._arguments[index]
            return argument.word + (bases[argument.base] if argument.base >= 0 else 0)

        def follow(label: Label) -> int:
            assert label.row is not None
            return label.row

        if op in (Op.KERNEL, Op.NATIVE_LOOP, Op.LONG):
            kernel, first, extent = operands[op is Op.LONG :][:3]
            words = [address(first + k) for k in range(len(kernel.parameters))]
            watch = np.zeros(WATCH_WORDS, np.int64)
            if op is Op.NATIVE_LOOP:
                words[operands[4] - first] = watch.ctypes.data
            call(kernel, words, 0, extent)
        elif op is Op.CHAIN:
            self._chain(operands, address)
        elif op is Op.COPY:
            ctypes.memmove(address(operands[0]), address(operands[1]), operands[2])
        elif op is Op.ZERO:
            ctypes.memset(address(operands[0]), 0, operands[1])
        elif op in (Op.JUMP, Op.LOOP):
            return follow(operands[0])
        elif op is Op.JUMP_IF_FALSE:
            if not ctypes.c_uint8.from_address(address(operands[0])).value:
                return follow(operands[1])
        elif op is Op.SWITCH:
            index, count = ctypes.c_int32.from_address(address(operands[0])).value, operands[1]
            return follow(operands[2 + (index if 0 <= index < count else count - 1)])
        else:
            assert op is Op.END, op
        return at + 1

    def _chain(self, operands: tuple[Any, ...], address: Callable[[int], int]) -> None:
        """All pieces in one range: what only the chain uses is in the place of the first piece."""
        _, first, items, _, _, rows, step, pieces, _, count, *stages = operands
        for item in range(items):
            matrix, piece = divmod(item, pieces)
            begin = matrix * rows + piece * step
            end = begin + step if piece < pieces - 1 else (matrix + 1) * rows
            words = iter(stages)
            for kernel, given, arguments, iterations in (tuple(islice(words, 4)) for _ in range(count)):
                moves = [(next(words), next(words)) for _ in range(arguments)]
                moved = [address(first + given + k) - by * begin for k, (by, _) in enumerate(moves)]
                lo, hi = (begin * iterations, end * iterations) if iterations else (item, item + 1)
                call(kernel, moved, lo, hi)


def _kernels(operands: tuple[Any, ...]) -> list[KernelSource]:
    return [word for word in operands if isinstance(word, KernelSource) and word is not CHAIN_ITEMS]


def call(kernel: KernelSource, words: list[int], lo: int, hi: int) -> None:
    """Call a kernel with the words of its argument table."""
    arguments = [_value(p.kind, p.dtype, word) for p, word in zip(kernel.parameters, words, strict=True)]
    compiled(kernel.name, kernel.source)(lo, hi, *arguments)
