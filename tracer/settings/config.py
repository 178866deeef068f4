"""Settings: `hloom.config`. Names are JAX's where it has them; environment variables of the same names set them.

hloom.config.update("jax_enable_x64", True)     # for the whole process
hloom.config.jax_enable_x64                     # as this thread sees it
with hloom.enable_x64(): ...                    # for this thread, within the block

`Config` declares each setting once (`setting.py`), `of_jax.py` those of JAX that change nothing here.
"""

from __future__ import annotations

import difflib
import re
from importlib import import_module
from typing import Any

from ...hlo.backend import (
    DEFAULT_KERNEL_COMPILER,
    default_backend,
    default_target,
    set_default_backend,
    set_default_target,
)
from ...hlo.collectives.world import collective_timeout, set_collective_timeout
from ...hlo.errors import UnsupportedError
from ...hlo.ops.dot import DOT_ALGORITHMS
from ...hlo.support import tracebacks
from ...hlo.support.progress import SWITCH
from ...hlo.support.tracebacks import boundary
from ...hlo.target import Target
from ...hlo.targets import target_named
from ..layers import LAYERS
from ..profiling.logs import EXPLAIN_CACHE_MISSES, LOG_COMPILES, NO_TRACING
from . import absl_flags, environment
from .context import Context, Override, current_context, start
from .of_jax import OF_JAX
from .setting import Block, InContext, OfJax, OfProcess, Setting

MATMUL_PRECISIONS = {
    **{name: name for name in ("default", "high", "highest")},
    "fastest": "default",
    "bfloat16": "default",
    "bfloat16_3x": "high",
    "tensorfloat32": "high",
    "float32": "highest",
}
"""The names that `default_matmul_precision` and the `precision` of a product accept, and HLO's name of each."""
DOT_PRESETS = frozenset({
    "DEFAULT", "ANY_F8_ANY_F8_ANY", "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
    *(algorithm.removeprefix("dot_").upper() for algorithm in DOT_ALGORITHMS),
})  # fmt: skip
"""The algorithms of products that both may name besides: `hloom.lax.DotAlgorithmPreset`."""
GENERATORS = ("threefry2x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32", "threefry4x32")
"""The generators that `hloom/random` registers; the setting can be made before it is imported."""


def _check_target(target: str | Target) -> None:
    try:
        if isinstance(target, str):
            target_named(target)
    except UnsupportedError as error:
        raise ValueError(str(error)) from None


def _check_seconds(value: float) -> None:
    if not value > 0:
        raise ValueError(f"hloom_collective_timeout must be positive, not {value!r}")


def _check_version(version: str | None) -> None:
    if version is not None and not re.fullmatch(r"\d+\.\d+\.\d+\S*", version):
        raise ValueError(f"hloom_jax_version must be a version such as '0.12.0', not {version!r}")


def _check_checkpoints(value: int) -> None:
    if value < 0:
        raise ValueError(f"hloom_loop_checkpoints is at least 0, not {value}")


def _check_budget(value: int) -> None:
    if value < 0:
        raise ValueError(f"hloom_memory_budget is at least 0 bytes, not {value}")


def _change_jit_level(level: int) -> None:
    if LAYERS.are_defined:  # if the environment sets it, `bottom.py` does so once they are
        import_module("..deferred.jit_scope", __package__).change_level(level)


