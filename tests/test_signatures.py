"""The arguments of every public function and array method are JAX's: names, order, which are by name only, defaults."""

from __future__ import annotations

import warnings

import pytest

import hloom
from support import jax_signatures
from support.jax_names import namespace
from support.jax_signatures import METHODS, NAMESPACES

UFUNCS = (
    *("add", "bitwise_and", "bitwise_or", "bitwise_xor", "logaddexp", "logaddexp2", "logical_and", "logical_or"),
    *("logical_xor", "maximum", "minimum", "multiply", "subtract"),
)
DEVIATIONS = {
    "": {
        "checkpoint": "no static_argnames",
        "grad": "no reduce_axes, which JAX has for pmap",
        "value_and_grad": "no reduce_axes, which JAX has for pmap; `_name` is internal",
        "vjp": "no reduce_axes, which JAX has for pmap",
        "jacrev": "allow_int: use vjp",
        "jacobian": "allow_int: use vjp",
        "jit": "the options are in another order; all are by name only",
        "enable_x64": "True by default",
        "default_matmul_precision": "the value must be given",
        "numpy_dtype_promotion": "the value must be given",
        "eval_shape": "fun by position only, so that functions may have an argument of this name",
    },
    "dtypes": {
        "issubdtype": "the function of hloom.numpy",
        "result_type": "no return_weak_type_flag: see x.weak_type",
    },
    "lax": {"mul": "no out_dtype"},
    "numpy": {
        **dict.fromkeys(UFUNCS, "no ufunc object: neither `out` and `where` nor methods such as add.reduce"),
        "negative": "no ufunc object",
        "array": "copy, order and ndmin also by position, as in NumPy",
        "clip": "the array must be given",
        "pad": "modes other than constant are missing, and their options",
        "where": "no size and fill_value, which are for indices alone",
    },
    "random": {
        "bernoulli": "no mode",
        "key": "no dtype: impl says the same",
        "wrap_key_data": "no dtype: impl says the same",
    },
    "tree": {"flatten_with_path": "no is_leaf_takes_path"},
    "tree_util": {"tree_flatten_with_path": "no is_leaf_takes_path"},
    METHODS: {},
}
"""Where the signatures differ on purpose, and why."""


def _ours(name: str) -> dict[str, str]:
    if name == METHODS:
        return jax_signatures.methods_of(hloom.numpy.ones(1))
    module = namespace("hloom", name)
    return jax_signatures.functions_of(module, sorted(module.__all__))


@pytest.mark.parametrize("name", [*NAMESPACES, METHODS])
def test_signatures_are_those_of_jax(name: str) -> None:
    jax, ours = jax_signatures.recorded()[name], _ours(name)
    common = sorted(jax.keys() & ours.keys())
    assert common
    different = {n: (ours[n], jax[n]) for n in common if ours[n] != jax[n]}
    allowed = DEVIATIONS.get(name, {})
    assert {n: d for n, d in different.items() if n not in allowed} == {}
    assert sorted(allowed.keys() - different.keys()) == [], "these are as in JAX now"


def test_a_changed_signature_is_noticed() -> None:
    found = jax_signatures.signature_of(lambda a, /, b=1, *c, d=(), e="x", **f: 0)
    assert found == "/1 b=1 *args !d=() !e='x' **kwargs"
    assert jax_signatures.signature_of(lambda x, y: 0) != jax_signatures.signature_of(lambda y, x: 0)


def test_recorded_signatures_are_those_of_jax() -> None:
    jax = pytest.importorskip("jax")
    if jax.__version__ != jax_signatures.VERSION:
        pytest.skip(f"the signatures were recorded from JAX {jax_signatures.VERSION}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert jax_signatures.of_jax() == jax_signatures.recorded()
