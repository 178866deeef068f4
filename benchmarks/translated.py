"""Peers that run a row's JAX text, and versions by hand of others: no row is written for them.

    iree      JAX lowers the text to StableHLO, IREE compiles that for this CPU (`iree-compile`, target `llvm-cpu`)
    mlx       the text runs on `mlx.core` where it stands for `jax.numpy`, inside of `mlx.core.compile`
    pytensor  the text runs on `pytensor.tensor`, and PyTensor's graph is compiled in Numba mode
    pythran   the Numba version's source, with `prange` as an OpenMP loop, of rows that are loops or stencils

Names that a library lacks raise AttributeError, which the page gives as the reason that the row was not measured.
`environments.py` says what each peer's interpreter must have.
"""

from __future__ import annotations

import dis
import importlib
import importlib.util
import inspect
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from .harness import Program

Text = Callable[[Any, Any], Callable[..., Any]]
"""`text(jax, jax.numpy)` returns the function to jit."""
PYTHRAN_BLAS = ["compiler.blas=scipy-openblas"]
"""The one that pip installs: a system seldom has a `cblas.h`."""
PEERS = ("iree", "mlx", "pytensor", "pythran")


class Names:
    """A namespace: `more` by name, then the names of `modules`, the first that has one."""

    def __init__(self, library: str, *modules: Any, **more: Any) -> None:
        self.__dict__.update(more)
        self._library, self._modules = library, modules

    def __getattr__(self, name: str) -> Any:
        for module in self._modules:
            if hasattr(module, name):
                return getattr(module, name)
        raise AttributeError(f"{self._library} has no {name}")


def iree(text: Text, arguments: Sequence[Any], wide: bool = False, element: str | None = None) -> Program:
    """JAX's StableHLO, compiled by IREE, on IREE's arrays. Raises what IREE's compiler raises."""
    compiler = importlib.import_module("iree.compiler")
    runtime = importlib.import_module("iree.runtime")
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", wide)
    given = [_converted(jax.numpy, a, element) for a in arguments]
    lowered = jax.jit(text(jax, jax.numpy), keep_unused=True).lower(*given)
    binary = compiler.compile_str(
        lowered.as_text(), input_type="stablehlo", target_backends=["llvm-cpu"],
        extra_args=["--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3"],
    )  # fmt: skip
    config = runtime.Config("local-task")
    module = runtime.load_vm_module(runtime.VmModule.copy_buffer(config.vm_instance, binary), config)
    leaves = jax.tree.leaves(given)
    kinds = [info.dtype for info in jax.tree.leaves(lowered.args_info)]
    own = [runtime.asdevicearray(config.device, np.asarray(a, kind)) for a, kind in zip(leaves, kinds, strict=True)]

    def check() -> Any:
        found = module.main(*own)
        return [r.to_host() for r in (found if isinstance(found, (list, tuple)) else [found])]

    return Program(lambda: module.main(*own), check=check)


def mlx(text: Text, arguments: Sequence[Any], wide: bool = False, element: str | None = None) -> Program:
    """The text on MLX's functions, compiled by `mlx.core.compile`. Raises AttributeError for names that MLX lacks."""
    mx, nn = importlib.import_module("mlx.core"), importlib.import_module("mlx.nn")
    utils = importlib.import_module("mlx.utils")
    mx.set_default_device(mx.cpu)
    numpy = Names("mlx", mx, asarray=mx.array, bool_=mx.bool_)
    jax = Names(
        "mlx", numpy=numpy, nn=Names("mlx", nn, mx), lax=Names("mlx", mx), jit=lambda f: f, grad=mx.grad,
        value_and_grad=mx.value_and_grad, vmap=mx.vmap, tree=Names("mlx", map=utils.tree_map),
    )  # fmt: skip
    wanted = getattr(mx, element) if element else None

    def own(array: Any) -> Any:
        made = mx.array(array)
        return made.astype(wanted) if wanted and made.dtype == mx.float32 else made

    given = [_leaves(a, own) for a in arguments]
    function = text(jax, numpy)
    run = mx.compile(lambda *a: _leaves(function(*a), mx.contiguous, mx.array))  # else a transposed result is a view

    def check() -> Any:
        found = run(*given)
        mx.eval(found)
        return _leaves(found, lambda a: np.array(a.astype(mx.float32) if a.dtype == mx.bfloat16 else a), mx.array)

    return Program(lambda: run(*given), mx.eval, check)


