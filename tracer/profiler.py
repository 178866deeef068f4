"""Profiles: which part of a program ran when. A trace is a file in the Trace Event format, which Perfetto reads.

Recorded are the user's annotations, and what the library reports of itself (tracing and compiling). While no trace is
being recorded an annotation costs a test of one variable.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

from ..hlo.errors import UnsupportedError
from . import monitoring

__all__ = [
    "ProfileOptions",
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "device_memory_profile",
    "save_device_memory_profile",
    "start_server",
    "start_trace",
    "stop_server",
    "stop_trace",
    "trace",
]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class ProfileOptions:
    """Options of a trace. JAX's are accepted; this library records annotations and its own work at every level.

    >>> from hloom import profiler
    >>> profiler.ProfileOptions().host_tracer_level
    2
    """

    host_tracer_level: int = 2
    device_tracer_level: int = 1
    python_tracer_level: int = 0
    enable_hlo_proto: bool = True
    advanced_configuration: dict[str, Any] = field(default_factory=dict)


class _Session:
    """A trace that is being recorded."""

    def __init__(self, folder: Path, perfetto: bool) -> None:
        self.folder = folder
        self.perfetto = perfetto
        self.start = time.perf_counter()
        self.events: list[dict[str, Any]] = []

    def add(self, name: str, start: float, duration: float, arguments: dict[str, Any]) -> None:
        self.events.append(
            {
                "name": name,
                "ph": "X",
                "pid": os.getpid(),
                "tid": threading.get_native_id(),
                "ts": (start - self.start) * 1e6,
                "dur": duration * 1e6,
                "args": {k: str(v) for k, v in arguments.items()},
            }
        )

    def heard(self, event: str, duration: float, **arguments: Any) -> None:
        """A listener to durations that the library reports."""
        name = str(arguments.pop("fun_name", event))
        self.add(name, time.perf_counter() - duration, duration, {"event": event, **arguments})

    def write(self) -> None:
        folder = self.folder / "plugins" / "profile" / time.strftime("%Y_%m_%d_%H_%M_%S")
        folder.mkdir(parents=True, exist_ok=True)
        process = {"name": "process_name", "ph": "M", "pid": os.getpid(), "args": {"name": "hloom"}}
        content = {"displayTimeUnit": "ns", "traceEvents": [process, *self.events]}
        names = [f"{socket.gethostname()}.trace.json.gz", *(["perfetto_trace.json.gz"] if self.perfetto else [])]
        for name in names:
            with gzip.open(folder / name, "wt") as file:
                json.dump(content, file)


_session: _Session | None = None
_lock = threading.Lock()


def start_trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:
    """Record from now until `stop_trace`, for a file below `log_dir`/plugins/profile. RuntimeError if a trace is being
    recorded. `create_perfetto_trace`: write perfetto_trace.json.gz, too. Links to a server come later.

    >>> from hloom import numpy as jnp, profiler
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     profiler.start_trace(folder)
    ...     x = jnp.arange(3) + 1
    ...     profiler.stop_trace()
    ...     print([file.suffixes for file in pathlib.Path(folder).rglob("*.*")])
    [['.trace', '.json', '.gz']]
    """
    global _session
    if create_perfetto_link:
        raise UnsupportedError(
            "create_perfetto_link: no server is started; open the file of create_perfetto_trace=True on ui.perfetto.dev"
        )
    if profiler_options is not None and not isinstance(profiler_options, ProfileOptions):
        raise TypeError(f"profiler_options must be hloom.profiler.ProfileOptions, not {profiler_options!r}")
    with _lock:
        if _session is not None:
            raise RuntimeError("Profile has already been started. Only one profile may be run at a time.")
        _session = _Session(Path(log_dir), create_perfetto_trace)
        monitoring.register_event_duration_secs_listener(_session.heard)


def stop_trace() -> None:
    """End the trace and write its file. RuntimeError if none is being recorded.

    >>> from hloom import profiler
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     profiler.start_trace(folder)
    ...     profiler.stop_trace()
    ...     print(len(list(pathlib.Path(folder).rglob("*.*"))))
    1
    """
    global _session
    with _lock:
        if _session is None:
            raise RuntimeError("No profile started")
        session, _session = _session, None
        if session.heard in monitoring.DURATIONS:
            monitoring.unregister_event_duration_listener(session.heard)
    session.write()


@contextmanager
def trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Iterator[None]:
    """Record what happens in the block, as `start_trace` and `stop_trace`.

    with hloom.profiler.trace("/tmp/profile"):
        with hloom.profiler.TraceAnnotation("step"):
            f(x)

    >>> from hloom import numpy as jnp, profiler
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with profiler.trace(folder), profiler.TraceAnnotation("step"):
    ...         x = jnp.arange(3) + 1
    ...     print(len(list(pathlib.Path(folder).rglob("*.*"))))
    1
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


