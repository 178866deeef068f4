"""hloom.aot.load: a compiled program in Python, without Numba and without compiling."""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from ..hlo.buffers.assignment import ALIGNMENT
from ..hlo.element_type import ElementType
from ..hlo.errors import ExecutionError
from ..numba_backend.runtime.llvm_backend import load_objects

NDArray = np.ndarray[Any, Any]


def load(path: str | os.PathLike[str]) -> LoadedProgram:
    """The program whose description, ``NAME.json``, is at `path`; its object file lies beside it.

    The object must be for this machine: code for instructions that its CPU lacks ends the process.

    Raises FileNotFoundError, and RuntimeError if the object file is not for this machine's system.

    >>> import tempfile, numpy as np, hloom
    >>> from hloom import aot, numpy as jnp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = aot.compile(lambda x: 2 * x, (jnp.ones(3),), name="twice").write(folder)
    ...     twice = aot.load(folder + "/twice.json")
    >>> twice(np.array([1, 2, 3], np.float32))
    array([2., 4., 6.], dtype=float32)
    """
    file = Path(path)
    description = json.loads(file.read_text())
    return LoadedProgram(description, file.with_suffix(".o").read_bytes())


class LoadedProgram:
    """A compiled program as a function of NumPy arrays, in the order of its arguments; one result, or a tuple.

    >>> from hloom import aot
    >>> program = aot.load("out/digits.json")  # doctest: +SKIP
    >>> label = program(image)  # doctest: +SKIP
    """

    def __init__(self, description: dict[str, Any], code: bytes) -> None:
        self.name: str = description["name"]
        self._arguments = [_Slot(slot) for slot in description["arguments"]]
        self._results = [_Slot(slot) for slot in description["results"]]
        self._temporary_bytes: int = description["temporary_bytes"]
        self._kept, (address,) = load_objects([(f"{self.name}_run", code)])
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        self._run = kind(address)

    def __call__(self, *arguments: Any) -> Any:
        """ExecutionError for a wrong number of arguments, or one of another shape or dtype."""
        if len(arguments) != len(self._arguments):
            raise ExecutionError(f"{self.name} takes {len(self._arguments)} arrays, got {len(arguments)}")
        given = [slot.checked(k, a) for k, (slot, a) in enumerate(zip(self._arguments, arguments, strict=True))]
        results = [np.empty(slot.dimensions, slot.dtype) for slot in self._results]
        memory = np.empty(self._temporary_bytes + ALIGNMENT, np.uint8)
        start = memory.ctypes.data
        start += -start % ALIGNMENT
        status = self._run(_addresses(given), _addresses(results), start, None)
        if status:
            raise ExecutionError(f"{self.name} returned {status}")
        return results[0] if len(results) == 1 else tuple(results)

    def __repr__(self) -> str:
        return f"<LoadedProgram {self.name}>"


class _Slot:
    def __init__(self, description: dict[str, Any]) -> None:
        self.name: str = description["name"]
        self.dtype = ElementType(description["type"]).dtype
        self.dimensions = tuple(description["dimensions"])

    def checked(self, number: int, value: Any) -> NDArray:
        array = np.ascontiguousarray(value)
        if array.dtype != self.dtype or np.shape(value) != self.dimensions:
            raise ExecutionError(
                f"argument {number}, {self.name}, must be {self.dtype}{list(self.dimensions)}, "
                f"got {array.dtype}{list(np.shape(value))}"
            )
        return array


def _addresses(arrays: list[NDArray]) -> Any:
    return (ctypes.c_void_p * max(1, len(arrays)))(*[a.ctypes.data for a in arrays])
