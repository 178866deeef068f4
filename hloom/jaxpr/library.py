"""Primitives that are functions of `hloom.lax` under other parameters, those of `hloom.lax.linalg`, and ops that have
one primitive each: Fourier transforms, factorisations, random bits, barriers. All that JAX has no primitive for is
shown under HLO's names.

The library's primitives have JAX's names, and parameters in the library's words: `_PARAMS` has JAX's. A primitive is
shown with its meaning (`calls.py`) if JAX has none, or if its rule finds that JAX has no such use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ..autodiff.api import jvp, vjp
from ..autodiff.vmap import vmap
from ..hlo.ir import HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.ops.linalg import CholeskyAttributes, FftAttributes, FftType, TransposeKind, TriangularSolveAttributes
from ..hlo.ops.random import (
    RandomAlgorithm,
    RandomDistribution,
    RngAttributes,
    RngBitGeneratorAttributes,
)
from ..hlo.shape import Shape
from ..lax.reduce import limits
from ..tracer import dtypes, ops
from ..tracer.core import Value, bind, bind_multi
from ..tracer.sharding.placement import device_put, placed
from .atoms import Atom
from .primitives import primitive
from .rules import SHOWN, Body, Shown, as_hlo, define_as_hlo, show_as_hlo, shows


def _lax() -> Any:
    """The library is above this folder: its functions carry primitives, which the view shows."""
    return import_module("..lax", __package__)


def _define_arg_reduction(name: str) -> None:
    @primitive(name)
    def apply(x: Value, *, axes: Sequence[int], index_dtype: Any) -> Any:
        (axis,) = axes
        return getattr(_lax(), name)(x, axis, index_dtype)


for _name in ("argmax", "argmin"):
    _define_arg_reduction(_name)


@primitive("stack")
def _stack(*operands: Value, axis: int = 0) -> Any:
    return _lax().stack(operands, axis)


@primitive("approx_top_k", multiple_results=True)
def _approx_top_k(x: Value, *, k: int, is_max_k: bool = True, **params: Any) -> list[Any]:
    return list((_lax().approx_max_k if is_max_k else _lax().approx_min_k)(x, k, **params))


@primitive("dce_sink", multiple_results=True)
def _dce_sink(x: Value, *, prevent_mlir_dce: bool = False) -> list[Any]:
    _lax().dce_sink(x, prevent_mlir_dce=prevent_mlir_dce)
    return []


@primitive("sharding_constraint")
def _sharding_constraint(x: Value, *, sharding: Any, **params: Any) -> Any:
    return placed(x, sharding, "sharding_constraint")


@primitive("reshard")
def _reshard(x: Value, *, dst_sharding: Any, **params: Any) -> Any:
    return placed(x, dst_sharding, "reshard")


@primitive("device_put", multiple_results=True)
def _device_put(*operands: Value, devices: Sequence[Any], srcs: Any = (), copy_semantics: Any = ()) -> list[Any]:
    """To the only device, from any place."""
    return [device_put(x, device) for x, device in zip(operands, devices, strict=True)]


@primitive("add_any")
def _add_any(x: Value, y: Value) -> Any:
    """The sum of two cotangents."""
    return ops.add(x, y)


# ---- derivatives of extrema of windows


def _extremum(select_prim: Any, window: Sequence[int], strides: Sequence[int], padding: Any, **dilation: Any) -> Any:
    """The reduction of windows to the element that `select_prim`, `ge_p` or `le_p`, chooses."""
    lax, is_max = _lax(), str(select_prim) == "ge"

    def reduced(x: Any) -> Any:
        first = lax.full((), limits(x.aval.dtype)[not is_max], x.aval.dtype)
        return lax.reduce_window(x, first, lax.max if is_max else lax.min, window, strides, padding, **dilation)

    return reduced


@primitive("select_and_scatter_add")
def _select_and_scatter_add(
    source: Value, operand: Value, *, select_prim: Any, window_dimensions: Any, window_strides: Any, padding: Any
) -> Any:
    """The transpose of the derivative of `reduce_window_max`, at `operand`."""
    (found,) = vjp(_extremum(select_prim, window_dimensions, window_strides, padding), operand)[1](source)
    return found


@primitive("select_and_gather_add")
def _select_and_gather_add(
    tangents: Value, operand: Value, *, select_prim: Any, window_dimensions: Any, window_strides: Any, padding: Any,
    base_dilation: Any, window_dilation: Any,
) -> Any:  # fmt: skip
    """The derivative of `reduce_window_max`, at `operand`."""
    dilation = {"base_dilation": base_dilation, "window_dilation": window_dilation}
    reduced = _extremum(select_prim, window_dimensions, window_strides, padding, **dilation)
    return jvp(reduced, (operand,), (tangents,))[1]


# ---- random numbers


def _random() -> Any:
    return import_module("..random", __package__)


@primitive("random_seed")
def _random_seed(seeds: Value, *, impl: Any) -> Any:
    return import_module("..extend.random", __package__).random_seed(seeds, impl)


@primitive("random_split")
def _random_split(keys: Value, *, shape: Sequence[int]) -> Any:
    return _on_each(lambda key: _random().split(key, tuple(shape)), keys)


@primitive("random_fold_in")
def _random_fold_in(keys: Value, data: Value) -> Any:
    """Keys and data are broadcast to each other, as arrays are."""
    sizes = np.broadcast_shapes(keys.aval.shape, data.aval.shape)
    lax = _lax()
    both = [lax.broadcast_in_dim(v, sizes, range(len(sizes) - v.aval.ndim, len(sizes))) for v in (keys, data)]
    return _on_each(_random().fold_in, *both)


@primitive("random_bits")
def _random_bits(keys: Value, *, bit_width: int, shape: Sequence[int]) -> Any:
    return _on_each(lambda key: _random().bits(key, tuple(shape), f"uint{bit_width}"), keys)


def _on_each(function: Any, *arrays: Value) -> Any:
    """The function of each element."""
    for _ in range(arrays[0].aval.ndim):
        function = vmap(function)
    return function(*arrays)


@primitive("threefry2x32", multiple_results=True)
def _threefry2x32(k1: Value, k2: Value, x1: Value, x2: Value) -> list[Any]:
    """The cipher: two words of a key, two of the plaintext."""
    cipher = import_module("..random.threefry", __package__).threefry_2x32
    return list(cipher((k1, k2), x1, x2))


@primitive("conj")
def _conj(x: Value, *, input_dtype: Any = None) -> Any:
    if x.aval.dtype.kind != "c":
        x = ops.make_complex(x, ops.full_like(x, 0))
    return _lax().conj(x)


Params = dict[str, Any]


def linalg_params(name: str, params: Params) -> Params | None:
    """JAX's parameters for a use of the library's primitive `name`; None: JAX has no such primitive."""
    rule = _PARAMS.get(name)
    return None if rule is None else rule(params)


def _eigh_params(params: Params) -> Params | None:
    if not params["vectors"]:
        return None
    return {"algorithm": None, "lower": params["lower"], "sort_eigenvalues": True, "subset_by_index": None}


def _eig_params(params: Params) -> Params:
    sides = {"compute_left_eigenvectors": params["left"], "compute_right_eigenvectors": params["right"]}
    return {**sides, "enable_eigvec_derivs": params["vectors_move"], "implementation": None}


def _svd_params(params: Params) -> Params:
    algorithm = None if params["routine"] == "gesdd" else _linalg().SvdAlgorithm.QR
    kept = {k: params[k] for k in ("compute_uv", "full_matrices")}
    return {"algorithm": algorithm, **kept, "subset_by_index": None}


_PARAMS: dict[str, Callable[[Params], Params | None]] = {
    "eig": _eig_params,
    "eigh": _eigh_params,
    **dict.fromkeys((
        "hessenberg", "householder_product", "lu", "lu_pivots_to_permutation", "ormqr", "tridiagonal",
        "tridiagonal_solve",
    ), dict),
    "qr": lambda params: {**params, "use_magma": None},
    "schur": lambda params: {
        "compute_schur_vectors": params["vectors"], "select_callable": None, "sort_eig_vals": False,
    },
    "svd": _svd_params,
}  # fmt: skip


def _linalg() -> Any:
    """The library is above this folder."""
    return import_module("..lax.linalg", __package__)


@primitive("eigh", multiple_results=True)
def _eigh(x: Value, *, lower: bool = True, algorithm: Any = None, **params: Any) -> Any:
    """One triangle is read."""
    return list(
        _linalg().eigh(x, lower=lower, symmetrize_input=False, implementation=algorithm, **params)
    )


@primitive("svd", multiple_results=True)
def _svd(x: Value, *, compute_uv: bool = True, **params: Any) -> list[Any]:
    """The singular values come first."""
    found = _linalg().svd(x, compute_uv=compute_uv, **params)
    return [found[1], found[0], found[2]] if compute_uv else [found]


@SHOWN.register(Opcode.OPT_BARRIER)
def _barrier(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    """Of a tuple: of its elements together."""
    if i.shape.is_tuple:
        return Shown("optimization_barrier", body.tuple_atoms(i.operands[0]), {})
    return Shown("optimization_barrier", operands, {})


@primitive("optimization_barrier", multiple_results=True)
def _bind_barrier(*values: Value) -> list[Value]:
    return [bind(Opcode.OPT_BARRIER, (v,)) for v in values]


def _fft_params(i: HloInstruction) -> Params:
    return {"fft_type": list(FftType).index(i.attributes.fft_type), "fft_lengths": i.attributes.fft_length}


@shows(Opcode.FFT, "fft", _fft_params)
def _fft(x: Value, *, fft_type: Any, fft_lengths: Sequence[int]) -> Value:
    kind = FftType(fft_type)
    return bind(Opcode.FFT, (x,), FftAttributes(kind, tuple(fft_lengths)))


@shows(Opcode.CHOLESKY, "cholesky", lambda i: {} if i.attributes.lower else {"lower": False})
def _cholesky(x: Value, *, lower: bool = True) -> Value:
    """JAX's primitive computes the lower triangle."""
    return bind(Opcode.CHOLESKY, (x,), CholeskyAttributes(lower))


