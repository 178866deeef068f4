"""Array: a concrete, immutable array. Its elements are in a read-only NumPy array, in a backend's buffer, or in shards:
a buffer for each device of this process that holds a part (`shards.py`).

Each form is made from another only on request. So a chain of compiled calls never makes NumPy arrays, a chain of eager
operations never makes buffers, and arrays that were computed on several devices stay divided.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from threading import get_ident
from typing import Any, Self
from weakref import ref

import numpy as np
from numpy.typing import DTypeLike

from ...hlo.backend import DeviceBuffer
from ...hlo.host_buffers import HostBuffer, locked
from ...hlo.sizes import is_symbolic
from ...hlo.support.forking import Order, fork_lock
from ...hlo.support.memory_pressure import allocating
from ...hlo.support.tracebacks import boundaries, hide
from ...hlo.timeline.spans import RECORDERS, Track, spanning
from ..aval import ShapedArray
from ..dtypes import canonical_dtype, python_scalar_dtype
from ..errors import DeletedArrayError, OperandError
from ..layers import LAYERS
from ..settings.context import thread
from ..sharding.devices import SEVERAL, CpuDevice
from ..sharding.shardings import ManualSharding, Shard, Sharding, SingleDeviceSharding, default_sharding
from ..sharding.shards import assembled, cut, shards_of
from ..source import user_line
from .dlpack import capsule_of
from .layouts import Format, row_major
from .operators import ArrayBase, Value

NDArray = np.ndarray[Any, Any]
read_slot = object.__getattribute__
"""The content of a slot; AttributeError if it is empty, in which case `getattr` would fill it."""
READERS = (
    *("__bool__", "__int__", "__float__", "__complex__", "__index__", "__format__", "__dlpack__"),
    *("item", "tolist"),
)
"""Methods that give an array's elements to Python: users meet their errors."""


class Absence(ABC):
    """The reason why an array has no elements: its value is deferred (`Handle` in `pending.py`), or it is deleted."""

    __slots__ = ()

    @abstractmethod
    def end(self, array: Array) -> None:
        """Give the array its elements by `Array._receive`. DeletedArrayError if there are none any more."""

    @abstractmethod
    def shared(self, array: Array) -> Absence:
        """The absence of another array with the same elements. DeletedArrayError if there are none any more."""


