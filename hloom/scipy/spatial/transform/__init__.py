"""`hloom.scipy.spatial.transform`: rotations of space."""

from ....namespaces import publish as _publish

_publish(__name__)
