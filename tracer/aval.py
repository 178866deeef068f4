"""ShapedArray: the type of a value in a program (shape, dtype, weak type). Interned, so that caches key on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import DTypeLike

from ..hlo.element_type import element_type_of
from ..hlo.errors import ShapeError, UnsupportedError
from ..hlo.layout import row_major
from ..hlo.shape import Shape
from ..hlo.sizes import is_symbolic
from ..hlo.support.forking import Order, fork_lock
from .arrays.extended import ExtendedDType
from .arrays.layouts import Space
from .caches import on_clear
from .errors import OperandError
from .sharding.mesh import CURRENT
from .sharding.shardings import explicit_part, undivided

FLOAT0 = np.dtype([("float0", np.void, 0)])


class Float0Type(NamedTuple):
    """The type of the tangent of an integer or boolean array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any] = FLOAT0
    weak_type: bool = False

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class ManualAxisType(NamedTuple):
    """Along which axes of a mesh values vary from device to device. `unreduced` and `reduced` are empty: the types of
    whole arrays say that, in their shardings.

    >>> hloom.typeof(jnp.ones(2)).mat == hloom.sharding.ManualAxisType()
    True
    """

    varying: frozenset[Any] = frozenset()
    unreduced: frozenset[Any] = frozenset()
    reduced: frozenset[Any] = frozenset()


