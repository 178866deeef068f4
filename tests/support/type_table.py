"""The result types of all public functions, as JAX has them, without and with x64.

    python tests/support/type_table.py      # asks the installed JAX again and writes tests/data/jax_types.json

Each function of hloom's namespaces that JAX has too is called in a few ways on arrays of each dtype, abstractly. A type
is written as ``f4`` (float32), with a star if it is weak; several results are joined by ``,``; ``-`` is an error.
"""

from __future__ import annotations

import importlib
import inspect
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hloom
import hloom.numpy

FILE = Path(__file__).resolve().parent.parent / "data" / "jax_types.json"

NAMESPACES = ("numpy", "numpy.linalg", "numpy.fft", "lax", "nn", "random", "scipy.special")
DTYPES = {
    "bool": "b", "uint8": "u1", "uint16": "u2", "uint32": "u4", "uint64": "u8", "int8": "i1", "int16": "i2",
    "int32": "i4", "int64": "i8", "float16": "f2", "bfloat16": "bf", "float32": "f4", "float64": "f8",
    "complex64": "c8", "complex128": "c16", "int4": "s4", "uint4": "us4", "float8_e5m2": "e5",
}  # fmt: skip
WEAK = {"i*": 1, "f*": 1.5, "c*": 1j}
WIDE = ("uint64", "int64", "float64", "complex128")

Call = Callable[[Any, Any], Any]
CALLS: dict[str, Call] = {
    "x": lambda f, x: f(x),
    "xx": lambda f, x: f(x, x),
    "x1": lambda f, x: f(x, 1),
    "x1.5": lambda f, x: f(x, 1.5),
    "[xx]": lambda f, x: f([x, x]),
    "xi": lambda f, x: f(x, (0,)),
}
"""Ways to call a function on an array, or a weakly typed number."""
SHAPES = ((4,), (3, 3))
TRIED = ("float32", "int32", "bool")
"""A call that fails for these is not in the table."""

SPECIAL: dict[str, Callable[[Any, Any], Any]] = {
    # without an array among the arguments
    "zeros": lambda np, lax: np.zeros(3),
    "ones": lambda np, lax: np.ones(3),
    "empty": lambda np, lax: np.empty(3),
    "full i": lambda np, lax: np.full(3, 1),
    "full f": lambda np, lax: np.full(3, 1.5),
    "full b": lambda np, lax: np.full(3, True),
    "lax.full i": lambda np, lax: lax.full((3,), 1),
    "lax.full f": lambda np, lax: lax.full((3,), 1.5),
    "arange i": lambda np, lax: np.arange(3),
    "arange f": lambda np, lax: np.arange(3.0),
    "arange if": lambda np, lax: np.arange(0, 3.0),
    "linspace": lambda np, lax: np.linspace(0, 1, 3),
    "linspace f": lambda np, lax: np.linspace(0.0, 1.0, 3),
    "logspace": lambda np, lax: np.logspace(0, 1, 3),
    "eye": lambda np, lax: np.eye(3),
    "identity": lambda np, lax: np.identity(3),
    "tri": lambda np, lax: np.tri(3),
    "indices": lambda np, lax: np.indices((2, 2)),
    "array i": lambda np, lax: np.array(1),
    "array [i]": lambda np, lax: np.array([1]),
    "array f": lambda np, lax: np.array(1.5),
    "array [f]": lambda np, lax: np.array([1.5]),
    "array b": lambda np, lax: np.array(True),
    "array c": lambda np, lax: np.array([1j]),
    "array []": lambda np, lax: np.array([]),
    "asarray i": lambda np, lax: np.asarray(1),
    "asarray f": lambda np, lax: np.asarray(1.5),
    "float32": lambda np, lax: np.float32(1),
    "int8": lambda np, lax: np.int8(1),
    "sqrt i": lambda np, lax: np.sqrt(2),
    "sqrt b": lambda np, lax: np.sqrt(True),
    "mean [b]": lambda np, lax: np.mean(np.array([True])),
    "1 / 2": lambda np, lax: np.divide(1, 2),
    "where": lambda np, lax: np.where(True, 1, 2),
    "where if": lambda np, lax: np.where(True, 1, 2.0),
    "iota": lambda np, lax: lax.iota("int32", 3),
    "fori": lambda np, lax: lax.fori_loop(0, 3, lambda i, c: c + i, 0),
    "fori f": lambda np, lax: lax.fori_loop(0, 3, lambda i, c: c * 0.5, 1.0),
    "argmax": lambda np, lax: np.argmax(np.ones(3)),
    "count_nonzero": lambda np, lax: np.count_nonzero(np.ones(3)),
}


