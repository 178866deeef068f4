"""hloom: JAX's programming model for the CPU, in Python that a person can read.

    import hloom
    import hloom.numpy as jnp

    f = hloom.jit(lambda x: jnp.tanh(x) * 2)
    hloom.grad(lambda x: f(x).sum())(jnp.ones(3))

Names are loaded when they are first used: `import hloom` is fast, and `import hloom.hlo` needs NumPy alone.
"""

import importlib as _importlib
import os as _os
import typing as _typing

if _typing.TYPE_CHECKING:
    from . import (
        ad_checkpoint,
        core,
        custom_batching,
        custom_derivatives,
        debug,
        dtypes,
        errors,
        experimental,
        extend,
        flatten_util,
        hlo,
        lax,
        nn,
        numpy,
        random,
        scipy,
        tree,
        tree_util,
        typing,
    )
    from .autodiff.api import grad, jvp, linearize, value_and_grad, vjp
    from .autodiff.custom import custom_jvp, custom_vjp
    from .autodiff.functions import closure_convert, custom_gradient, fwd_and_bwd, linear_transpose
    from .autodiff.jacobian import hessian, jacfwd, jacobian, jacrev
    from .autodiff.policies import checkpoint_policies
    from .autodiff.remat import checkpoint
    from .autodiff.remat import checkpoint as remat
    from .autodiff.tangents import float0
    from .autodiff.vmap import vmap
    from .debug.callbacks import effects_barrier, pure_callback
    from .hlo.client import LocalClient
    from .hlo.custom_calls import register_custom_call, registered_custom_calls, unregister_custom_call
    from .numba_backend.kernel_globals import kernel_globals
    from .jaxpr.make import make_jaxpr
    from .tracer.arguments import ShapeDtypeStruct, typeof
    from .tracer.caches import clear_caches
    from .tracer.config import (
        check_tracer_leaks,
        checking_leaks,
        config,
        debug_infs,
        debug_nans,
        default_matmul_precision,
        disable_jit,
        enable_x64,
        explain_cache_misses,
        log_compiles,
        numpy_dtype_promotion,
    )
    from .tracer.jit import (
        block_until_ready,
        device_get,
        device_put,
        eval_shape,
        jit,
        make_hlo,
    )
    from .tracer.operators import ArrayBase as Array
    from .tracer.run_hlo import run_hlo
    from .tracer.scopes import ensure_compile_time_eval, named_call, named_scope
    from .tracer.stages import Compiled, Lowered

if _os.path.isfile(_os.path.join(__path__[0], "hlo")):
    from importlib.util import find_spec as _find_spec

    if _find_spec(f"{__name__}.hlo") is None:
        raise ImportError(
            f"{__path__[0]} has files where links to the folders beside it must be, so hloom.hlo and others are not "
            "found. Either make the links (`git config core.symlinks true`, then `git checkout HEAD hloom`), or "
            "install the package (`pip install .`) and run Python in another folder."
        )

_importlib.import_module(".hlo.forking", __name__)  # before the other modules, since a fork waits for their imports

__version__ = "0.1.0"

