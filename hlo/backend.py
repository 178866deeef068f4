"""The interface between programs and what runs them: the only way by which the tracer reaches a backend.

The names are those of XLA's "Developing a new backend": Compiler, Executable, TransferManager. The face of the
package registers the default backend; importing this module pulls in none.
"""

from __future__ import annotations

import ctypes
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import UnsupportedError
from .ir import HloModule
from .physical_array import from_physical, to_physical
from .shape import Shape
from .target import Target

if TYPE_CHECKING:
    from .buffers.report import MemoryReport

NDArray = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class PassRecord:
    """One pass of one compilation."""

    name: str
    milliseconds: float
    instructions_before: int
    instructions_after: int
    changed: bool
    rewrites: Mapping[str, int] = field(default_factory=dict)
    """How often each rule of the pass fired."""
    unsettled: tuple[str, ...] = ()
    """Rules (or passes without rules) that would go on: a limit stopped them."""
    applications: Sequence[Any] = ()
    """Each application of a rule, in order, where they were asked for: `str` shows one."""


@dataclass(frozen=True, slots=True)
class MemoryAnalysis:
    """Bytes that one execution needs, by purpose, and where each buffer lies: `text` is the readable map, `report` the
    same as data, where the backend has it."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int
    constant_size_in_bytes: int
    generated_code_size_in_bytes: int
    text: str
    report: MemoryReport | None = None

    def __str__(self) -> str:
        return self.text


class DeviceBuffer(ABC):
    """Memory that holds one array in the layout of its shape. Freed when the last reference goes."""

    shape: Shape
    address: int

    @abstractmethod
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        """The array, with the shape's dimensions, read-only. A view of the memory where the layout is dense, unless a
        copy is asked for; else a copy, and ValueError if none is wanted."""

    def is_exclusive(self) -> bool:
        """True if nobody but this buffer can see the memory: no NumPy array of it is left. Then it may be donated."""
        return False


def held_alone(holder: object, attribute: str) -> bool:
    """True if nothing but this attribute refers to the attribute's value."""
    return sys.getrefcount(getattr(holder, attribute)) == _ALONE


class _Holder:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = object()


_holder = _Holder()
_ALONE = sys.getrefcount(getattr(_holder, "value"))  # noqa: B009  # counted just as above
"""The count that `held_alone` compares with: what one reference counts differs between versions of Python."""


def address_of(array: NDArray) -> int:
    """Where the array's first element lies.

    NumPy's documented ways (`ctypes.data`, `__array_interface__`) take over a microsecond, which is a third of a call.
    The data pointer is the first field after the object's head (PyArrayObject_fields, a part of NumPy's ABI).
    """
    return _pointer_at(id(array) + _DATA_OFFSET).value or 0


_pointer_at = ctypes.c_void_p.from_address
_DATA_OFFSET = object.__basicsize__
_probe = np.zeros(3)
assert address_of(_probe) == _probe.ctypes.data, "NumPy's array object has another layout in this Python"


def array_in(memory: NDArray, shape: Shape, dtype: Any = None, copy: bool | None = None) -> NDArray:
    """The array that `memory`, all bytes of a buffer, holds in the layout of `shape`; see `DeviceBuffer.__array__`."""
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
        array = from_physical(memory, shape)
        if copy:
            return array if dtype is None else array.astype(dtype)
    if copy or dtype is not None:
        return np.array(array, dtype=dtype, copy=copy)
    array.flags.writeable = False
    return array


def buffer_of(array: NDArray, shape: Shape, copy: bool = False) -> DeviceBuffer:
    """A buffer that holds `array`, which is of the type `shape`, in the layout of `shape`.

    The array's own memory where that is dense, in the layout's order and aligned, unless `copy` is set; else new.
    """
    layout = shape.array_layout
    if layout.is_row_major:
        return HostBuffer(array.copy() if copy else array, shape)
    if layout.is_dense:
        memory = np.ascontiguousarray(array.transpose(layout.minor_to_major[::-1]))
        if not memory.flags.aligned or (copy and np.may_share_memory(memory, array)):
            memory = memory.copy()
    else:
        memory = to_physical(array, shape)
    return PhysicalBuffer(memory.reshape(-1).view(np.uint8), shape)


class PhysicalBuffer(DeviceBuffer):
    """A buffer in any layout, as a NumPy array of its bytes."""

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


class RetypedBuffer(DeviceBuffer):
    """The memory of another buffer, which now holds an array of another type or layout, of as many bytes."""

    __slots__ = ("_owner", "address", "shape")

    def __init__(self, owner: DeviceBuffer, shape: Shape) -> None:
        self._owner = owner
        self.shape = shape
        self.address = owner.address

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        memory = (ctypes.c_uint8 * self.shape.byte_size).from_address(self.address)
        memory._owner = self._owner  # type: ignore[attr-defined]  # views of the array keep it, and it the memory
        return array_in(np.frombuffer(memoryview(memory), np.uint8), self.shape, dtype, copy)


