"""Private names of JAX that most of its tests use: its back end, settings, dtypes, functions of lists."""

from __future__ import annotations

import enum
import functools
import re
import unittest
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
from hloom.autodiff.api import LinearizedFunction
from hloom.tracer.profiling import monitoring
from hloom.tracer.trees import tree

import hloom
from hloom.extend import effects
from hloom.extend.mlir.dialects import stablehlo
from hloom.jax_programs.src import core, util
from hloom.jax_programs.src.numpy.util import promote_dtypes_inexact
from hloom.namespaces.jax_names import VERSION
from hloom.random.implementations import implementation

from ..counting import tell
from ..private import Private

_NO = lambda *_: False  # noqa: E731
_NOTHING = lambda *_, **__: None  # noqa: E731


class _Mutex:
    """The lock of tests that run in several threads; these run in one."""

    def reader_lock(self) -> None:
        pass

    reader_unlock = writer_lock = writer_unlock = assert_reader_held = reader_lock


class _Backend:
    """The backend that tests ask for its platform."""

    platform = "cpu"
    platform_version = "cpu"
    runtime_type = "cpu"

    def device_count(self) -> int:
        return hloom.device_count()

    def local_devices(self) -> list[Any]:
        return list(hloom.local_devices())

    devices = local_devices


@functools.lru_cache
def _get_backend(platform: Any = None) -> _Backend:
    return _Backend()


class _Jaxlib:
    """The part of JAX's compiled module that tests use: it says that it is no debug build."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("is_"):
            return lambda: name == "is_optimized_build"
        return dict if name == "get_internal_device_put_info" else Private(f"jax._src.lib._jax.{name}")


def _apply_primitive(primitive: Any, *operands: Any, **parameters: Any) -> Any:
    """A primitive outside of jit by its lowering, as JAX's implementations of primitives do it."""
    return hloom.jit(functools.partial(primitive.bind, **parameters))(*operands)


def _default(name: str) -> Callable[[], Any]:
    return lambda: hloom.dtypes.canonicalize_dtype(name)


_DEFAULTS = {"int": "int64", "uint": "uint64", "float": "float64", "complex": "complex128"}


def _fft_norm(lengths: Any, func_name: str, norm: str) -> Any:
    if norm == "backward":
        return 1
    (lengths,) = promote_dtypes_inexact(lengths)
    size = hloom.numpy.prod(lengths)
    size = hloom.numpy.sqrt(size) if norm == "ortho" else size
    return size if func_name.startswith("i") else 1 / size


def _safe_map(f: Callable[..., Any], *lists: Iterable[Any]) -> list[Any]:
    return [f(*xs) for xs in util.safe_zip(*lists)]


def _numbers(*names: str) -> list[np.dtype[Any]]:
    return [np.dtype(getattr(hloom.numpy, name)) for words in names for name in words.split()]


_INTEGERS = "uint8 uint16 uint32 uint64 int8 int16 int32 int64"
_SMALL_INTEGERS = "int1 int2 int4 uint1 uint2 uint4"
_FLOATS_OF_8_BITS = (
    "float8_e3m4 float8_e4m3 float8_e8m0fnu float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz "
    "float8_e5m2 float8_e5m2fnuz"
)
_SMALL_FLOATS = f"float4_e2m1fn {_FLOATS_OF_8_BITS} float6_e2m3fn float6_e3m2fn"
_FLOATS = "bfloat16 float16 float32 float64 complex64 complex128"
_GENERATORS = ("threefry2x32", "threefry4x32", "philox2x32", "philox4x32", "rbg", "unsafe_rbg")

_TRANSFORMATIONS = ("control_flow", "custom_derivatives", "remat")
"""They allow all effects here: the sets of those that they allow are not asked."""

_CACHE = SimpleNamespace(cache_clear=_NOTHING, cache_info=lambda: SimpleNamespace(misses=0))
"""A cache of JAX's, which tests empty or ask for misses: there is no such cache here, so nothing misses it."""

