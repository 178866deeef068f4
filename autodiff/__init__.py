"""Derivatives of traced programs: jvp by a trace, reverse mode by linearisation and transposition.

    rules/          each op's jvp and transpose; rules/tables has the tables in which they are registered
    jvp             JVPTrace: a tangent for each value
    linearize       LinearizeTrace: tangents recorded as a linear HLO program
    transpose       that program backwards
    remat           checkpoint
    custom          custom_jvp, custom_vjp
    api             grad, value_and_grad, jvp, vjp, linearize
    jacobian        jacfwd, jacrev, hessian

The modules here use `tracer` and know nothing of backends. The library (`hloom/`) is above them, so that its functions
can define their own derivatives. Rules are written with `tracer/ops.py`.
"""

from .api import grad, jvp, linearize, value_and_grad, vjp
from .custom import custom_jvp, custom_vjp, float0
from .jacobian import hessian, jacfwd, jacobian, jacrev
from .remat import checkpoint
from .rules import calls, control_flow, dot, elementwise, from_text, movement, random, reduce, scan, structure

__all__ = [
    "calls",
    "checkpoint",
    "control_flow",
    "custom_jvp",
    "custom_vjp",
    "dot",
    "elementwise",
    "float0",
    "from_text",
    "grad",
    "hessian",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "movement",
    "random",
    "reduce",
    "scan",
    "structure",
    "value_and_grad",
    "vjp",
]
