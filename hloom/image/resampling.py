"""Images in other sizes: each dimension is multiplied by a matrix of weights. `hloom.image` offers these functions.

Sources: jax.image for names and meaning; Keys, "Cubic convolution interpolation for digital image processing" (1981);
Duchon, "Lanczos filtering in one and two dimensions" (1979).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..hlo.sizes import is_symbolic
from ..hlo.support.records import dataclass
from ..lax.movement import canonical_axis, canonical_shape
from ..lax.precision import Precision
from ..numpy.promotion import check_arraylike, promote_dtypes_inexact
from ..tracer import dtypes
from ..tracer.arrays.array import array_from_scalar, as_value, rank_of, shape_of
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError


class ResizeMethod(enum.Enum):
    """How values between pixels are computed.

    >>> image.resize(jnp.array([0.0, 1.0]), (4,), image.ResizeMethod.NEAREST)
    Array([0., 0., 1., 1.], dtype=float32)
    """

    NEAREST = 0
    """The nearest pixel's."""
    LINEAR = 1
    """Linearly from the two neighbours along each dimension."""
    LANCZOS3 = 2
    """By Lanczos's kernel of radius 3."""
    LANCZOS5 = 3
    """By Lanczos's kernel of radius 5."""
    CUBIC = 4
    """By the cubic kernel of Keys."""
    CUBIC_PYTORCH = 5
    """By the cubic kernel of OpenCV and PyTorch; pixels outside of the image are those at its edge."""
    AREA = 6
    """The mean over the area that a pixel of the result covers."""

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of a name such as "bilinear" or "cubic". ValueError for others."""
        if s not in _NAMES:
            raise ValueError(f"Unknown resize method {s!r}; use one of {', '.join(_NAMES)}")
        return _NAMES[s]


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}


def resize(
    image: Any,
    shape: Any,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = Precision.HIGHEST,
) -> Value:
    """The image, an array of any number of dimensions, in another shape.

    Args:
      shape: as many sizes as the image has dimensions; equal ones stay as they are.
      method: a ResizeMethod, or a name such as "bilinear".
      antialias: where the image shrinks, widen the kernel, so that every pixel counts.

    >>> picture = jnp.array([[0.0, 4.0], [8.0, 12.0]])
    >>> image.resize(picture, (2, 4), "bilinear")
    Array([[ 0.,  1.,  3.,  4.],
           [ 8.,  9., 11., 12.]], dtype=float32)
    >>> image.resize(picture, (1, 1), "linear")
    Array([[6.]], dtype=float32)
    """
    check_arraylike("resize", image)
    return _resized(image, canonical_shape(shape), _method(method), bool(antialias), precision)


@compound(static=("shape", "method", "antialias", "precision"))
def _resized(image: Any, shape: tuple[int, ...], method: ResizeMethod, antialias: bool, precision: Any) -> Value:
    value = as_value(image)
    _require_rank("resize", value, shape)
    if method is ResizeMethod.NEAREST:
        return _nearest(value, shape)
    (value,) = promote_dtypes_inexact(value)
    old = value.aval.shape
    changed = [d for d, size in enumerate(shape) if size != old[d]]
    scales = [shape[d] / old[d] if shape[d] else 1.0 for d in changed]
    return _transformed(value, shape, changed, scales, [0.0] * len(changed), method, antialias, precision)


def scale_and_translate(
    image: Any,
    shape: Any,
    spatial_dims: Sequence[int],
    scale: Any,
    translation: Any,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = Precision.HIGHEST,
) -> Value:
    """The image scaled and then moved along some of its dimensions; where nothing of it comes to lie the result is 0.

    A point x of the image comes to ``x * scale + translation``; pixel i reaches from i to i + 1.

    Args:
      shape: the result's shape; dimensions that are not scaled equal the image's.
      spatial_dims: the dimensions along which it is scaled.
      scale, translation: vectors, with an element for each of these dimensions.
      method, antialias: see `resize`. NEAREST is refused (ValueError).

    >>> x = jnp.array([1.0, 2.0, 3.0, 4.0])
    >>> image.scale_and_translate(x, (4,), (0,), jnp.array([1.0]), jnp.array([1.0]), "linear")
    Array([0., 1., 2., 3.], dtype=float32)
    """
    check_arraylike("scale_and_translate", image, scale, translation)
    found = _method(method)
    if found is ResizeMethod.NEAREST:
        raise ValueError("scale_and_translate: NEAREST is not supported\n  Use resize.")
    sizes, dims = canonical_shape(shape), tuple([canonical_axis(d, rank_of(image)) for d in spatial_dims])
    if found is ResizeMethod.CUBIC_PYTORCH and not antialias:
        return _moved(image, scale, translation, sizes, dims, found, False, precision)
    kernel = ResizeMethod.CUBIC if found is ResizeMethod.CUBIC_PYTORCH else found
    return _moved(image, scale, translation, sizes, dims, kernel, bool(antialias), precision)


@compound(static=("shape", "dims", "method", "antialias", "precision"))
def _moved(
    image: Any,
    scale: Any,
    translation: Any,
    shape: tuple[int, ...],
    dims: tuple[int, ...],
    method: ResizeMethod,
    antialias: bool,
    precision: Any,
) -> Value:
    value = as_value(image)
    _require_rank("scale_and_translate", value, shape)
    if shape_of(scale) != (len(dims),) or shape_of(translation) != (len(dims),):
        raise OperandError(
            f"scale_and_translate: scale {shape_of(scale)} and translation {shape_of(translation)} must have an "
            f"element for each of {len(dims)} spatial_dims",
            "scale_and_translate",
        )
    (value,) = promote_dtypes_inexact(value)
    scales, moves = promote_dtypes_inexact(scale, translation)
    by_dimension: list[list[Any]] = [[v[k] for k in range(len(dims))] for v in (scales, moves)]
    return _transformed(value, shape, dims, by_dimension[0], by_dimension[1], method, antialias, precision)


def _method(method: str | ResizeMethod) -> ResizeMethod:
    return ResizeMethod.from_string(method) if isinstance(method, str) else ResizeMethod(method)


def _require_rank(name: str, image: Value, shape: tuple[int, ...]) -> None:
    if len(shape) != image.aval.ndim:
        raise OperandError(
            f"{name}: shape must have length equal to the number of dimensions of the image; {shape} vs "
            f"{image.aval.shape}",
            name,
        )


_F32 = np.dtype(np.float32)


def _nearest(image: Value, shape: tuple[int, ...]) -> Value:
    result: Any = image
    for d, (old, new) in enumerate(zip(image.aval.shape, shape, strict=True)):
        if old != new:
            known = not (is_symbolic(old) or is_symbolic(new))
            sizes: Any = [np.float32(n) if known else array_from_scalar(n, _F32) for n in (old, new)]
            count: Any = np if known else jnp
            centers = (count.arange(new, dtype=_F32) + _F32.type(0.5)) * sizes[0] / sizes[1]
            result = result[(slice(None),) * d + (jnp.asarray(count.floor(centers).astype(np.int32)),)]
    return result  # type: ignore[no-any-return]


def _transformed(
    image: Value,
    shape: tuple[int, ...],
    dims: Sequence[int],
    scales: Sequence[Any],
    moves: Sequence[Any],
    method: ResizeMethod,
    antialias: bool,
    precision: Any,
) -> Value:
    """The product with a matrix of weights along each of `dims`."""
    if method is ResizeMethod.CUBIC_PYTORCH and antialias:
        method = ResizeMethod.CUBIC
    rank = len(shape)
    labels = list(range(rank))
    operands: list[Any] = []
    for k, d in enumerate(dims):
        weights = _weights(image.aval.shape[d], shape[d], scales[k], moves[k], method, antialias)
        operands += [lax.convert_element_type(weights, image.aval.dtype), [d, rank + k]]
        labels[d] = rank + k
    return jnp.einsum(image, list(range(rank)), *operands, labels, precision=precision) if dims else image


# ---- weights


@dataclass(frozen=True)
class _Kernel:
    function: Callable[[Any], Any]
    """The weight of a pixel at a distance, in pixels."""
    radius: int


def _weights(old: int, new: int, scale: Any, move: Any, method: ResizeMethod, antialias: bool) -> Any:
    """[old, new]: how much each pixel of the image counts for each of the result."""
    backwards = 1.0 / scale
    dtype = dtypes.default_float() if isinstance(scale, float) else as_value(scale).aval.dtype
    first: Any = jnp.arange(new, dtype=dtype)
    if method is ResizeMethod.AREA:
        start = first * backwards - move * backwards
        pixels: Any = jnp.arange(old, dtype=dtype)[:, None]
        shared = jnp.minimum((start + backwards)[None], pixels + 1) - jnp.maximum(start[None], pixels)
        weights: Any = jnp.maximum(0.0, shared)
        return _inside(_normalized(weights), (first + 0.5) * backwards - move * backwards - 0.5, old)
    kernel = _KERNELS[method]
    sample = (first + 0.5) * backwards - move * backwards - 0.5
    if method is ResizeMethod.CUBIC_PYTORCH:
        return _normalized(_at_edges(kernel, sample, old, new, dtype))
    widened = jnp.maximum(backwards, 1.0) if antialias else 1.0
    distance = jnp.abs(sample[None] - jnp.arange(old, dtype=dtype)[:, None]) / widened
    return _inside(_normalized(kernel.function(distance)), sample, old)


def _at_edges(kernel: _Kernel, sample: Any, old: int, new: int, dtype: Any) -> Any:
    """Weights of pixels; the pixels at the edges also stand for all beyond."""
    wide = np.arange(-kernel.radius, old + kernel.radius)
    weights = kernel.function(jnp.abs(sample[None] - jnp.asarray(wide.astype(dtype))[:, None]))
    rows = jnp.asarray(np.clip(wide, 0, old - 1).astype(np.int32))
    return jnp.zeros((old, new), dtype).at[rows].add(weights)


def _normalized(weights: Any) -> Any:
    """Weights that sum to 1 for each pixel of the result; 0 where no pixel counts."""
    total = jnp.sum(weights, axis=0, keepdims=True)
    is_some = jnp.abs(total) > 1000.0 * float(np.finfo(np.float32).eps)
    return jnp.where(is_some, weights / jnp.where(total != 0, total, 1), 0)


def _inside(weights: Any, sample: Any, old: int) -> Any:
    """0 for pixels of the result with their center outside of the image."""
    return jnp.where(((sample >= -0.5) & (sample <= old - 0.5))[None], weights, 0)


def _triangle(x: Any) -> Any:
    return jnp.maximum(0, 1 - jnp.abs(x))


def _lanczos(radius: float) -> _Kernel:
    def function(x: Any) -> Any:
        wave = radius * jnp.sin(math.pi * x) * jnp.sin(math.pi * x / radius)
        near = jnp.where(x > 1e-3, wave / jnp.where(x != 0, math.pi**2 * x**2, 1), 1)
        return jnp.where(x > radius, 0.0, near)

    return _Kernel(function, int(radius))


def _cubic(a: float) -> _Kernel:
    """The family of cubic kernels with the slope `a` at distance 1."""

    def function(x: Any) -> Any:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return jnp.where(x >= 2, 0.0, jnp.where(x >= 1, far, near))

    return _Kernel(function, 2)


_KERNELS = {
    ResizeMethod.LINEAR: _Kernel(_triangle, 1),
    ResizeMethod.LANCZOS3: _lanczos(3.0),
    ResizeMethod.LANCZOS5: _lanczos(5.0),
    ResizeMethod.CUBIC: _cubic(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _cubic(-0.75),
}
