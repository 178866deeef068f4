"""`hloom.ffi`: calls of native code from programs, with the names of jax.ffi. See docs/ffi.md."""

from ..namespaces import publish as _publish

_publish(__name__, examples=("from hloom import ffi",))
