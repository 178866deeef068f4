"""Settings: `hloom.config`. Names are JAX's where it has them; environment variables of the same names set them.

hloom.config.update("jax_enable_x64", True)     # for the whole process
hloom.config.jax_enable_x64                     # as this thread sees it
with hloom.enable_x64(): ...                    # for this thread, within the block
"""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from ..hlo import tracebacks
from ..hlo.backend import default_backend, default_target, set_default_backend, set_default_target
from ..hlo.collectives.world import collective_timeout, set_collective_timeout
from ..hlo.errors import UnsupportedError
from ..hlo.ops.dot import DOT_ALGORITHMS
from ..hlo.target import Target
from ..hlo.targets import target_named
from ..hlo.tracebacks import boundary
from . import absl_flags
from . import context as _context
from .accepted_settings import ACCEPTED
from .context import Context, Override, current_context
from .jit_level import jit_level, set_level
from .jit_level import start_from_environment as start_level
from .reports import EXPLAIN_CACHE_MISSES, LOG_COMPILES, SWITCHES

MATMUL_PRECISIONS = {
    **{name: name for name in ("default", "high", "highest")},
    "fastest": "default",
    "bfloat16": "default",
    "bfloat16_3x": "high",
    "tensorfloat32": "high",
    "float32": "highest",
}
"""What `default_matmul_precision` and the `precision` of a product may be called, and HLO's name of each."""
DOT_PRESETS = frozenset({
    "DEFAULT", "ANY_F8_ANY_F8_ANY", "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
    *(algorithm.removeprefix("dot_").upper() for algorithm in DOT_ALGORITHMS),
})  # fmt: skip
"""The algorithms of products that both may name besides: `hloom.lax.DotAlgorithmPreset`."""


