"""Layers, and their combinators. Names and meaning as in jax.example_libraries.stax.

    init, apply = serial(Dense(64), Relu, Dense(10), LogSoftmax)
    shape, params = init(random.key(0), (-1, 784))
    apply(params, images)

A layer is a pair (init_fun, apply_fun): init_fun(key, input shape) -> (output shape, params);
apply_fun(params, inputs, **kwargs) -> outputs, where `rng=` is the key of layers that are random.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from ... import lax, random
from ... import numpy as jnp
from ...hlo.support.records import dataclass
from ...nn import elu, gelu, leaky_relu, log_softmax, relu, selu, sigmoid, softmax, softplus, standardize
from ...nn.initializers import glorot_normal, normal, ones, zeros
from ...tracer.arguments import ShapeDtypeStruct
from ...tracer.jit import eval_shape

Shape = tuple[int, ...]
Layer = tuple[Callable[..., Any], Callable[..., Any]]

glorot = glorot_normal
randn = normal
logsoftmax = log_softmax


def Dense(out_dim: int, W_init: Any = glorot_normal(), b_init: Any = normal()) -> Layer:  # noqa: B008
    """x W + b, W: [in, out_dim].

    >>> init, apply = stax.Dense(10)
    >>> shape, (w, b) = init(random.key(0), (32, 4))
    >>> shape, w.shape, apply((w, b), jnp.ones((32, 4))).shape
    ((32, 10), (4, 10), (32, 10))
    """

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        first, second = random.split(rng)
        weights = W_init(first, (input_shape[-1], out_dim)), b_init(second, (out_dim,))
        return (*input_shape[:-1], out_dim), weights

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        w, b = params
        return jnp.dot(inputs, w) + b

    return init_fun, apply_fun


# ---- convolutions


def GeneralConv(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Shape,
    strides: Shape | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = normal(1e-6),  # noqa: B008
) -> Layer:
    """A convolution and a bias for each channel of the result.

    dimension_numbers: the layouts of the input, the filter and the output, such as ("NHWC", "HWIO", "NHWC").

    >>> init, apply = stax.GeneralConv(("NHWC", "HWIO", "NHWC"), 8, (3, 3), padding="SAME")
    >>> shape, (w, b) = init(random.key(0), (1, 28, 28, 1))
    >>> shape, w.shape
    ((1, 28, 28, 8), (3, 3, 1, 8))
    """

    def convolve(inputs: Any, w: Any, strides: Shape) -> Any:
        return lax.conv_general_dilated(inputs, w, strides, padding, dimension_numbers=dimension_numbers)

    return _convolution(convolve, dimension_numbers, out_chan, filter_shape, strides, W_init, b_init)


def GeneralConvTranspose(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Shape,
    strides: Shape | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = normal(1e-6),  # noqa: B008
) -> Layer:
    """As `GeneralConv`, with the transposed convolution `lax.conv_transpose`.

    >>> init, apply = stax.GeneralConvTranspose(("NHWC", "HWIO", "NHWC"), 8, (3, 3), strides=(2, 2), padding="SAME")
    >>> init(random.key(0), (1, 14, 14, 1))[0]
    (1, 28, 28, 8)
    """

    def convolve(inputs: Any, w: Any, strides: Shape) -> Any:
        return lax.conv_transpose(inputs, w, strides, padding, dimension_numbers=dimension_numbers)

    return _convolution(convolve, dimension_numbers, out_chan, filter_shape, strides, W_init, b_init)


def _convolution(
    convolve: Callable[..., Any],
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Shape,
    strides: Shape | None,
    w_init: Any,
    b_init: Any,
) -> Layer:
    inputs_as, filter_as, outputs_as = dimension_numbers
    strides = strides or (1,) * len(filter_shape)
    w_init = w_init or glorot_normal(filter_as.index("I"), filter_as.index("O"))

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        sizes = iter(filter_shape)
        channels = {"O": out_chan, "I": input_shape[inputs_as.index("C")]}
        kernel = tuple([channels[c] if c in channels else next(sizes) for c in filter_as])
        bias = tuple([out_chan if c == "C" else 1 for c in outputs_as])
        first, second = random.split(rng)

        def convolved(x: Any) -> Any:
            return convolve(x, jnp.zeros(kernel, x.dtype), strides)

        return _shape_of(convolved, input_shape, outputs_as.index("N")), (w_init(first, kernel), b_init(second, bias))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        w, b = params
        return convolve(inputs, w, strides) + b

    return init_fun, apply_fun


def _shape_of(fun: Callable[[Any], Any], input_shape: Shape, batch: int) -> Shape:
    """The shape of the result of `fun`. An unknown batch size, -1 in shapes, stays -1, at place `batch`."""
    known = tuple([1 if n == -1 else n for n in input_shape])
    found = list(eval_shape(fun, ShapeDtypeStruct(known, jnp.float32)).shape)
    if -1 in input_shape:
        found[batch] = -1
    return tuple(found)


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
Conv.__doc__ = """`GeneralConv` of images [batch, height, width, channels].

