"""`hloom.profiler`: traces of what runs when, with the names of jax.profiler."""

from .namespaces import publish as _publish
from .tracer import profiler as _profiler
from .tracer.profiler import (
    ProfileOptions as ProfileOptions,
    StepTraceAnnotation as StepTraceAnnotation,
    TraceAnnotation as TraceAnnotation,
    annotate_function as annotate_function,
    device_memory_profile as device_memory_profile,
    save_device_memory_profile as save_device_memory_profile,
    start_server as start_server,
    start_trace as start_trace,
    stop_server as stop_server,
    stop_trace as stop_trace,
    trace as trace,
)

__all__: list[str] = []
__all__ += _profiler.__all__

_publish(__name__)