class Config:
    """All settings. Reading gives this thread's value; `update` sets the process's."""

    __slots__ = ()

    jax_enable_x64: bool
    """Keep 64-bit dtypes; off: they become their 32-bit counterparts, as in JAX."""
    jax_disable_jit: bool
    """jitted functions run op by op, for debugging."""
    jax_numpy_dtype_promotion: str
    """"standard", or "strict": only Python numbers give way to other dtypes, all else is a TypePromotionError."""
    jax_default_matmul_precision: str | None
    """The precision of products that name none: "default", "high", "highest", a dtype's name, or an algorithm's
    (`lax.DotAlgorithmPreset`). The CPU multiplies in the operands' own precision; programs for other targets carry
    it."""
    jax_default_prng_impl: str
    """Only "threefry2x32"."""
    jax_debug_nans: bool
    """An operation or a jitted function whose result has a NaN raises FloatingPointError, which names the operation."""
    jax_debug_infs: bool
    """The same for infinities."""
    jax_debug_key_reuse: bool
    """The second use of a random key is a KeyReuseError (`hloom.experimental.key_reuse`)."""
    jax_allow_f16_reductions: bool
    """False: `lax.reduce_sum` of float16 and bfloat16 is a ValueError. `numpy.sum` and others sum in float32 anyway."""
    jax_check_static_indices: bool
    """An integer out of bounds in an index that is known while tracing is an IndexError, and not moved into bounds."""
    jax_check_tracer_leaks: bool
    """A traced function that leaves a traced value behind, in a list for example, is an error at once."""
    jax_log_compiles: bool
    """Log what is traced and compiled, and how long that took, as warnings of the logger "hloom". No program depends on
    it."""
    jax_explain_cache_misses: bool
    """Log why a jitted function is traced again: which argument is of a new type. No program depends on it."""
    jax_traceback_filtering: str
    """Which frames a traceback shows: "auto" and "remove_frames", the user's only; "off", all; "tracebackhide", all,
    marked so that IPython and pytest leave them out. `HLOOM_TRACEBACK=full` or `short` sets it too. Of the process."""
    jax_numpy_rank_promotion: str
    """What happens where arrays of different ranks, none of them a scalar, are broadcast: "allow", "warn" (a
    UserWarning), or "raise" (a ValueError)."""
    jax_no_tracing: bool
    """A function that would be traced anew for jit is a RuntimeError. No program depends on it."""
    hloom_collective_timeout: float
    """Seconds for which a device waits for others in a collective. `HLOOM_COLLECTIVE_TIMEOUT` sets it too. Of the
    process."""
    hloom_jit_level: int
    """0: operations outside of jit run one by one. 1: they are collected as in a `jit_scope`, and what comes a second
    time is compiled. 2: all is compiled. `HLOOM_JIT_LEVEL` sets it too. Of the process; no program depends on it."""
    hloom_autotune: bool
    """Variants of each program are timed when it is compiled, and the fastest is kept, in the store too: see
    `jit(compiler_options={"autotune": True})`, which does so for one function."""
    hloom_backend: str
    """The backend that compiles: "numba", or "evaluator" (NumPy, op by op; the reference)."""
    hloom_compiler: str
    """What makes machine code of kernels: "llvm" (this library's own way from their loops to LLVM's code), or "numba",
    which compiles their text by `numba.njit`. `HLOOM_COMPILER` sets it too."""
    hloom_target: str | Target
    """The target whose layouts and memories compiled programs use inside: "cpu" (dense, row-major), another name, or a
    `hloom.hlo.Target` that the user made."""

    @property
    def context(self) -> Context:
        """The settings on which programs traced by this thread depend: a part of their caches' keys. Not a setting."""
        return current_context()

    @property
    def x64_enabled(self) -> bool:
        """The setting jax_enable_x64, by another name of JAX's."""
        return current_context().enable_x64

    @boundary
    def __getattr__(self, name: str) -> Any:
        if name in _OF_PROCESS:
            return _OF_PROCESS[name][0]()
        if name in SWITCHES:
            return SWITCHES[name].is_on
        if name in ACCEPTED:
            return ACCEPTED[name].value
        if name not in _SETTINGS:
            raise _unknown(name)
        return getattr(current_context(), _SETTINGS[name].field)

    @boundary
    def update(self, name: str, value: Any) -> None:
        """Change a setting of the process, which threads see unless they override it within a `with` block.

        AttributeError for an unknown name, TypeError or ValueError for a value it cannot have.
        """
        if name in _OF_PROCESS:
            _OF_PROCESS[name][1](value)
            return
        if name in SWITCHES:
            SWITCHES[name].of_process = _checked_flag(name, value)
            return
        if name in ACCEPTED:
            ACCEPTED[name].check(name, value)
            ACCEPTED[name].value = value
            return
        if name not in _SETTINGS:
            raise _unknown(name)
        _check(name, value)
        _context.update_process(**{_SETTINGS[name].field: value})
        if name == "hloom_backend":
            set_default_backend(value)
        elif name == "hloom_target":
            set_default_target(value)

    @boundary
    def read(self, name: str) -> Any:
        """A setting by its name, as this thread sees it."""
        return getattr(self, name)

    @property
    def values(self) -> dict[str, Any]:
        """All settings by name, as this thread sees them: a copy."""
        return {name: getattr(self, name) for name in _names()}

    def config_with_absl(self) -> None:
        """Make a flag of absl of each setting; those that are on the command line are set when `absl.app.run` has read
        them."""
        absl_flags.define(self)

    def parse_flags_with_absl(self) -> None:
        """Set what the command line says of settings, as flags of absl: ``--jax_enable_x64``."""
        absl_flags.parse(self)

    def __reduce__(self) -> str:
        """There is one in each process: a copy is itself, and a pickle names it and holds no values."""
        return "config"

    def __repr__(self) -> str:
        settings = (f"{s}={getattr(self, s)!r}" for s in _names() if s not in ACCEPTED)
        return f"Config({', '.join(settings)})"


def _set_collective_timeout(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"hloom_collective_timeout must be a number of seconds, not {value!r}")
    if not value > 0:
        raise ValueError(f"hloom_collective_timeout must be positive, not {value!r}")
    set_collective_timeout(value)


_OF_PROCESS: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    "hloom_collective_timeout": (collective_timeout, _set_collective_timeout),
    "hloom_jit_level": (jit_level, set_level),
    "jax_traceback_filtering": (tracebacks.mode, tracebacks.set_mode),
}
"""What reads and sets each setting that, like the switches, is not in the context: no program depends on it."""


def _names() -> list[str]:
    return sorted((*_SETTINGS, *SWITCHES, *ACCEPTED, *_OF_PROCESS))


