"""Meshes: devices in a grid with named axes, with JAX's names and checks. `current_mesh.py` has the current one.

An AbstractMesh has sizes without devices; it may have any.
"""

from __future__ import annotations

import enum
import math
import operator
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import ContextDecorator
from functools import partial
from typing import Any, Self

import numpy as np

from ...hlo.library import set_module
from ...hlo.notebooks import in_notebooks
from ...hlo.support.records import dataclass
from ..settings.context import change_thread, current_context
from ..weak_interned import interned
from .devices import CpuDevice, process_index
from .devices import devices as known_devices


class AxisType(enum.Enum):
    """How an axis of a mesh divides arrays: as the compiler likes (Auto), as types say (Explicit), or as the function
    that `shard_map` maps does itself (Manual).

    >>> hloom.make_mesh((1,), ("x",), axis_types=(sharding.AxisType.Explicit,)).axis_types
    (Explicit,)
    """

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class AbstractDevice:
    """A kind of device, without a device.

    >>> sharding.AbstractDevice("cpu", None, "cpu").device_kind
    'cpu'
    """

    device_kind: str
    num_cores: int | None
    platform: str


class _AnyMesh:
    """The attributes that both kinds of mesh have."""

    __slots__ = ()
    axis_names: tuple[Any, ...]
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a mesh is immutable: use mesh.update(...) to change {name}")

    @property
    def shape(self) -> Mapping[Any, int]:
        """The size of each axis, by name."""
        return OrderedDict(self.shape_tuple)

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        """The number of devices."""
        return math.prod(self.axis_sizes) if self.axis_names else 0

    @property
    def empty(self) -> bool:
        return self.size == 0

    def _of(self, kind: AxisType) -> tuple[Any, ...]:
        return tuple([n for n, t in zip(self.axis_names, self.axis_types, strict=True) if t is kind])

    @property
    def auto_axes(self) -> tuple[Any, ...]:
        return self._of(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Any, ...]:
        return self._of(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[Any, ...]:
        return self._of(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        return bool(self.axis_types) and set(self.axis_types) == {AxisType.Auto}

    @property
    def are_all_axes_explicit(self) -> bool:
        return bool(self.axis_types) and set(self.axis_types) == {AxisType.Explicit}

    @property
    def are_all_axes_manual(self) -> bool:
        return bool(self.axis_types) and set(self.axis_types) == {AxisType.Manual}

    @property
    def name_to_type(self) -> dict[Any, AxisType]:
        """The type of each axis, by name."""
        return dict(zip(self.axis_names, self.axis_types, strict=True))

    def _shown(self) -> str:
        return ", ".join([f"'{n}': {s}" for n, s in self.shape_tuple])

    _repr_html_ = in_notebooks


class Mesh(_AnyMesh, ContextDecorator):
    """Devices in a grid with named axes. `devices`: an array of devices with as many dimensions as `axis_names`.

    ``with mesh:`` and ``hloom.set_mesh(mesh)`` make it current. Equal meshes are the same object.

    >>> import hloom, numpy as np
    >>> hloom.sharding.Mesh(np.array(hloom.devices()[:1]).reshape(1, 1), ("x", "y"))
    Mesh(axis_sizes=(1, 1), axis_names=('x', 'y'), axis_types=(Auto, Auto))
    """

    devices: np.ndarray[Any, Any]

    def __new__(cls, devices: Any, axis_names: Any, axis_types: Any = None) -> Mesh:
        grid = devices if isinstance(devices, np.ndarray) else np.array(devices, dtype=object)
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if any(n is None for n in names):
            raise ValueError(f"Mesh axis names cannot be None. Got: {names}")
        if grid.ndim != len(names):
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of its second argument "
                f"(`axis_names`), but got devices.ndim == {grid.ndim} and len(axis_names) == {len(names)}."
            )
        flat = tuple(grid.flat)
        if names or flat != (None,):
            _check_devices(flat)
        return interned(_made_mesh, flat, grid.shape, names, _types("Mesh", names, axis_types))

    @property
    def axis_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(self.devices.shape)

    @property
    def device_ids(self) -> np.ndarray[Any, Any]:
        """The number of each device."""
        return np.array([d.id for d in self.devices.flat], dtype=int).reshape(self.devices.shape)

    @property
    def local_devices(self) -> list[CpuDevice]:
        """The devices of this process."""
        here = process_index()
        return [d for d in self.devices.flat if d.process_index == here]

    @property
    def local_mesh(self) -> Mesh:
        """The part of the grid with devices of this process. ValueError if that is no grid."""
        if not self.is_multi_process:
            return self
        here = process_index()
        places = np.argwhere(np.vectorize(lambda d: d.process_index == here, otypes=[bool])(self.devices))
        if not len(places):
            raise ValueError(f"the mesh {self} has no device of process {here}")
        box = tuple([slice(int(a), int(b) + 1) for a, b in zip(places.min(0), places.max(0), strict=True)])
        part = self.devices[box]
        if part.size != len(places):
            raise ValueError(
                "When passing host local inputs to pjit or shard_map, devices connected to a single host must form a "
                f"contiguous subcube of the global device mesh: those of process {here} in {self} do not"
            )
        return Mesh(part, self.axis_names, self.axis_types)

    @property
    def is_multi_process(self) -> bool:
        return len({d.process_index for d in self.devices.flat}) > 1

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh without its devices."""
        if not self.axis_names:
            return EMPTY_ABSTRACT
        device = AbstractDevice(CpuDevice.device_kind, None, CpuDevice.platform)
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, abstract_device=device)

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """The mesh with other devices, names or types."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def __enter__(self) -> Self:
        _BLOCKS.before.append(CURRENT.meshes)
        CURRENT.meshes = (CURRENT.meshes[0], CURRENT.meshes[1], self)
        return self

    def __exit__(self, *_: object) -> None:
        CURRENT.meshes = _BLOCKS.before.pop()

    def __reduce__(self) -> tuple[Any, ...]:
        return Mesh, (self.devices, self.axis_names, self.axis_types)

    def __str__(self) -> str:
        return "Mesh()" if self.empty else f"Mesh({self._shown()}, axis_types={self.axis_types})"

    def __repr__(self) -> str:
        if self.empty:
            return "Mesh(axis_sizes=(), axis_names=())"
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names!r}, axis_types={self.axis_types})"


