"""The recording of a timeline: the switches at its beginning and its end.

A recording is a `Recorder` (`hlo/timeline/spans.py`), and all layers report to it. This file adds the events of Python:
events that `monitoring` reports and, on request, each call of the user's Python functions. `PjitFunction` adds its
calls itself while there is a recorder.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import field
from functools import partial
from time import perf_counter_ns
from types import FrameType
from typing import Any

from ...hlo.errors import UnsupportedError
from ...hlo.support.forking import Order, fork_lock
from ...hlo.support.records import dataclass
from ...hlo.system import at_fork
from ...hlo.timeline import spans
from ...hlo.timeline.spans import RECORDERS, Kind, Recorder, Track
from ...hlo.timeline.timeline import Timeline, timeline_of
from ..source import is_users
from . import monitoring
from .monitoring import COMPILE_EVENT, TRACE_EVENT


@dataclass
class ProfileOptions:
    """How much a trace records.

    host_tracer_level: 0 no events of Python and the compiler; 1 the user's annotations and steps; 2, the default,
      jitted calls, tracing, passes, compiling and copies too; 3 also passes that change nothing.
    device_tracer_level: 0 no rows of programs; 1 each kernel, product and call of a library, in each thread.
    python_tracer_level: 1 each call of a Python function outside of this library. That makes Python much slower.
    enable_hlo_proto, advanced_configuration: for JAX's sake. Options that are given there raise UnsupportedError.

    >>> profiler.ProfileOptions().host_tracer_level
    2
    """

    host_tracer_level: int = 2
    device_tracer_level: int = 1
    python_tracer_level: int = 0
    enable_hlo_proto: bool = True
    advanced_configuration: dict[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        """ValueError for a level that does not exist, UnsupportedError for configurations of other devices."""
        for name, most in (("host_tracer_level", 3), ("device_tracer_level", 1), ("python_tracer_level", 1)):
            level = getattr(self, name)
            if type(level) not in (int, bool) or not 0 <= level <= most:
                raise ValueError(f"ProfileOptions.{name} must be from 0 to {most}, got {level!r}")
        if self.advanced_configuration:
            raise UnsupportedError(
                f"ProfileOptions.advanced_configuration is for other devices: {self.advanced_configuration!r}"
            )


class Session:
    """One recording. It is started and stopped once, perhaps in different threads."""

    def __init__(self, options: ProfileOptions) -> None:
        options.check()
        self._options = options
        self._recorder = Recorder(options.host_tracer_level, kernels=options.device_tracer_level > 0)
        self._python = _PythonCalls(self._recorder)

    @property
    def is_on(self) -> bool:
        """False before it is started, after it is stopped, and in a forked child."""
        return self._recorder in RECORDERS

    def start(self) -> None:
        """Record from now on. RuntimeError if another recording runs."""
        with _lock:
            if RECORDERS:
                raise RuntimeError("Profile has already been started. Only one profile may be run at a time.")
            if self._options.python_tracer_level:
                self._python.start()
            spans.start(self._recorder)
            if self._recorder.detail > 1:
                _listen(self._recorder)

    def stop(self) -> Timeline:
        """End; return the recorded timeline."""
        with _lock:
            ended = spans.stop(self._recorder)
            _restore()
            self._python.stop()
        return timeline_of(self._recorder, ended)


_lock = fork_lock(Order.USER)


def _restore() -> None:
    for unregister in _unregister:
        unregister()
    _unregister.clear()


at_fork(after_in_child=_restore)
_unregister: list[Callable[[], object]] = []


def _listen(recorder: Recorder) -> None:
    """Listens to `monitoring`; the library reports tracing and compiling there."""
    tracks = {TRACE_EVENT: Track.TRACING, COMPILE_EVENT: Track.COMPILING}

    def duration(event: str, seconds: float, **about: Any) -> None:
        now = perf_counter_ns()
        name = str(about.pop("fun_name", event))
        track = tracks.get(event, Track.PYTHON)
        recorder.add(track, name, now - int(seconds * 1e9), now, {"event": event, **about}, Kind.EVENT)

    def happened(event: str, **about: Any) -> None:
        now = perf_counter_ns()
        recorder.add(Track.PYTHON, event, now, now, about, Kind.EVENT)

    def scalar(event: str, value: float | int, **about: Any) -> None:
        recorder.count(event, value=value)

    for register, unregister, listener in (
        (monitoring.register_event_duration_secs_listener, monitoring.unregister_event_duration_listener, duration),
        (monitoring.register_event_listener, monitoring.unregister_event_listener, happened),
        (monitoring.register_scalar_listener, monitoring.unregister_scalar_listener, scalar),
    ):
        register(listener)
        _unregister.append(partial(_forgotten, unregister, listener))


def _forgotten(unregister: Callable[[Any], None], listener: Any) -> None:
    """Unregister a listener, unless `monitoring.clear_event_listeners` has done it."""
    if any(listener in known for known in monitoring.LISTENERS):
        unregister(listener)


class _PythonCalls:
    """Records the calls of the user's Python functions, by the hook that Python has for profilers."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._begun = Begun()
        self._is_on = False

    def start(self) -> None:
        """In this thread, and in those that start from now on. RuntimeError if another profiler has the hook."""
        if sys.getprofile() is not None:
            raise RuntimeError(
                f"python_tracer_level=1 needs Python's hook for profilers, and it is taken: {sys.getprofile()!r}. "
                "Stop that profiler first, or record without Python's functions."
            )
        self._is_on = True
        threading.setprofile(self._heard)
        sys.setprofile(self._heard)

    def stop(self) -> None:
        if self._is_on:
            self._is_on = False
            threading.setprofile(None)
            if sys.getprofile() == self._heard:  # other threads find out on their own
                sys.setprofile(None)

    def _heard(self, frame: FrameType, event: str, _: object) -> None:
        if not self._is_on:
            sys.setprofile(None)
        elif event == "call":
            self._begun.times.append(perf_counter_ns())
        elif event == "return" and self._begun.times:
            started = self._begun.times.pop()
            if is_users(frame):
                code = frame.f_code
                about = {"source": f"{code.co_filename}:{code.co_firstlineno}"}
                self._recorder.add(
                    Track.PYTHON, code.co_qualname, started, perf_counter_ns(), about, Kind.FUNCTION
                )


class Begun(threading.local):
    """When the calls, or the blocks of an annotation, began that this thread is in."""

    def __init__(self) -> None:
        self.times: list[int] = []