class Array(ArrayBase):
    """A concrete array, with its elements. Made by `hloom.numpy` functions, never directly by users.

    >>> import numpy as np, hloom.numpy as jnp
    >>> x = jnp.array([1.5, 2.5])
    >>> np.asarray(x), float(x[0])
    (array([1.5, 2.5], dtype=float32), 1.5)
    """

    __slots__ = (
        "__weakref__", "_absence", "_age", "_buffer", "_numpy", "_placed", "_shards", "_source", "_storage", "_view",
        "aval",
    )  # fmt: skip

    aval: ShapedArray
    _buffer: DeviceBuffer
    """For backends: dense and row-major."""
    _numpy: NDArray
    """For users: the elements as a NumPy array that cannot be made writeable."""
    _view: NDArray
    """For the library, which does not write to it. Arrays of extended dtypes have none."""
    _storage: Array
    """Only for an extended dtype: the array that stores the elements (`overlay.py`)."""
    _absence: Absence
    """Only while its value is deferred, and after it is deleted: then the slots of elements are empty."""
    _age: int
    """The number of the `younger_arrays` block in which it was made; empty for all other arrays."""
    _placed: Sharding | None
    """Where the user has put it, or where it was computed from such arrays; None for all other arrays. Each call reads
    it, so the slot is never empty."""
    _shards: list[DeviceBuffer]
    """Only where `_placed` has several devices, or one of another process: the parts on devices of this process."""
    _source: ref[NDArray]
    """The NumPy array of which it is a copy; only in a `younger_arrays` block that captures older arrays."""

    def __init__(self, aval: ShapedArray, view: NDArray) -> None:
        """An array of type `aval` over `view`, which must not be written any more."""
        self.aval = aval
        self._view = view
        self._placed = None
        if _AGES:
            self._age = _AGES[-1]

    @classmethod
    def from_buffer(cls, aval: ShapedArray, buffer: DeviceBuffer) -> Self:
        """An array of type `aval` over a backend's buffer."""
        self = cls.__new__(cls)
        self.aval = aval
        self._buffer = buffer
        self._placed = None
        return self

    @classmethod
    def from_shards(cls, aval: ShapedArray, shards: list[DeviceBuffer], sharding: Sharding) -> Self:
        """An array of type `aval` with `shards` on the devices of this process, in the order of `sharding`."""
        self: Any = _new_at(sharding)
        self.aval = aval.divided(sharding)
        self._shards = shards
        return self  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        # Reached only when a slot is empty (or for names that do not exist).
        if name == "_buffer":
            try:
                view = read_slot(self, "_view")
            except AttributeError:
                view = None
            if view is not None:  # the commonest case: it is `_kept` without a call
                self._buffer = made = HostBuffer(view, self.aval.hlo)
                try:
                    read_slot(self, "_view")
                except AttributeError:
                    _empty(self, name)
                return made
            if not self.aval.is_extended:
                self._settle()
                if slot_is_set(self, "_buffer"):
                    return self._buffer
                return self._kept(name, "_view", HostBuffer(self._view, self.aval.hlo))
        if name == "_view" and not self.aval.is_extended:
            try:
                buffer = read_slot(self, "_buffer")
            except AttributeError:  # the errors below must not show this one
                buffer = None
            if buffer is None:
                self._settle()
                if slot_is_set(self, "_view"):
                    return self._view
                if slot_is_set(self, "_shards"):
                    view = assembled(self._shards, self.sharding, self.aval.shape, self.aval.hlo)
                    return self._kept(name, "_shards", view)
                buffer = self._buffer
            return self._kept(name, "_buffer", buffer.__array__())
        if name in _NOT_OFFERED:
            raise AttributeError(name)
        if name == "_numpy":
            return self._kept(name, "_view", locked(self._view))
        if name in _FORMS:
            self._settle()
        if name == "_view":
            raise TypeError(_no_numbers(self))
        if name == "_buffer":
            return self._kept(name, "_storage", self._storage._buffer)
        if name == "_storage" and self.aval.is_extended:
            if slot_is_set(self, "_shards"):
                return self._kept(name, "_shards", Array.from_shards(self.aval.storage, self._shards, self.sharding))
            stored = Array.from_buffer(self.aval.storage, self._buffer).with_aval(self.aval.storage, self._placed)
            return self._kept(name, "_buffer", stored)
        if name == "_shards" and self._placed is not None:
            stored = self._storage if self.aval.is_extended else self
            source = "_view" if stored is self else "_storage"
            shards = stored._shards if stored is not self and slot_is_set(stored, "_shards") else None
            return self._kept(name, source, shards or cut(stored._view, self._placed, self.aval.shape))
        error = AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name.startswith("__"):  # NumPy looks up some, and does not show the error
            raise error
        try:
            raise error
        except AttributeError:
            hide(error)
            raise

    def _kept(self, slot: str, source: str, value: Any) -> Any:
        """`value`, which was made from the slot `source`, and stays in `slot` unless another thread has deleted the
        array meanwhile: then `source` is empty."""
        setattr(self, slot, value)
        try:
            read_slot(self, source)
        except AttributeError:  # see `slot_is_set`
            _empty(self, slot)
        return value

    def _settle(self) -> None:
        """Compute the elements if they are deferred. DeletedArrayError if the array is deleted."""
        try:
            absence: Absence = read_slot(self, "_absence")
        except AttributeError:  # see `slot_is_set`
            return
        absence.end(self)

    def _receive(self, absence: Absence, buffer: DeviceBuffer | None, view: NDArray | None) -> None:
        """Take the elements, in one form or both, if it still lacks them because of `absence`."""
        with _lock:
            if slot_is_set(self, "_absence") and self._absence is absence:  # else another thread has been here
                if buffer is not None:
                    self._buffer = buffer
                if view is not None:
                    self._view = view
                del self._absence

    def with_aval(self, aval: ShapedArray, place: Sharding | None = None) -> Array:
        """The same elements with a type that differs in its weak type only. They stay in their place, or get
        `place`: of one device, or, for an array without a place, of devices of this process."""
        other = _new_at(place := place or self._placed)
        other.aval = aval if place is None else aval.divided(place)
        if _AGES and slot_is_set(self, "_age"):
            other._age = self._age
            if slot_is_set(self, "_source"):
                other._source = self._source
        is_empty = True
        for slot in _FORMS:
            if slot_is_set(self, slot):
                is_empty = False
                setattr(other, slot, getattr(self, slot))
                if self._placed is None:  # the other forms are made from it
                    return other
        if is_empty:
            if not slot_is_set(self, "_absence"):  # another thread has just settled it
                return self.with_aval(aval, place)
            other._absence = self._absence.shared(self)
        return other

    def moved(self, sharding: Sharding) -> Array:
        """The same elements in another place. It is an error if this process lacks some of them.

        Nothing is copied until it is used there, unless the place has devices of other processes: then only the parts
        on devices of this one stay.
        """
        stored = self._storage if self.aval.is_extended else self
        if sharding.is_fully_addressable:
            is_whole = len(sharding.device_assignment) == 1 and not slot_is_set(stored, "_shards")
            if is_whole or sharding.is_equivalent_to(self.sharding, self.aval.ndim):
                other = stored.with_aval(stored.aval, sharding)
            else:
                other = Array(stored.aval, stored._view).with_aval(stored.aval, sharding)
            return other if stored is self else with_storage(self.aval, other)
        return Array.from_shards(self.aval, cut(stored._view, sharding, self.aval.shape), sharding)

    # ---- to NumPy and Python

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray:
        try:
            view = self._numpy
            if dtype is not None and np.dtype(dtype) != view.dtype:
                if copy is False:
                    raise ValueError(f"an array of {view.dtype} cannot be a {np.dtype(dtype)} array without a copy")
                return allocating(view.astype, dtype)
            if copy and RECORDERS:
                with spanning(Track.COPIES, "to NumPy", bytes=view.nbytes):
                    return allocating(view.copy)
            return allocating(view.copy) if copy else view
        except BaseException as error:
            hide(error)
            raise

    def __dlpack__(
        self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:  # fmt: skip
        """A DLPack capsule over the same memory, marked as read-only. Arguments as for NumPy's `__dlpack__`.

        DLPack before version 1 has no such mark: older consumers get a copy, or BufferError if `copy` is False.
        """
        options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        if max_version is not None and max_version[0] >= 1:
            return capsule_of(self._numpy, **options)
        if copy is False:
            raise BufferError(
                "an immutable array is exported without a copy only by DLPack 1.0 or later, which can say that the "
                "memory is read-only: pass max_version=(1, 0), or allow a copy"
            )
        return capsule_of(self._view.copy(), stream=stream, dl_device=dl_device)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # kDLCPU

    def item(self, *args: int) -> Any:
        """The only element (or the one at `args`) as a Python number.

        >>> jnp.array([7]).item(), jnp.array([[1, 2], [3, 4]]).item(1, 0)
        (7, 3)
        """
        return self._view.item(*args)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers.

        >>> jnp.array([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        return self._view.tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        r"""The elements in memory, in row-major order unless `order` is "F".

        >>> jnp.array([1, 256], jnp.int16).tobytes()
        b'\x01\x00\x00\x01'
        """
        return self._view.tobytes(order)

    def _scalar(self, convert: Callable[[Any], Any]) -> Any:
        if self.aval.shape:
            raise TypeError(
                f"Only scalar arrays can be converted to Python scalars. This is {self.aval.str_short()}: "
                "use x.item() for the only element, or an index"
            )
        return convert(self._view[()])

    def __bool__(self) -> bool:
        if self.size > 1 and not self.aval.is_extended:
            raise ValueError(
                f"The truth value of an array with more than one element is ambiguous: {self.aval.str_short()}. Use "
                "x.any() or x.all()."
            )
        if self.size == 0:
            raise ValueError(f"The truth value of an empty array is ambiguous: {self.aval.str_short()}. Test x.size.")
        return bool(self._view.reshape(())[()])

    def __int__(self) -> int:
        return int(self._scalar(int))

    def __float__(self) -> float:
        return float(self._scalar(float))

    def __complex__(self) -> complex:
        return complex(self._scalar(complex))

    def __index__(self) -> int:
        if self.aval.dtype.kind not in "iu" or self.aval.shape:
            raise TypeError(
                f"Only integer scalar arrays can be converted to a scalar index. This is {self.aval.str_short()}"
            )
        return int(self._view)

    def __format__(self, spec: str) -> str:
        if self.aval.is_extended:
            return format(repr(self), spec)
        return format(self._view[()] if not self.aval.shape else self._view, spec)

    def __repr__(self) -> str:
        self._refuse_deleted()
        if not (self.is_fully_addressable or self.is_fully_replicated):
            return f"Array(shape={self.aval.shape}, dtype={self.aval.dtype.name})"
        if self.aval.is_extended:
            return f"Array({self.aval.shape}, dtype={self.aval.dtype.name}) overlaying:\n{self._storage._view}"
        if isinstance(self._placed, ManualSharding):
            return f"<{self.aval.str_short()} of each device of {self._placed.mesh}>"
        weak = ", weak_type=True" if self.aval.weak_type else ""
        suffix = f"dtype={self.aval.dtype.name}{weak}"
        if self.size == 0:
            return f"Array([], shape={self.aval.shape}, {suffix})"
        text = np.array2string(self._view, prefix="Array(", separator=", ", suffix=",")
        # JAX's gap where NumPy starts a line: programs compare texts of arrays, in doctests for example
        is_long = len(text) - text.rfind("\n") + len(suffix) + 3 > np.get_printoptions()["linewidth"]
        return f"Array({text},{'      ' if is_long else ' '}{suffix})"

    def __str__(self) -> str:
        if self.aval.is_extended or not (self.is_fully_addressable or self.is_fully_replicated):
            return repr(self)
        return str(self._view)

    # ---- life

    def __reduce__(self) -> tuple[Any, ...]:
        if self.aval.is_extended:
            return with_storage, (self.aval, self._storage)
        return _unpickle, (np.array(self._view), self.aval.weak_type)

    def __copy__(self) -> Array:
        """Not the same memory: one may be deleted or donated, and the other stays."""
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Array:
        if slot_is_set(self, "_shards"):
            same: dict[int, DeviceBuffer] = {}
            for s in self._shards:
                same[id(s)] = same.get(id(s)) or HostBuffer(s.__array__(copy=True), s.shape)
            return Array.from_shards(self.aval, [same[id(s)] for s in self._shards], self.sharding)
        if self.aval.is_extended:
            other = with_storage(self.aval, self._storage.__deepcopy__(memo))
        else:
            other = Array(self.aval, _frozen(allocating(np.array, self._view)))
        return other if self._placed is None else other.with_aval(self.aval, self._placed)

    def block_until_ready(self) -> Self:
        """Itself, when its elements are there. On the CPU calls return when they are done; a backend for a device may
        return before (`HLOOM_BACKEND`). Raises the error of the program that computes it.

        >>> jnp.ones(2).block_until_ready()
        Array([1., 1.], dtype=float32)
        """
        try:
            buffer = read_buffer(self)
        except AttributeError:  # see `slot_is_set`
            self._settle()
            return self
        kind = type(buffer)
        if kind not in ALWAYS_READY:
            buffer.block_until_ready()
            if kind.block_until_ready is DeviceBuffer.block_until_ready:
                ALWAYS_READY.add(kind)
        return self

    def is_ready(self) -> bool:
        """False while a device has still to compute the elements. On the CPU calls return when they are done; a
        deferred value is computed first, since it would never be there otherwise.

        >>> jnp.ones(2).is_ready()
        True
        """
        self._settle()
        return not slot_is_set(self, "_buffer") or self._buffer.is_ready()

    def is_deleted(self) -> bool:
        """True once the memory was given away (`donate_argnums`) or `delete` was called.

        >>> x = jnp.ones(2)
        >>> x.delete()
        >>> x.is_deleted()
        True
        """
        return slot_is_set(self, "_absence") and self._absence is DELETED

    def delete(self) -> None:
        """Give up the memory now; using the array afterwards raises DeletedArrayError.

        >>> x = jnp.ones(2)
        >>> x.delete()
        >>> x.is_deleted()
        True
        """
        self._clear()

    def given_up(self) -> DeviceBuffer:
        """The buffer, which the array gives up: it is deleted from now on.

        One caller gets the buffer, for any timing of other threads; all others get DeletedArrayError. A thread that is
        reading the array holds a reference to the buffer or to its memory.
        """
        buffer = self._buffer
        if not self._clear():
            raise DeletedArrayError(_deleted(self))
        return buffer

    def _clear(self) -> bool:
        """Make the array a deleted one; False if it is one, perhaps because another thread deleted it first.

        The slots are emptied twice, outside of the lock since destructors may run. Another thread may just be making a
        view or a buffer. Either it finds that the slot which it is made from is empty, and does not keep it (`_kept`);
        or it has kept it before the second time.
        """
        with _lock:
            if self.is_deleted():
                return False
            before = self._absence if slot_is_set(self, "_absence") else None
            self._absence = DELETED
        del before
        for slot in _FORMS * 2:
            _empty(self, slot)
        return True

    # ---- places

    @property
    def addressable_data_pointer(self) -> int:
        """The address of the first element (dense, row-major).

        >>> x = jnp.array([1.5, 2.5])
        >>> x.addressable_data_pointer == x.unsafe_buffer_pointer()
        True
        """
        return self._buffer.address

    def unsafe_buffer_pointer(self) -> int:
        """The address of the first element, for foreign functions. The memory must not be written, and is freed with
        the array.

        >>> import ctypes
        >>> import hloom.numpy as jnp
        >>> x = jnp.array([1.5, 2.5])
        >>> ctypes.c_float.from_address(x.unsafe_buffer_pointer()).value
        1.5
        """
        return self._buffer.address

    @property
    def sharding(self) -> Sharding:
        """Where the array was put (`device_put`, `out_shardings`), or computed; else all of it on the first device.

        >>> jnp.ones(2).sharding
        SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
        """
        return self._placed or default_sharding()

    @property
    def committed(self) -> bool:
        """Whether the user has put the array somewhere.

        >>> jnp.ones(2).committed, hloom.device_put(jnp.ones(2), hloom.devices()[0]).committed
        (False, True)
        """
        return self._placed is not None

    @property
    def device(self) -> CpuDevice | Sharding:
        """The device that holds the array; the sharding, if there are several.

        >>> jnp.ones(2).device
        CpuDevice(id=0)
        """
        assignment = self.sharding.device_assignment
        return assignment[0] if len(assignment) == 1 else self.sharding

    def devices(self) -> set[CpuDevice]:
        """The devices that hold the array.

        >>> jnp.ones(2).devices()
        {CpuDevice(id=0)}
        """
        return self.sharding.device_set

    def to_device(self, device: Any, *, stream: Any = None) -> Array:
        """The array on a device, or sharded: the same elements.

        >>> jnp.ones(2).to_device(hloom.devices()[0])
        Array([1., 1.], dtype=float32)
        """
        if stream is not None:
            raise NotImplementedError("x.to_device: stream must be None, the CPU has no streams")
        return self.moved(device if isinstance(device, Sharding) else SingleDeviceSharding(device))

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all of it is in this process.

        >>> jnp.ones(2).is_fully_addressable
        True
        """
        return self._placed is None or self._placed.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each of its devices has all of it.

        >>> jnp.ones(2).is_fully_replicated
        True
        """
        return self._placed is None or self._placed.is_fully_replicated

    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts of the array on devices of this process.

        >>> [shard.data.shape for shard in jnp.ones((2, 3)).addressable_shards]
        [(2, 3)]
        """
        return [s for s in self.global_shards if s.data is not None]

    @property
    def global_shards(self) -> list[Shard]:
        """The parts of the array on all devices. Parts in other processes have no `data`.

        >>> [shard.index for shard in jnp.ones((2, 3)).global_shards]
        [(slice(None, None, None), slice(None, None, None))]
        """
        self._refuse_deleted()
        place = self.sharding
        if len(place.device_assignment) == 1 and place.is_fully_addressable:
            (device,) = place.device_assignment
            whole = self.with_aval(self.aval, SingleDeviceSharding(device) if self.committed else None)
            return [Shard(device, (slice(None),) * self.aval.ndim, 0, whole)]
        part = ShapedArray(place.shard_shape(self.aval.shape), self.aval.dtype, self.aval.weak_type)

        def on_device(buffer: DeviceBuffer, where: SingleDeviceSharding) -> Array:
            return Array.from_buffer(part, buffer).with_aval(part, where)

        return shards_of(place, self.aval.shape, on_device, self._shards)

    def addressable_data(self, index: int) -> Array:
        """The part on device number `index` of this process. IndexError if there is none.

        >>> jnp.ones(2).addressable_data(0)
        Array([1., 1.], dtype=float32)
        """
        part: Array = [shard.data for shard in self.addressable_shards][index]
        return part

    @property
    def format(self) -> Format:
        """The layout, which is dense and row-major, and the sharding.

        >>> jnp.ones((2, 3)).format.layout
        Layout(major_to_minor=(0, 1), tiling=(), sub_byte_element_size_in_bits=0)
        """
        return Format(row_major(len(self.aval.shape)), self.sharding)

    def on_device_size_in_bytes(self) -> int:
        """The size of the elements in memory, in bytes.

        >>> jnp.ones((2, 3)).on_device_size_in_bytes()
        24
        """
        return self.aval.storage.size * self.aval.storage.dtype.itemsize

    def copy_to_host_async(self) -> None:
        """Nothing: the elements are in the memory of the process.

        >>> x = jnp.ones(2)
        >>> x.copy_to_host_async()
        """
        self._settle()

    def _refuse_deleted(self) -> None:
        if self.is_deleted():
            raise DeletedArrayError(_deleted(self))


def _new_at(place: Sharding | None) -> Array:
    """An empty array in a place."""
    array = Array.__new__(Array)
    array._placed = place
    if place is not None:
        note(place)
    return array


def putter(place: Sharding) -> Callable[[Any], Any]:
    """A function that gives the new arrays which a program returns a place of one device."""
    types = dict[ShapedArray, ShapedArray]()
    note(place)

    def put(array: Any) -> Any:
        if isinstance(array, Array):
            aval = array.aval
            array._placed = place
            array.aval = types.get(aval) or types.setdefault(aval, aval.divided(place))
        return array

    return put


def note(place: Sharding) -> None:
    """From now on calls and operations ask where arrays are, if they must for one in `place`."""
    if not PLACES and _is_asked(place):
        LAYERS.turn_on("places")
        PLACES[:] = [True]


PLACES: list[bool] = []
"""Not empty once calls must ask where arrays are."""


boundaries(Array, *READERS)


_NOT_OFFERED = frozenset({"__array_struct__", "__array_interface__"})
"""Attributes that NumPy looks up before it calls `__array__`."""
OTHER_FORMS = ("_view", "_storage", "_shards", "_numpy")
_FORMS = ("_buffer", *OTHER_FORMS)
"""The slots that hold the elements in one form or another; first the forms that programs and operations make."""


def _is_asked(place: Sharding) -> bool:
    """Whether calls must ask for the place. Where there is only one device, arrays on it are like all others."""
    return bool(SEVERAL) or not isinstance(place, SingleDeviceSharding)


def is_placed(value: Any) -> bool:
    """Whether it is an array in a place that a user has chosen, over a mesh or on one of several devices, or a
    result of such arrays. Functions that compute with NumPy arrays directly leave such arrays to `bind`."""
    return type(value) is Array and value._placed is not None and _is_asked(value._placed)


def on_several(array: Array) -> bool:
    """Whether the array is on several devices, or on one of another process: programs take its shards then."""
    place = array._placed
    return place is not None and (len(place.device_assignment) > 1 or not place.is_fully_addressable)


def _deleted(array: Array) -> str:
    return (
        f"Array has been deleted with shape={array.aval.str_short()}: its memory was donated to a jitted call "
        f"(donate_argnums) or delete() was called.\n  used at {user_line() or '<unknown>'}\n"
        "  Use the call's results instead, or do not donate this argument."
    )


class _Deleted(Absence):
    """The absence of the elements of a deleted array: every use of them, printing too, raises DeletedArrayError."""

    __slots__ = ()

    def end(self, array: Array) -> None:
        raise DeletedArrayError(_deleted(array))

    def shared(self, array: Array) -> Absence:
        raise DeletedArrayError(_deleted(array))


DELETED = _Deleted()
_lock = fork_lock(Order.LEAF)
"""Held while the absence of an array's elements begins or ends."""


def _no_numbers(array: Array) -> str:
    return (
        f"JAX array with PRNGKey dtype cannot be converted to a NumPy array. The elements of {array.aval.str_short()} "
        "are no numbers.\n"
        f"  at {user_line() or '<unknown>'}\n"
        "  hloom.random.key_data(keys) is the uint32 array that holds keys."
    )


read_buffer: Callable[[Array], DeviceBuffer] = vars(Array)["_buffer"].__get__
"""The content of the slot `_buffer`; AttributeError if it is empty. It takes less time than `read_slot`."""
ALWAYS_READY: set[type[DeviceBuffer]] = set()
"""Classes of buffers that have been waited for, and do nothing then: their contents are there when the buffer is."""


def slot_is_set(array: Array, slot: str) -> bool:
    """True if `slot` holds something; unlike getattr, does not fill it."""
    try:
        read_slot(array, slot)
    except AttributeError:
        return False
    return True


def _empty(array: Array, slot: str) -> None:
    try:  # noqa: SIM105  # `suppress` takes as long as the rest
        delattr(array, slot)
    except AttributeError:
        pass


def is_absent(array: Array) -> bool:
    """Whether the elements are not there: deferred, or deleted. Does not ask for them."""
    try:
        read_slot(array, "_view")  # first, since a slot that is set costs little
    except AttributeError:
        return slot_is_set(array, "_absence")
    return False


# ---- which arrays are older than a trace

_AGES: list[int] = []
"""The numbers of the `younger_arrays` blocks around."""
_CAPTURING: list[tuple[int, int]] = []
"""(number, thread) of the blocks whose programs capture the arrays that are older than the block."""
_numbers = count(1)


@contextmanager
def younger_arrays(captures: bool) -> Iterator[int]:
    """A block in which arrays that are made can be told from older ones: `is_younger`. Its result is its number.

    captures: programs that are traced in it have only numbers that they make as constants; they capture arrays from
    outside, of any size.
    """
    number = next(_numbers)
    entry = number, get_ident()
    _AGES.append(number)
    if captures:
        _CAPTURING.append(entry)
    try:
        yield number
    finally:
        _AGES.remove(number)
        if captures:
            _CAPTURING.remove(entry)


def capturing_block() -> int:
    """The number of the innermost block of this thread in which programs capture older arrays; 0 if there is none."""
    if not _CAPTURING:
        return 0
    own = get_ident()
    return next((number for number, thread in reversed(_CAPTURING) if thread == own), 0)


def is_younger(array: Array, number: int) -> bool:
    """Whether an array was made within the `younger_arrays` block of that number, and is no copy of a NumPy array,
    which may be older. True for 0."""
    if not number:
        return True
    return slot_is_set(array, "_age") and array._age >= number and not slot_is_set(array, "_source")


def is_from_outside(array: Array) -> bool:
    """Whether an array comes from outside of the `younger_arrays` block in which it was used. The block captures older
    arrays, and has ended. The array was made in no such block; or it is a copy of a NumPy array that still exists: one
    that a function made in the block does not."""
    return not slot_is_set(array, "_age") or (slot_is_set(array, "_source") and array._source() is not None)


# ---- making arrays


def _frozen(array: NDArray) -> NDArray:
    array.flags.writeable = False
    return array


def detached(view: NDArray) -> NDArray:
    """`view`, copied if it is a small part of a large array, which it would keep alive."""
    owner = view.base
    while type(owner) is np.ndarray and owner.base is not None:
        owner = owner.base
    size = getattr(owner, "nbytes", 0)
    return _frozen(view.copy()) if size > MAX_KEPT_ALIVE and view.nbytes * 4 < size else view


MAX_KEPT_ALIVE = 4096
"""Bytes that a view may keep alive, however small it is itself."""


def _read_only(array: NDArray) -> NDArray:
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def array_from_numpy(value: NDArray | np.generic, dtype: np.dtype[Any] | None = None, *, copy: bool = True) -> Array:
    """An Array of NumPy data: without `dtype`, 64-bit dtypes become 32-bit unless x64 is on; copied unless told
    otherwise.

    UnsupportedElementTypeError for strings, objects and other dtypes that HLO lacks.
    """
    if type(value) is not np.ndarray:
        refuse_masked(value)
    dtype = canonical_dtype(value.dtype) if dtype is None else dtype
    aval = ShapedArray(value.shape, dtype)
    if not copy:
        return Array(aval, _alias(value, dtype))
    if RECORDERS:
        with spanning(Track.COPIES, "from NumPy", bytes=value.nbytes):
            made = Array(aval, _frozen(allocating(np.array, value, dtype=dtype, order="C")))
    else:
        made = Array(aval, _frozen(allocating(np.array, value, dtype=dtype, order="C")))
    if capturing_block() and isinstance(value, np.ndarray) and value.ndim:
        made._source = ref(value)
    return made


def refuse_masked(value: object) -> None:
    """OperandError (a ValueError) for NumPy's masked arrays: an Array would forget the mask."""
    masked = sys.modules.get("numpy.ma")  # it is imported where there are masked arrays
    if masked is not None and isinstance(value, masked.MaskedArray):
        raise OperandError(
            "numpy masked arrays are not supported: "
            f"a masked array of {value.dtype} and shape {value.shape} cannot become an array: its mask would be lost\n"
            f"  at {user_line() or '<unknown>'}\n  Replace masked elements first, as in x.filled(0).",
            "masked_array",
        )


def _alias(value: NDArray | np.generic, dtype: np.dtype[Any]) -> NDArray:
    array = np.asarray(value)
    return _read_only(array) if array.dtype == dtype else _frozen(allocating(array.astype, dtype))


def array_from_scalar(value: bool | int | float | complex, dtype: np.dtype[Any] | None = None) -> Array:
    """A weakly typed Array of a Python scalar; strongly typed if `dtype` is given. OverflowError if it does not fit."""
    if is_symbolic(value):
        return value.as_value(dtype)  # type: ignore[union-attr,no-any-return]
    if dtype is None:
        key = type(value), thread.settings.context.enable_x64
        aval = _SCALARS.get(key) or _SCALARS.setdefault(
            key, ShapedArray((), python_scalar_dtype(key[0]), key[0] is not bool)
        )
    else:
        aval = ShapedArray((), dtype, False)
    exact = type(value) is int or value * 0 != 0  # infinite or NaN
    if exact or (type(value) is float and -3e38 < value < 3e38 and aval.dtype.itemsize >= 4):
        return Array(aval, np.array(value, aval.dtype))
    with np.errstate(over="ignore", invalid="ignore"):  # a float beyond the dtype's range is infinite, silently
        return Array(aval, np.array(value, aval.dtype))


_SCALARS: dict[tuple[type, bool], ShapedArray] = {}
"""The types of Python scalars, with and without 64-bit dtypes."""


def as_value(value: Any) -> Value:
    """`value` as an Array or Tracer: Python scalars (weakly typed), NumPy scalars and arrays are converted.

    OperandError (a TypeError) for anything else, lists included, as in JAX.
    """
    if isinstance(value, ArrayBase):
        return value
    if isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic):
        return array_from_scalar(value)
    if isinstance(value, np.ndarray | np.generic):
        return array_from_numpy(value)
    if (array := resolved(value)) is not value:
        return as_value(array)
    aval = getattr(value, "aval", None)
    if hasattr(aval, "inner_aval"):
        raise OperandError(
            f"Attempting to pass a Ref {aval} to an operation -- did you forget to unpack ([...]) the ref?\n"
            f"  at {user_line() or '<unknown>'}"
        )
    raise OperandError(
        f"Argument {_short(value)} of type {type(value)} is not a valid JAX type: an array or a number is needed\n"
        f"  at {user_line() or '<unknown>'}\n"
        "  Lists, tuples and other sequences become arrays with hloom.numpy.asarray."
    )


CONVERSIONS: dict[type, Callable[[Any], Any]] = {}
"""Classes of libraries whose objects stand for arrays, each with the function that gives an object's array
(`hloom.interpreters.xla.canonicalize_dtype_handlers`)."""


def resolved(value: Any) -> Any:
    """The array that an object with `__jax_array__`, or of a class in `CONVERSIONS`, stands for; anything else is
    itself."""
    if hasattr(value, "__jax_array__"):
        return value.__jax_array__()
    convert = CONVERSIONS.get(type(value))
    return value if convert is None else convert(value)


_NUMBERS = frozenset({bool, int, float, complex})


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of a value that can become an array: of an array, a number, an object with `__jax_array__`, or a
    sequence, which may hold traced values."""
    if isinstance(value, ArrayBase):
        return value.aval.shape
    if type(value) in _NUMBERS:
        return ()
    if isinstance(value, list | tuple):
        return (len(value), *(shape_of(value[0]) if value else ()))
    return np.shape(resolved(value))


def rank_of(value: Any) -> int:
    """The number of dimensions of a value that can become an array."""
    return len(shape_of(value))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def with_storage(aval: ShapedArray, storage: Array) -> Array:
    """The array of an extended dtype that overlays `storage`."""
    array = _new_at(place := storage._placed)
    array.aval, array._storage = aval if place is None else aval.divided(place), storage
    return array


def _unpickle(array: NDArray, weak_type: bool) -> Array:
    array = array.astype(canonical_dtype(array.dtype), copy=False)  # as all arrays that come from outside
    aval = ShapedArray(array.shape, array.dtype, weak_type)
    return Array(aval, _frozen(array))
