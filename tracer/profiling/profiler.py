"""Profiles: which part of a program ran when. A trace is a file in the Trace Event format, which Perfetto reads.

It records the user's annotations, jitted calls, and the events of the library and its programs, down to each kernel in
each thread: docs/profiling.md. While no trace is being recorded an annotation costs a test of one variable, and all
else nothing. `timeline.py` has the recording itself.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator, contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

from ...hlo.errors import UnsupportedError
from ...hlo.support.forking import Order, fork_lock
from ...hlo.timeline.spans import RECORDERS, Kind, Track
from ...hlo.timeline.timeline import Timeline
from ...hlo.timeline.trace_file import write_trace
from ..arrays.assembly import live_arrays
from ..wrapping import wraps
from .memory_profile import memory_profile
from .timeline import Begun, ProfileOptions, Session

F = TypeVar("F", bound=Callable[..., Any])


_session: Session | None = None
_folder: Path | None = None
_perfetto = False
_lock = fork_lock(Order.USER)


def start_trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:
    """Record from now until `stop_trace`, which may be called in another thread, for `log_dir`/timeline.json, which
    ui.perfetto.dev and chrome://tracing show, and for the same in `log_dir`/plugins/profile, where TensorBoard looks.
    RuntimeError if a trace is being recorded. `create_perfetto_trace`: write perfetto_trace.json.gz, too.
    `profiler_options`: how much is recorded. UnsupportedError for `create_perfetto_link`: there is no server.

    >>> from hloom import numpy as jnp, profiler
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     profiler.start_trace(folder)
    ...     x = jnp.arange(3) + 1
    ...     profiler.stop_trace()
    ...     print([file.name for file in pathlib.Path(folder).glob("*.*")])
    ['timeline.json']
    """
    global _session, _folder, _perfetto
    if create_perfetto_link:
        raise UnsupportedError(
            "create_perfetto_link: no server is started; open the file of create_perfetto_trace=True on ui.perfetto.dev"
        )
    if profiler_options is not None and not isinstance(profiler_options, ProfileOptions):
        raise TypeError(f"profiler_options must be hloom.profiler.ProfileOptions, not {profiler_options!r}")
    with _lock:
        if RECORDERS:
            raise RuntimeError("Profile has already been started. Only one profile may be run at a time.")
        folder = Path(log_dir)
        folder.mkdir(parents=True, exist_ok=True)  # fail before the work, not after it
        session = Session(profiler_options or ProfileOptions())
        session.start()
        _session, _folder, _perfetto = session, folder, create_perfetto_trace


def stop_trace() -> None:
    """End the trace and write its file. RuntimeError if none is being recorded.

    >>> from hloom import profiler
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     profiler.start_trace(folder)
    ...     profiler.stop_trace()
    ...     print([file.name for file in pathlib.Path(folder).glob("*.*")])
    ['timeline.json']
    """
    global _session
    with _lock:
        if _session is None or not _session.is_on:
            raise RuntimeError("No profile started")
        session, _session = _session, None
        timeline = session.stop()
        folder, perfetto = _folder, _perfetto
    assert folder is not None
    _write(timeline, folder, perfetto)


def _write(timeline: Timeline, folder: Path, perfetto: bool) -> None:
    write_trace(timeline, folder / "timeline.json")
    inner = folder / "plugins" / "profile" / time.strftime("%Y_%m_%d_%H_%M_%S")
    inner.mkdir(parents=True, exist_ok=True)
    for name in (f"{socket.gethostname()}.trace.json.gz", *(["perfetto_trace.json.gz"] if perfetto else [])):
        write_trace(timeline, inner / name)


@contextmanager
def trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Iterator[None]:
    """Record the events in the block, as `start_trace` and `stop_trace`.

    with hloom.profiler.trace("/tmp/profile"):
        with hloom.profiler.TraceAnnotation("step"):
            f(x)

    >>> from hloom import numpy as jnp, profiler
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with profiler.trace(folder), profiler.TraceAnnotation("step"):
    ...         x = jnp.arange(3) + 1
    ...     print([file.name for file in pathlib.Path(folder).glob("*.*")])
    ['timeline.json']
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