def pytensor(text: Text, arguments: Sequence[Any], wide: bool = False, element: str | None = None) -> Program:
    """PyTensor's graph of the text, compiled in Numba mode. Raises AttributeError for names that PyTensor lacks."""
    base = importlib.import_module("pytensor")
    pt = importlib.import_module("pytensor.tensor")
    base.config.floatX = "float64" if wide else "float32"
    if element:
        raise TypeError(f"pytensor has no {element}")
    numpy = Names("pytensor", pt)

    def gradient(function: Any, argnums: Any = 0) -> Any:
        def run(*given: Any) -> Any:
            by = [given[k] for k in argnums] if isinstance(argnums, tuple) else given[argnums]
            return base.grad(function(*given), by)

        return run

    jax = Names(
        "pytensor", numpy=numpy, nn=Names("pytensor", pt.special, pt), lax=Names("pytensor", pt), jit=lambda f: f,
        grad=gradient,
    )  # fmt: skip
    symbols: list[Any] = []
    values: list[Any] = []

    def symbol(array: Any) -> Any:
        symbols.append(pt.tensor(dtype=array.dtype, shape=array.shape))
        values.append(array)
        return symbols[-1]

    found = text(jax, numpy)(*(_leaves(a, symbol) for a in arguments))
    results: list[Any] = []
    _leaves(found, results.append, pt.TensorVariable)
    run = base.function(symbols, [base.Out(r, borrow=True) for r in results], mode="NUMBA")
    run.trust_input = True
    return Program(lambda: run(*values))


def pythran(version: Any, arguments: Sequence[Any], sizes: Sequence[Any] = ()) -> Program:
    """A version in plain loops, compiled by Pythran; the functions of its module that it calls are in its source."""
    pythran = importlib.import_module("pythran")
    function = getattr(version, "py_func", version)
    if function.__name__ == "<lambda>":
        raise TypeError("the version by hand is a lambda, not a function that Pythran could export")
    given = [*arguments, *sizes]
    signature = ", ".join(_pythran_type(a) for a in given)
    source = _source(function)
    with tempfile.TemporaryDirectory() as folder:
        spec = f"#pythran export {function.__name__}({signature})\n"
        built = pythran.compile_pythrancode(
            "kernel", spec + source, config=PYTHRAN_BLAS, output_file=str(Path(folder) / "kernel.so"),
            extra_compile_args=["-O3", "-march=native", "-fopenmp", "-fno-math-errno"], extra_link_args=["-fopenmp"],
        )  # fmt: skip
        loader = importlib.util.spec_from_file_location("kernel", built)
        assert loader is not None and loader.loader is not None
        module = importlib.util.module_from_spec(loader)
        loader.loader.exec_module(module)
    run = getattr(module, function.__name__)
    return Program(lambda: run(*given))


def _source(function: Any) -> str:
    """The function and what it calls, as a module for Pythran."""
    scope, parts, done = function.__globals__, ["import numpy as np", "f4 = np.float32"], set[str]()

    def add(one: Any) -> None:
        done.add(one.__name__)
        for name in sorted({s.argval for s in dis.get_instructions(one) if s.opname == "LOAD_GLOBAL"}):
            other = getattr(scope.get(name), "py_func", scope.get(name))
            if isinstance(other, FunctionType) and other.__module__ == one.__module__ and name not in done:
                add(other)
            elif isinstance(other, (int, float)):
                parts.append(f"{name} = {other!r}")
        text = re.sub(r"^@.*\n", "", inspect.getsource(one), flags=re.MULTILINE)
        parallel = re.compile(r"^(?P<indent> *)for (?P<rest>.*)\bprange\(", re.MULTILINE)
        parts.append(parallel.sub(r"\g<indent>#omp parallel for\n\g<indent>for \g<rest>range(", text))

    add(function)
    return "\n".join(parts) + "\n"


def _pythran_type(value: Any) -> str:
    array = np.asarray(value)
    if isinstance(value, (bool, int, float)):
        return type(value).__name__
    return f"{array.dtype.name}[{','.join(':' * array.ndim)}]" if array.ndim else array.dtype.name


def _converted(jnp: Any, argument: Any, element: str | None) -> Any:
    wanted = jnp.dtype(element) if element else None
    return _leaves(argument, lambda x: jnp.asarray(x, wanted if x.dtype == np.float32 else None))


def _leaves(tree: Any, of: Callable[[Any], Any], kind: Any = np.ndarray) -> Any:
    """The tree with `of` applied to its arrays."""
    if isinstance(tree, dict):
        return {name: _leaves(value, of, kind) for name, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(_leaves(value, of, kind) for value in tree)
    return of(tree) if isinstance(tree, kind) else tree
