from ..autodiff.jvp import JVPTrace as JVPTrace, JVPTracer as JVPTracer
from ..autodiff.tangents import add_tangents as add_tangents, instantiate as _instantiate, Zero as Zero
from ..extend.protocol import UndefinedPrimal as UndefinedPrimal
from .derivatives import (
    add_jaxvals as add_jaxvals, defbilinear as defbilinear, defjvp as defjvp, defjvp2 as defjvp2,
    deflinear as deflinear, deflinear2 as deflinear2, get_primitive_transpose as get_primitive_transpose,
    is_undefined_primal as is_undefined_primal, primitive_jvps as primitive_jvps,
    primitive_transposes as primitive_transposes, zeros_like_aval as zeros_like_aval,
)

instantiate_zeros = _instantiate