>>> from hloom import random
>>> from hloom.example_libraries import stax
>>> init, apply = stax.Conv(8, (3, 3), strides=(2, 2), padding="SAME")
>>> init(random.key(0), (1, 28, 28, 1))[0]
(1, 14, 14, 8)
"""
ConvTranspose.__doc__ = """`GeneralConvTranspose` of images [batch, height, width, channels].

>>> from hloom import random
>>> from hloom.example_libraries import stax
>>> init, apply = stax.ConvTranspose(8, (3, 3), strides=(2, 2), padding="SAME")
>>> init(random.key(0), (1, 14, 14, 1))[0]
(1, 28, 28, 8)
"""
Conv1DTranspose.__doc__ = """`GeneralConvTranspose` of sequences [batch, length, channels].

>>> from hloom import random
>>> from hloom.example_libraries import stax
>>> init, apply = stax.Conv1DTranspose(8, (3,), strides=(2,), padding="SAME")
>>> init(random.key(0), (1, 10, 1))[0]
(1, 20, 8)
"""


# ---- normalization, element-wise layers


def BatchNorm(
    axis: Any = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Any = zeros,
    gamma_init: Any = ones,
) -> Layer:
    """Mean 0 and variance 1 along the axes, then gamma x + beta: beta if `center`, gamma if `scale`.

    >>> init, apply = stax.BatchNorm(axis=0)
    >>> shape, params = init(random.key(0), (3, 1))
    >>> apply(params, jnp.array([[1.0], [2.0], [3.0]])).round(2)
    Array([[-1.22],
           [ 0.  ],
           [ 1.22]], dtype=float32)
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        shape = tuple([n for d, n in enumerate(input_shape) if d not in axes])
        first, second = random.split(rng)
        return input_shape, (beta_init(first, shape) if center else (), gamma_init(second, shape) if scale else ())

    def apply_fun(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        spread = tuple([None if d in axes else slice(None) for d in range(jnp.ndim(x))])
        z = standardize(x, axes, epsilon=epsilon)
        if scale:
            z = gamma[spread] * z
        return z + beta[spread] if center else z

    return init_fun, apply_fun


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """A layer without parameters: fun(inputs, **fun_kwargs), which keeps the shape.

    >>> init, apply = stax.elementwise(jnp.square)
    >>> apply((), jnp.array([1.0, -3.0]))
    Array([1., 9.], dtype=float32)
    """
    return lambda rng, input_shape: (input_shape, ()), lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs)


