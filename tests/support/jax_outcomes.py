"""Recorded outcomes of JAX for good and bad arguments: for each call the type and a digest of the result, or the error.

    python tests/support/jax_outcomes.py               # writes tests/data/jax_outcomes.json, with the JAX installed
    python tests/support/jax_outcomes.py differences   # writes tests/data/outcome_differences.json: what is known

Each call of `CALLS` is made as it stands, and once for each argument and each value that may not fit it. Takes about
ten minutes: JAX compiles each operation for each shape.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.jax_expressions import EXPRESSIONS

PATH = Path(__file__).resolve().parent.parent / "data" / "jax_outcomes.json"
VERSION = "0.10.2"
"""The JAX version of the recorded outcomes."""

A = "jnp.arange(6.0).reshape(2, 3)"
V = "jnp.arange(1.0, 4.0)"
S = "(jnp.arange(16.0) - 5).reshape(4, 4)"
I = "jnp.arange(1, 7).reshape(2, 3)"  # noqa: E741
P = "(jnp.arange(6) > 2).reshape(2, 3)"
C = "(jnp.arange(3) * (1 + 2j))"
K = "jax.random.key(0)"

REPLACEMENTS: dict[str, tuple[str, ...]] = {
    # an array
    "a": (
        *("None", "'text'", "[1.0, 2.0, 3.0]", "2.5", "jnp.ones(())", "jnp.zeros((0,))", "jnp.ones((2, 3, 4))"),
        *("jnp.ones((2, 3), complex)", "jnp.ones((2, 3), bool)", "jnp.ones((2, 3), 'int8')", "jax.random.key(0)"),
        "np.ma.masked_array([1.0, 2.0, 3.0], [True, False, False])",
    ),
    # an array, for one of many similar functions
    "u": ("[1.0, 2.0, 3.0]", "jnp.ones((2, 3), complex)", "jnp.ones((2, 3), bool)", "jax.random.key(0)"),
    "v": ("[1.0, 2.0, 3.0]", "jnp.ones((2, 3, 4))"),
    # an axis, or several
    "x": ("None", "-1", "5", "-5", "(0, 0)", "(0, 1)", "()", "[0]", "'x'", "1.5"),
    # a number of something
    "n": ("None", "0", "2", "-1", "1.5", "'x'", "[2]", "np.int64(2)"),
    # a shape
    "s": ("None", "3", "()", "(0,)", "(2, -1)", "(2, 1.5)", "[2, 3]", "'x'", "np.array([2, 3])"),
    # a dtype
    "d": ("None", "'int8'", "bool", "complex", "'x'", "str", "np.dtype('bfloat16')"),
    # a number, or an array that broadcasts
    "f": ("None", "'x'", "-1", "1j", "jnp.arange(3.0)", "jnp.arange(2.0)", "[1.0]"),
    # a flag
    "b": ("None", "False", "'x'"),
    # a list of arrays
    "l": (
        *("None", "[]", "[None]", "['x']", V, "[1.0, 2.0]", f"[{V}, 1.0]", f"[{A}, {V}]", "3", f"[[1.0, 2.0], {V}]"),
        f"({A}, {A})",
    ),
    # fixed
    "_": (),
}
"""By kind of argument: the arguments to try."""

def _words(text: str) -> list[str]:
    return text.split()


_UNARY = _words(
    "abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh bitwise_not "
    "bitwise_invert cbrt ceil conj conjugate cos cosh deg2rad degrees exp exp2 expm1 fabs floor imag invert "
    "isfinite isinf isnan isneginf isposinf log log10 log1p log2 logical_not nan_to_num negative positive rad2deg "
    "radians real reciprocal rint round sign signbit sin sinc sinh sqrt square tan tanh trunc iscomplexobj "
    "isrealobj isscalar ndim shape size ravel atleast_1d atleast_2d copy matrix_transpose flip fliplr flipud "
    "permute_dims transpose zeros_like ones_like empty_like asarray array diag diagonal trace triu tril ptp average "
    "count_nonzero squeeze "
)
_BINARY = _words(
    "add arctan2 atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide "
    "divmod equal float_power floor_divide fmax fmin fmod greater greater_equal heaviside hypot left_shift less "
    "less_equal logaddexp logaddexp2 logical_and logical_or logical_xor maximum minimum mod multiply not_equal pow "
    "power remainder right_shift subtract true_divide dot inner kron matmul outer tensordot vdot vecdot allclose "
    "array_equal isclose append cross polyval "
)
_REDUCE = _words(
    "all amax amin any max mean min nanmax nanmean nanmin nanprod nanstd nansum nanvar prod std sum var ptp "
)
_LAX_UNARY = _words(
    "abs acos acosh asin asinh atan atanh bitwise_not cbrt ceil clz conj cos cosh erf erf_inv exp exp2 expm1 floor "
    "imag is_finite log log1p logistic neg population_count real reciprocal round rsqrt sign sin sinh sqrt square "
    "stop_gradient tan tanh "
)
_LAX_BINARY = _words(
    "add atan2 bitwise_and bitwise_or bitwise_xor complex div eq ge gt le lt max min mul ne nextafter pow rem "
    "shift_left shift_right_arithmetic shift_right_logical sub "
)
_NN = _words(
    "celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log_sigmoid log_softmax "
    "logsumexp mish relu relu6 selu sigmoid silu soft_sign softmax softplus squareplus standardize swish tanh "
)
_DRAWS = _words(
    "exponential gumbel laplace logistic normal rademacher uniform bits "
)

CALLS: list[tuple[str, ...]] = [
    *[(f"jnp.{n}", f"u:{A}") for n in _UNARY],
    *[(f"jnp.{n}", f"u:{V}", f"v:{V}") for n in _BINARY],
    *[(f"jnp.{n}", f"_:{A}", "x:axis=0", "b:keepdims=True") for n in _REDUCE],
    *[(f"jnp.{n}", f"u:{A}") for n in _REDUCE],
    *[(f"jnp.{n}", f"_:{I}", "d:dtype='float32'") for n in ("sum", "prod", "mean", "std", "var", "cumsum", "nansum")],
    *[(f"jnp.{n}", f"_:{A}", f"a:where={P}", "f:initial=1.0") for n in ("sum", "prod", "max", "min", "nansum")],
    *[(f"jnp.{n}", f"_:{A}", f"a:where={P}") for n in ("mean", "std", "any")],
    *[(f"jnp.{n}", f"a:{A}", "x:axis=1") for n in ("argmax", "argmin", "cumsum", "cumprod")],
    ("jnp.average", f"a:{A}", "x:axis=1", f"a:weights={V}"),
    ("jnp.count_nonzero", f"_:{A}", "x:axis=0"),
    ("jnp.reshape", f"a:{A}", "s:(3, 2)", "_:order='C'"),
    ("jnp.reshape", f"_:{A}", "s:(3, -1)"),
    ("jnp.reshape", f"_:{A}", "_:(3, 2)", "b:order='F'"),
    ("jnp.ravel", f"_:{A}", "b:order='F'"),
    ("jnp.transpose", f"a:{A}", "x:(1, 0)"),
    ("jnp.permute_dims", f"a:{A}", "x:(1, 0)"),
    ("jnp.swapaxes", f"a:{A}", "x:0", "x:1"),
    ("jnp.moveaxis", f"a:{A}", "x:0", "x:1"),
    ("jnp.moveaxis", f"_:{A}", "x:(0, 1)", "_:(1, 0)"),
    ("jnp.expand_dims", f"a:{A}", "x:0"),
    ("jnp.squeeze", f"a:{A}[None]", "x:0"),
    ("jnp.broadcast_to", f"a:{A}", "s:(2, 2, 3)"),
    ("jnp.broadcast_arrays", f"a:{A}", f"a:{V}"),
    ("jnp.broadcast_shapes", "s:(2, 3)", "s:(3,)"),
    ("jnp.concatenate", f"l:[{A}, {A}]", "x:axis=0", "d:dtype=None"),
    ("jnp.concat", f"l:[{A}, {A}]", "x:axis=0"),
    ("jnp.stack", f"l:[{V}, {V}]", "x:axis=0"),
    ("jnp.vstack", f"l:[{V}, {V}]"),
    ("jnp.hstack", f"l:[{V}, {V}]"),
    ("jnp.dstack", f"l:[{V}, {V}]"),
    ("jnp.column_stack", f"l:[{V}, {V}]"),
    ("jnp.append", f"_:{A}", f"a:{A}", "x:axis=0"),
    ("jnp.split", f"a:{A}", "n:3", "x:axis=1"),
    ("jnp.split", f"_:{A}", "s:[1, 2]", "_:axis=1"),
    ("jnp.array_split", f"a:{A}", "n:2", "x:axis=1"),
    ("jnp.flip", f"_:{A}", "x:axis=0"),
    ("jnp.roll", f"a:{A}", "n:1", "x:axis=1"),
    ("jnp.roll", f"_:{A}", "x:(1, 2)", "x:(0, 1)"),
    ("jnp.rot90", f"a:{A}", "n:1", "x:(0, 1)"),
    ("jnp.tile", f"a:{A}", "s:(2, 1)"),
    ("jnp.repeat", f"a:{A}", "n:2", "x:axis=1"),
    ("jnp.repeat", f"_:{V}", "s:np.array([1, 2, 0])"),
    ("jnp.repeat", f"_:{V}", "_:jnp.array([1, 2, 0])", "n:total_repeat_length=4"),
    ("jnp.pad", f"a:{A}", "s:1", "f:constant_values=2.0"),
    ("jnp.pad", f"_:{A}", "s:((0, 1), (1, 0))", "b:mode='constant'"),
    ("jnp.tri", "n:3", "n:4", "n:k=1", "d:dtype='int32'"),
    ("jnp.eye", "n:3", "n:4", "n:k=1", "d:dtype='int32'"),
    ("jnp.identity", "n:3", "d:dtype='int32'"),
    ("jnp.tril", f"a:{A}", "n:k=1"),
    ("jnp.triu", f"a:{A}", "n:k=1"),
    ("jnp.diag", f"a:{V}", "n:k=1"),
    ("jnp.diagonal", f"a:{A}", "n:offset=1", "x:axis1=0", "x:axis2=1"),
    ("jnp.trace", f"a:{A}", "n:offset=1", "x:axis1=0", "x:axis2=1", "d:dtype=None"),
    ("jnp.diff", f"a:{A}", "n:n=1", "x:axis=-1", "f:prepend=0.0", "f:append=1.0"),
    ("jnp.arange", "n:5"),
    ("jnp.arange", "n:0", "n:9", "n:2", "d:dtype=None"),
    ("jnp.linspace", "f:0.0", "f:1.0", "n:num=5", "b:endpoint=True", "d:dtype=None", "x:axis=0"),
    ("jnp.linspace", "_:0.0", "_:1.0", "_:5", "b:retstep=True"),
    ("jnp.logspace", "f:0.0", "f:1.0", "n:num=5", "f:base=10.0"),
    ("jnp.meshgrid", f"a:{V}", f"a:{V}", "b:sparse=False", "b:indexing='ij'"),
    ("jnp.indices", "s:(2, 3)", "d:dtype=None", "b:sparse=False"),
    ("jnp.zeros", "s:(2, 3)", "d:dtype=None"),
    ("jnp.ones", "s:(2, 3)", "d:dtype=None"),
    ("jnp.empty", "s:(2, 3)", "d:dtype=None"),
    ("jnp.full", "s:(2, 3)", "f:1.5", "d:dtype=None"),
    ("jnp.full_like", f"a:{A}", "f:1.5", "d:dtype=None", "s:shape=(3,)"),
    ("jnp.zeros_like", f"a:{A}", "d:dtype=None", "s:shape=(3,)"),
    ("jnp.asarray", "a:[1, 2]", "d:dtype=None", "b:order=None"),
    ("jnp.array", f"a:{A}", "d:dtype=None", "n:ndmin=3"),
    ("jnp.astype", f"a:{A}", "d:'int32'"),
    ("jnp.from_dlpack", "a:np.ones(3, np.float32)"),
    ("jnp.clip", f"a:{A}", "f:1.0", "f:2.0"),
    ("jnp.where", f"a:{P}", f"a:{A}", "f:0.0"),
    ("jnp.select", f"l:[{P}, ~{P}]", f"l:[{A}, -{A}]", "f:0.0"),
    ("jnp.round", f"a:{A}", "n:1"),
    ("jnp.nan_to_num", f"_:{A}", "b:copy=True", "f:nan=0.0", "f:posinf=1.0"),
    ("jnp.isclose", f"_:{A}", f"_:{A}", "f:rtol=1e-5", "f:atol=1e-8", "b:equal_nan=True"),
    ("jnp.einsum", "_:'ij,j->i'", f"a:{A}", f"a:{V}"),
    ("jnp.einsum", "n:'ij->ji'", f"_:{A}"),
    ("jnp.tensordot", f"_:{A}", f"_:{A}", "x:2"),
    ("jnp.tensordot", f"_:{A}", f"_:{A}.T", "x:([1], [0])"),
    ("jnp.dot", f"a:{A}", f"a:{V}", "b:precision=None", "d:preferred_element_type=None"),
    ("jnp.matmul", f"a:{A}", f"a:{V}"),
    ("jnp.cross", f"_:{V}", f"_:{V}", "x:axisa=-1", "x:axisb=-1", "x:axisc=-1"),
    ("jnp.vecdot", f"_:{A}", f"_:{A}", "x:axis=-1"),
    ("jnp.size", f"_:{A}", "x:axis=0"),
    ("jnp.result_type", f"a:{V}", "d:'int32'"),
    ("jnp.promote_types", "d:'int32'", "d:'float16'"),
    ("jnp.issubdtype", "d:'int32'", "d:np.integer"),
    ("jnp.finfo", "d:'float32'"),
    ("jnp.iinfo", "d:'int32'"),
    ("jnp.linalg.norm", f"a:{A}", "n:ord=None", "x:axis=0", "b:keepdims=True"),
    ("jnp.linalg.norm", f"_:{A}", "n:ord=1", "x:axis=(0, 1)"),
    ("jnp.linalg.vector_norm", f"a:{A}", "x:axis=0", "n:ord=2"),
    ("jnp.linalg.matrix_norm", f"a:{A}", "n:ord='fro'"),
    ("jnp.linalg.matrix_power", f"a:{S}", "n:3"),
    ("jnp.linalg.multi_dot", f"l:[{A}, {A}.T, {A}]"),
    ("jnp.linalg.trace", f"a:{A}", "n:offset=1", "d:dtype=None"),
    ("jnp.linalg.diagonal", f"a:{A}", "n:offset=1"),
    ("jnp.linalg.outer", f"a:{V}", f"a:{V}"),
    ("jnp.linalg.matmul", f"a:{A}", f"a:{V}"),
    ("jnp.linalg.tensordot", f"a:{A}", f"a:{A}", "x:axes=2"),
    ("jnp.linalg.matrix_transpose", f"a:{A}"),
    ("jnp.linalg.vecdot", f"a:{A}", f"a:{A}", "x:axis=-1"),
    *[(f"lax.{n}", f"u:{A}") for n in _LAX_UNARY],
    *[(f"lax.{n}", f"u:{A}", f"v:{A}") for n in _LAX_BINARY],
    *[(f"lax.{n}", f"a:{A}", "x:0") for n in ("cummax", "cummin", "cumprod", "cumsum", "cumlogsumexp")],
    *[(f"lax.reduce_{n}", f"a:{A}", "x:(0,)") for n in ("max", "min", "prod", "sum")],
    *[(f"lax.reduce_{n}", f"a:{P}", "x:(0,)") for n in ("and", "or", "xor")],
    *[(f"lax.{n}", f"a:{A}", "x:0", "d:'int32'") for n in ("argmax", "argmin")],
    ("lax.batch_matmul", f"a:{A}[None]", f"a:{A}.T[None]"),
    ("lax.bitcast_convert_type", f"a:{A}", "d:'int32'"),
    ("lax.broadcast", f"a:{A}", "s:(2,)"),
    ("lax.broadcast_in_dim", f"a:{V}", "s:(2, 3)", "x:(1,)"),
    ("lax.broadcast_shapes", "s:(2, 3)", "s:(3,)"),
    ("lax.broadcasted_iota", "d:'int32'", "s:(2, 3)", "n:1"),
    ("lax.clamp", "f:0.0", f"a:{A}", "f:1.0"),
    ("lax.collapse", f"a:{A}", "n:0", "n:2"),
    ("lax.concatenate", f"l:[{A}, {A}]", "x:0"),
    ("lax.convert_element_type", f"a:{A}", "d:'int32'"),
    ("lax.dot", f"a:{A}", f"a:{V}"),
    ("lax.dot_general", f"a:{A}", f"a:{V}", "x:(((1,), (0,)), ((), ()))"),
    ("lax.dynamic_index_in_dim", f"a:{A}", "n:0", "x:1"),
    ("lax.dynamic_slice", f"a:{A}", "s:(0, 1)", "s:(1, 2)"),
    ("lax.dynamic_slice_in_dim", f"a:{A}", "n:0", "n:1", "x:1"),
    ("lax.dynamic_update_index_in_dim", f"a:{A}", f"a:{V}", "n:0", "x:0"),
    ("lax.dynamic_update_slice", f"a:{A}", f"a:{A}[:1]", "s:(0, 1)"),
    ("lax.dynamic_update_slice_in_dim", f"a:{A}", f"a:{A}[:1]", "n:0", "x:0"),
    ("lax.expand_dims", f"a:{A}", "x:(0,)"),
    ("lax.full", "s:(2, 3)", "f:1.5", "d:dtype=None"),
    ("lax.full_like", f"a:{A}", "f:1.5", "d:dtype=None", "s:shape=(2,)"),
    ("lax.index_in_dim", f"a:{A}", "n:0", "x:1"),
    ("lax.integer_pow", f"a:{A}", "n:2"),
    ("lax.iota", "d:'int32'", "n:3"),
    ("lax.map", "_:lambda x: x + 1", f"a:{A}"),
    ("lax.pad", f"a:{A}", "f:0.0", "s:((0, 1, 0), (1, 0, 0))"),
    ("lax.reduce", f"a:{A}", "f:0.0", "_:lax.add", "x:(0,)"),
    ("lax.reshape", f"a:{A}", "s:(3, 2)", "x:(1, 0)"),
    ("lax.rev", f"a:{A}", "x:(0,)"),
    ("lax.select", f"a:{P}", f"a:{A}", f"a:{A}"),
    ("lax.select_n", f"a:{P}", f"a:{A}", f"a:{A}"),
    ("lax.slice", f"a:{A}", "s:(0, 1)", "s:(2, 3)", "s:(1, 1)"),
    ("lax.slice_in_dim", f"a:{A}", "n:0", "n:2", "n:1", "x:1"),
    ("lax.split", f"a:{A}", "s:(1, 2)", "x:1"),
    ("lax.squeeze", f"a:{A}[None]", "x:(0,)"),
    ("lax.transpose", f"a:{A}", "x:(1, 0)"),
    ("lax.cond", "a:True", "n:lambda x: x", "_:lambda x: x + 1", f"a:{A}"),
    ("lax.switch", "n:1", "l:[lambda x: x, lambda x: x + 1]", f"a:{A}"),
    ("lax.fori_loop", "n:0", "n:3", "_:lambda i, c: c + 1", f"a:{A}"),
    ("lax.scan", "_:lambda c, x: (c + x.sum(), x)", "f:0.0", f"a:{A}", "n:length=None"),
    ("lax.while_loop", "_:lambda c: c < 3", "n:lambda c: c + 1", "f:0"),
    *[(f"jax.nn.{n}", f"u:{A}") for n in _NN if n != "glu"],
    ("jax.nn.glu", f"a:{S}", "x:axis=-1"),
    *[(f"jax.nn.{n}", f"_:{A}", "x:axis=-1", f"a:where={P}") for n in ("softmax", "log_softmax", "logsumexp")],
    ("jax.nn.standardize", f"_:{A}", "x:axis=-1", f"a:where={P}"),
    ("jax.nn.one_hot", "a:jnp.arange(3)", "n:4", "d:dtype='float32'", "x:axis=-1"),
    ("jax.nn.leaky_relu", f"_:{A}", "f:0.1"),
    ("jax.nn.gelu", f"_:{A}", "b:approximate=False"),
    *[(f"jax.random.{n}", f"a:{K}", "s:(2, 3)", "d:dtype=None") for n in _DRAWS],
    ("jax.random.key", "n:0", "n:impl=None"),
    ("jax.random.PRNGKey", "n:0"),
    ("jax.random.split", f"a:{K}", "s:2"),
    ("jax.random.fold_in", f"a:{K}", "n:1"),
    ("jax.random.key_data", f"a:{K}"),
    ("jax.random.wrap_key_data", "a:jnp.zeros(2, 'uint32')"),
    ("jax.random.bernoulli", f"a:{K}", "f:0.3", "s:(3,)"),
    ("jax.random.randint", f"a:{K}", "s:(3,)", "f:0", "f:5", "d:dtype=None"),
    ("jax.random.categorical", f"a:{K}", f"a:{A}", "x:axis=-1"),
    ("jax.random.truncated_normal", f"a:{K}", "f:-1.0", "f:1.0", "s:(3,)", "d:dtype=None"),
    ("jax.nn.initializers.normal(0.1)", f"a:{K}", "s:(2, 3)", "d:'float32'"),
    ("jax.nn.initializers.glorot_uniform()", f"a:{K}", "s:(2, 3)", "d:'float32'"),
    ("jax.nn.initializers.zeros", f"_:{K}", "s:(2, 3)", "d:'float32'"),
    ("jax.tree_util.tree_map", "_:lambda a, b: a", "l:[1, 2]", "l:[1, 2]"),
    ("jax.tree_util.tree_leaves", "l:[1, 2]"),
    ("jax.tree_util.tree_reduce", "_:lambda a, b: a + b", "l:[1, 2]", "f:0"),
    ("jax.tree_util.tree_all", "l:[1, 2]"),
    ("jax.tree_util.tree_unflatten", "n:jax.tree_util.tree_structure([1, 2])", "l:[1, 2]"),
    (
        *("jax.tree_util.tree_transpose", "n:jax.tree_util.tree_structure([1])"),
        *("n:jax.tree_util.tree_structure((1,))", "l:[(1,)]"),
    ),
    ("jax.grad(lambda x: jnp.sum(x * x))", f"a:{A}"),
    ("jax.jvp", "_:jnp.sin", f"l:({A},)", f"l:({A},)"),
    ("jax.jit(lambda x: x)", f"a:{A}"),
    ("jax.eval_shape", "_:jnp.sin", f"a:{A}"),
    ("jax.ShapeDtypeStruct", "s:(2, 3)", "d:'float32'"),
    ("jax.device_put", f"a:{A}"),
    *[(f"{A}.{m}", "x:axis=0") for m in ("sum", "max", "mean", "any", "argmax", "cumsum", "squeeze")],
    (f"{A}.reshape", "s:(3, 2)"),
    (f"{A}.transpose", "x:(1, 0)"),
    (f"{A}.astype", "d:'int32'"),
    (f"{A}.view", "d:'int32'"),
    (f"{A}.dot", f"a:{V}"),
    (f"{A}.clip", "f:0.0", "f:1.0"),
    (f"{A}.repeat", "n:2", "x:axis=0"),
    (f"{A}.__getitem__", "s:0"),
    (f"{A}.__getitem__", "x:(0, 1)"),
    (f"{A}.__getitem__", "n:slice(0, 1)"),
    (f"{A}.at[0].set", f"a:{V}"),
    (f"{A}.at[0].add", "f:1.0"),
    (f"{I}.at[0, 1].multiply", "f:2"),
    *[(f"{A}.{m}", f"a:{A}") for m in ("__add__", "__radd__", "__eq__", "__lt__", "__mul__", "__truediv__")],
]
"""A function, and its arguments, each with its kind."""


def rows() -> dict[str, list[str]]:
    """By each call as it stands: all its variants, itself first, as text."""
    calls = {f"{f}({', '.join([a.split(':', 1)[1] for a in given])})": _variants(f, given) for f, *given in CALLS}
    return {**calls, **{e: [e] for e in EXPRESSIONS}}


def _variants(function: str, arguments: list[str]) -> list[str]:
    kinds, texts = zip(*[a.split(":", 1) for a in arguments])
    found = [f"{function}({', '.join(texts)})"]
    for k, (kind, text) in enumerate(zip(kinds, texts)):
        name, equals, _ = text.partition("=") if text.split("=")[0].isidentifier() else ("", "", "")
        for other in REPLACEMENTS[kind]:
            given = [*texts[:k], name + equals + other, *texts[k + 1 :]]
            found.append(f"{function}({', '.join(given)})")
    return found


ERRORS = (
    *(OverflowError, ZeroDivisionError, IndexError, KeyError, AttributeError, NotImplementedError, UnboundLocalError),
    *(RecursionError, AssertionError, TypeError, ValueError, RuntimeError, Exception),
)
"""The classes of errors that are told apart."""


def outcome(row: str, names: dict[str, Any]) -> str:
    """The outcome of a call: ``float32[2,3] 15.0`` (type, and the sum of magnitudes), or ``!TypeError,ValueError``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _described(eval(row, names))
        except Exception as error:
            return "!" + ",".join(c.__name__ for c in ERRORS[:-1] if isinstance(error, c))


