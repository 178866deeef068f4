"""Rotation, a pytree. Names and semantics follow scipy.spatial.transform, and jax's where they differ."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from .... import numpy as jnp
from ....hlo.support.tracebacks import boundaries
from ....numpy.promotion import check_arraylike, promote_dtypes_inexact, promote_inexact
from ....tracer.arrays.operators import ArrayLike
from ....tracer.errors import OperandError
from . import quaternions


def _given(name: str, x: ArrayLike, *last: int) -> Any:
    """An array of floats with these last dimensions."""
    (value,) = promote_inexact(name, x)
    if value.aval.shape[-len(last) :] != last:
        raise OperandError(
            f"{name}: the last dimensions must be {last}, not {value.aval.str_short()}", "rotation_shape"
        )
    return value


def _axes(seq: str, counts: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
    """The axes that a text names, and whether they turn with the rotation (capital letters)."""
    if len(seq) not in counts:
        what = f"Expected {counts[0]} axes" if len(counts) == 1 else (
            "Expected axis specification to be a non-empty string of upto 3 characters"
        )  # fmt: skip
        raise ValueError(f"{what}, got {seq}")
    if not re.fullmatch("[XYZ]+|[xyz]+", seq):
        raise ValueError(f"Expected axes from `seq` to be from ['x', 'y', 'z'] or ['X', 'Y', 'Z'], got {seq}")
    if any(a == b for a, b in itertools.pairwise(seq)):
        raise ValueError(f"Expected consecutive axes to be different, got {seq}")
    return tuple(["xyz".index(c) for c in seq.lower()]), seq.isupper()


@boundaries
class Rotation(NamedTuple):
    """A rotation, or an array of them. Made by `from_quat` and the like.

    quat: unit quaternions (x, y, z, w), [4] or [N, 4].

    >>> quarter = Rotation.from_euler("z", 90.0, degrees=True)
    >>> quarter.apply(jnp.array([1.0, 0.0, 0.0])).round(3) + 0.0
    Array([0., 1., 0.], dtype=float32)
    >>> (quarter * quarter).magnitude().round(3)
    Array(3.142, dtype=float32)
    """

    quat: Any

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Arrays of rotations as one.

        >>> len(Rotation.concatenate([Rotation.identity(2), Rotation.identity(3)]))
        5
        """
        return cls(jnp.concatenate([rotation.quat for rotation in rotations]))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """From angles about one to three axes: "xyz" are fixed, "XYZ" turn. angles: [k], [N, k], or one for k = 1.

        >>> Rotation.from_euler("xyz", jnp.array([0.0, 0.0, 90.0]), degrees=True).as_matrix().round(3) + 0.0
        Array([[ 0., -1.,  0.],
               [ 1.,  0.,  0.],
               [ 0.,  0.,  1.]], dtype=float32)
        """
        axes, intrinsic = _axes(seq, (1, 2, 3))
        check_arraylike("from_euler", angles)
        values: Any = promote_dtypes_inexact(jnp.atleast_1d(angles))[0]
        if values.shape[-1] != len(axes):
            raise OperandError(
                f"from_euler: {seq} has {len(axes)} axes, but the angles are {values.aval.str_short()}",
                "rotation_angles",
            )
        return cls(quaternions.from_euler(values, axes, intrinsic, bool(degrees)))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """From matrices [3, 3] or [N, 3, 3].

        >>> Rotation.from_matrix(jnp.diag(jnp.array([1.0, -1.0, -1.0]))).magnitude().round(3)
        Array(3.142, dtype=float32)
        """
        return cls(quaternions.from_matrix(_given("from_matrix", matrix, 3, 3)))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """From modified Rodrigues parameters [3] or [N, 3].

        >>> Rotation.from_mrp(jnp.array([0.0, 0.0, 1.0])).magnitude().round(3)  # tan(angle / 4)
        Array(3.142, dtype=float32)
        """
        return cls(quaternions.from_mrp(_given("from_mrp", mrp, 3)))

    @classmethod
    def from_quat(cls, quat: ArrayLike) -> Rotation:
        """From quaternions (x, y, z, w) of any length.

        >>> Rotation.from_quat(jnp.array([0.0, 0.0, 1.0, 1.0])).as_euler("xyz", degrees=True).round(2) + 0.0
        Array([ 0.,  0., 90.], dtype=float32)
        """
        return cls(quaternions.normalized(_given("from_quat", quat, 4)))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """From vectors along the axes, with the angles as their lengths.

        >>> quarter = Rotation.from_rotvec(jnp.array([0.0, 0.0, 90.0]), degrees=True)
        >>> quarter.apply(jnp.array([1.0, 0.0, 0.0])).round(3) + 0.0
        Array([0., 1., 0.], dtype=float32)
        """
        return cls(quaternions.from_rotvec(_given("from_rotvec", rotvec, 3), bool(degrees)))

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """The rotation by 0; `num` of them.

        >>> Rotation.identity(2).as_quat()
        Array([[0., 0., 0., 1.],
               [0., 0., 0., 1.]], dtype=float32)
        """
        quat = jnp.array([0.0, 0.0, 0.0, 1.0], dtype=dtype)
        return cls(quat if num is None else jnp.broadcast_to(quat, (num, 4)))

    @classmethod
    def random(cls, random_key: Any, num: int | None = None) -> Rotation:
        """Rotations that are uniformly distributed.

        >>> Rotation.random(random.key(0), 5).as_quat().shape
        (5, 4)
        """
        from .... import random

        return cls.from_quat(random.normal(random_key, (4,) if num is None else (num, 4)))

    def __getitem__(self, indexer: Any) -> Rotation:
        """Rotations of an array. TypeError for a single one."""
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        """How many rotations. TypeError for a single one."""
        if self.single:
            raise TypeError("Single rotation has no len().")
        return int(self.quat.shape[0])

    def __mul__(self, other: Rotation) -> Rotation:  # type: ignore[override]
        """First `other`, then this."""
        return Rotation(quaternions.normalized(quaternions.product(*_broadcast(self.quat, other.quat))))

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Any:
        """The vectors [3] or [N, 3], rotated; by the inverse rotations if `inverse`.

        >>> quarter = Rotation.from_rotvec(jnp.array([0.0, 0.0, 90.0]), degrees=True)
        >>> quarter.apply(jnp.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])).round(3) + 0.0
        Array([[ 0.,  1.,  0.],
               [-1.,  0.,  0.]], dtype=float32)
        """
        values, matrix = _given("apply", vectors, 3), self.as_matrix()
        return jnp.einsum("...ji,...j->...i" if inverse else "...ij,...j->...i", matrix, values)

    def as_euler(self, seq: str, degrees: bool = False) -> Any:
        """The angles about three axes, [..., 3]. See `from_euler`.

        >>> Rotation.from_rotvec(jnp.array([0.0, 0.0, 0.5])).as_euler("xyz").round(3) + 0.0
        Array([0. , 0. , 0.5], dtype=float32)
        """
        axes, intrinsic = _axes(seq, (3,))
        return quaternions.as_euler(self.quat, axes, not intrinsic, bool(degrees))

    def as_matrix(self) -> Any:
        """[..., 3, 3].

        >>> Rotation.identity().as_matrix()
        Array([[1., 0., 0.],
               [0., 1., 0.],
               [0., 0., 1.]], dtype=float32)
        """
        return quaternions.as_matrix(self.quat)

    def as_mrp(self) -> Any:
        """Modified Rodrigues parameters, [..., 3].

        >>> Rotation.from_rotvec(jnp.array([0.0, 0.0, jnp.pi / 2])).as_mrp().round(3) + 0.0
        Array([0.   , 0.   , 0.414], dtype=float32)
        """
        return quaternions.as_mrp(self.quat)

    def as_rotvec(self, degrees: bool = False) -> Any:
        """Vectors along the axes, with the angles as their lengths, [..., 3].

        >>> Rotation.from_euler("z", 90.0, degrees=True).as_rotvec(degrees=True).round(2) + 0.0
        Array([ 0.,  0., 90.], dtype=float32)
        """
        return quaternions.as_rotvec(self.quat, bool(degrees))

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Any:
        """Unit quaternions (x, y, z, w), or with `scalar_first` (w, x, y, z). `canonical`: of q and -q always the same
        one.

        >>> Rotation.from_rotvec(jnp.array([0.0, 0.0, 90.0]), degrees=True).as_quat().round(3) + 0.0
        Array([0.   , 0.   , 0.707, 0.707], dtype=float32)
        """
        quat = quaternions.canonical(self.quat) if canonical else self.quat
        return jnp.roll(quat, 1, axis=-1) if scalar_first else quat

    def inv(self) -> Rotation:
        """The inverse rotations.

        >>> r = Rotation.from_rotvec(jnp.array([0.1, 0.2, 0.3]))
        >>> (r * r.inv()).magnitude().round(3)
        Array(0., dtype=float32)
        """
        return Rotation(quaternions.inverse(self.quat))

    def magnitude(self) -> Any:
        """The angles, from 0 to pi.

        >>> Rotation.from_rotvec(jnp.array([3.0, 4.0, 0.0]) / 10).magnitude().round(3)
        Array(0.5, dtype=float32)
        """
        return quaternions.magnitude(self.quat)

    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """The mean of the rotations: it maximizes the weighted squares of the products with them.

        >>> r = Rotation.from_euler("z", jnp.array([[10.0], [30.0]]), degrees=True)
        >>> r.mean().as_euler("xyz", degrees=True).round(1) + 0.0
        Array([ 0.,  0., 20.], dtype=float32)
        """
        count, dtype = len(self), self.quat.dtype
        w = jnp.ones(count, dtype) if weights is None else jnp.asarray(weights, dtype=dtype)
        if w.ndim != 1:
            raise ValueError(f"Expected `weights` to be 1 dimensional, got shape {w.shape}.")
        if w.shape[0] != count:
            raise ValueError(
                f"Expected `weights` to have number of values equal to number of rotations, got {w.shape[0]} values "
                f"and {count} rotations."
            )
        return Rotation(quaternions.leading(jnp.dot(w * self.quat.T, self.quat)))

    @property
    def single(self) -> bool:
        """Whether it is one rotation, not an array of them.

        >>> Rotation.identity().single, Rotation.identity(2).single
        (True, False)
        """
        return bool(self.quat.ndim == 1)


def _broadcast(p: Any, q: Any) -> list[Any]:
    return jnp.broadcast_arrays(p, q)
