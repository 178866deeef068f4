"""`hloom.scipy.spatial.transform`: rotations of space."""

from ....namespaces import publish as _publish

_publish(__name__, examples=("from hloom import random", "from hloom.scipy.spatial.transform import Rotation, Slerp"))
