"""The trace context: every setting that affects traced and compiled programs, as one object.

Contexts are immutable and interned: equal means identical, so a cache keys on one at the cost of a pointer. Every cache
of traced or compiled programs has the context in its key: the caches of jit, of derivatives, of scan and of remat.

A thread sees the settings of the process, overridden by its own `with` blocks: `hloom.enable_x64()` in one
thread changes nothing in another. `current_context()` costs two attribute lookups.
"""

from __future__ import annotations

import threading
from _thread import _local
from contextlib import ContextDecorator
from dataclasses import fields, replace
from typing import Any, Self

from ...hlo.backend import DEFAULT_KERNEL_COMPILER
from ...hlo.support.forking import Order, fork_lock
from ...hlo.support.records import dataclass
from ...hlo.target import Target
from ..layers import LAYERS


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """The settings that traced and compiled programs depend on. `Context.changed` gives the one instance for other
    values."""

    enable_x64: bool
    disable_jit: bool
    numpy_dtype_promotion: str
    default_matmul_precision: str | None
    default_prng_impl: str
    backend: str
    target: str | Target
    axis_names: tuple[tuple[str, int], ...] = ()
    """Named axes that are mapped over, outermost first, with their sizes."""
    manual_axes: Any = None
    """Within a function that `shard_map` maps over several devices: its mesh (`manual_axes.py`)."""
    checks: frozenset[str] = frozenset()
    """The checks that an enclosing `checkify` looks for: "user", "nan", "div", "oob"; "checkify" within any."""
    debug_nans: bool = False
    debug_infs: bool = False
    """Programs compiled under one of these two check their results (`nan_checks.py`)."""
    check_tracer_leaks: bool = False
    """Functions are traced again, and values that outlive their trace are errors (`leaks.py`)."""
    debug_key_reuse: bool = False
    """Uses of random keys are recorded, and the second use of one is an error (`key_reuse.py`)."""
    check_static_indices: bool = False
    """Integers out of bounds in an index, known while tracing, are an error."""
    numpy_rank_promotion: str = "allow"
    """"warn" or "raise" where arrays of different ranks are broadcast to one another."""
    allow_f16_reductions: bool = True
    """Where it is false, users may not sum floats of 16 bits by `lax.reduce_sum`."""
    autotune: bool = False
    """Variants of each program are timed, and the fastest is kept."""
    schedules: str = ""
    """The text of the schedules for kernels of one jitted function, which alone is compiled with them."""
    memory_budget: int = 0
    """The most bytes that a program may need; 0: there is no limit."""
    loop_checkpoints: int = 0
    """How many states of a while loop its reverse mode keeps. 0: as many as fit in 64 MiB, 16 to 4096."""
    progress_bars: bool = True
    """Long work, and loops that `hloom.progress` marks, may show how far they are."""
    compiler: str = DEFAULT_KERNEL_COMPILER
    """The compiler of kernels."""
    excess_precision: bool = False
    """Kernels round bfloat16 and float16 values where they store them, not after each operation."""
    frontend_attributes: tuple[tuple[str, str], ...] = ()
    """The attributes of instructions that are recorded now (`hloom.experimental.xla_metadata`)."""
    meshes: Any = None
    """The meshes that complete a PartitionSpec (`current_mesh.py`); None: there is none."""
    user_contexts: tuple[tuple[int, Any], ...] = ()
    """Values of contexts that users make (`user_context.py`)."""
    enable_custom_prng: bool = False
    """`PRNGKey` and functions that derive keys from raw ones return typed keys."""
    threefry_partitionable: bool = True
    """Whether bits that "threefry2x32" draws depend on the key and the index alone, not on the shape."""
    legacy_prng_key: str = "allow"
    """"warn" or "error" where a function of `random` is given a raw key."""
    explicit_x64_dtypes: str = "warn"
    """"error": a request for an unavailable 64-bit dtype is an error; "allow": it is granted."""
    random_seed_offset: int = 0
    """Added to the seeds of keys."""
    error_checking_behavior_nan: str = "ignore"
    error_checking_behavior_divide: str = "ignore"
    error_checking_behavior_oob: str = "ignore"
    """"raise": programs remember that an operation gave NaN, divided by zero, or had an index out of bounds
    (`error_state.py`)."""

    pallas_enable_debug_checks: bool = False
    """Whether `pallas.debug_check` is an error at run time."""
    no_execution: bool = False
    """Whether running a program, or an operation outside of `jit`, is an error (`no_execution.py`)."""
    lowering_platforms: tuple[str, ...] = ()
    """The platforms for which a function is exported; () where programs are to run here."""

    @property
    def looks_for_errors(self) -> bool:
        """Whether programs remember errors of operations."""
        floats = self.error_checking_behavior_nan, self.error_checking_behavior_divide
        return "raise" in (*floats, self.error_checking_behavior_oob)

    @property
    def looks_at_indices(self) -> bool:
        """Whether indices out of bounds are to be found."""
        return "oob" in self.checks or self.error_checking_behavior_oob == "raise"

    def changed(self, **changes: Any) -> Context:
        """The context that differs in `changes`."""
        if not changes:
            return self
        key = (self, *changes.items(), *map(type, changes.values()))
        found = _CHANGED.get(key)
        if found is None:
            if len(_CHANGED) >= _MOST_CHANGES:
                _CHANGED.clear()
            found = _CHANGED[key] = _interned(replace(self, **changes))
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return _context_of, tuple([getattr(self, name) for name in _FIELDS])