class Config:
    """All settings. Reading gives this thread's value; `update` sets the process's."""

    __slots__ = ()

    jax_enable_x64: InContext[bool] = InContext(
        False,
        """Keep 64-bit dtypes; off: they become their 32-bit counterparts, as in JAX.

    >>> with hloom.enable_x64():
    ...     jnp.arange(3.0)
    Array([0., 1., 2.], dtype=float64)
    """,
    )
    jax_disable_jit: InContext[bool] = InContext(
        False,
        """Run jitted functions op by op, as the Python that they are: for debuggers.

    >>> @hloom.jit
    ... def f(x):
    ...     print("x is", x)
    ...     return 2 * x
    >>> with hloom.disable_jit():
    ...     y = f(jnp.array(3))
    x is 3
    """,
    )
    jax_numpy_dtype_promotion: InContext[str] = InContext(
        "standard",
        """"standard", or "strict": only Python numbers give way to other dtypes, all else is a TypePromotionError.

    >>> with hloom.numpy_dtype_promotion("strict"):
    ...     jnp.ones(2, jnp.float32) + jnp.ones(2, jnp.int32)
    Traceback (most recent call last):
        ...
    hloom.dtypes.TypePromotionError: ...Input dtypes float32, int32 have no available implicit dtype ...
    """,
        values=("standard", "strict"),
    )
    jax_numpy_rank_promotion: InContext[str] = InContext(
        "allow",
        """The response to broadcasting arrays of different ranks, none of them a scalar: "allow", "warn" (a
    UserWarning), or "raise" (a ValueError).

    >>> with hloom.numpy_rank_promotion("raise"):
    ...     jnp.ones((2, 3)) + jnp.ones(3)
    Traceback (most recent call last):
        ...
    hloom.errors.OperandError: Operands could not be broadcast together for add on shapes (2, 3) (3,) ...
    """,
        values=("allow", "warn", "raise"),
    )
    jax_default_matmul_precision: InContext[str | None] = InContext(
        None,
        """The precision of products that name none: "default", "high", "highest", a dtype's name, or an algorithm's
    (`lax.DotAlgorithmPreset`). The CPU multiplies float32 as float32 in any case; programs for other targets carry it.

    >>> x = jnp.ones((2, 2))
    >>> with hloom.default_matmul_precision("float32"):
    ...     "operand_precision={highest,highest}" in hloom.jit(jnp.dot).lower(x, x).as_text()
    True
    """,
        values=(None, *MATMUL_PRECISIONS, *sorted(DOT_PRESETS)),
    )
    jax_default_prng_impl: InContext[str] = InContext(
        "threefry2x32",
        """The generator of keys that name none: "threefry2x32", "rbg", ...

    >>> with hloom.default_prng_impl("rbg"):
    ...     hloom.random.key(0).dtype
    key<rbg>
    """,
        values=GENERATORS,
    )
    jax_random_seed_offset: InContext[int] = InContext(
        0,
        """Added to the seeds from which `random.key` and `random.PRNGKey` make keys.

    >>> import hloom
    >>> hloom.config.update("jax_random_seed_offset", 3)
    >>> hloom.random.PRNGKey(39)
    Array([ 0, 42], dtype=uint32)
    >>> hloom.config.update("jax_random_seed_offset", 0)
    """,
    )
    jax_threefry_partitionable: InContext[bool] = InContext(
        True,
        """The random bits of an element depend on the key and on its index alone. False: on the shape, too, as in JAX
    before 0.5, for numbers that were recorded then.

    >>> with hloom.threefry_partitionable(False):
    ...     hloom.random.bits(hloom.random.key(0), (2,))
    Array([ 928981903, 3453687069], dtype=uint32)
    """,
    )
    jax_enable_custom_prng: InContext[bool] = InContext(
        False,
        """`random.PRNGKey` makes typed keys, as `random.key` does, and so does `random.split` of a raw one, with a
    FutureWarning.

    >>> with hloom.enable_custom_prng():
    ...     hloom.random.PRNGKey(0).dtype
    key<fry>
    """,
    )
    jax_legacy_prng_key: InContext[str] = InContext(
        "allow",
        """The response to a raw key, an array of words, in a function of `random`: "allow", "warn" (a UserWarning), or
    "error" (a ValueError).

    >>> with hloom.legacy_prng_key("error"):
    ...     hloom.random.split(hloom.random.PRNGKey(0))
    Traceback (most recent call last):
        ...
    ValueError: split: Legacy uint32 key array passed as key to jax.random function. ...
    """,
        values=("allow", "warn", "error"),
    )
    jax_debug_nans: InContext[bool] = InContext(
        False,
        """A NaN in the result of an operation, or of a jitted function, is an error: FloatingPointError names the
    operation that made it and its line. Jitted functions are compiled again for that.

    >>> with hloom.debug_nans(True):
    ...     jnp.log(jnp.array(-1.0))
    Traceback (most recent call last):
        ...
    FloatingPointError: invalid value (nan) encountered in log ...
    """,
    )
    jax_debug_infs: InContext[bool] = InContext(
        False,
        """As `debug_nans`, for infinities.

    >>> with hloom.debug_infs(True):
    ...     1 / jnp.array(0.0)
    Traceback (most recent call last):
        ...
    FloatingPointError: invalid value (inf) encountered in divide ...
    """,
    )
    jax_debug_key_reuse: InContext[bool] = InContext(
        False,
        """The second use of a random key is an error: KeyReuseError shows both places. Jitted functions are traced
    again for that. `hloom.experimental.key_reuse` lists the uses.

    >>> with hloom.debug_key_reuse(True):
    ...     key = hloom.random.key(0)
    ...     x, y = hloom.random.normal(key), hloom.random.normal(key)
    Traceback (most recent call last):
        ...
    hloom.errors.KeyReuseError: normal: Previously-consumed key passed to ... at index 0 ...
    """,
    )
    jax_pallas_enable_debug_checks: InContext[bool] = InContext(
        False,
        """Whether `experimental.pallas.debug_check` of a false condition is an error when the kernel runs.

    >>> from hloom.experimental import pallas as pl
    >>> with pl.enable_debug_checks(True):
    ...     hloom.config.jax_pallas_enable_debug_checks
    True
    """,
    )
    jax_explicit_x64_dtypes: InContext[str] = InContext(
        "warn",
        """The response to a request for a 64-bit dtype while x64 is off: "warn" (it becomes its 32-bit counterpart,
    with a UserWarning), "error" (a ValueError), or "allow" (the array has it).

    >>> import hloom, hloom.numpy as jnp
    >>> hloom.config.update("jax_explicit_x64_dtypes", "error")
    >>> jnp.zeros(3, "float64")
    Traceback (most recent call last):
        ...
    ValueError: zeros: Explicitly requested dtype float64 requested in zeros is not available. ...
    >>> hloom.config.update("jax_explicit_x64_dtypes", "warn")
    """,
        values=("warn", "error", "allow"),
    )
    jax_error_checking_behavior_nan: InContext[str] = InContext(
        "ignore",
        """"raise": programs remember that an operation gave NaN, and go on; `experimental.error_check.raise_if_error`
    raises. "ignore": no checks.

    >>> import hloom, hloom.numpy as jnp
    >>> from hloom.experimental import error_check
    >>> with error_check.error_checking_behavior(nan="raise"):
    ...     y = jnp.log(jnp.array(-1.0))
    >>> error_check.raise_if_error()
    Traceback (most recent call last):
        ...
    hloom.experimental.error_check.JaxValueError: NaN encountered ...
    """,
        values=("ignore", "raise"),
    )
    jax_error_checking_behavior_divide: InContext[str] = InContext(
        "ignore",
        """As `jax_error_checking_behavior_nan`, for divisions by zero.""",
        values=("ignore", "raise"),
    )
    jax_error_checking_behavior_oob: InContext[str] = InContext(
        "ignore",
        """As `jax_error_checking_behavior_nan`, for indices out of bounds.""",
        values=("ignore", "raise"),
    )
    jax_allow_f16_reductions: InContext[bool] = InContext(
        True,
        """False: `lax.reduce_sum` of float16 and bfloat16 is a ValueError. `numpy.sum` and others compute in float32,
    and are allowed.

    >>> with hloom.allow_f16_reductions(False):
    ...     jnp.ones(4096, jnp.float16).sum()
    Array(4.096e+03, dtype=float16)
    """,
    )
    jax_check_static_indices: InContext[bool] = InContext(
        False,
        "An integer out of bounds, in an index that is known while tracing, is an IndexError: it is not clamped.",
    )
    jax_check_tracer_leaks: InContext[bool] = InContext(
        False,
        """A traced function that leaves a traced value behind, in a list for example, raises an error that shows where
    the value was made and which objects refer to it. Functions are traced again, and each trace queries the garbage
    collector, which is slow.

    >>> leaked = []
    >>> with hloom.checking_leaks():
    ...     hloom.jit(lambda x: leaked.append(x))(1.0)
    Traceback (most recent call last):
        ...
    hloom.errors.UnexpectedTracerError: jit: Leaked tracers while tracing <lambda> at ...
    """,
    )
    jax_log_compiles = LOG_COMPILES
    jax_explain_cache_misses = EXPLAIN_CACHE_MISSES
    jax_no_tracing = NO_TRACING
    jax_no_execution: InContext[bool] = InContext(
        False,
        """Running a program, or an operation outside of `jit`, is a RuntimeError: for code that is to trace and to
    compile only. Arrays of constants, copies, and parts of an array (`x[1]`), which are views, need no
    program.

    >>> with hloom.no_execution():
    ...     compiled = hloom.jit(lambda x: 2 * x).lower(1.0).compile()
    ...     compiled(1.0)
    Traceback (most recent call last):
        ...
    RuntimeError: tried to execute function <lambda>, but the no_execution config option is set ...
    """,
    )
    jax_traceback_filtering: OfProcess[str] = OfProcess(
        "auto",
        """Which frames a traceback shows: "auto" and "remove_frames", the user's only; "off", all; "tracebackhide",
    all, marked so that IPython and pytest leave them out. `HLOOM_TRACEBACK=full` or `short` sets it too.""",
        tracebacks.set_mode,
        tracebacks.mode,
        hears=False,
    )
    hloom_collective_timeout: OfProcess[float] = OfProcess(
        40.0,
        "The seconds that a device waits for others in a collective.",
        set_collective_timeout,
        collective_timeout,
        check=_check_seconds,
        hears=False,
    )
    hloom_jit_level: OfProcess[int] = OfProcess(
        0,
        """0: operations outside of jit run one by one. 1: they are collected as in a `jit_scope`, and
    structures that come a second time are compiled. 2: all structures are compiled.""",
        _change_jit_level,
        values=(0, 1, 2),
    )
    hloom_autotune: InContext[bool] = InContext(
        False,
        """Variants of each program are timed when it is compiled, and the fastest is kept, in the store too: see
    `jit(compiler_options={"autotune": True})`, which does so for one function.""",
    )
    hloom_backend: InContext[str] = InContext(
        default_backend(),
        'The backend that compiles: "numba", or "evaluator" (NumPy, op by op; the reference).',
        then=set_default_backend,
        hears=False,
    )
    hloom_compiler: InContext[str] = InContext(
        DEFAULT_KERNEL_COMPILER,
        """The compiler of kernels: "llvm" (this library's own path from loops to LLVM's code), or "numba", which
    compiles their text by `numba.njit`.""",
        values=("llvm", "numba"),
        hears=False,
    )
    hloom_jax_version: Setting[str | None] = Setting(
        None,
        """The version of JAX that programs see under `hloom.as_jax()`: `jax.__version__`, and that of the distributions
    `jax` and `jaxlib`. None: the one that hloom's names follow. Names of newer versions are there in any case.""",
        check=_check_version,
    )
    hloom_loop_checkpoints: InContext[int] = InContext(
        0,
        """How many states reverse mode keeps of a `while_loop`, or a `fori_loop` with traced bounds; those between them
    are computed again. A multiple of 4, or rounded up to one. A loop of half as many iterations repeats none. 0: as
    many as fit in 64 MiB, 16 to 4096.

    >>> @hloom.jit
    ... def power(x, n):
    ...     return hloom.lax.fori_loop(0, n, lambda i, y: x * y, 1.0)
    >>> with hloom.loop_checkpoints(8):
    ...     hloom.grad(power)(1.0, 1000)
    Array(1000., dtype=float32, weak_type=True)
    """,
        types=(int,),
        check=_check_checkpoints,
    )
    hloom_memory_budget: InContext[int] = InContext(
        0,
        """The most bytes that each jitted function may need, for arguments, results, constants and temporaries: see
    `Compiled.memory_analysis`. Values are computed again where they would be kept for too long, as few and as cheap
    ones as possible; `MemoryBudgetError` if that is not enough. 0: no limit.
    `jit(compiler_options={"memory_budget": 10**9})` sets it for one function.

    >>> step = hloom.jit(hloom.grad(lambda x: jnp.sin(jnp.exp(jnp.tan(x)).sum(1)).sum()))
    >>> lowered, free = step.lower(jnp.ones((64, 64))), 3 * 64 * 64 * 4
    >>> lowered.compile({"memory_budget": free}).memory_analysis().peak_memory_in_bytes <= free
    True
    """,
        types=(int,),
        check=_check_budget,
    )
    hloom_progress_bars: InContext[bool] = InContext(
        True,
        """Long work shows how far it is, where stderr is a terminal and in notebooks: compilations and other work of
    more than two seconds, and loops that `hloom.progress` marks. Off: nothing is shown, and `hloom.progress` changes no
    program.

    >>> body = lambda i, x: x + i
    >>> with hloom.progress_bars(False):
    ...     hloom.progress(body) is body
    True
    """,
    )
    hloom_target: InContext[str | Target] = InContext(
        default_target(),
        """The target that determines the layouts and memories inside of compiled programs: "cpu" (dense, row-major),
    another name, or a `hloom.hlo.Target` that the user made.""",
        types=(str, Target),
        check=_check_target,
        then=set_default_target,
        hears=False,
    )

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
        """A setting of `of_jax.py`, to type checkers. AttributeError: there is none of that name."""
        raise _unknown(name)

    @boundary
    def update(self, name: str, value: Any) -> None:
        """Change a setting of the process, which threads see unless they override it within a `with` block.

        AttributeError for an unknown name, TypeError or ValueError for a value it cannot have.
        """
        if name not in SETTINGS:
            raise _unknown(name)
        SETTINGS[name].set(value)

    @boundary
    def read(self, name: str) -> Any:
        """A setting by its name, as this thread sees it."""
        return getattr(self, name)

    @property
    def values(self) -> dict[str, Any]:
        """All settings by name, as this thread sees them: a copy."""
        return {name: setting.value for name, setting in SETTINGS.items()}

    def config_with_absl(self) -> None:
        """Make a flag of absl of each setting; those that are on the command line are set when `absl.app.run` has read
        them."""
        absl_flags.define(self)

    def parse_flags_with_absl(self) -> None:
        """Set the values of settings from the command line, as flags of absl: ``--jax_enable_x64``."""
        absl_flags.parse(self)

    def __reduce__(self) -> str:
        """There is one in each process: a copy is itself, and a pickle names it and holds no values."""
        return "config"

    def __repr__(self) -> str:
        settings = (f"{n}={s.value!r}" for n, s in SETTINGS.items() if not isinstance(s, OfJax))
        return f"Config({', '.join(settings)})"