PRIVATE: dict[tuple[str, str], Any] = {
    **{
        ("ad_checkpoint", name): getattr(hloom.checkpoint_policies, name)
        for name in ("everything_saveable", "nothing_saveable")
    },
    ("cloud_tpu_init", "running_in_cloud_tpu_vm"): False,
    ("compilation_cache", "is_persistent_cache_enabled"): _NO,
    ("config", "EffortLevel"): enum.Enum("EffortLevel", {"UNKNOWN": 0, "O0": 9, "O1": 19, "O2": 29, "O3": 39}),
    ("config", "ExplicitX64Mode"): enum.Enum(
        "ExplicitX64Mode", {"ALLOW": "allow", "WARN": "warn", "ERROR": "error"}, type=str
    ),
    ("core", "reset_trace_state"): core.trace_state_clean,
    ("debugging", "debug_callback"): hloom.debug.callback,
    ("debugging", "debug_print"): hloom.debug.print,
    ("deprecations", "is_accelerated"): _NO,
    ("dispatch", "apply_primitive"): _apply_primitive,
    ("dispatch", "runtime_tokens"): SimpleNamespace(clear=_NOTHING, block_until_ready=hloom.effects_barrier),
    ("dispatch", "xla_primitive_callable"): _CACHE,
    ("dlpack", "SUPPORTED_DTYPES_SET"): frozenset(_numbers("bool_", _INTEGERS, _FLOATS)),
    ("dtypes", "_intn_dtypes"): _numbers(_SMALL_INTEGERS),
    ("dtypes", "_float8_dtypes"): _numbers(_FLOATS_OF_8_BITS),
    ("dtypes", "_jax_types"): _numbers("bool_", _SMALL_INTEGERS, _INTEGERS, _SMALL_FLOATS, _FLOATS),
    ("dtypes", "_weak_types"): [int, float, complex],
    ("dtypes", "default_types"): {
        "b": lambda: np.bool_,
        **{k[0]: _default(v) for k, v in _DEFAULTS.items()},
    },
    ("numpy.fft", "_fft_norm"): _fft_norm,
    ("dtypes", "python_scalar_types_to_dtypes"): {
        bool: np.dtype("bool"), int: np.dtype("int64"), float: np.dtype("float64"), complex: np.dtype("complex128")
    },
    **{("effects", name): getattr(effects, name) for name in ("Effect", "lowerable_effects", "ordered_effects")},
    **{("effects", f"{name}_allowed_effects"): effects.EffectTypeSet() for name in _TRANSFORMATIONS},
    ("interpreters.mlir", "hlo"): stablehlo,
    ("lib.mlir.dialects", "hlo"): stablehlo,
    ("interpreters.mlir", "_platforms_with_donation"): ["cpu"],
    ("interpreters.mlir", "ir_attribute"): lambda value: value,  # lowerings take Python's values as attributes
    ("lax.control_flow.common", "_dedup_consts"): _CACHE,
    ("lax.control_flow.common", "_pad_constvars"): _CACHE,
    ("lib", "_jax"): _Jaxlib(),
    ("lib", "ifrt_version"): 10**6,
    ("lib", "lapack"): SimpleNamespace(_lapack=SimpleNamespace(initialize=_NOTHING)),  # its targets are there
    ("lib", "jaxlib_extension_version"): 10**6,
    ("lib", "version"): tuple(map(int, VERSION.split("."))),
    ("monitoring", "get_event_duration_listeners"): lambda: [f for f in monitoring.DURATIONS if f is not tell],
    ("monitoring", "get_event_listeners"): lambda: list(monitoring.LISTENERS[0]),
    ("random.prng", "PRNGImpl"): hloom.extend.random.define_prng_impl,
    ("random.prng", "prngs"): {name: implementation(name) for name in _GENERATORS},
    ("xla_bridge", "backend_stablehlo_version"): _NOTHING,
    ("util", "Mutex"): _Mutex,
    ("util", "install_failure_signal_handler"): _NOTHING,
    ("util", "safe_map"): _safe_map,
    ("xla_bridge", "get_backend"): _get_backend,
}  # fmt: skip


def _of_the_library(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of tests that looks for a pattern in a message: JAX's name stands for that of hloom."""

    @functools.wraps(method)
    def checks(self: Any, kind: Any, pattern: Any, *args: Any, **keywords: Any) -> Any:
        text = re.sub(r"\bjax(?=\\?\.[a-zA-Z])", "(?:jax|hloom)", getattr(pattern, "pattern", pattern))
        return method(self, kind, re.compile(text, getattr(pattern, "flags", 0)), *args, **keywords)

    return checks


def _in_stablehlo(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a lowered function that takes a dialect: JAX's default is StableHLO, hloom's is HLO."""

    @functools.wraps(method)
    def asked(self: Any, dialect: Any = None, **keywords: Any) -> Any:
        return method(self, dialect or "stablehlo", **keywords)

    return asked


def _linear_function(self: Any) -> SimpleNamespace:
    """The function that JAX's `linearize` wraps: its first argument is the jaxpr."""
    tangents = [hloom.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in self._in_avals]
    return SimpleNamespace(args=(hloom.make_jaxpr(self)(*tree.unflatten(self._in_tree, tangents)),))


PUBLIC: dict[tuple[str, str], Any] = {("experimental.jet", "zero_series"): object()}

METHODS: list[tuple[type, str, Any]] = [
    (hloom.Array, "_committed", property(lambda self: self.committed)),
    (type(hloom.config), "_read", lambda self, name: self.read(name)),
    (hloom.stages.Lowered, "as_text", _in_stablehlo(hloom.stages.Lowered.as_text)),
    (LinearizedFunction, "func", property(_linear_function)),
    *(
        (unittest.TestCase, name, _of_the_library(getattr(unittest.TestCase, name)))
        for name in ("assertRaisesRegex", "assertWarnsRegex")
    ),
]