Tanh: Layer = elementwise(jnp.tanh)
Relu: Layer = elementwise(relu)
Exp: Layer = elementwise(jnp.exp)
LogSoftmax: Layer = elementwise(log_softmax, axis=-1)
Softmax: Layer = elementwise(softmax, axis=-1)
Softplus: Layer = elementwise(softplus)
Sigmoid: Layer = elementwise(sigmoid)
Elu: Layer = elementwise(elu)
LeakyRelu: Layer = elementwise(leaky_relu)
Selu: Layer = elementwise(selu)
Gelu: Layer = elementwise(gelu)


# ---- pooling


@dataclass(frozen=True, slots=True)
class _Pooling:
    """The reduction that a layer applies to each window."""

    reducer: Any
    initial: float
    is_mean: bool = False

    def __call__(self, window_shape: Shape, strides: Shape | None, padding: Any, spec: str | None) -> Layer:
        reducer, initial, is_mean = self.reducer, self.initial, self.is_mean
        strides = strides or (1,) * len(window_shape)
        apart = (0, len(window_shape) + 1) if spec is None else (spec.index("N"), spec.index("C"))
        window, steps = list(window_shape), list(strides)
        for place in sorted(apart):
            window.insert(place, 1)
            steps.insert(place, 1)

        def pooled(x: Any) -> Any:
            return lax.reduce_window(x, initial, reducer, tuple(window), tuple(steps), padding)

        def init_fun(rng: Any, input_shape: Shape) -> Any:
            return _shape_of(pooled, input_shape, apart[0]), ()

        def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
            found = pooled(inputs)
            if not is_mean:
                return found
            alone = tuple([1 if d in apart else n for d, n in enumerate(inputs.shape)])
            return found / pooled(jnp.ones(alone, inputs.dtype))

        return init_fun, apply_fun


_max_pool = _Pooling(lax.max, -math.inf)
_sum_pool = _Pooling(lax.add, 0.0)
_avg_pool = _Pooling(lax.add, 0.0, is_mean=True)


def MaxPool(
    window_shape: Shape, strides: Shape | None = None, padding: Any = "VALID", spec: str | None = None
) -> Layer:
    """The maximum of each window.

    window_shape, strides: of the dimensions that are not batch or channels. spec: the dimensions' letters, such as
    "NHWC", which is the default's order.

    >>> init, apply = stax.MaxPool((2, 2), strides=(2, 2))
    >>> apply((), jnp.arange(16.0).reshape(1, 4, 4, 1))[0, :, :, 0]
    Array([[ 5.,  7.],
           [13., 15.]], dtype=float32)
    """
    return _max_pool(window_shape, strides, padding, spec)


def SumPool(
    window_shape: Shape, strides: Shape | None = None, padding: Any = "VALID", spec: str | None = None
) -> Layer:
    """The sum of each window; arguments as for `MaxPool`.

    >>> init, apply = stax.SumPool((2, 2), strides=(2, 2))
    >>> apply((), jnp.arange(16.0).reshape(1, 4, 4, 1))[0, :, :, 0]
    Array([[10., 18.],
           [42., 50.]], dtype=float32)
    """
    return _sum_pool(window_shape, strides, padding, spec)


def AvgPool(
    window_shape: Shape, strides: Shape | None = None, padding: Any = "VALID", spec: str | None = None
) -> Layer:
    """The mean of each window, over its elements inside of the array; arguments as of `MaxPool`.

    >>> init, apply = stax.AvgPool((2, 2), strides=(2, 2))
    >>> apply((), jnp.arange(16.0).reshape(1, 4, 4, 1))[0, :, :, 0]
    Array([[ 2.5,  4.5],
           [10.5, 12.5]], dtype=float32)
    """
    return _avg_pool(window_shape, strides, padding, spec)


# ---- structure

Flatten: Layer = (
    lambda rng, input_shape: ((input_shape[0], math.prod(input_shape[1:])), ()),
    lambda params, inputs, **kwargs: jnp.reshape(inputs, (inputs.shape[0], -1)),
)
"""All dimensions but the first as one."""
Identity: Layer = (lambda rng, input_shape: (input_shape, ()), lambda params, inputs, **kwargs: inputs)
FanInSum: Layer = (lambda rng, input_shape: (input_shape[0], ()), lambda params, inputs, **kwargs: sum(inputs))
"""The sum of a list of inputs."""