_MODULES = (
    *("ad_checkpoint", "core", "custom_batching", "custom_derivatives", "debug", "dtypes", "errors", "experimental"),
    "extend",
    *("hlo", "lax", "nn", "numpy", "random"),
    *("flatten_util", "scipy", "tree", "tree_util", "typing"),
)
_NAMES = {
    **dict.fromkeys(("grad", "jvp", "linearize", "value_and_grad", "vjp"), ".autodiff.api"),
    **dict.fromkeys(("custom_jvp", "custom_vjp"), ".autodiff.custom"),
    **dict.fromkeys(("hessian", "jacfwd", "jacobian", "jacrev"), ".autodiff.jacobian"),
    "vmap": ".autodiff.vmap",
    **dict.fromkeys(("closure_convert", "custom_gradient", "fwd_and_bwd", "linear_transpose"), ".autodiff.functions"),
    **dict.fromkeys(("checkpoint", "remat"), ".autodiff.remat"),
    "checkpoint_policies": ".autodiff.policies",
    "float0": ".autodiff.tangents",
    **dict.fromkeys(("effects_barrier", "pure_callback"), ".debug.callbacks"),
    **dict.fromkeys(
        (
            *("block_until_ready", "device_get", "device_put"),
            *("eval_shape", "jit", "make_hlo"),
        ),
        ".tracer.jit",
    ),
    "LocalClient": ".hlo.client",
    **dict.fromkeys(
        ("register_custom_call", "registered_custom_calls", "unregister_custom_call"), ".hlo.custom_calls"
    ),
    "kernel_globals": ".numba_backend.kernel_globals",
    "make_jaxpr": ".jaxpr.make",
    "ShapeDtypeStruct": ".tracer.arguments",
    "typeof": ".tracer.arguments",
    "clear_caches": ".tracer.caches",
    **dict.fromkeys(
        (
            *("check_tracer_leaks", "checking_leaks", "config", "debug_infs", "debug_nans"),
            *("default_matmul_precision", "disable_jit"),
            *("enable_x64", "explain_cache_misses", "log_compiles", "numpy_dtype_promotion"),
        ),
        ".tracer.config",
    ),
    "run_hlo": ".tracer.run_hlo",
    **dict.fromkeys(("ensure_compile_time_eval", "named_call", "named_scope"), ".tracer.scopes"),
    "Compiled": ".tracer.stages",
    "Lowered": ".tracer.stages",
}

__all__ = [
    "Array",
    "Compiled",
    "LocalClient",
    "Lowered",
    "ShapeDtypeStruct",
    "ad_checkpoint",
    "block_until_ready",
    "check_tracer_leaks",
    "checking_leaks",
    "checkpoint",
    "checkpoint_policies",
    "clear_caches",
    "closure_convert",
    "config",
    "core",
    "custom_batching",
    "custom_derivatives",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "debug",
    "debug_infs",
    "debug_nans",
    "default_matmul_precision",
    "device_get",
    "device_put",
    "disable_jit",
    "dtypes",
    "effects_barrier",
    "enable_x64",
    "ensure_compile_time_eval",
    "errors",
    "eval_shape",
    "experimental",
    "explain_cache_misses",
    "extend",
    "flatten_util",
    "float0",
    "fwd_and_bwd",
    "grad",
    "hessian",
    "hlo",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "kernel_globals",
    "lax",
    "linear_transpose",
    "linearize",
    "log_compiles",
    "make_hlo",
    "make_jaxpr",
    "named_call",
    "named_scope",
    "nn",
    "numpy",
    "numpy_dtype_promotion",
    "pure_callback",
    "random",
    "register_custom_call",
    "registered_custom_calls",
    "remat",
    "run_hlo",
    "scipy",
    "tree",
    "tree_util",
    "typeof",
    "typing",
    "unregister_custom_call",
    "value_and_grad",
    "vjp",
    "vmap",
]


if not _typing.TYPE_CHECKING:  # to type checkers, a name that is not imported above is an error

    def __getattr__(name: str) -> _typing.Any:
        if name in _MODULES:
            return _importlib.import_module(f".{name}", __name__)
        namespaces = _importlib.import_module(".namespaces", __name__)
        if name == "Array":
            found = _importlib.import_module(".numpy", __name__).ndarray
        elif name in _NAMES:
            _importlib.import_module(".numpy", __name__)  # arrays get their methods, and backends are made known
            found = getattr(_importlib.import_module(_NAMES[name], __name__), name)
        else:
            error = namespaces.missing(__name__, name)
            try:
                raise error
            except AttributeError:
                namespaces.hide(error)
                raise
        found = globals()[name] = namespaces.published(found, name, __name__)
        return found


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
