"""`hloom.nn.initializers`: what the weights of a network start as. See `tracer/initializers`."""

from ..tracer.initializers import constant as constant
from ..tracer.initializers import glorot_normal as glorot_normal
from ..tracer.initializers import glorot_uniform as glorot_uniform
from ..tracer.initializers import he_normal as he_normal
from ..tracer.initializers import he_uniform as he_uniform
from ..tracer.initializers import lecun_normal as lecun_normal
from ..tracer.initializers import lecun_uniform as lecun_uniform
from ..tracer.initializers import normal as normal
from ..tracer.initializers import ones as ones
from ..tracer.initializers import truncated_normal as truncated_normal
from ..tracer.initializers import uniform as uniform
from ..tracer.initializers import variance_scaling as variance_scaling
from ..tracer.initializers import zeros as zeros
