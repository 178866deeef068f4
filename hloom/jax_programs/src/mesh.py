"""jax._src.mesh: meshes without devices."""

import numpy as _np

from ...sharding import AbstractMesh as _AbstractMesh
from ...sharding import Mesh as _Mesh

__all__ = ["empty_abstract_mesh", "empty_concrete_mesh"]

empty_abstract_mesh = _AbstractMesh((), ())
empty_concrete_mesh = _Mesh(_np.empty((), dtype=object), ())