class TraceAnnotation(ContextDecorator):
    """A name for the events in a block, or in a decorated function, in traces. Keywords are shown with it.

    >>> with profiler.TraceAnnotation("add"):
    ...     x = jnp.arange(3) + 1
    >>> x
    Array([1, 2, 3], dtype=int32)
    """

    _track = Track.PYTHON

    def __init__(self, name: str, **kwargs: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a TraceAnnotation must be a str, not {name!r}")
        self.name = name
        self.arguments = kwargs
        self._begun = Begun()

    def _recreate_cm(self) -> TraceAnnotation:
        return type(self)(self.name, **self.arguments)

    def __enter__(self) -> Self:
        self._begun.times.append(time.perf_counter_ns() if RECORDERS else 0)
        return self

    def __exit__(self, *_: object) -> None:
        start = self._begun.times.pop()
        for recorder in RECORDERS:
            if start >= recorder.started and recorder.detail:
                recorder.add(
                    self._track, self.name, start, time.perf_counter_ns(), self.arguments, Kind.ANNOTATION
                )


class StepTraceAnnotation(TraceAnnotation):
    """A name for one step of a training loop, in traces; `step_num` says which.

    >>> with profiler.StepTraceAnnotation("train", step_num=3):
    ...     x = jnp.arange(3) + 1
    >>> x
    Array([1, 2, 3], dtype=int32)
    """

    _track = Track.STEPS


def annotate_function(func: F, name: str | None = None, **decorator_kwargs: Any) -> F:
    """`func`, with its calls annotated with `name`, or with its own name.

    >>> f = profiler.annotate_function(lambda x: x + 1, name="add")
    >>> f(jnp.arange(3))
    Array([1, 2, 3], dtype=int32)
    """
    label = name or getattr(func, "__qualname__", None) or getattr(func, "__name__", None) or str(func)

    @wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(label, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated  # type: ignore[return-value]


def device_memory_profile(backend: str | None = None) -> bytes:
    """The memory that arrays hold now, for pprof: a compressed protocol buffer with a sample for each type of arrays.
    It looks through all objects. (Where an array was made is not kept; JAX's profile has that.) The memory of a running
    program is in `compile().memory_analysis()`.

    >>> import gzip, hloom.numpy as jnp
    >>> from hloom import profiler
    >>> x = jnp.ones((123, 45))
    >>> b"float32[123,45]" in gzip.decompress(profiler.device_memory_profile())
    True
    """
    found: dict[str, tuple[int, int]] = {}
    for array in live_arrays(backend):
        count, nbytes = found.get(name := array.aval.str_short(), (0, 0))
        found[name] = count + 1, nbytes + array.nbytes
    return memory_profile(dict(sorted(found.items(), key=lambda item: -item[1][1])))


def save_device_memory_profile(filename: os.PathLike[str] | str, backend: str | None = None) -> None:
    """Write `device_memory_profile` to a file, for `pprof -top FILE`.

    >>> import pathlib, tempfile
    >>> from hloom import profiler
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "memory.prof")
    ...     profiler.save_device_memory_profile(file)
    ...     file.stat().st_size > 20
    True
    """
    Path(filename).write_bytes(device_memory_profile(backend))


def start_server(port: int, requires_backend: bool = True) -> Any:
    """UnsupportedError: traces are files. A server for TensorBoard may come later.

    >>> profiler.start_server(9999)
    Traceback (most recent call last):
    hloom.errors.UnsupportedError: start_server: there is no server; hloom.profiler.trace(folder) writes files ...
    """
    raise UnsupportedError("start_server: there is no server; hloom.profiler.trace(folder) writes files")


def stop_server() -> None:
    """ValueError: no server was started, as `start_server` starts none.

    >>> profiler.stop_server()
    Traceback (most recent call last):
    ValueError: stop_server: No active profiler server. ...
    """
    raise ValueError("No active profiler server.")