class ShapedArray:
    """Shape, dtype and weak type of an array. Each type has one instance: equal means identical.

    A weakly typed value comes from Python numbers and gives way to other dtypes in promotion. A comparison of such
    values is weakly typed too, as in JAX, though booleans give way to every dtype anyway.

    >>> import hloom, hloom.numpy as jnp
    >>> from hloom.core import ShapedArray
    >>> x = ShapedArray((2, 3), jnp.float32)
    >>> x, hloom.typeof(jnp.ones((2, 3))) is x
    (ShapedArray(float32[2,3]), True)
    """

    __slots__ = (
        *("__weakref__", "_storage", "division", "dtype", "hlo", "is_extended", "is_plain", "shape", "vma"),
        "weak_type",
    )

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    weak_type: bool
    hlo: Shape
    """The HLO type, row-major; of the storage, if the dtype is extended."""
    is_extended: bool
    """True for dtypes that HLO lacks (`extended.py`)."""
    _storage: ShapedArray | None
    division: Any
    """A NamedSharding by the Explicit axes of a mesh, an entry for each dimension; None if it says nothing of them."""
    vma: frozenset[Any]
    """Within a function that `shard_map` maps, the axes of the mesh along which the value varies (`varying.py`)."""
    is_plain: bool
    """Whether the type says nothing about devices: no `division`, no `vma`."""

    def __new__(
        cls,
        shape: tuple[int, ...],
        dtype: DTypeLike | ExtendedDType,
        weak_type: bool = False,
        *,
        sharding: Any = None,
        vma: frozenset[Any] = frozenset(),
        manual_axis_type: ManualAxisType | None = None,
    ) -> ShapedArray:
        """The one instance of this type; UnsupportedElementTypeError for a dtype that HLO cannot hold. `sharding`: a
        NamedSharding; the type keeps its Explicit axes. `manual_axis_type`: its `varying` is `vma`;
        UnsupportedError where it has other axes."""
        if manual_axis_type is not None:
            vma = _varying(manual_axis_type)
        if vma or sharding is not None:
            plain = ShapedArray(tuple(shape), dtype, weak_type)
            return _over_devices(plain, frozenset(vma), explicit_part(sharding, len(plain.shape)))
        key = (shape, dtype, weak_type)
        try:
            found = _RECENT.get(key)
        except TypeError:
            if isinstance(shape, tuple):
                raise
            return ShapedArray(tuple(shape), dtype, weak_type)
        return found if found is not None else _intern(key)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("ShapedArray is immutable")

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self.shape, self.dtype, self.weak_type, self.vma, self.division)

    @property
    def storage(self) -> ShapedArray:
        """The type of the array that holds the elements: this type itself, unless its dtype is extended."""
        return self if self._storage is None else self._storage

    @property
    def sharding(self) -> Any:
        """A NamedSharding over a mesh without devices: how its Explicit axes divide the value. The mesh of a value that
        they do not divide is the current one."""
        return self.division or undivided(len(self.shape), CURRENT.meshes[0])

    def divided(self, sharding: Any) -> ShapedArray:
        """The type of a value in the place `sharding`: it keeps the Explicit axes. None: they divide nothing."""
        found = None if sharding is None else explicit_part(sharding, len(self.shape))
        return self if found is self.division else _over_devices(self.plain(), self.vma, found)

    def plain(self) -> ShapedArray:
        """The same type without what it says about devices."""
        return self if self.is_plain else ShapedArray(self.shape, self.dtype, self.weak_type)

    def row(self) -> ShapedArray:
        """The type of an element along the first dimension."""
        row = ShapedArray(self.shape[1:], self.dtype, self.weak_type)
        if self.is_plain:
            return row
        return _over_devices(row, self.vma, self.division and explicit_part(_without_first(self.division), row.ndim))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def with_weak_type(self, weak_type: bool) -> ShapedArray:
        """The same type, weak or not."""
        if weak_type is self.weak_type:
            return self
        found = ShapedArray(self.shape, self.dtype, weak_type)
        return found if self.is_plain else _over_devices(found, self.vma, self.division)

    def strip_weak_type(self) -> ShapedArray:
        """The same type, not weak."""
        return self.with_weak_type(False)

    def update_weak_type(self, weak_type: bool) -> ShapedArray:
        """The same type, weak or not: JAX's name."""
        return self.with_weak_type(weak_type)

    @property
    def memory_space(self) -> Space:
        """The kind of memory: all memory is that of the process, also where a sharding names another kind.

        >>> hloom.typeof(jnp.ones(2)).memory_space
        MemorySpace.Device
        """
        return Space.Device

    @property
    def mat(self) -> ManualAxisType:
        """How values vary along the axes of the mesh that `shard_map` maps over."""
        return ManualAxisType(self.vma)

    manual_axis_type = mat
    """JAX's name of `mat`."""

    def update_manual_axis_type(self, mat: ManualAxisType) -> ShapedArray:
        """The type of a value that varies otherwise along these axes."""
        return self.with_vma(_varying(mat))

    def with_vma(self, vma: frozenset[Any]) -> ShapedArray:
        """The same type of a value that varies along these axes."""
        return self if vma == self.vma else _over_devices(self.plain(), vma, self.division)

    def like_storage(self, storage: ShapedArray) -> ShapedArray:
        """The type of an extended dtype over a storage of this type: on the devices on which that is."""
        division = storage.division and explicit_part(storage.division, self.ndim)
        return _over_devices(self.plain(), storage.vma, division)

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """As JAX writes it in messages, ``float32[2,3]``, and in jaxprs, ``f32[2,3]``. `mesh_axis_types` is for JAX's
        sake: only Explicit axes are shown."""
        name = self.dtype.name
        if short_dtypes:
            for long, short in _SHORT:
                name = name.replace(long, short)
        if self.division is None:
            return f"{name}[{','.join(map(str, self.shape))}]{_mesh_axes(('V', sorted(self.vma, key=str)))}"
        mesh, spec = self.division.mesh, self.division.spec
        varying = sorted(self.vma, key=str)
        unreduced, reduced = ([a for a in mesh.axis_names if a in s] for s in (spec.unreduced, spec.reduced))
        axes = _mesh_axes(("V", varying), ("U", unreduced), ("R", reduced))
        return f"{name}[{divided_sizes(self.shape, spec.partitions)}]{axes}"

    def to_tangent_aval(self) -> ShapedArray | Float0Type:
        """The type of tangents of such a value: this type; a float0 type for a value that is not differentiated."""
        moves = not self.is_extended and element_type_of(self.dtype).is_inexact
        return self.with_weak_type(False) if moves else Float0Type(self.shape)

    def to_ct_aval(self) -> ShapedArray | Float0Type:
        """The type of cotangents: the type of tangents, with the reduced axes of the value as unreduced ones, and its
        unreduced axes as reduced ones."""
        found = self.to_tangent_aval()
        spec = None if self.division is None else self.division.spec
        if spec is None or not (spec.unreduced or spec.reduced) or not isinstance(found, ShapedArray):
            return found
        turned = spec.update(unreduced=spec.reduced, reduced=spec.unreduced)
        return _over_devices(found.plain(), self.vma, self.division.update(spec=turned))

    # the methods of `hijax.HiType`: an array is its own array

    def lo_ty(self) -> list[ShapedArray]:
        """The types of the arrays of a value."""
        return [self]

    def lower_val(self, hi_val: Any) -> list[Any]:
        """The arrays of a value."""
        return [hi_val]

    def raise_val(self, lo_val: Any) -> Any:
        """The value with this array."""
        return lo_val

    def vspace_add(self, x: Any, y: Any) -> Any:
        """The sum of two tangents."""
        return x + y

    def normalize(self) -> ShapedArray:
        """The same type, not weak."""
        return self.with_weak_type(False)

    def dec_rank(self, size: Any, spec: int | None) -> ShapedArray:
        """The type of an element along the axis `spec`."""
        return self if spec is None else self.update(shape=(*self.shape[:spec], *self.shape[spec + 1 :]))

    def inc_rank(self, size: Any, spec: int | None) -> ShapedArray:
        """The type of `size` elements along the axis `spec`."""
        return self if spec is None else self.update(shape=(*self.shape[:spec], size, *self.shape[spec:]))

    def leading_axis_spec(self) -> int:
        """The first axis."""
        return 0

    def update(self, **changes: Any) -> ShapedArray:
        """The type with another shape, dtype or weak type."""
        given = {"shape": self.shape, "dtype": self.dtype, "weak_type": self.weak_type, "vma": self.vma, **changes}
        if given.get("manual_axis_type") is not None:
            del given["vma"]
        if len(given["shape"]) == self.ndim:
            given.setdefault("sharding", self.division)
        return ShapedArray(tuple(given.pop("shape")), given.pop("dtype"), **given)

    def __str__(self) -> str:
        return f"{'~' if self.weak_type else ''}{self.str_short()}"

    def __repr__(self) -> str:
        return f"ShapedArray({self.str_short()}{', weak_type=True' if self.weak_type else ''})"