def names() -> Iterator[tuple[str, str]]:
    """(namespace, function) of hloom's functions."""
    for namespace in NAMESPACES:
        module = importlib.import_module(f"hloom.{namespace}")
        for name in sorted(set(module.__all__)):
            member = getattr(module, name)
            if inspect.isroutine(member) or hasattr(member, "__wrapped__") or isinstance(member, hloom.numpy.ufunc):
                yield namespace, name


def type_of(value: Any) -> str:
    """A type as the table writes it."""
    short = DTYPES.get(str(value.dtype), str(value.dtype))
    return short + ("*" if getattr(value, "weak_type", False) else "")


def answer(package: Any, function: Any) -> str:
    """The types of the results; "-" if there are none."""
    try:
        return ",".join(type_of(v) for v in package.tree.leaves(package.eval_shape(function)))
    except Exception:  # of many classes: the table notes only that there is no array
        return "-"


def argument(np: Any, kind: str, shape: tuple[int, ...]) -> Any:
    """An array of a dtype, or a weakly typed one."""
    return np.broadcast_to(np.asarray(WEAK[kind]), shape) if kind in WEAK else np.ones(shape, kind)


def kinds(x64: bool) -> tuple[str, ...]:
    """The dtypes of arguments."""
    return (*(d for d in DTYPES if x64 or d not in WIDE), *WEAK)


def of_function(package: Any, np: Any, function: Any, x64: bool) -> dict[str, str]:
    """The types by call, on arrays of the first shape that works."""

    def ask(apply: Call, kind: str, shape: tuple[int, ...]) -> str:
        return answer(package, lambda: apply(function, argument(np, kind, shape)))

    found = {}
    for call, apply in CALLS.items():
        if call == "x1.5" and not any(c.startswith("xx ") for c in found):
            continue  # the second argument is an axis or the like
        for shape in SHAPES:
            if any(ask(apply, kind, shape) not in ("-", "") for kind in TRIED):
                found[f"{call} {len(shape)}"] = " ".join(ask(apply, kind, shape) for kind in kinds(x64))
                break
    return found


def table(package: Any, x64: bool, only: list[str] | None = None) -> dict[str, dict[str, str]]:
    """All answers of a package: of JAX's, or of hloom."""
    np, lax = (importlib.import_module(f"{package.__name__}.{n}") for n in ("numpy", "lax"))
    found = {}
    with warnings.catch_warnings(), package.enable_x64(x64):
        warnings.simplefilter("ignore")
        for namespace, name in names():
            module = importlib.import_module(f"{package.__name__}.{namespace}")
            full = f"{namespace}.{name}"
            if hasattr(module, name) and full not in SKIPPED and (only is None or full in only):
                found[full] = of_function(package, np, getattr(module, name), x64)
        found[""] = {name: answer(package, lambda f=f: f(np, lax)) for name, f in SPECIAL.items()}
    return found


SKIPPED = {
    "lax.reshape": "JAX takes any sizes for an array that it does not look at",
    "lax.cumlogsumexp": "JAX has it of integers, as integers",
    "numpy.issubdtype": "takes no arrays",
    "numpy.linalg.norm": "the second argument is an order",
}


def record() -> dict[str, Any]:
    """Ask JAX."""
    import jax  # the only thing here that needs it

    return {"jax": jax.__version__, "off": table(jax, False), "on": table(jax, True)}


def load() -> dict[str, Any]:
    """The recorded table."""
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


if __name__ == "__main__":
    FILE.write_text(json.dumps(record(), indent=0, sort_keys=True) + "\n")
    print(f"wrote {FILE}")
