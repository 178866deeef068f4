"""hloom.aot.load: a compiled program in Python, without Numba and without compiling. Little is imported here: a process
that only runs a program should start with it quickly."""

from __future__ import annotations

import ctypes
import json
import os
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..hlo.array_address import address_of
from ..hlo.errors import ExecutionError
from ..numba_backend.runtime.llvm_backend import load_objects

NDArray = np.ndarray[Any, Any]


def load(path: str | os.PathLike[str]) -> LoadedProgram:
    """The program with the description `path` (``NAME.json``); its object file lies beside it.

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
    description = json.loads(file.read_text(encoding="utf-8"))
    return LoadedProgram(description, file.with_suffix(".o").read_bytes())


class LoadedProgram:
    """A compiled program as a function of NumPy arrays, in the order of its arguments; one result, or a tuple.

    >>> program = aot.load("out/digits.json")  # doctest: +SKIP
    >>> label = program(image)  # doctest: +SKIP
    """

    def __init__(self, description: dict[str, Any], code: bytes) -> None:
        self.name: str = description["name"]
        if description.get("blas"):
            raise ExecutionError(
                f"{self.name} calls the BLAS functions {description['blas']}, which are linked by a C or C++ program; "
                "for Python compile it without blas"
            )
        self._arguments = [_Slot(slot) for slot in description["arguments"]]
        self._results = [_Slot(slot) for slot in description["results"]]
        self._temporary_bytes: int = description["temporary_bytes"]
        self._alignment: int = description["alignment"]
        self._of_thread = threading.local()
        self._kept, (address,) = load_objects([(f"{self.name}_run", code)])
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        self._run = kind(address)

    def __call__(self, *arguments: Any) -> Any:
        """ExecutionError for a wrong number of arguments, or one of another shape or dtype."""
        if len(arguments) != len(self._arguments):
            raise ExecutionError(f"{self.name} takes {len(self._arguments)} arrays, got {len(arguments)}")
        given = [slot.checked(k, a) for k, (slot, a) in enumerate(zip(self._arguments, arguments))]
        results = [np.empty(slot.dimensions, slot.dtype) for slot in self._results]
        try:
            takes, gives, temporary = self._of_thread.places
        except AttributeError:
            takes, gives, temporary = self._places_of_thread()
        for k, array in enumerate(given):
            takes[k] = address_of(array)
        for k, array in enumerate(results):
            gives[k] = address_of(array)
        status = self._run(takes, gives, temporary, None)
        if status:
            raise ExecutionError(f"{self.name} returned {status}")
        return results[0] if len(results) == 1 else tuple(results)

    def _places_of_thread(self) -> tuple[Any, Any, int]:
        """The data of a thread: tables for the addresses of arguments and results, and the address of memory for
        temporaries, aligned."""
        self._of_thread.memory = memory = np.empty(self._temporary_bytes + self._alignment, np.uint8)
        start: int = memory.__array_interface__["data"][0]
        takes, gives = ((ctypes.c_void_p * max(1, len(slots)))() for slots in (self._arguments, self._results))
        self._of_thread.places = places = (takes, gives, start + -start % self._alignment)
        return places

    def __repr__(self) -> str:
        return f"<LoadedProgram {self.name}>"


class _Slot:
    def __init__(self, description: dict[str, Any]) -> None:
        self.name: str = description["name"]
        name = description["dtype"]
        self.dtype = np.dtype(name if hasattr(np, name) else getattr(import_module("ml_dtypes"), name))
        self.dimensions = tuple(description["dimensions"])

    def checked(self, number: int, value: Any) -> NDArray:
        if type(value) is np.ndarray and value.dtype is self.dtype and value.shape == self.dimensions:
            return value if value.flags.c_contiguous else np.ascontiguousarray(value)
        array = np.ascontiguousarray(value)
        if array.dtype != self.dtype or np.shape(value) != self.dimensions:
            raise ExecutionError(
                f"argument {number}, {self.name}, must be {self.dtype}{list(self.dimensions)}, "
                f"got {array.dtype}{list(np.shape(value))}"
            )
        return array