def _triangular_params(i: HloInstruction) -> Params:
    a = i.attributes
    params = {"left_side": a.left_side, "lower": a.lower, "unit_diagonal": a.unit_diagonal}
    params["transpose_a"] = a.transpose_a is not TransposeKind.NO_TRANSPOSE
    params["conjugate_a"] = a.transpose_a is TransposeKind.ADJOINT
    return params


@shows(Opcode.TRIANGULAR_SOLVE, "triangular_solve", _triangular_params)
def _triangular_solve(
    a: Value, b: Value, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool
) -> Value:
    kind = TransposeKind.TRANSPOSE if transpose_a else TransposeKind.NO_TRANSPOSE
    if conjugate_a and transpose_a:
        kind = TransposeKind.ADJOINT
    elif conjugate_a and a.aval.dtype.kind == "c":
        a = ops.conjugate(a)
    attributes = TriangularSolveAttributes(left_side, lower, unit_diagonal, kind)
    return bind(Opcode.TRIANGULAR_SOLVE, (a, b), attributes)


# ---- random


@SHOWN.register(Opcode.RNG_BIT_GENERATOR)
def _bits(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    bits = i.shape.elements[1]
    params = {"shape": bits.dimensions, "dtype": bits.element.dtype, "algorithm": i.attributes.algorithm.value}
    return Shown("rng_bit_generator", operands, {**params, "out_sharding": None})


@primitive("rng_bit_generator", multiple_results=True)
def _bind_bits(
    state: Value, *, shape: Sequence[int], dtype: Any, algorithm: Any = "rng_default", out_sharding: None = None
) -> list[Value]:
    bits = ops.array_shape(dtypes.requested_dtype(dtype, "random bits"), tuple(shape))
    attributes = RngBitGeneratorAttributes(RandomAlgorithm(getattr(algorithm, "value", algorithm)))
    declared = Shape.tuple([state.aval.hlo, bits])
    return bind_multi(Opcode.RNG_BIT_GENERATOR, (state,), attributes, shape=declared)


@SHOWN.register(Opcode.RNG)
def _rng(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    if i.attributes.distribution is not RandomDistribution.UNIFORM:
        return as_hlo(i, operands, body)
    return Shown("rng_uniform", operands, {"shape": i.shape.dimensions})


@primitive("rng_uniform")
def _bind_uniform(low: Value, high: Value, *, shape: Sequence[int]) -> Value:
    declared = ops.array_shape(low.aval.dtype, tuple(shape))
    return bind(Opcode.RNG, (low, high), RngAttributes(RandomDistribution.UNIFORM), shape=declared)


define_as_hlo(Opcode.RNG)
_O = Opcode
show_as_hlo(_O.RNG_GET_AND_UPDATE_STATE, _O.BATCH_NORM_GRAD, _O.BATCH_NORM_INFERENCE, _O.BATCH_NORM_TRAINING)
show_as_hlo(_O.CUSTOM_CALL, _O.DYNAMIC_RESHAPE, _O.GET_DIMENSION_SIZE, _O.SET_DIMENSION_SIZE, _O.SCAN)
show_as_hlo(_O.ALL_GATHER, _O.ALL_REDUCE, _O.ALL_TO_ALL, _O.COLLECTIVE_BROADCAST, _O.COLLECTIVE_PERMUTE)
show_as_hlo(_O.PARTITION_ID, _O.RAGGED_ALL_TO_ALL, _O.REDUCE_SCATTER, _O.REPLICA_ID)
SHOWN.unsupported(
    (
        *(_O.ADD_DEPENDENCY, _O.AFTER_ALL, _O.INFEED, _O.OUTFEED, _O.RECV, _O.RECV_DONE, _O.SEND, _O.SEND_DONE),
        *(_O.ASYNC_DONE, _O.ASYNC_START, _O.ASYNC_UPDATE, _O.COPY_DONE, _O.COPY_START, _O.DOMAIN, _O.FUSION),
        *(_O.ALL_GATHER_DONE, _O.ALL_GATHER_START, _O.ALL_REDUCE_DONE, _O.ALL_REDUCE_START),
        *(_O.COLLECTIVE_PERMUTE_DONE, _O.COLLECTIVE_PERMUTE_START),
    ),
    "no traced function has it: tokens, queues, and what passes make of ops",
)
SHOWN.unsupported(
    (_O.CONSTANT, _O.GET_TUPLE_ELEMENT, _O.PARAMETER, _O.TUPLE), "it is no equation: a jaxpr has atoms for it"
)