def _check_devices(flat: tuple[Any, ...]) -> None:
    for device in flat:
        if not isinstance(device, CpuDevice):
            raise TypeError(f"Mesh: devices must be those of hloom.devices(), not {device!r}")
    if len(set(flat)) < len(flat):
        twice = sorted({d.id for d in flat if flat.count(d) > 1})
        raise ValueError(f"Mesh: each device is in a mesh once, but those with ids {twice} were given several times")


def _made_mesh(flat: tuple[Any, ...], shape: tuple[int, ...], names: tuple[Any, ...], types: Any) -> Mesh:
    mesh = object.__new__(Mesh)
    devices = np.array(flat, dtype=object).reshape(shape)
    devices.flags.writeable = False
    for name, value in (("devices", devices), ("axis_names", names), ("axis_types", types)):
        object.__setattr__(mesh, name, value)
    return mesh


def _types(what: str, names: Sequence[Any], axis_types: Any) -> tuple[AxisType, ...]:
    if axis_types is None:
        return (AxisType.Auto,) * len(names)
    types = tuple(axis_types) if isinstance(axis_types, tuple | list) else (axis_types,)
    if not all(isinstance(t, AxisType) for t in types):
        raise TypeError(f"axis_types passed to {what} must be of type `hloom.sharding.AxisType`. Got {axis_types}")
    if len(types) != len(names):
        raise ValueError(
            "Number of axis names should match the number of axis_types. Got "
            f"axis_names={tuple(names)} and axis_types={types}"
        )
    return types


