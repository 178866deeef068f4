from ...nn import (
    elu as elu, gelu as gelu, leaky_relu as leaky_relu, log_softmax as log_softmax, relu as relu, selu as selu,
    sigmoid as sigmoid, softmax as softmax, softplus as softplus, standardize as standardize,
)
from ...nn.initializers import glorot_normal as glorot_normal, normal as normal, ones as ones, zeros as zeros
from .layers import (
    AvgPool as AvgPool, BatchNorm as BatchNorm, Conv as Conv, Conv1DTranspose as Conv1DTranspose,
    ConvTranspose as ConvTranspose, Dense as Dense, Dropout as Dropout, elementwise as elementwise, Elu as Elu,
    Exp as Exp, FanInConcat as FanInConcat, FanInSum as FanInSum, FanOut as FanOut, Flatten as Flatten, Gelu as Gelu,
    GeneralConv as GeneralConv, GeneralConvTranspose as GeneralConvTranspose, glorot as glorot, Identity as Identity,
    LeakyRelu as LeakyRelu, LogSoftmax as LogSoftmax, logsoftmax as logsoftmax, MaxPool as MaxPool,
    parallel as parallel, randn as randn, Relu as Relu, Selu as Selu, serial as serial,
    shape_dependent as shape_dependent, Sigmoid as Sigmoid, Softmax as Softmax, Softplus as Softplus,
    SumPool as SumPool, Tanh as Tanh,
)