class TraceAnnotation(ContextDecorator):
    """A name for what happens in a block, or in a decorated function, in traces. Keywords are shown with it.

    >>> from hloom import numpy as jnp, profiler
    >>> with profiler.TraceAnnotation("add"):
    ...     x = jnp.arange(3) + 1
    >>> x
    Array([1, 2, 3], dtype=int32)
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a TraceAnnotation must be a str, not {name!r}")
        self.name = name
        self.arguments = kwargs
        self._starts: list[float] = []

    def _recreate_cm(self) -> TraceAnnotation:
        return type(self)(self.name, **self.arguments)

    def __enter__(self) -> Self:
        self._starts.append(time.perf_counter() if _session is not None else 0.0)
        return self

    def __exit__(self, *_: object) -> None:
        start, session = self._starts.pop(), _session
        if session is not None and start >= session.start:
            session.add(self.name, start, time.perf_counter() - start, self.arguments)


class StepTraceAnnotation(TraceAnnotation):
    """A name for one step of a training loop, in traces; `step_num` says which.

    >>> from hloom import numpy as jnp, profiler
    >>> with profiler.StepTraceAnnotation("train", step_num=3):
    ...     x = jnp.arange(3) + 1
    >>> x
    Array([1, 2, 3], dtype=int32)
    """


def annotate_function(func: F, name: str | None = None, **decorator_kwargs: Any) -> F:
    """`func`, whose calls are annotated with `name`, or with its own name.

    >>> from hloom import numpy as jnp, profiler
    >>> f = profiler.annotate_function(lambda x: x + 1, name="add")
    >>> f(jnp.arange(3))
    Array([1, 2, 3], dtype=int32)
    """
    label = name or getattr(func, "__qualname__", None) or getattr(func, "__name__", None) or str(func)

    @functools.wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(label, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated  # type: ignore[return-value]


def _no_memory_profile() -> UnsupportedError:
    return UnsupportedError(
        "a profile of the memory of devices does not exist for the CPU: `f.lower(...).compile().memory_analysis()` "
        "says what a program needs, hloom.live_arrays() lists arrays"
    )


def device_memory_profile(backend: str | None = None) -> bytes:
    """UnsupportedError: `compile().memory_analysis()` shows what a program needs.

    >>> import hloom, hloom.numpy as jnp
    >>> compiled = hloom.jit(lambda x: x + 1).lower(jnp.zeros(1000)).compile()
    >>> compiled.memory_analysis().argument_size_in_bytes
    4000
    """
    raise _no_memory_profile()


def save_device_memory_profile(filename: os.PathLike[str] | str, backend: str | None = None) -> None:
    """UnsupportedError: `compile().memory_analysis()` shows what a program needs.

    >>> import hloom, hloom.numpy as jnp
    >>> compiled = hloom.jit(lambda x: x + 1).lower(jnp.zeros(1000)).compile()
    >>> compiled.memory_analysis().argument_size_in_bytes
    4000
    """
    raise _no_memory_profile()


def start_server(port: int, requires_backend: bool = True) -> Any:
    """UnsupportedError: traces are files. A server for TensorBoard may come later.

    >>> from hloom import profiler
    >>> profiler.start_server(9999)
    Traceback (most recent call last):
    hloom.errors.UnsupportedError: start_server: there is no server; hloom.profiler.trace(folder) writes files
    """
    raise UnsupportedError("start_server: there is no server; hloom.profiler.trace(folder) writes files")


def stop_server() -> None:
    """ValueError: no server was started, as `start_server` starts none.

    >>> from hloom import profiler
    >>> profiler.stop_server()
    Traceback (most recent call last):
    ValueError: No active profiler server.
    """
    raise ValueError("No active profiler server.")
