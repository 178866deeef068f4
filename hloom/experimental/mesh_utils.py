"""`hloom.experimental.mesh_utils`: devices in a grid, with names of jax.experimental.mesh_utils."""

import math as _math
from collections.abc import Sequence as _Sequence
from typing import Any as _Any

import numpy as _np

from ..namespaces import publish as _publish
from ..tracer.sharding.devices import devices as _known_devices
from ..tracer.sharding.mesh import make_mesh as _make_mesh

__all__ = ["create_device_mesh"]


def create_device_mesh(
    mesh_shape: _Sequence[int],
    devices: _Sequence[_Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> _np.ndarray[_Any, _Any]:
    """The devices as an array of a shape, for `hloom.sharding.Mesh`.

    contiguous_submeshes, allow_split_physical_axes: of TPUs; accepted.
    ValueError unless the product of the sizes is the number of devices.

    >>> from hloom.experimental import mesh_utils
    >>> mesh_utils.create_device_mesh((1, 1)).shape
    (1, 1)
    """
    there = _known_devices() if devices is None else list(devices)
    if not all(isinstance(size, int) for size in mesh_shape):
        raise ValueError(f"`mesh_shape` passed to `create_device_mesh` should be a sequence of ints, not {mesh_shape}")
    if _math.prod(mesh_shape) != len(there):
        raise ValueError(f"Number of devices {len(there)} must equal the product of mesh_shape {tuple(mesh_shape)}")
    return _make_mesh(mesh_shape, [f"axis{k}" for k in range(len(mesh_shape))], devices=there).devices


_publish(__name__)
