"""PartitionSpec, or P: over which axes of a mesh each dimension of an array is divided. JAX's names and checks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from ...hlo.library import set_module
from ..weak_interned import interned


class _Unconstrained:
    """The compiler chooses how a dimension is divided."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()


class PartitionSpec:
    """For each dimension of an array: None, an axis of a mesh, or a tuple of axes. Dimensions left out are None.

    `P` is its short name. It is a leaf of pytrees. Equal ones are the same object.

    >>> P("x", None, ("y", "z"))
    P('x', None, ('y', 'z'))
    """

    __slots__ = ("__weakref__", "_partitions", "reduced", "unreduced")
    UNCONSTRAINED = UNCONSTRAINED

    _partitions: tuple[Any, ...]
    unreduced: frozenset[Any]
    reduced: frozenset[Any]

    def __new__(cls, *partitions: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()) -> PartitionSpec:
        canonical = tuple([_canonical(p) for p in partitions])
        sets = _axes_set("unreduced", unreduced), _axes_set("reduced", reduced)
        _check(canonical, *sets)
        return interned(_made, cls, canonical, *sets)

    def __init_subclass__(cls, **options: Any) -> None:
        raise TypeError("Subclassing `hloom.P` is prohibited: transformations know the class itself as a leaf")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"PartitionSpec is immutable: use spec.update(...) to change {name}")

    @property
    def partitions(self) -> tuple[Any, ...]:
        return self._partitions

    def __getitem__(self, i: Any) -> Any:
        self._plain("spec[...]")
        return self._partitions[i]

    def __iter__(self) -> Iterator[Any]:
        self._plain("*spec")
        return iter(self._partitions)

    def __len__(self) -> int:
        return len(self._partitions)

    def _plain(self, what: str) -> None:
        if self.reduced or self.unreduced:
            raise ValueError(
                f"{what} leaves out the unreduced and reduced axes of {self!r}: use spec.partitions instead"
            )

    def __add__(self, other: Any) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            return PartitionSpec(
                *self.partitions, *other.partitions,
                unreduced=self.unreduced | other.unreduced, reduced=self.reduced | other.reduced,
            )  # fmt: skip
        if isinstance(other, tuple):
            self._no_reductions("__add__", other)
            return PartitionSpec(*self.partitions, *other)
        return NotImplemented

    def __radd__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, tuple):
            return NotImplemented
        self._no_reductions("__radd__", other)
        return PartitionSpec(*other, *self.partitions)

    def _no_reductions(self, method: str, other: tuple[Any, ...]) -> None:
        if self.unreduced or self.reduced:
            raise TypeError(
                f"unreduced in `{method}` of PartitionSpec: {other} cannot be a tuple when {self!r} has unreduced or "
                "reduced axes: make it a P"
            )

    def index(self, value: Any) -> int:
        """The first dimension with this entry."""
        return self._partitions.index(_canonical(value))

    def count(self, value: Any) -> int:
        """How many dimensions have this entry."""
        return self._partitions.count(_canonical(value))

    def update(self, partitions: Any = None, unreduced: Any = None, reduced: Any = None) -> PartitionSpec:
        """The spec with other entries, or other sets of axes."""
        return PartitionSpec(
            *(self._partitions if partitions is None else partitions),
            unreduced=self.unreduced if unreduced is None else unreduced,
            reduced=self.reduced if reduced is None else reduced,
        )

    def axes(self) -> list[Any]:
        """The axes that are named, one after the other."""
        return [a for axes in self._partitions for a in axes_of(axes)]

    def check_rank(self, shape: tuple[int, ...], what: str) -> None:
        """ValueError if an array of `shape` has fewer dimensions than this has entries."""
        if len(shape) < len(self._partitions):
            extra = " For scalars the PartitionSpec should be P()" if not shape else ""
            raise ValueError(
                f"{what} is only valid for values of rank at least {len(self._partitions)}, but was applied to a value "
                f"of rank {len(shape)}.{extra}"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(PartitionSpec, unreduced=self.unreduced, reduced=self.reduced), self._partitions

    def __repr__(self) -> str:
        sets = [f"{n}={set(s)!r}" for n, s in (("unreduced", self.unreduced), ("reduced", self.reduced)) if s]
        entries = repr(self._partitions)[1:-1]
        if not sets:
            return f"P({entries})"
        between = "" if not entries else " " if entries.endswith(",") else ", "
        return f"P({entries}{between}{', '.join(sets)})"


def _made(
    cls: type[PartitionSpec], partitions: tuple[Any, ...], unreduced: frozenset[Any], reduced: frozenset[Any]
) -> PartitionSpec:
    made = object.__new__(cls)
    for name, value in (("_partitions", partitions), ("unreduced", unreduced), ("reduced", reduced)):
        object.__setattr__(made, name, value)
    return made


def axes_of(entry: Any) -> tuple[Any, ...]:
    """The axes that an entry of a spec names."""
    if entry is None or entry is UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


def _canonical(entry: Any) -> Any:
    """An entry as it is compared: no empty tuples, and none of one axis."""
    if isinstance(entry, list | tuple):
        axes = tuple(entry)
        for axis in axes:
            if isinstance(axis, list | tuple):
                raise ValueError(
                    f"A tuple inside PartitionSpec cannot contain a nested tuple. Got partition: {axes} and the nested "
                    f"tuple: {axis}"
                )
        return None if not axes else axes[0] if len(axes) == 1 else axes
    return entry


def _axes_set(name: str, axes: Any) -> frozenset[Any]:
    if not isinstance(axes, set | frozenset):
        raise TypeError(f"{name} argument of PartitionSpec should be of type `frozenset` or `set`. Got {axes!r}")
    return frozenset(axes)


def _check(partitions: tuple[Any, ...], unreduced: frozenset[Any], reduced: frozenset[Any]) -> None:
    for name, axes in (("unreduced", unreduced), ("reduced", reduced)):
        if None in axes:
            raise ValueError(f"{name} cannot contain None: its elements are axes of the mesh")
        used = [a for entry in partitions for a in axes_of(entry) if a in axes]
        if used:
            raise ValueError(
                f"partitions cannot overlap with {name} axes passed to PartitionSpec. Got partitions: {partitions} and "
                f"{name} axes: {set(axes)}"
            )
    if unreduced & reduced:
        raise ValueError(f"unreduced {set(unreduced)} and reduced {set(reduced)} of a PartitionSpec cannot overlap")


set_module("sharding", PartitionSpec)