class AbstractMesh(_AnyMesh):
    """The names and sizes of a mesh's axes, without devices: enough to trace, not to run.

    >>> sharding.AbstractMesh((4, 2), ("x", "y"))
    AbstractMesh('x': 4, 'y': 2, axis_types=(Auto, Auto))
    """

    __slots__ = ("__weakref__", "abstract_device", "axis_names", "axis_sizes", "axis_types")
    abstract_device: AbstractDevice | None

    def __new__(
        cls, axis_sizes: Any, axis_names: Any, axis_types: Any = None, *, abstract_device: Any = None
    ) -> AbstractMesh:
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        sizes = tuple([operator.index(s) for s in axis_sizes])
        if len(sizes) != len(names):
            raise ValueError(f"AbstractMesh: {len(sizes)} axis_sizes {sizes} for {len(names)} axis_names {names}")
        return interned(_made_abstract, sizes, names, _types("AbstractMesh", names, axis_types), abstract_device)

    @property
    def abstract_mesh(self) -> AbstractMesh:
        return self

    def update(self, axis_sizes: Any = None, axis_names: Any = None, axis_types: Any = None, **other: Any) -> Any:
        """The mesh with other sizes, names or types."""
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            **{"abstract_device": self.abstract_device, **other},
        )

    def update_axis_types(self, name_to_type: Mapping[Any, AxisType]) -> AbstractMesh:
        """The mesh in which the named axes have other types."""
        types = tuple([name_to_type.get(n, t) for n, t in zip(self.axis_names, self.axis_types, strict=True)])
        return self.update(axis_types=types)  # type: ignore[no-any-return]

    def _no_devices(self) -> Any:
        raise ValueError("AbstractMesh does not implement devices: it has names and sizes only")

    devices = device_ids = local_devices = local_mesh = is_multi_process = property(_no_devices)

    def __reduce__(self) -> tuple[Any, ...]:
        kind = partial(AbstractMesh, abstract_device=self.abstract_device)
        return kind, (self.axis_sizes, self.axis_names, self.axis_types)

    def __repr__(self) -> str:
        device = self.abstract_device
        kind = "" if device is None else f", device_kind={device.device_kind}, num_cores={device.num_cores}"
        kind += "" if device is None else f", platform={device.platform}"
        return f"AbstractMesh({self._shown() or '()'}, axis_types={self.axis_types}{kind})"


def _made_abstract(sizes: tuple[int, ...], names: tuple[Any, ...], types: Any, device: Any) -> AbstractMesh:
    mesh = object.__new__(AbstractMesh)
    values = (("axis_sizes", sizes), ("axis_names", names), ("axis_types", types), ("abstract_device", device))
    for name, value in values:
        object.__setattr__(mesh, name, value)
    return mesh


EMPTY_ABSTRACT = AbstractMesh((), ())
EMPTY = Mesh(np.array(None, dtype=object), ())


def make_mesh(
    axis_shapes: Sequence[int], axis_names: Sequence[str], axis_types: Any = None, *, devices: Any = None
) -> Mesh:
    """A mesh with the given sizes and names of axes, of the first devices (or of `devices`), in order.

    axis_types: Explicit for all, unless it says otherwise.
    ValueError if the product of the sizes is over the number of devices.

    >>> hloom.make_mesh((1, 1), ("x", "y"))
    Mesh(axis_sizes=(1, 1), axis_names=('x', 'y'), axis_types=(Explicit, Explicit))
    """
    try:
        sizes = tuple([operator.index(s) for s in axis_shapes])
    except TypeError:
        what = "`axis_shapes` passed to `make_mesh` should be a sequence of ints."
        raise ValueError(f"{what} Got {axis_shapes!r}") from None
    found = known_devices() if devices is None else list(devices)
    if math.prod(sizes) > len(found):
        raise ValueError(
            f"Number of devices {len(found)} must be >= the product of mesh_shape {sizes}. HLOOM_NUM_DEVICES="
            f"{math.prod(sizes)} in the environment makes as many in a process"
        )
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    if len(names) != len(sizes):
        raise ValueError(f"make_mesh: {len(sizes)} axis_shapes {sizes} for {len(names)} axis_names {names}")
    grid = np.array(found[: math.prod(sizes)], dtype=object).reshape(sizes)
    return Mesh(grid, names, (AxisType.Explicit,) * len(names) if axis_types is None else axis_types)


class CurrentMesh:
    """Of a thread: the abstract mesh, the mesh that `set_mesh` set, and the mesh of a ``with mesh:`` block. They are a
    part of the context, since traced programs depend on them."""

    @property
    def meshes(self) -> tuple[AbstractMesh, Mesh, Mesh]:
        return current_context().meshes or _NONE

    @meshes.setter
    def meshes(self, found: tuple[AbstractMesh, Mesh, Mesh]) -> None:
        change_thread(meshes=None if found is _NONE or found == _NONE else found)


_NONE = (EMPTY_ABSTRACT, EMPTY, EMPTY)


class _Blocks(threading.local):
    """The meshes before each open ``with mesh:`` block of a thread."""

    def __init__(self) -> None:
        self.before: list[tuple[AbstractMesh, Mesh, Mesh]] = []


_BLOCKS = _Blocks()
CURRENT = CurrentMesh()


set_module("sharding", AbstractDevice, AbstractMesh, AxisType, Mesh)
