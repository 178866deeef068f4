"""`hloom.profiler`: traces of the events in a program over time, with the names of jax.profiler."""

from .namespaces import publish as _publish

_publish(__name__, examples=("from hloom import profiler",))
