from . import (
    backend as backend, core as core, ifrt_programs as ifrt_programs, linear_util as linear_util, mlir as mlir,
    random as random, source_info_util as source_info_util,
)
from ..autodiff.tangents import Linear as Linear
from .primitive import Primitive as Primitive
