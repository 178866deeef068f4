from .profiles import Profile as Profile, profile as profile
from .tracer.profiling.profiler import (
    annotate_function as annotate_function, device_memory_profile as device_memory_profile,
    save_device_memory_profile as save_device_memory_profile, start_server as start_server,
    start_trace as start_trace, StepTraceAnnotation as StepTraceAnnotation, stop_server as stop_server,
    stop_trace as stop_trace, trace as trace, TraceAnnotation as TraceAnnotation,
)
from .tracer.profiling.timeline import ProfileOptions as ProfileOptions