def _mesh_axes(*sets: tuple[str, Sequence[Any]]) -> str:
    """The text of a type for axes that divide no dimension: ``{V:x, U:(y,z)}``."""
    texts = [(kind, ",".join(map(str, axes)), len(axes)) for kind, axes in sets]
    shown = [f"{kind}:{text if count == 1 else f'({text})'}" for kind, text, count in texts if count]
    return f"{{{', '.join(shown)}}}" if shown else ""


def _varying(mat: ManualAxisType) -> frozenset[Any]:
    if mat.unreduced or mat.reduced:
        raise UnsupportedError(f"unreduced or reduced axes are said by a type's sharding, not by {mat}")
    return frozenset(mat.varying)


def divided_sizes(shape: Sequence[int], partitions: Sequence[Any]) -> str:
    """Sizes, each with the axes of a mesh that divide it: ``8@x,4@(y,z)``."""
    found = []
    for size, entry in zip(shape, partitions, strict=True):
        axes = f"({','.join(map(str, entry))})" if isinstance(entry, tuple) else entry
        found.append(str(size) if entry is None else f"{size}@{axes}")
    return ",".join(found)


_SHORT = (("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c"))
_INTERNED: WeakValueDictionary[tuple[Any, Any, bool], ShapedArray] = WeakValueDictionary()
"""All types in use."""
_lock = fork_lock(Order.LEAF)
_RECENT: dict[tuple[Any, Any, bool], ShapedArray] = {}
"""Types that were asked for, as they were spelled, for a fast answer; emptied when there are many."""
MAX_RECENT = 8192
on_clear(_RECENT.clear)


def _intern(key: tuple[Any, Any, bool]) -> ShapedArray:
    if isinstance(key[1], ExtendedDType):
        aval = _the_one((_sizes(key[0]), key[1], False), _make_extended)
    else:
        dtype = element_type_of(key[1]).dtype
        aval = _the_one((_sizes(key[0]), dtype, bool(key[2])), _make)
    if len(_RECENT) >= MAX_RECENT:
        _RECENT.clear()
    # `key` may spell the dtype in another way ("float32", np.float32): the next lookup takes the fast path.
    _RECENT[key] = aval
    return aval