def _described(result: Any) -> str:
    if isinstance(result, list | tuple):
        return f"({'; '.join([_described(r) for r in result])})"
    if isinstance(result, dict):
        return f"{{{'; '.join([_described(r) for r in result.values()])}}}"
    if not hasattr(result, "dtype") or not hasattr(result, "shape") or isinstance(result, np.generic):
        number = isinstance(result, bool | int | float | complex | np.generic | str | type(None))
        return repr(np.asarray(result).tolist()) if number else type(result).__name__
    shape = ",".join(map(str, result.shape))
    weak = "*" if getattr(result, "weak_type", False) and result.dtype != np.bool_ else ""
    try:
        values = np.asarray(result).astype(np.complex64)
    except (TypeError, ValueError):
        return f"{result.dtype}[{shape}]"  # keys, and types without elements
    number = np.nansum(np.abs(values[np.isfinite(values)]) * (1 + np.arange(np.isfinite(values).sum()) % 7))
    return f"{result.dtype}{weak}[{shape}] {number:.5g}"


def same(ours: str, jax: str) -> bool:
    """Whether two outcomes agree: an error of ours may be of more classes than JAX's."""
    if ours == jax:
        return True
    if jax.startswith("!"):
        return ours.startswith("!") and bool({*jax[1:].split(",")} & {*ours[1:].split(",")} or jax == "!")
    a, b = (text.replace(";", " ").replace("(", " ").replace(")", " ").split() for text in (ours, jax))
    return len(a) == len(b) and all(x == y or _close(x, y) for x, y in zip(a, b))