for _name, _setting in OF_JAX.items():
    setattr(Config, _name, _setting)
    _setting.__set_name__(Config, _name)
SETTINGS: dict[str, Setting[Any]] = {n: s for n, s in sorted(vars(Config).items()) if isinstance(s, Setting)}
"""By name."""


def _unknown(name: str) -> AttributeError:
    near = difflib.get_close_matches(name, SETTINGS, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else "hloom.config.values has all"
    return AttributeError(f"unknown setting {name!r}; {hint}")


allow_f16_reductions: InContext[bool] = Config.jax_allow_f16_reductions
array_garbage_collection_guard: OfJax = OF_JAX["jax_array_garbage_collection_guard"]
auto_pcast: OfJax = OF_JAX["jax_auto_pcast"]
check_tracer_leaks: InContext[bool] = Config.jax_check_tracer_leaks
checking_leaks: InContext[bool] = Config.jax_check_tracer_leaks
debug_infs: InContext[bool] = Config.jax_debug_infs
debug_key_reuse: InContext[bool] = Config.jax_debug_key_reuse
debug_nans: InContext[bool] = Config.jax_debug_nans
default_device: OfJax = OF_JAX["jax_default_device"]
default_matmul_precision: InContext[str | None] = Config.jax_default_matmul_precision
default_prng_impl: InContext[str] = Config.jax_default_prng_impl


def disable_jit(disable: bool = True) -> Block | Override:
    """A block, or a decorator, in which jitted functions run op by op, as the Python that they are: for debuggers.

    >>> with hloom.disable_jit():
    ...     y = hloom.jit(lambda x: print("x is", x))(jnp.array(3))
    x is 3
    """
    return Config.jax_disable_jit(disable)


enable_checks: OfJax = OF_JAX["jax_enable_checks"]
enable_custom_prng: InContext[bool] = Config.jax_enable_custom_prng
enable_x64: InContext[bool] = Config.jax_enable_x64
explain_cache_misses: Setting[bool] = Config.jax_explain_cache_misses
jax2tf_associative_scan_reductions: OfJax = OF_JAX["jax2tf_associative_scan_reductions"]
legacy_prng_key: InContext[str] = Config.jax_legacy_prng_key
loop_checkpoints: InContext[int] = Config.hloom_loop_checkpoints
memory_budget: InContext[int] = Config.hloom_memory_budget
log_compiles: Setting[bool] = Config.jax_log_compiles
no_execution: InContext[bool] = Config.jax_no_execution
no_tracing: Setting[bool] = Config.jax_no_tracing
numpy_dtype_promotion: InContext[str] = Config.jax_numpy_dtype_promotion
numpy_rank_promotion: InContext[str] = Config.jax_numpy_rank_promotion
progress_bars: InContext[bool] = Config.hloom_progress_bars
remove_size_one_mesh_axis_from_type: OfJax = OF_JAX["jax_remove_size_one_mesh_axis_from_type"]
softmax_custom_jvp: OfJax = OF_JAX["jax_softmax_custom_jvp"]
thread_guard: OfJax = OF_JAX["jax_thread_guard"]
threefry_partitionable: InContext[bool] = Config.jax_threefry_partitionable
transfer_guard: OfJax = OF_JAX["jax_transfer_guard"]
transfer_guard_device_to_device: OfJax = OF_JAX["jax_transfer_guard_device_to_device"]
transfer_guard_device_to_host: OfJax = OF_JAX["jax_transfer_guard_device_to_host"]
transfer_guard_host_to_device: OfJax = OF_JAX["jax_transfer_guard_host_to_device"]

start(**{s.field: s.default for s in SETTINGS.values() if isinstance(s, InContext)})
SWITCH.is_on = lambda: current_context().progress_bars
config: Config = Config()
environment.hear(SETTINGS)
