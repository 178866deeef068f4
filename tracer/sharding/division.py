"""Division: what a type says about the Explicit axes of a mesh, as the rules of `op_divisions.py` compute with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ...hlo.support.records import dataclass
from ..aval import ShapedArray
from .mesh import AbstractMesh, Mesh
from .partition_spec import axes_of
from .shardings import NONE, NamedSharding, spec_of_axes

AnyMesh: TypeAlias = Mesh | AbstractMesh


@dataclass(frozen=True, slots=True)
class Division:
    """How the Explicit axes of a mesh divide a value, and along which of them it is a sum."""

    axes: tuple[tuple[Any, ...], ...]
    """For each dimension the axes that divide it."""
    unreduced: frozenset[Any] = NONE
    """The axes along which each device has a term: the value is the sum of the terms."""
    reduced: frozenset[Any] = NONE
    """The axes along which all devices have the value, and terms of its cotangent."""
    is_free: bool = False
    """Whether the value is made where it is used, from a scalar: each device makes it as it is needed."""

    @property
    def is_whole(self) -> bool:
        """Whether all devices have the value."""
        return not any(self.axes) and not self.unreduced and not self.reduced

    @property
    def entries(self) -> tuple[Any, ...]:
        """The entries of a PartitionSpec."""
        return tuple(spec_of_axes(self.axes).partitions)

    @property
    def has_reductions(self) -> bool:
        """Whether the value is unreduced or reduced along some axes."""
        return bool(self.unreduced or self.reduced)

    def of_axes(self, axes: tuple[tuple[Any, ...], ...]) -> Division:
        """The same of a value that is divided in another way."""
        return Division(axes, self.unreduced, self.reduced)

    def sharding(self, mesh: AnyMesh) -> NamedSharding:
        """The same as a sharding over `mesh`."""
        return NamedSharding(mesh, spec_of_axes(self.axes, self.unreduced, self.reduced))


def whole(rank: int) -> Division:
    """All devices have the value."""
    return Division(((),) * rank)


def joined(each: Sequence[Division]) -> Division:
    """The first division that is not whole."""
    return next((f for f in each if not f.is_whole), each[0])


def division_of(aval: ShapedArray) -> Division:
    """The axes that divide each dimension of a value of this type."""
    if aval.division is None:
        return whole(aval.storage.ndim)
    spec = aval.division.spec
    return Division(tuple([axes_of(e) for e in spec.partitions]), spec.unreduced, spec.reduced)
