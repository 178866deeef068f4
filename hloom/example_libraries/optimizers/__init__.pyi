from .first_order import (
    adagrad as adagrad, adam as adam, adamax as adamax, clip_grads as clip_grads, constant as constant,
    exponential_decay as exponential_decay, inverse_time_decay as inverse_time_decay, JoinPoint as JoinPoint,
    l2_norm as l2_norm, make_schedule as make_schedule, momentum as momentum, nesterov as nesterov,
    Optimizer as Optimizer, optimizer as optimizer, OptimizerState as OptimizerState,
    pack_optimizer_state as pack_optimizer_state, piecewise_constant as piecewise_constant,
    polynomial_decay as polynomial_decay, rmsprop as rmsprop, rmsprop_momentum as rmsprop_momentum, sgd as sgd,
    sm3 as sm3, unpack_optimizer_state as unpack_optimizer_state,
)