def _sizes(shape: Any) -> tuple[Any, ...]:
    return tuple([d if is_symbolic(d) else int(d) for d in shape])


def _over_devices(plain: ShapedArray, vma: frozenset[Any], division: Any) -> ShapedArray:
    """The type with what it says about devices."""
    if not vma and division is None:
        return plain
    found = _OVER_DEVICES.get((plain, vma, division))
    if found is None:
        storage = None if plain._storage is None else _over_devices(plain._storage, vma, _of_storage(plain, division))
        made = _filled(plain.shape, plain.dtype, plain.weak_type, plain.hlo, storage, vma, division)
        ANY_OVER_DEVICES[:] = [True]
        found = _OVER_DEVICES.setdefault((plain, vma, division), made)
    return found


def _of_storage(plain: ShapedArray, division: Any) -> Any:
    assert plain._storage is not None, f"{plain} is its own storage"
    return division and explicit_part(division, plain._storage.ndim)


def _without_first(division: Any) -> Any:
    return division.update(spec=division.spec.update(partitions=division.spec.partitions[1:]))


ANY_OVER_DEVICES: list[bool] = []
"""Not empty once a type says something about devices: until then no operation asks for it."""
_OVER_DEVICES: dict[tuple[ShapedArray, frozenset[Any], Any], ShapedArray] = {}


def _restored(shape: Any, dtype: Any, weak_type: bool, vma: frozenset[Any], division: Any = None) -> ShapedArray:
    return ShapedArray(shape, dtype, weak_type, vma=vma, sharding=division)


def _the_one(key: tuple[Any, Any, bool], make: Callable[[tuple[Any, Any, bool]], ShapedArray]) -> ShapedArray:
    """The type that `key`, in its canonical form, describes: the existing one, if any."""
    found = _INTERNED.get(key)
    if found is None:
        made = make(key)
        with _lock:
            found = _INTERNED.setdefault(key, made)
    return found


def _make(key: tuple[Any, Any, bool]) -> ShapedArray:
    shape, dtype, _ = key
    element_type = element_type_of(dtype)
    try:
        Shape.array(element_type, shape)  # the checks: no negative or too large dimension
    except ShapeError as error:
        raise OperandError.of(error) from None
    return _filled(*key, Shape(element_type, shape, row_major(len(shape))), None)


def _make_extended(key: tuple[Any, Any, bool]) -> ShapedArray:
    """Values of extended dtypes are never weakly typed."""
    shape, dtype, _ = key
    storage = ShapedArray((*shape, *dtype.storage_shape), dtype.storage_dtype)
    return _filled(*key, storage.hlo, storage)


def _filled(
    shape: tuple[int, ...],
    dtype: Any,
    weak_type: bool,
    hlo: Shape,
    storage: ShapedArray | None,
    vma: frozenset[Any] = frozenset(),
    division: Any = None,
) -> ShapedArray:
    aval = object.__new__(ShapedArray)
    for name, value in (
        ("shape", shape),
        ("dtype", dtype),
        ("weak_type", weak_type),
        ("hlo", hlo),
        ("is_extended", storage is not None),
        ("_storage", storage),
        ("vma", vma),
        ("division", division),
        ("is_plain", not vma and division is None),
    ):
        object.__setattr__(aval, name, value)
    return aval


def aval_of_shape(shape: Shape, weak_type: bool = False) -> ShapedArray:
    """The type of an HLO array of `shape`, layout aside."""
    return ShapedArray(shape.dimensions, shape.element.dtype, weak_type)


class HasType:
    """An object that stands for an array and has a type, `aval`, and no elements."""

    __slots__ = ()
    aval: Any

    @property
    def shape(self) -> tuple[int, ...]:
        found: tuple[int, ...] = self.aval.shape
        return found

    @property
    def dtype(self) -> np.dtype[Any]:
        found: np.dtype[Any] = self.aval.dtype
        return found

    @property
    def weak_type(self) -> bool:
        return bool(self.aval.weak_type)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)
