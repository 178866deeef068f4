"""hloom: JAX's programming model for the CPU, in Python that a person can read.

    import hloom
    import hloom.numpy as jnp

    f = hloom.jit(lambda x: jnp.tanh(x) * 2)
    hloom.grad(lambda x: f(x).sum())(jnp.ones(3))

Names are loaded when they are first used: `import hloom` is fast, and `import hloom.hlo` needs NumPy alone.
"""

import importlib as _importlib
import typing as _typing

if _typing.TYPE_CHECKING:
    from . import dtypes, errors, extend, hlo, lax, nn, numpy, random, tree, tree_util
    from .autodiff import (
        checkpoint,
        custom_jvp,
        custom_vjp,
        float0,
        grad,
        hessian,
        jacfwd,
        jacobian,
        jacrev,
        jvp,
        linearize,
        value_and_grad,
        vjp,
    )
    from .hlo.client import LocalClient
    from .hlo.custom_calls import register_custom_call, registered_custom_calls, unregister_custom_call
    from .tracer.arguments import ShapeDtypeStruct
    from .tracer.config import config, enable_x64
    from .tracer.jit import (
        block_until_ready,
        clear_caches,
        device_get,
        device_put,
        disable_jit,
        eval_shape,
        jit,
        make_hlo,
    )
    from .tracer.operators import ArrayBase as Array
    from .tracer.run_hlo import run_hlo
    from .tracer.stages import Compiled, Lowered

__version__ = "0.1.0"

_MODULES = ("dtypes", "errors", "extend", "hlo", "lax", "nn", "numpy", "random", "tree", "tree_util")
_NAMES = {
    **dict.fromkeys(
        (
            *("checkpoint", "custom_jvp", "custom_vjp", "float0", "grad", "hessian", "jacfwd", "jacobian", "jacrev"),
            *("jvp", "linearize", "value_and_grad", "vjp"),
        ),
        ".autodiff",
    ),
    **dict.fromkeys(
        (
            *("block_until_ready", "clear_caches", "device_get", "device_put", "disable_jit"),
            *("eval_shape", "jit", "make_hlo"),
        ),
        ".tracer.jit",
    ),
    "LocalClient": ".hlo.client",
    **dict.fromkeys(
        ("register_custom_call", "registered_custom_calls", "unregister_custom_call"), ".hlo.custom_calls"
    ),
    "ShapeDtypeStruct": ".tracer.arguments",
    "config": ".tracer.config",
    "enable_x64": ".tracer.config",
    "run_hlo": ".tracer.run_hlo",
    "Compiled": ".tracer.stages",
    "Lowered": ".tracer.stages",
}

__all__ = [
    "Array",
    "Compiled",
    "LocalClient",
    "Lowered",
    "ShapeDtypeStruct",
    "block_until_ready",
    "checkpoint",
    "clear_caches",
    "config",
    "custom_jvp",
    "custom_vjp",
    "device_get",
    "device_put",
    "disable_jit",
    "dtypes",
    "enable_x64",
    "errors",
    "eval_shape",
    "extend",
    "float0",
    "grad",
    "hessian",
    "hlo",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linearize",
    "make_hlo",
    "nn",
    "numpy",
    "random",
    "register_custom_call",
    "registered_custom_calls",
    "run_hlo",
    "tree",
    "tree_util",
    "unregister_custom_call",
    "value_and_grad",
    "vjp",
]


def __getattr__(name: str) -> _typing.Any:
    if name in _MODULES:
        return _importlib.import_module(f".{name}", __name__)
    if name == "Array":
        found = _importlib.import_module(".numpy", __name__).ndarray
    elif name in _NAMES:
        _importlib.import_module(".numpy", __name__)  # arrays get their methods, and backends are made known
        found = getattr(_importlib.import_module(_NAMES[name], __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
