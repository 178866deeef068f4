"""Events that a program's owner listens to: how often something happens, and how long it takes. JAX's names.

The library records how long tracing and compiling take, under JAX's names of these events.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

TRACE_EVENT = "/jax/core/compile/jaxpr_trace_duration"
COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"

Listener = Callable[..., None]
_events: list[Listener] = []
DURATIONS: list[Listener] = []
_spans: list[Listener] = []
_scalars: list[Listener] = []
LISTENERS = (_events, DURATIONS, _spans, _scalars)
_lock = threading.Lock()


def record_event(event: str, **kwargs: str | int) -> None:
    """Something happened: each listener is called with the event's name and the keywords.

    >>> def listener(event, **kwargs):
    ...     print(event, kwargs)
    >>> monitoring.register_event_listener(listener)
    >>> monitoring.record_event("/mine/started", step=3)
    /mine/started {'step': 3}
    >>> monitoring.unregister_event_listener(listener)
    """
    for listener in tuple(_events):
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Something took `duration` seconds.

    >>> def listener(event, duration, **kwargs):
    ...     print(event, duration)
    >>> monitoring.register_event_duration_secs_listener(listener)
    >>> monitoring.record_event_duration_secs("/mine/epoch", 1.5)
    /mine/epoch 1.5
    >>> monitoring.unregister_event_duration_listener(listener)
    """
    for listener in tuple(DURATIONS):
        listener(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Something went on from `start_time` to `end_time`, in seconds.

    >>> def listener(event, start_time, end_time, **kwargs):
    ...     print(event, end_time - start_time)
    >>> monitoring.register_event_time_span_listener(listener)
    >>> monitoring.record_event_time_span("/mine/epoch", 10.0, 12.5)
    /mine/epoch 2.5
    >>> monitoring.unregister_event_time_span_listener(listener)
    """
    for listener in tuple(_spans):
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Something was measured.

    >>> def listener(event, value, **kwargs):
    ...     print(event, value)
    >>> monitoring.register_scalar_listener(listener)
    >>> monitoring.record_scalar("/mine/loss", 0.5)
    /mine/loss 0.5
    >>> monitoring.unregister_scalar_listener(listener)
    """
    for listener in tuple(_scalars):
        listener(event, value, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """`callback(event, **kwargs)` is called for each `record_event`.

    >>> def listener(event, **kwargs):
    ...     print(event)
    >>> monitoring.register_event_listener(listener)
    >>> monitoring.record_event("/mine/started")
    /mine/started
    >>> monitoring.unregister_event_listener(listener)
    """
    _add(_events, callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """`callback(event, duration, **kwargs)` is called for each duration: also for tracing and compiling.

    >>> names = []
    >>> def listener(event, duration, **kwargs):
    ...     names.append(event)
    >>> monitoring.register_event_duration_secs_listener(listener)
    >>> y = hloom.jit(lambda x: 3 * x)(1.0)
    >>> monitoring.unregister_event_duration_listener(listener)
    >>> any("trace" in name for name in names)
    True
    """
    _add(DURATIONS, callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """`callback(event, start_time, end_time, **kwargs)` is called for each `record_event_time_span`.

    >>> def listener(event, start_time, end_time, **kwargs):
    ...     print(event, start_time, end_time)
    >>> monitoring.register_event_time_span_listener(listener)
    >>> monitoring.record_event_time_span("/mine/epoch", 10.0, 12.5)
    /mine/epoch 10.0 12.5
    >>> monitoring.unregister_event_time_span_listener(listener)
    """
    _add(_spans, callback)


def register_scalar_listener(callback: Listener) -> None:
    """`callback(event, value, **kwargs)` is called for each `record_scalar`.

    >>> losses = []
    >>> def listener(event, value, **kwargs):
    ...     losses.append(value)
    >>> monitoring.register_scalar_listener(listener)
    >>> monitoring.record_scalar("/mine/loss", 0.5)
    >>> monitoring.unregister_scalar_listener(listener)
    >>> losses
    [0.5]
    """
    _add(_scalars, callback)


def unregister_event_listener(callback: Listener) -> None:
    """`callback` is called no more. ValueError if it is not registered.

    >>> monitoring.register_event_listener(print)
    >>> monitoring.unregister_event_listener(print)
    """
    _remove(_events, callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """`callback` is called no more. ValueError if it is not registered.

    >>> monitoring.register_event_duration_secs_listener(print)
    >>> monitoring.unregister_event_duration_listener(print)
    """
    _remove(DURATIONS, callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """`callback` is called no more. ValueError if it is not registered.

    >>> monitoring.register_event_time_span_listener(print)
    >>> monitoring.unregister_event_time_span_listener(print)
    """
    _remove(_spans, callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """`callback` is called no more. ValueError if it is not registered.

    >>> monitoring.register_scalar_listener(print)
    >>> monitoring.unregister_scalar_listener(print)
    """
    _remove(_scalars, callback)


def clear_event_listeners() -> None:
    """No listener is called any more.

    >>> monitoring.clear_event_listeners()
    """
    with _lock:
        for listeners in (_events, DURATIONS, _spans, _scalars):
            listeners.clear()


def _add(listeners: list[Listener], callback: Any) -> None:
    if not callable(callback):
        raise TypeError(f"a listener must be callable, not {callback!r}")
    with _lock:
        listeners.append(callback)


def _remove(listeners: list[Listener], callback: Any) -> None:
    with _lock:
        if callback not in listeners:
            raise ValueError(f"{callback!r} is not a registered listener")
        listeners.remove(callback)