class HostBuffer(DeviceBuffer):
    """A NumPy array as a buffer in row-major order; copied first if it is not dense, row-major and aligned."""

    __slots__ = ("_array", "address", "shape")

    def __init__(self, array: NDArray, shape: Shape) -> None:
        """`array`: of the type `shape`, whose layout is row-major."""
        flags = array.flags
        if not (flags.c_contiguous and flags.aligned):
            array = np.array(array, order="C")
        self._array = array
        self.shape = shape
        self.address = address_of(array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        array = self._array.view()
        array.flags.writeable = False
        return array if dtype is None and not copy else np.array(array, dtype=dtype, copy=copy)

    def is_exclusive(self) -> bool:
        return self._array.base is None and held_alone(self, "_array")


class Executable(ABC):
    """A compiled module."""

    module: HloModule
    """After all passes: scheduled, fused, with layouts."""

    @property
    @abstractmethod
    def parameter_shapes(self) -> Sequence[Shape]:
        """The leaves of the parameters' shapes, in the layouts in which `call` takes them."""

    @property
    @abstractmethod
    def result_shapes(self) -> Sequence[Shape]:
        """The leaves of the root's shape, in the layouts in which `call` gives them: one a result."""

    @abstractmethod
    def call(self, arguments: list[DeviceBuffer]) -> list[DeviceBuffer]:
        """Run on buffers of `parameter_shapes`, layouts and all: what jit's dispatch calls, so nothing is checked.

        Buffers of donated parameters may be written to, and be the memory of results; all others are only read, and
        no result shares memory with them.
        """

    @abstractmethod
    def execute(self, arguments: Sequence[NDArray]) -> list[NDArray]:
        """Run on arrays (flat: one a leaf of the parameters); the results, one a leaf of the root's shape.

        Arguments whose dtype or dimensions differ from the parameters' raise ExecutionError. They are used in place
        when their strides are those of the parameter's layout and they are aligned, else copied first; of tiled,
        padded and packed layouts arguments and results are always copies.
        """

    @abstractmethod
    def kernels(self) -> Mapping[str, str]:
        """The Numba source of each distinct kernel, by name."""

    @abstractmethod
    def memory_analysis(self) -> MemoryAnalysis: ...

    @abstractmethod
    def passes(self) -> Sequence[PassRecord]: ...

    def as_text(self) -> str:
        """The module after all passes, as HLO text."""
        return self.module.to_text()


class Compiler(ABC):
    """Turns modules into executables."""

    @abstractmethod
    def compile(self, module: HloModule, *, target: str | Target = "cpu", donated: Sequence[int] = ()) -> Executable:
        """`target`: whose layouts and memories the program uses inside, by name or itself; UnsupportedError, which
        names those that exist, for another. `donated`: entry parameters whose memory the program may reuse for results.
        """


_BACKENDS: dict[str, Callable[[], Compiler]] = {}
_INSTANCES: dict[str, Compiler] = {}
_default = os.environ.get("HLOOM_BACKEND", "numba")
_default_target: str | Target = os.environ.get("HLOOM_TARGET", "cpu")


def default_backend() -> str:
    """The backend that is used where none is named: HLOOM_BACKEND's, until `hloom.config` sets another."""
    return _default


def set_default_backend(name: str) -> None:
    """What `hloom.config.update("hloom_backend", name)` does for those who do not ask `hloom.config`."""
    global _default
    _default = name


def default_target() -> str | Target:
    """The target for which programs are compiled where none is named: HLOOM_TARGET's, until `hloom.config` sets
    another."""
    return _default_target


def set_default_target(target: str | Target) -> None:
    """What `hloom.config.update("hloom_target", target)` does for those who do not ask `hloom.config`."""
    global _default_target
    _default_target = target


def register_backend(name: str, factory: Callable[[], Compiler]) -> None:
    """Make a backend known; `factory` runs when the backend is first used."""
    assert name not in _BACKENDS, f"two backends named {name}"
    _BACKENDS[name] = factory


def get_compiler(name: str = "numba") -> Compiler:
    """The compiler of a registered backend; UnsupportedError names the known ones."""
    found = _INSTANCES.get(name)
    if found is None:
        if name not in _BACKENDS:
            _discover()
        if name not in _BACKENDS:
            raise UnsupportedError(f"no backend named {name!r}; known: {', '.join(_BACKENDS) or 'none'}")
        found = _INSTANCES[name] = _BACKENDS[name]()
    return found


def _discover() -> None:
    """Make the package's own backends known to a program that imported `hloom.hlo` alone: its face lists them."""
    package = (__package__ or "").rpartition(".")[0]
    import_module(".backends", package)