_FIELDS = tuple([f.name for f in fields(Context)])
_INTERNED: dict[tuple[Any, ...], Context] = {}
_CHANGED: dict[tuple[Any, ...], Context] = {}
"""The results of `Context.changed`: blocks with the same settings are entered again and again."""
_MOST_CHANGES = 4096


def _context_of(*values: Any) -> Context:
    return _interned(Context(*values))


def _interned(context: Context) -> Context:
    values = [getattr(context, name) for name in _FIELDS]
    found = _INTERNED.setdefault((*values, *map(type, values)), context)
    if found is context:
        for setting, layer in _LAYERS.items():
            if getattr(found, setting):
                LAYERS.turn_on(layer)
    return found


_LAYERS = {
    "no_execution": "executions",
    "looks_for_errors": "errors",
    "debug_key_reuse": "keys",
    "debug_nans": "results",
    "debug_infs": "results",
}
"""The settings that turn on a layer of the bottom trace (`bottom.py`) when they are on for the first time, in any
thread: until then no operation reads them."""


_NOTHING: dict[str, Any] = {}


class Settings:
    """The settings of a thread or of the process: the overrides, and the resulting context."""

    __slots__ = ("changes", "context", "lasting")

    def __init__(self, context: Context, changes: dict[str, Any], lasting: dict[str, Any] = _NOTHING) -> None:
        self.context: Context = context
        self.changes: dict[str, Any] = changes
        self.lasting: dict[str, Any] = lasting
        """The subset of `changes` that `change_thread` has made, as far as known."""


class _Thread(threading.local):
    """Each thread's settings; the process's where it overrides none."""

    settings: Settings
    running: Settings | None
    """The settings while a call of a jitted function may run its executable at once; None while anything is traced."""
    lasting: dict[str, Any] = _NOTHING
    """The changes that `change_thread` has made, by name."""


_lock = fork_lock(Order.LEAF)
_process: Settings
_overriding: list[Settings] = []
"""The settings of threads that override some: they also follow changes of the process's settings."""
thread: _Thread = _Thread()
"""For jit's dispatch, which reads `thread.running.context` on each call."""
IS_OF_THREADS = isinstance(thread, _local)
"""Each thread of the system has attributes of its own, in a dictionary that stays the same. Libraries for coroutines
put another class in the place of `threading.local`, whose attributes change within a thread."""


def start(**settings: Any) -> None:
    """Set the process's settings for the first time."""
    global _process
    _process = Settings(_interned(Context(**settings)), {})
    _Thread.settings = _Thread.running = _process


def current_context() -> Context:
    """This thread's context."""
    return thread.settings.context


def process_context() -> Context:
    """The process's context, whatever this thread overrides."""
    return _process.context


def update_process(**changes: Any) -> None:
    """Change the process's settings, for all threads that do not override them."""
    with _lock:
        _process.context = _process.context.changed(**changes)
        for settings in _overriding:
            settings.context = _process.context.changed(**settings.changes)


def change_thread(**changes: Any) -> None:
    """Change settings of this thread that no block overrides, for good: when the blocks that are open now end, the
    change stays. None: as in the beginning."""
    lasting = {**thread.lasting, **changes}
    thread.lasting = {name: value for name, value in lasting.items() if value is not None} or _NOTHING
    _apply_lasting()


def _apply_lasting() -> None:
    settings = thread.settings
    with _lock:
        if settings is _process:
            settings = Settings(settings.context, {})
            _overriding.append(settings)
        own = {name: value for name, value in settings.changes.items() if name not in settings.lasting}
        settings.changes, settings.lasting = {**own, **thread.lasting}, thread.lasting
        settings.context = _process.context.changed(**settings.changes)
    thread.settings = settings
    if thread.running is not None:
        thread.running = settings


class Override(ContextDecorator):
    """Within the block, or the decorated function, this thread's settings differ."""

    def __init__(self, **changes: Any) -> None:
        self._changes = changes
        self._before: list[Settings] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return _override, (self._changes,)

    def _recreate_cm(self) -> Override:  # called once a call of a decorated function
        return Override(**self._changes)

    def __enter__(self) -> Self:
        before = thread.settings
        self._before.append(before)
        changes = {**before.changes, **self._changes}
        with _lock:
            settings = Settings(_process.context.changed(**changes), changes, thread.lasting)
            _overriding.append(settings)
        thread.settings = settings
        if thread.running is not None:
            thread.running = settings
        return self

    def __exit__(self, *_: object) -> None:
        before, settings = self._before.pop(), thread.settings
        thread.settings = before
        if thread.running is not None:
            thread.running = before
        with _lock:
            _overriding.remove(settings)
        if before.lasting is not thread.lasting:
            _apply_lasting()


def _override(changes: dict[str, Any]) -> Override:
    return Override(**changes)


def is_lenient(context: Context) -> bool:
    """True if arrays of all dtypes and ranks promote to one another."""
    return context.numpy_dtype_promotion == "standard" and context.numpy_rank_promotion == "allow"


def lenient() -> Override:
    """Within the block arrays of all dtypes and ranks promote to one another."""
    return Override(numpy_dtype_promotion="standard", numpy_rank_promotion="allow")
