"""Buffers in the memory of the process: NumPy arrays, and vectors of bytes in any layout.

The tracer passes them to an executable, and a backend that computes in host memory returns them. A backend for a device
with separate memory has its own kind of `DeviceBuffer`.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

from .array_address import address_of
from .backend import DeviceBuffer, NDArray
from .physical_array import from_physical, to_physical
from .shape import Shape
from .support.memory_pressure import allocating
from .timeline.spans import Track, spanning


def held_alone(holder: object, attribute: str) -> bool:
    """True if nothing but this attribute refers to the attribute's value."""
    return sys.getrefcount(getattr(holder, attribute)) == _ALONE


class _Holder:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = object()


_holder = _Holder()
_ALONE = sys.getrefcount(getattr(_holder, "value"))  # noqa: B009  # counted just as above
"""The count that `held_alone` compares with: versions of Python count a single reference differently."""


class _Interface:
    """The memory of an array described to NumPy as read-only, by an object that cannot be written through."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, owner: NDArray) -> None:
        self.owner = owner
        interface = dict(owner.__array_interface__)
        interface["data"] = (interface["data"][0], True)
        if owner.dtype.isbuiltin != 1:  # NumPy cannot read the name that it gives to a float of one byte
            interface["typestr"] = f"|V{owner.itemsize}"
            interface["descr"] = [("", interface["typestr"])]  # NumPy 2.1.0 dies without it
        self.__array_interface__ = interface

    @property
    def nbytes(self) -> int:
        return self.owner.nbytes


def locked(array: NDArray) -> NDArray:
    """The same elements, in the same memory, as an array that cannot be made writeable.

    NumPy lets a user set the flag of an array if the array owns its memory, or if the array that it views or the object
    that owns the memory is writeable. So the base of the result is an object that is none of these.
    """
    if _is_locked(array):
        return array
    if array.size and array.flags.c_contiguous:
        known: NDArray = array if array.dtype.isbuiltin == 1 else array.reshape(-1).view(np.uint8)
        vector = np.frombuffer(known.data.toreadonly(), array.dtype)  # a memoryview has no other dtypes
        return vector if array.ndim == 1 else vector.reshape(array.shape)
    described = np.asarray(_Interface(array))
    return described if described.dtype == array.dtype else described.view(array.dtype)


def _is_locked(array: NDArray) -> bool:
    base: Any = array
    while type(base) is np.ndarray:
        owner = base.base
        if owner is None or base.flags.writeable:
            return False
        base = owner
    described = getattr(base, "__array_interface__", None)
    if described is not None:
        return bool(described["data"][1])
    try:
        return memoryview(base).readonly
    except TypeError:  # it has no memory to offer
        return True


def array_in(memory: NDArray, shape: Shape, dtype: Any = None, copy: bool | None = None) -> NDArray:
    """The array that `memory`, all bytes of a buffer, holds in the layout of `shape`. See `DeviceBuffer.__array__`."""
    layout = shape.array_layout
    if layout.is_dense:
        array = memory.view(shape.element.dtype)
        if layout.is_monotonic_with_dim0_major:
            array = array.reshape(shape.dimensions)
        else:
            order = layout.minor_to_major[::-1]
            array = array.reshape([shape.dimensions[d] for d in order]).transpose(np.argsort(order))
    elif copy is False:
        raise ValueError(f"an array in layout {layout} cannot be read without a copy")
    else:
        array = allocating(from_physical, memory, shape)
        if copy:
            return array if dtype is None else array.astype(dtype)
    if copy or dtype is not None:
        return allocating(np.array, array, dtype=dtype, copy=copy)
    return locked(array)


def buffer_of(array: NDArray, shape: Shape, copy: bool = False) -> DeviceBuffer:
    """A buffer that holds `array` in the layout of `shape`; the array has the type `shape`.

    It uses the array's memory if that is dense, aligned and in the layout's order, unless `copy` is set; otherwise new
    memory.
    """
    layout = shape.array_layout
    if layout.is_row_major:
        return HostBuffer(array.copy() if copy else array, shape)
    with spanning(Track.COPIES, "host to buffer", bytes=array.nbytes):
        if layout.is_dense:
            memory = allocating(np.ascontiguousarray, array.transpose(layout.minor_to_major[::-1]))
            if not memory.flags.aligned or (copy and np.may_share_memory(memory, array)):
                memory = memory.copy()
        else:
            memory = allocating(to_physical, array, shape)
    return PhysicalBuffer(memory.reshape(-1).view(np.uint8), shape)


class HostMemory(DeviceBuffer):
    """A buffer in the memory of this process. A copy of it, or a pickle, has the contents and not the address."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return buffer_of, (self.__array__(copy=True), self.shape)