def _close(a: str, b: str) -> bool:
    try:
        return abs(float(a) - float(b)) <= 2e-3 * abs(float(b)) + 1e-4
    except ValueError:
        return False


DIFFERENCES = PATH.with_name("outcome_differences.json")
KINDS = {
    "other error": "both raise, errors of other classes",
    "JAX alone raises": "hloom has a result: lists as axes, negative axes in lax, promotion in a few places",
    "hloom alone raises": "what is missing; masked arrays; axes and sizes that are no integers",
    "other result": "weak types of truth values; unused arguments of another type; types that are narrowed",
}
"""The kinds of differences between JAX and hloom that are known."""


def kind_of_difference(ours: str, jax: str) -> str:
    """One of `KINDS`."""
    if jax.startswith("!"):
        return "other error" if ours.startswith("!") else "JAX alone raises"
    return "hloom alone raises" if ours.startswith("!") else "other result"


def differences(package: Any) -> dict[str, list[str]]:
    """By kind, the rows with an outcome in hloom that differs from the recorded one."""
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    names, jax = names_of(package), recorded()
    for call, variants in rows().items():
        with package.disable_jit(not any(t in call for t in _TRACED)):  # operation by operation: nothing is compiled
            for row, theirs in zip(variants, jax[call], strict=True):
                ours = outcome(row, names)
                if not same(ours, theirs):
                    found[kind_of_difference(ours, theirs)].append(row)
    return found


_TRACED = ("jax.jit", "lax.cond", "lax.fori_loop", "lax.map", "lax.scan", "lax.switch", "lax.while_loop")


def recorded() -> dict[str, list[str]]:
    """JAX's outcomes of each call's variants, in their order."""
    found: dict[str, list[str]] = json.loads(PATH.read_text())
    return found


def names_of(package: Any) -> dict[str, Any]:
    """The names in the rows, from JAX or from hloom."""
    return {"jax": package, "jnp": package.numpy, "lax": package.lax, "np": np}


def _record() -> None:
    import jax
    import jax.nn
    import jax.numpy

    names = names_of(jax)
    table = {call: [outcome(row, names) for row in variants] for call, variants in rows().items()}
    PATH.write_text(json.dumps(table, indent=0) + "\n")


def _record_differences() -> None:
    import hloom
    import hloom.numpy

    DIFFERENCES.write_text(json.dumps(differences(hloom), indent=0) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["differences"]:
        _record_differences()
    else:
        _record()