def FanOut(num: int) -> Layer:
    """The input `num` times, as a list.

    >>> init, apply = stax.FanOut(2)
    >>> apply((), jnp.array([1.0]))
    [Array([1.], dtype=float32), Array([1.], dtype=float32)]
    """
    return lambda rng, input_shape: ([input_shape] * num, ()), lambda params, inputs, **kwargs: [inputs] * num


def FanInConcat(axis: int = -1) -> Layer:
    """A list of inputs, concatenated along `axis`.

    >>> init, apply = stax.FanInConcat()
    >>> apply([()], [jnp.array([1.0]), jnp.array([2.0, 3.0])])
    Array([1., 2., 3.], dtype=float32)
    """

    def init_fun(rng: Any, input_shape: Sequence[Shape]) -> Any:
        first = list(input_shape[0])
        first[axis] = sum(shape[axis] for shape in input_shape)
        return tuple(first), ()

    return init_fun, lambda params, inputs, **kwargs: jnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Keeps each element with probability `rate`, divided by it, and sets others to 0; in other modes than "train" the
    identity. `apply_fun` takes a key, `rng=`.

    >>> init, apply = stax.Dropout(0.5)
    >>> apply((), jnp.ones(6), rng=random.key(0))
    Array([0., 0., 2., 2., 0., 2.], dtype=float32)
    """

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout layer requires apply_fun to be called with a PRNG key argument\n  apply_fun(params, inputs, "
                "rng=key), with a key such as hloom.random.key(0)"
            )
        if mode != "train":
            return inputs
        return jnp.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return lambda rng, input_shape: (input_shape, ()), apply_fun


# ---- layers of layers


def serial(*layers: Layer) -> Layer:
    """The layers one after another.

    >>> init, apply = stax.serial(stax.Dense(16), stax.Relu, stax.Dense(1))
    >>> shape, params = init(random.key(0), (8, 3))
    >>> shape, apply(params, jnp.ones((8, 3))).shape
    ((8, 1), (8, 1))
    """
    inits, applies = [init for init, _ in layers], [apply for _, apply in layers]

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        params = []
        for init in inits:
            rng, key = random.split(rng)
            input_shape, found = init(key, input_shape)
            params.append(found)
        return input_shape, params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        for apply, own, key in zip(applies, params, _keys(kwargs.pop("rng", None), len(layers))):
            inputs = apply(own, inputs, rng=key, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """The layers beside one another: a list of inputs to a list of outputs.

    >>> init, apply = stax.parallel(stax.Dense(2), stax.Identity)
    >>> shapes, params = init(random.key(0), [(1, 4), (1, 5)])
    >>> shapes
    [(1, 2), (1, 5)]
    """
    inits, applies = [init for init, _ in layers], [apply for _, apply in layers]

    def init_fun(rng: Any, input_shape: Sequence[Shape]) -> Any:
        found = [i(k, shape) for i, k, shape in zip(inits, _keys(rng, len(layers)), input_shape)]
        return [shape for shape, _ in found], [params for _, params in found]

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        return [f(own, x, rng=k, **kwargs) for f, own, x, k in zip(applies, params, inputs, keys)]

    return init_fun, apply_fun


def _keys(rng: Any, count: int) -> Any:
    return [None] * count if rng is None else random.split(rng, count)


def shape_dependent(make_layer: Callable[[Shape], Layer]) -> Layer:
    """The layer that make_layer(input shape) returns, made when that shape is known.

    >>> init, apply = stax.shape_dependent(lambda shape: stax.Dense(2 * shape[-1]))
    >>> init(random.key(0), (1, 5))[0]
    (1, 10)
    """
    return (
        lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape),
        lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](params, inputs, **kwargs),
    )
