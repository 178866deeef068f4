"""Convolution. Names and the meaning of arguments follow jax.lax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from ..autodiff.placed_results import computed_in
from ..hlo.element_type import element_type_of
from ..hlo.opcode import Opcode
from ..hlo.ops.convolution import ConvolutionAttributes
from ..hlo.shape import Shape
from ..hlo.window import ConvolutionDimensionNumbers, dilated, places
from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.core import Value, bind
from ..tracer.errors import OperandError
from .dot import dot_general
from .movement import canonical_shape, rev, transpose
from .precision import DotAlgorithm, PrecisionLike, operand_precision
from .window import Padding, window_of


class ConvDimensionNumbers(NamedTuple):
    """The roles of dimensions: (batch, feature, spatial...) of input and result, (output feature, input feature,
    spatial...) of the kernel.

    >>> lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 16), ("NHWC", "HWIO", "NHWC"))
    ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvGeneralDilatedDimensionNumbers: TypeAlias = "ConvDimensionNumbers | tuple[str, str, str] | None"


_CHARACTERS = (("N", "C"), ("O", "I"), ("N", "C"))


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The dimensions that three strings such as ("NHWC", "HWIO", "NHWC") name: see `ConvDimensionNumbers`.

    Spatial dimensions are in the order of the kernel's string.

    >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    kernel = dimension_numbers[1]
    found = []
    for k, (spec, (first, second)) in enumerate(zip(dimension_numbers, _CHARACTERS, strict=True)):
        if spec.count(first) != 1 or spec.count(second) != 1:
            raise TypeError(
                f"convolution dimension_numbers[{k}] must contain the characters '{first}' and '{second}' exactly "
                f"once, got {spec}"
            )
        if len(set(spec)) != len(spec):
            raise TypeError(f"convolution dimension_numbers[{k}] cannot have duplicate characters, got {spec}")
        spatial = [c for c in kernel if c not in "OI"]
        if set(spatial) != set(spec) - {first, second}:
            raise TypeError(
                "convolution dimension_numbers elements must each have the same set of spatial characters, got "
                f"{tuple(dimension_numbers)}"
            )
        found.append((spec.index(first), spec.index(second), *(spec.index(c) for c in spatial)))
    return tuple(found)


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """`dimension_numbers` as numbers: three strings, or None for ("NCHW", "OIHW", "NCHW").

    >>> lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 16), ("NHWC", "HWIO", "NHWC"))
    ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    rank = len(lhs_shape)
    if rank != len(rhs_shape):
        raise TypeError(f"convolution requires lhs and rhs ndim to be equal, got {rank} and {len(rhs_shape)}")
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(rank))] * 3)
    if not isinstance(dimension_numbers, list | tuple):
        raise TypeError(
            f"convolution dimension_numbers must be tuple/list or None, got {type(dimension_numbers).__name__}"
        )
    if len(dimension_numbers) != 3 or not all(isinstance(spec, str) for spec in dimension_numbers):
        raise TypeError(f"convolution dimension_numbers must be three strings, got {dimension_numbers!r}")
    for k, spec in enumerate(dimension_numbers):
        if len(spec) != rank:
            raise TypeError(
                f"convolution dimension_numbers[{k}] must have one character for each of {rank} dimensions, got {spec}"
            )
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Value:
    """The convolution of an input with a kernel (in fact a correlation: the kernel is not reversed).

    padding: "VALID", "SAME", "SAME_LOWER", or (low, high) for each spatial dimension. `lhs_dilation` puts holes between
    the input's elements, `rhs_dilation` between the kernel's. Both have one dtype; the result has it too, or
    `preferred_element_type`, in which it is also summed.

    >>> image, kernel, layout = jnp.ones((1, 4, 4, 1)), jnp.ones((3, 3, 1, 1)), ("NHWC", "HWIO", "NHWC")
    >>> lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=layout)[0, :, :, 0]
    Array([[4., 6., 6., 4.],
           [6., 9., 9., 6.],
           [6., 9., 9., 6.],
           [4., 6., 6., 4.]], dtype=float32)
    """
    if out_sharding is not None:
        given = (window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count)
        more = (batch_group_count, precision, preferred_element_type)
        return computed_in(
            out_sharding, "conv_general_dilated", lambda: conv_general_dilated(lhs, rhs, *given, *more)
        )
    x, y = as_value(lhs), as_value(rhs)
    numbers = conv_dimension_numbers(x.aval.shape, y.aval.shape, dimension_numbers)
    if isinstance(padding, str) and lhs_dilation is not None and any(d != 1 for d in lhs_dilation):
        raise ValueError(
            "String padding is not implemented for transposed convolution using this op. Please either exactly "
            "specify the required padding or use conv_transpose."
        )
    if x.aval.ndim != y.aval.ndim or x.aval.ndim < 2 or any(len(spec) != x.aval.ndim for spec in numbers):
        raise OperandError(
            "conv_general_dilated lhs and rhs must have the same number of dimensions, a batch, a feature and n "
            f"spatial ones, but got {x.aval.str_short()} and {y.aval.str_short()} by {tuple(numbers)}",
            "convolution_c2",
        )
    if x.aval.dtype is not y.aval.dtype and preferred_element_type is None:
        raise OperandError(
            f"lax.conv_general_dilated requires arguments to have the same dtypes, got {x.aval.str_short()} and "
            f"{y.aval.str_short()}",
            "convolution_c9",
        )
    spatial = [x.aval.shape[d] for d in numbers.lhs_spec[2:]]
    kernel = [y.aval.shape[d] for d in numbers.rhs_spec[2:]]
    window = window_of("conv_general_dilated", spatial, kernel, window_strides, padding, lhs_dilation, rhs_dilation)
    attributes = ConvolutionAttributes(
        window, _hlo_numbers(numbers), int(feature_group_count), int(batch_group_count), operand_precision(precision)
    )
    if preferred_element_type is None:
        return bind(Opcode.CONVOLUTION, (x, y), attributes)
    element_type = element_type_of(dtypes.requested_dtype(preferred_element_type, "a convolution"))
    sizes = [0] * x.aval.ndim
    sizes[numbers.out_spec[0]] = x.aval.shape[numbers.lhs_spec[0]] // max(int(batch_group_count), 1)
    sizes[numbers.out_spec[1]] = y.aval.shape[numbers.rhs_spec[0]]
    for d, size, part in zip(numbers.out_spec[2:], spatial, window, strict=True):
        sizes[d] = places(size, part)
    return bind(Opcode.CONVOLUTION, (x, y), attributes, shape=Shape.array(element_type, sizes), weak_type=False)


def _hlo_numbers(numbers: ConvDimensionNumbers) -> ConvolutionDimensionNumbers:
    lhs, rhs, out = (tuple(spec) for spec in numbers)
    return ConvolutionDimensionNumbers(lhs[0], lhs[1], lhs[2:], rhs[1], rhs[0], rhs[2:], out[0], out[1], out[2:])


def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Value:
    """`conv_general_dilated` of an input (N, C, ...) with a kernel (O, I, ...), without dilation.

    Both have one dtype, integers or floating point, and n + 2 dimensions; the result is (N, O, ...).

    >>> x, kernel = jnp.arange(5.0).reshape(1, 1, 5), jnp.array([[[1.0, 0.0, -1.0]]])
    >>> lax.conv(x, kernel, (1,), "VALID")
    Array([[[-2., -2., -2.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Value:
    """`conv_general_dilated` of an input (N, C, ...) with a kernel (O, I, ...).

    >>> x, kernel = jnp.arange(5.0).reshape(1, 1, 5), jnp.array([[[1.0, -1.0]]])
    >>> lax.conv_with_general_padding(x, kernel, (1,), [(1, 0)], None, (2,))
    Array([[[-1., -2., -2., -2.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, None, 1, 1, precision, preferred_element_type
    )


_TRANSPOSE_NUMBERS = {2: "NC IO", 3: "NHC HIO", 4: "NHWC HWIO", 5: "NHWDC HWDIO"}


def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: Padding,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    transpose_kernel: bool = False,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Value:
    """A convolution with holes of `strides` between the input's elements: the transpose of a strided one.

    "SAME" and "VALID" are the padding of that strided convolution, and so are pairs with `use_consistent_padding`;
    pairs without it are the padding here. By default dimensions are (N, ..., C), (..., I, O). `transpose_kernel`
    reverses the kernel and exchanges its features, so that the result is the gradient of the strided convolution.

    >>> x, kernel = jnp.array([[[1.0], [2.0]]]), jnp.array([[[1.0]], [[10.0]]])
    >>> lax.conv_transpose(x, kernel, (2,), "VALID")[0, :, 0]
    Array([10.,  1., 20.,  2.], dtype=float32)
    """
    x, y = as_value(lhs), as_value(rhs)
    rank = x.aval.ndim
    if dimension_numbers is None:
        if rank not in _TRANSPOSE_NUMBERS:
            raise ValueError("No 4+ dimensional dimension_number defaults.")
        image, kernel = _TRANSPOSE_NUMBERS[rank].split()
        dimension_numbers = (image, kernel, image)
    numbers = conv_dimension_numbers(x.aval.shape, y.aval.shape, dimension_numbers)
    holes = [1] * (rank - 2) if rhs_dilation is None else list(rhs_dilation)
    pads: Padding = padding
    if use_consistent_padding or (isinstance(padding, str) and padding in ("SAME", "VALID")):
        given = [padding] * len(strides) if isinstance(padding, str) else list(padding)
        extents = [dilated(y.aval.shape[d], h) for d, h in zip(numbers.rhs_spec[2:], holes, strict=True)]
        pads = [_transposed_padding(e, s, p) for e, s, p in zip(extents, strides, given, strict=True)]
    if transpose_kernel:
        y = rev(y, tuple(numbers.rhs_spec[2:]))
        order = list(range(rank))
        first, second = numbers.rhs_spec[:2]
        order[first], order[second] = second, first
        y = transpose(y, order)
    ones = (1,) * (rank - 2)
    return conv_general_dilated(
        x, y, ones, pads, strides, holes, numbers, 1, 1, precision, preferred_element_type
    )  # fmt: skip


def _transposed_padding(extent: int, stride: int, padding: Any) -> tuple[int, int]:
    """The padding that gives the transpose of a convolution with `padding` the size of its input."""
    if padding == "SAME":
        total = extent + stride - 2
        low = extent - 1 if stride > extent - 1 else -(-total // 2)
    elif padding == "VALID":
        total = extent + stride - 2 + max(extent - stride, 0)
        low = extent - 1
    elif isinstance(padding, tuple):
        low, high = (extent - 1 - p for p in padding)
        total = low + high
    else:
        raise ValueError(f"Invalid padding mode: {padding}")
    return low, total - low


def conv_general_dilated_patches(
    lhs: Any,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Value:
    """The elements that a kernel of `filter_shape` reads at each of its positions: for each input feature its elements,
    row-major, as features of the result.

    >>> lax.conv_general_dilated_patches(jnp.array([[[1.0, 2.0, 3.0]]]), (2,), (1,), "VALID")
    Array([[[1., 2.],
            [2., 3.]]], dtype=float32)
    """
    x = as_value(lhs)
    filter_shape = canonical_shape(filter_shape)
    numbers = conv_dimension_numbers(x.aval.shape, (1, 1, *filter_shape), dimension_numbers)
    count, features = math.prod(filter_shape), x.aval.shape[numbers.lhs_spec[1]]
    each = np.tile(np.eye(count).reshape(count, 1, *filter_shape), (features, *[1] * (1 + len(filter_shape))))
    ones = np.moveaxis(each, (0, 1), tuple(numbers.rhs_spec[:2]))
    kernel = as_value(np.asarray(ones, x.aval.dtype))
    return conv_general_dilated(
        x, kernel, window_strides, padding, lhs_dilation, rhs_dilation, numbers, features, 1, precision,
        preferred_element_type,
    )  # fmt: skip


def conv_general_dilated_local(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Padding,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
) -> Value:
    """A convolution with a separate kernel at each position: rhs has the spatial sizes of the result, and the features
    of `conv_general_dilated_patches` as input features.

    >>> x, kernels = jnp.array([[[1.0, 2.0, 3.0]]]), jnp.array([[[1.0, 2.0], [10.0, 20.0]]])
    >>> lax.conv_general_dilated_local(x, kernels, (1,), "VALID", (2,))
    Array([[[21., 64.]]], dtype=float32)
    """
    x, y = as_value(lhs), as_value(rhs)
    of_x: PrecisionLike = precision
    if isinstance(precision, tuple) and not isinstance(precision, DotAlgorithm):
        of_x = precision[0]
    patches = conv_general_dilated_patches(
        x, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, of_x
    )
    numbers = conv_dimension_numbers(x.aval.shape, (1, 1, *canonical_shape(filter_shape)), dimension_numbers)
    out, kernel = numbers.out_spec, numbers.rhs_spec
    positions = sorted(zip(out[2:], kernel[2:], strict=True))
    batch = (tuple(p for p, _ in positions), tuple(k for _, k in positions))
    found = dot_general(patches, y, (((out[1],), (kernel[1],)), batch), precision)
    # The result has the positions in order, then the batch, then the features.
    order = [d for d in range(len(out)) if d not in out[:2]]
    places = [*order, out[0], out[1]]
    return transpose(found, [places.index(d) for d in range(len(out))])
