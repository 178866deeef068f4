"""Ops with one primitive each: Fourier transforms, factorisations, random bits, barriers. And all that JAX has no
primitive for, shown under HLO's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from ..tracer import dtypes, ops
from ..tracer.core import Value, bind, bind_multi
from .atoms import Atom
from .primitives import primitive
from .shown import SHOWN, Body, Shown, as_hlo, define_as_hlo, show_as_hlo


@SHOWN.register(Opcode.OPT_BARRIER)
def _barrier(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    """Of a tuple: of its elements together."""
    if i.shape.is_tuple:
        return Shown("optimization_barrier", body.tuple_atoms(i.operands[0]), {})
    return Shown("optimization_barrier", operands, {})


@primitive("optimization_barrier", multiple_results=True)
def _bind_barrier(*values: Value) -> list[Value]:
    return [bind(Opcode.OPT_BARRIER, (v,)) for v in values]


@SHOWN.register(Opcode.FFT)
def _fft(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    a = i.attributes
    return Shown("fft", operands, {"fft_type": list(FftType).index(a.fft_type), "fft_lengths": a.fft_length})


@primitive("fft")
def _bind_fft(x: Value, *, fft_type: Any, fft_lengths: Sequence[int]) -> Value:
    kind = list(FftType)[int(getattr(fft_type, "value", fft_type))]
    return bind(Opcode.FFT, (x,), FftAttributes(kind, tuple(fft_lengths)))


@SHOWN.register(Opcode.CHOLESKY)
def _cholesky(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    """JAX's primitive computes the lower triangle."""
    return Shown("cholesky", operands, {} if i.attributes.lower else {"lower": False})


@primitive("cholesky")
def _bind_cholesky(x: Value, *, lower: bool = True) -> Value:
    return bind(Opcode.CHOLESKY, (x,), CholeskyAttributes(lower))


@SHOWN.register(Opcode.TRIANGULAR_SOLVE)
def _triangular_solve(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    a = i.attributes
    params = {"left_side": a.left_side, "lower": a.lower, "unit_diagonal": a.unit_diagonal}
    params["transpose_a"] = a.transpose_a is not TransposeKind.NO_TRANSPOSE
    params["conjugate_a"] = a.transpose_a is TransposeKind.ADJOINT
    return Shown("triangular_solve", operands, params)


@primitive("triangular_solve")
def _bind_triangular_solve(
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