def _unknown(name: str) -> AttributeError:
    near = difflib.get_close_matches(name, _names(), n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else "hloom.config.values has all"
    return AttributeError(f"unknown setting {name!r}; {hint}")


def _checked_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be a bool, not {value!r}")
    return value


class _Setting:
    """A setting: its name in Context, the types of its values, and a further condition on them."""

    def __init__(self, field: str, types: tuple[type, ...], check: Callable[[Any], None] | None = None) -> None:
        self.field = field
        self.types = types
        self.check = check


def _check(name: str, value: Any) -> None:
    """TypeError or ValueError if the setting `name` cannot be `value`."""
    setting = _SETTINGS[name]
    if not isinstance(value, setting.types):
        raise TypeError(f"{name} must be a {' or a '.join(t.__name__ for t in setting.types)}, not {value!r}")
    if setting.check is not None:
        setting.check(value)


def _check_target(target: str | Target) -> None:
    try:
        if isinstance(target, str):
            target_named(target)
    except UnsupportedError as error:
        raise ValueError(str(error)) from None


def _check_compiler(name: str) -> None:
    if name not in ("llvm", "numba"):
        raise ValueError(f'hloom_compiler is "llvm" or "numba", not {name!r}')


def _check_generator(name: str) -> None:
    if name not in GENERATORS:
        raise ValueError(f"the random number generators are {', '.join(GENERATORS)}, not {name!r}")


GENERATORS = ("threefry2x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32", "threefry4x32")
"""What `hloom/random` registers; the setting can be made before it is imported."""


def _check_promotion(mode: str) -> None:
    if mode not in ("standard", "strict"):
        raise ValueError(f'numpy_dtype_promotion is "standard" or "strict", not {mode!r}')


def _check_ranks(mode: str) -> None:
    if mode not in ("allow", "warn", "raise"):
        raise ValueError(f'numpy_rank_promotion is "allow", "warn" or "raise", not {mode!r}')


def _check_precision(precision: str | None) -> None:
    if precision is not None and precision not in MATMUL_PRECISIONS and precision not in DOT_PRESETS:
        known = ", ".join([*MATMUL_PRECISIONS, *sorted(DOT_PRESETS)])
        raise ValueError(f"default_matmul_precision is None or one of {known}, not {precision!r}")


_SETTINGS = {
    "hloom_autotune": _Setting("autotune", (bool,)),
    "hloom_backend": _Setting("backend", (str,)),
    "hloom_compiler": _Setting("compiler", (str,), _check_compiler),
    "hloom_target": _Setting("target", (str, Target), _check_target),
    "jax_allow_f16_reductions": _Setting("allow_f16_reductions", (bool,)),
    "jax_check_static_indices": _Setting("check_static_indices", (bool,)),
    "jax_check_tracer_leaks": _Setting("check_tracer_leaks", (bool,)),
    "jax_debug_infs": _Setting("debug_infs", (bool,)),
    "jax_debug_key_reuse": _Setting("debug_key_reuse", (bool,)),
    "jax_debug_nans": _Setting("debug_nans", (bool,)),
    "jax_default_matmul_precision": _Setting("default_matmul_precision", (str, type(None)), _check_precision),
    "jax_default_prng_impl": _Setting("default_prng_impl", (str,), _check_generator),
    "jax_disable_jit": _Setting("disable_jit", (bool,)),
    "jax_enable_x64": _Setting("enable_x64", (bool,)),
    "jax_numpy_dtype_promotion": _Setting("numpy_dtype_promotion", (str,), _check_promotion),
    "jax_numpy_rank_promotion": _Setting("numpy_rank_promotion", (str,), _check_ranks),
}


def _override(name: str, value: Any) -> Override:
    _check(name, value)
    return Override(**{_SETTINGS[name].field: value})


def enable_x64(new_val: bool = True) -> Override:
    """Within the block 64-bit types are kept (or not), in this thread. Without it arrays have 32 bits, as in JAX.

    For a whole program: ``hloom.config.update("jax_enable_x64", True)``.

    >>> import hloom, hloom.numpy as jnp
    >>> with hloom.enable_x64():
    ...     jnp.arange(3.0)
    Array([0., 1., 2.], dtype=float64)
    """
    return _override("jax_enable_x64", new_val)


def disable_jit(disable: bool = True) -> Override:
    """Within the block jitted functions run op by op, as the Python they are: for debuggers. In this thread.

    >>> import hloom, hloom.numpy as jnp
    >>> @hloom.jit
    ... def f(x):
    ...     print("x is", x)
    ...     return 2 * x
    >>> with hloom.disable_jit():
    ...     y = f(jnp.array(3))
    x is 3
    """
    return _override("jax_disable_jit", disable)


def debug_nans(new_val: bool = True) -> Override:
    """Within the block, in this thread, a NaN in the result of an operation, or of a jitted function, is an error:
    FloatingPointError names the operation that made it and its line. Jitted functions are compiled anew for that.

    >>> import hloom, hloom.numpy as jnp
    >>> with hloom.debug_nans(True):
    ...     jnp.log(jnp.array(-1.0))
    Traceback (most recent call last):
        ...
    FloatingPointError: invalid value (nan) encountered in log ...
    """
    return _override("jax_debug_nans", new_val)


def debug_infs(new_val: bool = True) -> Override:
    """As `debug_nans`, for infinities.

    >>> import hloom, hloom.numpy as jnp
    >>> with hloom.debug_infs(True):
    ...     1 / jnp.array(0.0)
    Traceback (most recent call last):
        ...
    FloatingPointError: invalid value (inf) encountered in divide ...
    """
    return _override("jax_debug_infs", new_val)


def check_tracer_leaks(new_val: bool = True) -> Override:
    """Another name of `checking_leaks`.

    >>> import hloom
    >>> with hloom.check_tracer_leaks():
    ...     y = hloom.jit(lambda x: 2 * x)(1.0)  # leaves nothing behind
    """
    return checking_leaks(new_val)


def checking_leaks(new_val: bool = True) -> Override:
    """Within the block, in this thread, a traced function that leaves a traced value behind is an error, which says
    where the value was made and what refers to it. Functions are traced anew, and the garbage collector is asked each
    time: that is slow.

    >>> import hloom
    >>> leaked = []
    >>> with hloom.checking_leaks():
    ...     hloom.jit(lambda x: leaked.append(x))(1.0)
    Traceback (most recent call last):
        ...
    hloom.errors.UnexpectedTracerError: Leaked tracers while tracing <lambda> at ...
    """
    return _override("jax_check_tracer_leaks", new_val)


def log_compiles(new_val: bool = True) -> AbstractContextManager[object]:
    """Within the block, in this thread: log what is traced and compiled, and how long that takes, as warnings of the
    logger "hloom".

    >>> import hloom
    >>> with hloom.log_compiles():
    ...     y = hloom.jit(lambda x: 2 * x)(1.0)  # "Compiling jit_lambda with types (f32[]), called at ..."
    """
    return LOG_COMPILES.within(_checked_flag("jax_log_compiles", new_val))


def explain_cache_misses(new_val: bool = True) -> AbstractContextManager[object]:
    """Within the block, in this thread: log why jitted functions are traced again, as warnings of "hloom".

    >>> import hloom, hloom.numpy as jnp
    >>> f = hloom.jit(lambda x: 2 * x)
    >>> y = f(jnp.ones(2))
    >>> with hloom.explain_cache_misses():
    ...     y = f(jnp.ones(3))  # "... the closest one differs: at x, now float32[3] and before float32[2]"
    """
    return EXPLAIN_CACHE_MISSES.within(_checked_flag("jax_explain_cache_misses", new_val))


def numpy_dtype_promotion(new_val: str) -> Override:
    """Within the block, in this thread: "strict" promotion, where only Python numbers give way, or "standard".

    >>> import hloom, hloom.numpy as jnp
    >>> with hloom.numpy_dtype_promotion("strict"):
    ...     jnp.ones(2, jnp.float32) + jnp.ones(2, jnp.int32)
    Traceback (most recent call last):
        ...
    hloom.dtypes.TypePromotionError: ...Input dtypes float32, int32 have no available implicit dtype ...
    """
    return _override("jax_numpy_dtype_promotion", new_val)


def numpy_rank_promotion(new_val: str) -> Override:
    """Within the block, in this thread: what happens where arrays of different ranks are broadcast to one another, none
    of them a scalar. "allow", "warn", or "raise" (a ValueError).

    >>> import hloom, hloom.numpy as jnp
    >>> with hloom.numpy_rank_promotion("raise"):
    ...     jnp.ones((2, 3)) + jnp.ones(3)
    Traceback (most recent call last):
        ...
    hloom.errors.OperandError: Operands could not be broadcast together for add on shapes (2, 3) (3,) ...
    """
    return _override("jax_numpy_rank_promotion", new_val)


def default_prng_impl(new_val: str) -> Override:
    """Within the block, in this thread: the generator of keys that name none: "threefry2x32", "rbg", ...

    >>> import hloom
    >>> with hloom.default_prng_impl("rbg"):
    ...     hloom.random.key(0).dtype
    key<rbg>
    """
    return _override("jax_default_prng_impl", new_val)


def no_tracing(new_val: bool = True) -> AbstractContextManager[object]:
    """Within the block, in this thread, a function that jit would trace anew is a RuntimeError: for programs whose
    functions should be compiled by now.

    >>> import hloom
    >>> f = hloom.jit(lambda x: 2 * x)
    >>> _ = f(1.0)
    >>> with hloom.no_tracing():
    ...     f(2.0)
    Array(4., dtype=float32, weak_type=True)
    """
    return SWITCHES["jax_no_tracing"].within(_checked_flag("jax_no_tracing", new_val))


def _accepted(name: str, value: Any) -> AbstractContextManager[object]:
    return ACCEPTED[name].within(name, value)


def default_device(new_val: Any) -> AbstractContextManager[object]:
    """Within the block: the device of new arrays, None or the CPU, which it is anyway. RuntimeError for others.

    >>> import hloom, hloom.numpy as jnp
    >>> with hloom.default_device(hloom.devices()[0]):
    ...     jnp.ones(2).device
    CpuDevice(id=0)
    """
    return _accepted("jax_default_device", new_val)


def enable_checks(new_val: bool = True) -> AbstractContextManager[object]:
    """Accepted: hloom's own checks are always on.

    >>> import hloom, hloom.numpy as jnp
    >>> with hloom.enable_checks():
    ...     y = jnp.ones(2) + 1
    """
    return _accepted("jax_enable_checks", new_val)


def debug_key_reuse(new_val: bool = True) -> Override:
    """Within the block, in this thread, the second use of a random key is an error: KeyReuseError says where both are.
    Jitted functions are traced anew for that. `hloom.experimental.key_reuse` says what counts as a use.

    >>> import hloom
    >>> with hloom.debug_key_reuse(True):
    ...     key = hloom.random.key(0)
    ...     x, y = hloom.random.normal(key), hloom.random.normal(key)
    Traceback (most recent call last):
        ...
    hloom.errors.KeyReuseError: normal: Previously-consumed key passed to ... at index 0 ...
    """
    return _override("jax_debug_key_reuse", new_val)


def enable_custom_prng(new_val: bool = True) -> AbstractContextManager[object]:
    """UnsupportedError for True: `hloom.random.key` makes typed keys, `PRNGKey` raw ones.

    >>> import hloom
    >>> with hloom.enable_custom_prng(False):
    ...     hloom.random.PRNGKey(0)
    Array([0, 0], dtype=uint32)
    """
    return _accepted("jax_enable_custom_prng", new_val)


def legacy_prng_key(new_val: str) -> AbstractContextManager[object]:
    """Only "allow": raw keys are always accepted.

    >>> import hloom
    >>> with hloom.legacy_prng_key("allow"):
    ...     hloom.random.split(hloom.random.PRNGKey(0)).shape
    (2, 2)
    """
    return _accepted("jax_legacy_prng_key", new_val)


def threefry_partitionable(new_val: bool = True) -> AbstractContextManager[object]:
    """Only True, JAX's default: the other way makes other bits.

    >>> import hloom
    >>> with hloom.threefry_partitionable(True):
    ...     hloom.random.bits(hloom.random.key(0))
    Array(4070199207, dtype=uint32)
    """
    return _accepted("jax_threefry_partitionable", new_val)


def softmax_custom_jvp(new_val: bool = True) -> AbstractContextManager[object]:
    """Accepted: both forms of the derivative of softmax give the same.

    >>> import hloom, hloom.numpy as jnp
    >>> with hloom.softmax_custom_jvp(False):
    ...     hloom.grad(lambda x: hloom.nn.softmax(x)[0])(jnp.zeros(2))
    Array([ 0.25, -0.25], dtype=float32)
    """
    return _accepted("jax_softmax_custom_jvp", new_val)


def jax2tf_associative_scan_reductions(new_val: bool = True) -> AbstractContextManager[object]:
    """Accepted: cumulative sums have one form here.

    >>> import hloom, hloom.numpy as jnp
    >>> with hloom.jax2tf_associative_scan_reductions():
    ...     jnp.cumsum(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _accepted("jax2tf_associative_scan_reductions", new_val)


def allow_f16_reductions(new_val: bool = True) -> AbstractContextManager[object]:
    """Set to False: within the block `lax.reduce_sum` of float16 and bfloat16 is a ValueError, in this thread. Sums of
    `hloom.numpy` are allowed: they are computed in float32, as all sums of hloom are.

    >>> import hloom, hloom.numpy as jnp
    >>> with hloom.allow_f16_reductions(False):
    ...     jnp.ones(4096, jnp.float16).sum()
    Array(4.096e+03, dtype=float16)
    """
    return _override("jax_allow_f16_reductions", new_val)


def auto_pcast(new_val: bool = True) -> AbstractContextManager[object]:
    """Accepted: over one device, types do not say along which axes of a mesh a value varies.

    >>> import hloom
    >>> with hloom.auto_pcast(True):
    ...     y = hloom.jit(lambda x: 2 * x)(1.0)
    """
    return _accepted("jax_auto_pcast", new_val)


def remove_size_one_mesh_axis_from_type(new_val: bool = True) -> AbstractContextManager[object]:
    """Accepted: types do not carry shardings, since there is one device.

    >>> import hloom, hloom.numpy as jnp
    >>> with hloom.remove_size_one_mesh_axis_from_type():
    ...     hloom.typeof(jnp.ones(2))
    ShapedArray(float32[2])
    """
    return _accepted("jax_remove_size_one_mesh_axis_from_type", new_val)


def array_garbage_collection_guard(new_val: str) -> AbstractContextManager[object]:
    """Accepted ("allow", "log", "fatal"): the library makes no cycles that hold arrays.

    >>> import hloom
    >>> with hloom.array_garbage_collection_guard("log"):
    ...     y = hloom.jit(lambda x: 2 * x)(1.0)
    """
    return _accepted("jax_array_garbage_collection_guard", new_val)


def thread_guard(new_val: bool = True) -> AbstractContextManager[object]:
    """Accepted: calls from several threads are safe.

    >>> import hloom
    >>> with hloom.thread_guard():
    ...     y = hloom.jit(lambda x: 2 * x)(1.0)
    """
    return _accepted("jax_thread_guard", new_val)


def transfer_guard(new_val: str) -> AbstractContextManager[object]:
    """Accepted ("allow", "log", "disallow", "log_explicit", "disallow_explicit"): arrays are in the memory of the
    process, so nothing is transferred.

    >>> import hloom, numpy as np, hloom.numpy as jnp
    >>> with hloom.transfer_guard("disallow"):
    ...     jnp.sin(np.zeros(2, np.float32))
    Array([0., 0.], dtype=float32)
    """
    return _accepted("jax_transfer_guard", new_val)


def transfer_guard_host_to_device(new_val: str) -> AbstractContextManager[object]:
    """As `transfer_guard`: nothing is transferred.

    >>> import hloom, hloom.numpy as jnp
    >>> with hloom.transfer_guard_host_to_device("disallow"):
    ...     jnp.sin(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return _accepted("jax_transfer_guard_host_to_device", new_val)


def transfer_guard_device_to_device(new_val: str) -> AbstractContextManager[object]:
    """As `transfer_guard`: nothing is transferred.

    >>> import hloom, hloom.numpy as jnp
    >>> with hloom.transfer_guard_device_to_device("disallow"):
    ...     y = hloom.device_put(jnp.ones(2), hloom.devices()[0])
    """
    return _accepted("jax_transfer_guard_device_to_device", new_val)


def transfer_guard_device_to_host(new_val: str) -> AbstractContextManager[object]:
    """As `transfer_guard`: nothing is transferred.

    >>> import hloom, hloom.numpy as jnp
    >>> with hloom.transfer_guard_device_to_host("disallow"):
    ...     float(jnp.array(1.5))
    1.5
    """
    return _accepted("jax_transfer_guard_device_to_host", new_val)


def default_matmul_precision(new_val: str | None) -> Override:
    """Within the block, in this thread: the precision of products that name none, which HLO then has.

    The CPU multiplies float32 as float32 in any case.

    >>> import hloom, hloom.numpy as jnp
    >>> x = jnp.ones((2, 2))
    >>> with hloom.default_matmul_precision("float32"):
    ...     "operand_precision={highest,highest}" in hloom.jit(jnp.dot).lower(x, x).as_text()
    True
    """
    return _override("jax_default_matmul_precision", new_val)


# ---- the environment


_HEARD_ELSEWHERE = frozenset({"JAX_NUM_CPU_DEVICES", "JAX_TRACEBACK_FILTERING"})
"""What `devices.py` and `hlo/tracebacks.py` read, since variables of hloom's own have precedence there."""
_IGNORED = {
    **dict.fromkeys(
        ("JAX_COORDINATOR_ADDRESS", "JAX_COORDINATOR_BIND_ADDRESS", "JAX_COORDINATOR_PORT", "JAX_LOCAL_DEVICE_IDS",
         "JAX_NUM_PROCESSES", "JAX_PARTITION_INDEX", "JAX_PROCESS_ID", "JAX_SLICE_INDEX"),
        "MPI joins processes and says which is which",
    ),
    "JAX_DEFAULT_DTYPE_BITS": "JAX_ENABLE_X64 decides, as in JAX since 0.6",
    "JAX_EXPORT_IGNORE_FORWARD_COMPATIBILIY": "programs are not exported in JAX's format",
    "JAX_FORCE_TPU_INIT": "programs run on the CPU",
}  # fmt: skip
"""Variables that JAX hears, and why they mean nothing here. Other variables JAX ignores, too."""


def _parsed(variable: str, text: str, kind: type) -> Any:
    """What an environment variable says; ValueError if it cannot be read as a `kind`."""
    if kind is not bool:
        try:
            return kind(text)
        except ValueError:
            raise ValueError(f"environment variable {variable} must be a number, not {text!r}") from None
    text = text.strip().lower()
    if text in ("0", "false", "f", "no", "n", "off"):
        return False
    if text in ("1", "true", "t", "yes", "y", "on"):
        return True
    raise ValueError(f"environment variable {variable} must be true or false, not {text!r}")


def _kind(name: str) -> type:
    if name in ACCEPTED:
        return ACCEPTED[name].kind
    return bool if name in SWITCHES else _SETTINGS[name].types[0]


def _hear_environment() -> None:
    """Each setting of JAX is also an environment variable, of its name in capitals. An error for a value that the
    setting cannot have, a warning for a variable that JAX hears and hloom does not."""
    for variable in sorted(v for v in os.environ if v in _IGNORED and os.environ[v]):
        warnings.warn(f"hloom ignores the environment variable {variable}: {_IGNORED[variable]}", stacklevel=2)
    variables = {name.upper(): name for name in (*_SETTINGS, *SWITCHES, *ACCEPTED) if not name.startswith("hloom_")}
    for variable in sorted((variables.keys() & os.environ.keys()) - _HEARD_ELSEWHERE):
        name, text = variables[variable], os.environ[variable]
        if not text:
            continue
        value = _parsed(variable, text, _kind(name))
        try:
            config.update(name, value)
        except Exception as error:
            error.add_note(f"said by the environment variable {variable}={text}")
            raise


_context.start(
    enable_x64=False,
    disable_jit=False,
    numpy_dtype_promotion="standard",
    default_matmul_precision=None,
    default_prng_impl="threefry2x32",
    backend=default_backend(),
    target=default_target(),
)
config = Config()
_hear_environment()
start_level()
