"""`hloom.example_libraries.stax`: networks as layers that are put together."""

from ...namespaces import publish as _publish
from . import layers
from .layers import (
    AvgPool as AvgPool,
    BatchNorm as BatchNorm,
    Conv as Conv,
    Conv1DTranspose as Conv1DTranspose,
    ConvTranspose as ConvTranspose,
    Dense as Dense,
    Dropout as Dropout,
    Elu as Elu,
    Exp as Exp,
    FanInConcat as FanInConcat,
    FanInSum as FanInSum,
    FanOut as FanOut,
    Flatten as Flatten,
    Gelu as Gelu,
    GeneralConv as GeneralConv,
    GeneralConvTranspose as GeneralConvTranspose,
    Identity as Identity,
    LeakyRelu as LeakyRelu,
    LogSoftmax as LogSoftmax,
    MaxPool as MaxPool,
    Relu as Relu,
    Selu as Selu,
    Sigmoid as Sigmoid,
    Softmax as Softmax,
    Softplus as Softplus,
    SumPool as SumPool,
    Tanh as Tanh,
    elementwise as elementwise,
    elu as elu,
    gelu as gelu,
    glorot as glorot,
    glorot_normal as glorot_normal,
    leaky_relu as leaky_relu,
    log_softmax as log_softmax,
    logsoftmax as logsoftmax,
    normal as normal,
    ones as ones,
    parallel as parallel,
    randn as randn,
    relu as relu,
    selu as selu,
    serial as serial,
    shape_dependent as shape_dependent,
    sigmoid as sigmoid,
    softmax as softmax,
    softplus as softplus,
    standardize as standardize,
    zeros as zeros,
)

__all__: list[str] = []
__all__ += layers.__all__

del layers

_publish(__name__)
