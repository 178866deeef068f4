"""Rotations between rotations, at constant speed. Names and semantics follow jax.scipy.spatial.transform."""

from __future__ import annotations

from typing import Any, NamedTuple

from .... import numpy as jnp
from ....hlo.support.tracebacks import boundaries
from ....tracer.arrays.operators import ArrayLike
from ...interpolate.grids import interval_of
from . import quaternions
from .rotation import Rotation


@boundaries
class Slerp(NamedTuple):
    """A function of time to rotations. Made by `Slerp.init(times, rotations)`.

    times: [N], ascending; timedelta: their differences; rotations: the first N - 1; rotvecs: from each to the next.

    >>> turn = Slerp.init(jnp.array([0.0, 1.0]), Rotation.from_euler("z", jnp.array([[0.0], [90.0]]), degrees=True))
    >>> turn(jnp.array([0.0, 0.5])).as_euler("zyx", degrees=True)[:, 0].round(2)
    Array([ 0., 45.], dtype=float32)
    """

    times: Any
    timedelta: Any
    rotations: Rotation
    rotvecs: Any

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """The interpolation of `rotations`, at least two, at ascending times.

        >>> ends = Rotation.from_rotvec(jnp.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
        >>> turn = Slerp.init(jnp.array([0.0, 1.0]), ends)
        >>> turn(0.25).magnitude().round(3)
        Array(0.25, dtype=float32)
        """
        if not isinstance(rotations, Rotation):
            raise TypeError(f"`rotations` must be a `Rotation` instance, not a {type(rotations).__name__}")
        if rotations.single or len(rotations) == 1:
            raise ValueError("`rotations` must be a sequence of at least 2 rotations.")
        at = jnp.asarray(times, dtype=rotations.quat.dtype)
        if at.ndim != 1:
            raise ValueError(f"Expected times to be specified in a 1 dimensional array, got {at.ndim} dimensions.")
        if at.shape[0] != len(rotations):
            raise ValueError(
                f"Expected number of rotations to be equal to number of timestamps given, got {len(rotations)} "
                f"rotations and {at.shape[0]} timestamps."
            )
        before, after = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(at, jnp.diff(at), before, (before.inv() * after).as_rotvec())

    def __call__(self, times: ArrayLike) -> Rotation:
        """The rotations at times, a number or a vector."""
        at = jnp.asarray(times, dtype=self.times.dtype)
        if at.ndim > 1:
            raise ValueError(f"`times` must be at most 1-dimensional, not {at.aval.str_short()}")
        place = interval_of(self.times, at)
        part = (at - self.times[place]) / self.timedelta[place]
        turn = quaternions.from_rotvec(self.rotvecs[place] * part[..., None], False)
        return Rotation(quaternions.normalized(quaternions.product(self.rotations.quat[place], turn)))
