"""JAX's answers, recorded: result types of promotion and of functions, and random numbers.

    python tests/support/jax_facts.py        # asks the installed JAX again and writes tests/data/jax_facts.json

Tests compare hloom with the file, and where JAX is installed the file with JAX.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).resolve().parent.parent / "data" / "jax_facts.json"

DTYPES = (
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)
WEAK = {"i*": 1, "f*": 1.5, "c*": 1j}
NARROW = tuple(d for d in DTYPES if not d.endswith(("64", "128")) or d == "complex64")

UNARY = (
    *("abs", "negative", "positive", "sign", "square", "sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log1p", "log2"),
    *("log10", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh"),
    *("arctanh", "floor", "ceil", "trunc", "rint", "round", "reciprocal", "isfinite", "isnan", "isinf", "signbit"),
    *("real", "imag", "conj", "logical_not", "bitwise_not", "deg2rad", "rad2deg", "fabs", "angle", "nan_to_num"),
)
BINARY = (
    *("add", "subtract", "multiply", "divide", "floor_divide", "mod", "fmod", "power", "float_power", "maximum"),
    *("minimum", "fmax", "fmin", "arctan2", "hypot", "logaddexp", "copysign", "heaviside", "equal", "less", "greater"),
    *("logical_and", "logical_or", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"),
)
REDUCE = ("sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "argmax", "argmin", "cumsum", "cumprod")

SHAPES = ((), (3,), (2, 0, 3), (2, 3, 2))
SAMPLERS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "bits8": (("bits",), {"dtype": "uint8"}),
    "bits16": (("bits",), {"dtype": "uint16"}),
    "bits32": (("bits",), {"dtype": "uint32"}),
    "uniform": (("uniform",), {}),
    "uniform16": (("uniform",), {"dtype": "float16"}),
    "uniformb": (("uniform",), {"dtype": "bfloat16"}),
    "normal": (("normal",), {}),
    "exponential": (("exponential",), {}),
    "gumbel": (("gumbel",), {}),
    "laplace": (("laplace",), {}),
    "logistic": (("logistic",), {}),
    "rademacher": (("rademacher",), {}),
    "bernoulli": (("bernoulli", 0.3), {}),
    "truncated_normal": (("truncated_normal", -1.0, 2.0), {}),
    "randint": (("randint",), {"minval": -5, "maxval": 100}),
    "randint8": (("randint",), {"minval": 0, "maxval": 256, "dtype": "uint8"}),
    "randint16": (("randint",), {"minval": -300, "maxval": 300, "dtype": "int16"}),
}
SEEDS = (0, 1, 42, -1, 2**31, 2**32 + 5, -(2**35))


def argument(namespace: Any, kind: str, shape: tuple[int, ...] = ()) -> Any:
    """An array of a dtype, or a weakly typed scalar."""
    return namespace.asarray(WEAK[kind]) if kind in WEAK else namespace.ones(shape, kind)


def type_name(eval_shape: Any, function: Any, *args: Any) -> str:
    """The result's type, with a star if weak; "error" if there is none."""
    try:
        result = eval_shape(function, *args)
    except (TypeError, ValueError, NotImplementedError):
        return "error"
    return str(result.dtype) + ("*" if result.weak_type and result.dtype != bool else "")


def sample(random: Any, name: str, shape: tuple[int, ...], seed: int = 7) -> Any:
    """One call of a sampler."""
    (function, *positional), options = SAMPLERS[name]
    draw = getattr(random, function)
    key = random.key(seed)
    if function == "randint":
        return draw(key, shape, **options)
    return draw(key, *positional, shape=shape, **options)


def types_of(namespace: Any, eval_shape: Any) -> dict[str, Any]:
    """The result types of functions, by function and dtypes, without x64."""
    kinds = (*NARROW, *WEAK)
    table: dict[str, Any] = {}
    for name in UNARY:
        function = getattr(namespace, name)
        table[name] = " ".join(type_name(eval_shape, function, argument(namespace, k)) for k in kinds)
    for name in BINARY:
        function = getattr(namespace, name)
        pairs = [(k, k) for k in kinds] + [("int32", "f*"), ("float16", "i*"), ("uint8", "int8"), ("bool", "i*")]
        table[name] = " ".join(
            type_name(eval_shape, function, argument(namespace, a), argument(namespace, b)) for a, b in pairs
        )
    for name in REDUCE:
        function = getattr(namespace, name)
        table[name] = " ".join(type_name(eval_shape, function, argument(namespace, k, (3,))) for k in kinds)
    return table


def promotion_of(namespace: Any, eval_shape: Any) -> dict[str, str]:
    """The type of a + b for each a, in the order of dtypes and weak types for b."""
    kinds = (*DTYPES, *WEAK)
    return {
        a: " ".join(type_name(eval_shape, namespace.add, argument(namespace, a), argument(namespace, b)) for b in kinds)
        for a in kinds
    }


def record() -> dict[str, Any]:
    """Ask JAX."""
    import jax  # the only thing here that needs it
    import jax.numpy as jnp

    facts: dict[str, Any] = {"jax": jax.__version__}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        facts["types"] = types_of(jnp, jax.eval_shape)
        facts["promotion"] = promotion_of(jnp, jax.eval_shape)
        with jax.enable_x64(True):
            facts["promotion_x64"] = promotion_of(jnp, jax.eval_shape)
        facts["keys"] = {str(s): np.asarray(jax.random.PRNGKey(s)).tolist() for s in SEEDS}
        facts["split"] = np.asarray(jax.random.split(jax.random.PRNGKey(7), (2, 2))).tolist()
        facts["fold_in"] = np.asarray(jax.random.fold_in(jax.random.PRNGKey(7), 2**32 - 1)).tolist()
        facts["random"] = {
            name: {str(shape): _numbers(sample(jax.random, name, shape)) for shape in SHAPES} for name in SAMPLERS
        }
        logits = jnp.arange(12.0).reshape(3, 4)
        facts["categorical"] = np.asarray(jax.random.categorical(jax.random.key(7), logits, shape=(5, 3))).tolist()
    return facts


def _numbers(array: Any) -> list[Any]:
    values = np.asarray(array)
    return [float(v) if values.dtype.kind not in "biu" else int(v) for v in values.ravel()]


def load() -> dict[str, Any]:
    """The recorded facts."""
    facts: dict[str, Any] = json.loads(FILE.read_text())
    return facts


if __name__ == "__main__":
    FILE.write_text(json.dumps(record(), indent=1) + "\n")
    print(f"wrote {FILE}")