class PhysicalBuffer(HostMemory):
    """A buffer in any layout: a NumPy array of its bytes."""

    __slots__ = ("_memory", "address", "shape")

    def __init__(self, memory: NDArray, shape: Shape) -> None:
        """`memory`: a contiguous vector of `shape.byte_size` bytes."""
        assert memory.nbytes == shape.byte_size, f"{memory.nbytes} bytes for {shape.to_text()}"
        self._memory = memory
        self.shape = shape
        self.address = address_of(memory)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        return array_in(self._memory, self.shape, dtype, copy)

    def is_exclusive(self) -> bool:
        return self._memory.base is None and held_alone(self, "_memory")


class RetypedBuffer(HostMemory):
    """The memory of another buffer, read as an array of another type or layout with the same number of bytes."""

    __slots__ = ("_owner", "address", "shape")

    def __init__(self, owner: DeviceBuffer, shape: Shape) -> None:
        self._owner = owner
        self.shape = shape
        self.address = owner.address

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        memory = (ctypes.c_uint8 * self.shape.byte_size).from_address(self.address)
        memory._owner = self._owner  # type: ignore[attr-defined]  # views keep `memory` alive, which keeps the owner
        return array_in(np.frombuffer(memoryview(memory), np.uint8), self.shape, dtype, copy)


class HostBuffer(HostMemory):
    """A NumPy array as a buffer in row-major order; copied first if it is not dense, row-major and aligned."""

    __slots__ = ("_array", "address", "shape")

    def __init__(self, array: NDArray, shape: Shape) -> None:
        """`array`: an array of the type `shape`, with a row-major layout. TypeError for a NumPy scalar, which has flags
        like an array's and no elements where an array has them: its address would be another object's memory."""
        if not isinstance(array, np.ndarray):
            raise TypeError(f"a buffer is made of an array, not of {type(array).__name__}")
        flags = array.flags
        if not (flags.c_contiguous and flags.aligned):
            with spanning(Track.COPIES, "host to buffer", bytes=array.nbytes):
                array = allocating(np.array, array, order="C")
        self._array = array
        self.shape = shape
        self.address = address_of(array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        if copy:
            return allocating(np.array, self._array, dtype=dtype)
        array = locked(self._array)
        return array if dtype is None else allocating(np.array, array, dtype=dtype, copy=copy)

    def is_exclusive(self) -> bool:
        return self._array.base is None and held_alone(self, "_array")


USABLE = 0x0001 | 0x0100
"""NumPy's NPY_ARRAY_C_CONTIGUOUS and NPY_ARRAY_ALIGNED, bits of `array.flags.num`: a HostBuffer uses such an array as
it is."""


class BytesBuffer(HostMemory):
    """The memory of a bytes object, which is never written: a number of Python takes a sixth of the time that it takes
    as a NumPy array. It is given to no one: a program that may overwrite an argument gets a copy."""

    __slots__ = ("_memory", "address", "shape")
    _memory: bytes

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        return array_in(np.frombuffer(self._memory, np.uint8), self.shape, dtype, copy)


def bytes_buffer(memory: bytes, shape: Shape) -> BytesBuffer:
    """A buffer over `memory`, which has the `byte_size` of `shape`."""
    buffer = _new_bytes(BytesBuffer)
    buffer._memory = memory
    buffer.shape = shape
    buffer.address = id(memory) + _BYTES_OFFSET
    return buffer


_new_bytes = BytesBuffer.__new__
_BYTES_OFFSET = bytes.__basicsize__ - 1
"""Where the bytes of a bytes object begin: after its head, and before the zero at their end."""
_probe = b"hloom: a probe"
assert ctypes.string_at(id(_probe) + _BYTES_OFFSET, len(_probe)) == _probe, "bytes objects have another layout"
assert (id(_probe) + _BYTES_OFFSET) % 8 == 0, "bytes objects are not aligned"
