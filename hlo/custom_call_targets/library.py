"""LAPACK as SciPy links it, called for every matrix of a batch, without importing SciPy's Python.

A routine takes pointers only. `each` passes, for matrix i of a batch, the address of element i of each array, and the
addresses of numbers, letters and workspaces as they are.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.machinery
import importlib.util
import math
import os
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ..element_type import ElementType
from ..errors import UnsupportedError
from ..support.forking import PRODUCTS
from ..support.named_address import NamedAddress
from ..system import system

NDArray: TypeAlias = np.ndarray[Any, Any]

PREFIXES = {ElementType.F32: "s", ElementType.F64: "d", ElementType.C64: "c", ElementType.C128: "z"}
"""The element types that LAPACK has, and the letter with which its routines' names begin."""


_LARGEST = 2**31 - 1


class Shared:
    """An array that all matrices of a batch use: a workspace."""

    def __init__(self, array: NDArray) -> None:
        self.array = array


Argument: TypeAlias = "str | int | float | complex | NDArray | Shared"
"""A letter; a number (integers are LAPACK's 32-bit ones, others of the routine's type); an array with one element of
its first dimension a matrix; a workspace."""


def each(routine: str, element_type: ElementType, count: int, *arguments: Argument) -> None:
    """Call `routine` (without its prefix) for each of `count` matrices. Arrays are C-contiguous; those that
    the routine writes are changed in place."""
    if not count:
        return
    dtype = element_type.dtype
    kept, addresses, steps = [], [], []
    for argument in arguments:
        step = 0
        if isinstance(argument, str):
            array = np.frombuffer(argument.encode(), np.uint8)
        elif isinstance(argument, int):
            if argument > _LARGEST:
                raise UnsupportedError(f"LAPACK takes sizes up to {_LARGEST}; {routine} would need {argument}")
            array = np.array(argument, np.int32)
        elif isinstance(argument, Shared):
            array = argument.array
        elif isinstance(argument, np.ndarray):
            array = argument
            assert array.flags.c_contiguous and array.shape[0] == count
            step = array.nbytes // count
        else:
            array = np.array(argument, dtype)
        kept.append(array)
        addresses.append(array.ctypes.data)
        steps.append(step)
    first, step_of = np.array(addresses, np.int64), np.array(steps, np.int64)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(first))(address_of(PREFIXES[element_type] + routine))
    with PRODUCTS.inside():
        for i in range(count):
            call(*(first + i * step_of).tolist())


def each_with_work(
    routine: str,
    element_type: ElementType,
    count: int,
    before: Sequence[Argument],
    kinds: Sequence[ElementType],
    after: Sequence[Argument],
) -> None:
    """As `each`, for a routine that says how much workspace it wants when asked with a length of -1.

    Its arguments are `before`, then for each of `kinds` a workspace of that type and its length, then `after`.
    """
    if not count:
        return
    work: list[Argument] = []
    for length, kind in zip(work_lengths(routine, element_type, before, kinds, after), kinds):
        work += [Shared(np.empty(length, kind.dtype)), length]
    each(routine, element_type, count, *before, *work, *after)


def work_lengths(
    routine: str,
    element_type: ElementType,
    before: Sequence[Argument],
    kinds: Sequence[ElementType],
    after: Sequence[Argument],
) -> list[int]:
    """How many elements the workspaces of `each_with_work` need: the routine's own answer for sizes like these."""
    sizes = [x.shape[1:] if isinstance(x, np.ndarray) else None if isinstance(x, Shared) else x for x in before]
    key = routine, element_type, tuple(sizes)
    found = _lengths.get(key)
    if found is None:
        answers = [np.zeros(1, kind.dtype) for kind in kinds]
        asking = [argument for answer in answers for argument in (Shared(answer), -1)]
        first = [a[:1] if isinstance(a, np.ndarray) else a for a in (*before, *asking, *after)]
        each(routine, element_type, 1, *first)
        found = [_length(answer, kind) for answer, kind in zip(answers, kinds)]
        if len(_lengths) < _MOST_LENGTHS:
            _lengths[key] = found
    return found


_lengths: dict[Any, list[int]] = {}
_MOST_LENGTHS = 10_000


def _length(answer: NDArray, kind: ElementType) -> int:
    """A length that the routine gave as an element of the workspace; as a float, it may have been rounded down."""
    return max(1, math.ceil(float(answer[0].real) * (1 + 1e-6)) if kind.is_inexact else int(answer[0]))


@functools.cache
def address_of(name: str) -> int:
    """The address of the routine, in the library behind SciPy's `cython_lapack`, or `cython_blas`."""
    for library in _libraries():
        for symbol in (f"scipy_{name}_", f"{name}_"):
            function = getattr(library, symbol, None)
            if function is not None:
                return NamedAddress(ctypes.cast(function, ctypes.c_void_p).value or 0, "lapack", name)
    for module_name in ("scipy.linalg.cython_lapack", "scipy.linalg.cython_blas"):
        try:
            module = importlib.import_module(module_name)
        except ImportError as error:
            raise UnsupportedError(f"{name} is a routine of LAPACK, which needs SciPy: install scipy") from error
        capsule = module.__pyx_capi__.get(name)
        if capsule is not None:
            get_name, get = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
            get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
            get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            return NamedAddress(get(capsule, get_name(capsule)), "lapack", name)
    raise UnsupportedError(f"this SciPy's LAPACK has no routine {name}")


@functools.cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    """SciPy's extensions as shared libraries: importing them as modules would import all of scipy.linalg."""
    found = []
    spec = importlib.util.find_spec("scipy")
    for folder in (spec and spec.submodule_search_locations) or []:
        for name in ("cython_lapack", "cython_blas"):
            for suffix in importlib.machinery.EXTENSION_SUFFIXES:
                path = os.path.join(folder, "linalg", name + suffix)
                if os.path.exists(path):
                    found.append(ctypes.CDLL(system.library_of(path)))
    return tuple(found)


def to_columns(matrices: NDArray) -> NDArray:
    """A new array [count, n, m] of the matrices [..., m, n]: each one as LAPACK stores it, column by column."""
    *batch, m, n = matrices.shape
    flat = matrices.reshape(math.prod(batch), m, n)
    return np.array(flat.swapaxes(1, 2), order="C")


def from_columns(columns: NDArray, batch: tuple[int, ...]) -> NDArray:
    """The matrices [*batch, m, n] that are stored column by column in `columns` [count, n, m]."""
    _, n, m = columns.shape
    return columns.reshape(*batch, n, m).swapaxes(-1, -2)


def rows_of(array: NDArray, rank: int = 1) -> NDArray:
    """A new array [count, ...] of the last `rank` dimensions of `array` [..., ...]."""
    split = array.ndim - rank
    return np.array(array.reshape(math.prod(array.shape[:split]), *array.shape[split:]), order="C")
