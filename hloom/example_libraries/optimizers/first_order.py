"""First-order optimizers. Names and meaning as in jax.example_libraries.optimizers.

    init, update, get_params = adam(1e-3)
    state = init(params)
    state = update(i, grad(loss)(get_params(state)), state)

An optimizer is three functions. They are written for one array, and `optimizer` makes them work on pytrees.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ... import numpy as jnp
from ... import tree
from ...tree_util import register_pytree_node

OptimizerState = namedtuple("OptimizerState", ["packed_state", "tree_def", "subtree_defs"])
OptimizerState.__doc__ = """The state of an optimizer: for each leaf of the parameters the leaves of its state, and the
structures of both. It is a pytree, whose leaves are those of `packed_state`.

>>> from hloom import numpy as jnp
>>> from hloom.example_libraries import optimizers
>>> optimizers.momentum(0.1, 0.9).init_fn({"w": jnp.array([1.0])}).packed_state
([Array([1.], dtype=float32), Array([0.], dtype=float32)],)
"""
register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda structures, children: OptimizerState(children[0], *structures),
)

Array = Any
Params = Any
State = Any
Updates = Params
InitFn = Callable[[Params], OptimizerState]
Step = int
UpdateFn = Callable[[Step, Updates, OptimizerState], OptimizerState]
ParamsFn = Callable[[OptimizerState], Params]
Schedule = Callable[[Step], Any]


class Optimizer(NamedTuple):
    """The functions of an optimizer.

    init_fn(params) -> state; update_fn(step, gradients, state) -> state; params_fn(state) -> params.

    >>> found = optimizers.sgd(0.25)
    >>> found.params_fn(found.update_fn(0, jnp.array([4.0]), found.init_fn(jnp.array([3.0]))))
    Array([2.], dtype=float32)
    """

    init_fn: InitFn
    update_fn: UpdateFn
    params_fn: ParamsFn


def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """A decorator: an optimizer of single arrays becomes one of pytrees.

    opt_maker: a function that returns (init, update, get_params): init(x) -> state of one array, a pytree;
      update(step, gradient, state) -> state of the same structure; get_params(state) -> x.

    >>> def halving():  # a rule for one array
    ...     return lambda x: x, lambda i, g, x: x - 0.5 * g, lambda x: x
    >>> init, update, get_params = optimizers.optimizer(halving)()
    >>> get_params(update(0, [jnp.array(2.0)], init([jnp.array(5.0)])))
    [Array(4., dtype=float32, weak_type=True)]
    """

    @functools.wraps(opt_maker)
    def make(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        @functools.wraps(init)
        def init_tree(params: Params) -> OptimizerState:
            leaves, outer = tree.flatten(params)
            return _packed([init(leaf) for leaf in leaves], outer)

        @functools.wraps(update)
        def update_tree(i: Step, grads: Updates, opt_state: OptimizerState) -> OptimizerState:
            leaves, outer = tree.flatten(grads)
            if outer != opt_state.tree_def:
                raise TypeError(
                    "optimizer update function was passed a gradient tree that did not match the parameter tree "
                    f"structure with which it was initialized: parameter tree {opt_state.tree_def} and grad tree "
                    f"{outer}."
                )
            found = _packed([update(i, g, s) for g, s in zip(leaves, _states(opt_state), strict=True)], outer)
            for before, after in zip(opt_state.subtree_defs, found.subtree_defs, strict=True):
                if before != after:
                    raise TypeError(
                        "optimizer update function produced an output structure that did not match its input "
                        f"structure: input {before} and output {after}."
                    )
            return found

        @functools.wraps(get_params)
        def params_tree(opt_state: OptimizerState) -> Params:
            return tree.unflatten(opt_state.tree_def, [get_params(s) for s in _states(opt_state)])

        return Optimizer(init_tree, update_tree, params_tree)

    return make


def _packed(states: list[State], outer: Any) -> OptimizerState:
    flat = [tree.flatten(state) for state in states]
    return OptimizerState(tuple([leaves for leaves, _ in flat]), outer, tuple([inner for _, inner in flat]))


def _states(state: OptimizerState) -> list[State]:
    """The state of each leaf of the parameters."""
    return [tree.unflatten(d, leaves) for d, leaves in zip(state.subtree_defs, state.packed_state, strict=True)]


def _first(state: State) -> Any:
    return state[0]


# ---- optimizers


@optimizer
def sgd(step_size: float | Schedule) -> Any:
    """Gradient descent: x - step_size g. `step_size` of each optimizer is a number, or a function of the step.

    >>> init, update, get_params = optimizers.sgd(0.1)
    >>> state = init(jnp.array([1.0, 2.0]))
    >>> state = update(0, jnp.array([0.5, -2.0]), state)
    >>> get_params(state).round(3)
    Array([0.95, 2.2 ], dtype=float32)
    """
    size = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - size(i) * g, lambda x: x


@optimizer
def momentum(step_size: float | Schedule, mass: float) -> Any:
    """Gradient descent with momentum: v = mass v + g, x - step_size v.

    >>> init, update, get_params = optimizers.momentum(0.1, mass=0.9)
    >>> state = init(jnp.array([1.0, 2.0]))
    >>> state = update(0, jnp.array([0.5, -2.0]), state)
    >>> get_params(state).round(3)
    Array([0.95, 2.2 ], dtype=float32)
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: State) -> State:
        x, v = state
        v = mass * v + g
        return x - size(i) * v, v

    return lambda x: (x, jnp.zeros_like(x)), update, _first


@optimizer
def nesterov(step_size: float | Schedule, mass: float) -> Any:
    """Gradient descent with Nesterov's momentum: v = mass v + g, x - step_size (mass v + g).

    >>> init, update, get_params = optimizers.nesterov(0.1, mass=0.9)
    >>> state = init(jnp.array([1.0, 2.0]))
    >>> state = update(0, jnp.array([0.5, -2.0]), state)
    >>> get_params(state).round(3)
    Array([0.905, 2.38 ], dtype=float32)
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: State) -> State:
        x, v = state
        v = mass * v + g
        return x - size(i) * (mass * v + g), v

    return lambda x: (x, jnp.zeros_like(x)), update, _first


@optimizer
def adagrad(step_size: float | Schedule, momentum: float = 0.9) -> Any:
    """Adagrad (Duchi, Hazan, Singer 2011) with momentum: g is divided by the root of the sum of all g^2 so far.

    >>> init, update, get_params = optimizers.adagrad(0.1)
    >>> state = init(jnp.array([1.0, 2.0]))
    >>> state = update(0, jnp.array([0.5, -2.0]), state)
    >>> get_params(state).round(3)
    Array([0.99, 2.01], dtype=float32)
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: State) -> State:
        x, total, m = state
        total = total + jnp.square(g)
        scale = jnp.where(total > 0, 1.0 / jnp.sqrt(total), 0.0)
        m = (1.0 - momentum) * (g * scale) + momentum * m
        return x - size(i) * m, total, m

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, _first


@optimizer
def rmsprop(step_size: float | Schedule, gamma: float = 0.9, eps: float = 1e-8) -> Any:
    """RMSProp: g is divided by the root of a running mean of g^2, which decays with `gamma`.

    >>> init, update, get_params = optimizers.rmsprop(0.1)
    >>> state = init(jnp.array([1.0, 2.0]))
    >>> state = update(0, jnp.array([0.5, -2.0]), state)
    >>> get_params(state).round(3)
    Array([0.684, 2.316], dtype=float32)
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: State) -> State:
        x, mean = state
        mean = mean * gamma + jnp.square(g) * (1.0 - gamma)
        return x - size(i) * g / jnp.sqrt(mean + eps), mean

    return lambda x: (x, jnp.zeros_like(x)), update, _first


@optimizer
def rmsprop_momentum(step_size: float | Schedule, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9) -> Any:
    """RMSProp with momentum.

    >>> init, update, get_params = optimizers.rmsprop_momentum(0.1)
    >>> state = init(jnp.array([1.0, 2.0]))
    >>> state = update(0, jnp.array([0.5, -2.0]), state)
    >>> get_params(state).round(3)
    Array([0.684, 2.316], dtype=float32)
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: State) -> State:
        x, mean, m = state
        mean = mean * gamma + jnp.square(g) * (1.0 - gamma)
        m = momentum * m + size(i) * g / jnp.sqrt(mean + eps)
        return x - m, mean, m

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, _first


@optimizer
def adam(step_size: float | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Adam (Kingma, Ba 2014): running means of g and g^2 without bias; x - step_size m / (sqrt(v) + eps).

    >>> init, update, get_params = optimizers.adam(0.1)
    >>> state = init(jnp.array([1.0, 2.0]))
    >>> state = update(0, jnp.array([0.5, -2.0]), state)
    >>> get_params(state).round(3)
    Array([0.9, 2.1], dtype=float32)
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: State) -> State:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.square(g) + b2 * v
        mean, square = m / _rest(m, b1, i), v / _rest(m, b2, i)
        return x - size(i) * mean / (jnp.sqrt(square) + eps), m, v

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, _first


@optimizer
def adamax(step_size: float | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """AdaMax (Kingma, Ba 2014): Adam with a running maximum of |g| in place of the root of the mean of g^2.

    >>> init, update, get_params = optimizers.adamax(0.1)
    >>> state = init(jnp.array([1.0, 2.0]))
    >>> state = update(0, jnp.array([0.5, -2.0]), state)
    >>> get_params(state).round(3)
    Array([0.9, 2.1], dtype=float32)
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: State) -> State:
        x, m, u = state
        m = (1 - b1) * g + b1 * m
        u = jnp.maximum(b2 * u, jnp.abs(g))
        return x - (size(i) / _rest(m, b1, i)) * m / (u + eps), m, u

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, _first


def _rest(mean: Any, decay: float, i: Any) -> Any:
    """The sum of the weights of a running mean that began with zeros, after step i."""
    return 1 - jnp.asarray(decay, mean.dtype) ** (i + 1)


@optimizer
def sm3(step_size: float | Schedule, momentum: float = 0.9) -> Any:
    """SM3 (Anil, Gupta, Koren, Singer 2019): Adagrad that keeps one vector for each dimension instead of an array.

    >>> init, update, get_params = optimizers.sm3(0.1)
    >>> state = init(jnp.array([1.0, 2.0]))
    >>> state = update(0, jnp.array([0.5, -2.0]), state)
    >>> get_params(state).round(3)
    Array([0.99, 2.01], dtype=float32)
    """
    size = make_schedule(step_size)

    def init(x: Any) -> State:
        shape = x.shape
        x = jnp.atleast_1d(x)
        return x, jnp.zeros_like(x), [jnp.zeros(n, x.dtype) for n in x.shape], shape

    def update(i: Any, g: Any, state: State) -> State:
        x, m, along, shape = state
        rank = x.ndim
        spread = [v.reshape([-1 if k == d else 1 for k in range(rank)]) for d, v in enumerate(along)]
        total = functools.reduce(jnp.minimum, spread) + jnp.square(g)
        m = (1.0 - momentum) * (g * jnp.where(total > 0, 1.0 / jnp.sqrt(total), 0)) + momentum * m
        largest = [total.max(tuple([k for k in range(rank) if k != d])) for d in range(rank)]
        return x - size(i) * m, m, largest, shape

    def get_params(state: State) -> Any:
        return state[0].reshape(state[3])

    return init, update, get_params


# ---- sizes of steps


def constant(step_size: float) -> Schedule:
    """The same size in every step.

    >>> optimizers.constant(0.1)(1000)
    0.1
    """
    return lambda i: step_size


def exponential_decay(step_size: float, decay_steps: float, decay_rate: float) -> Schedule:
    """step_size decay_rate^(i / decay_steps).

    >>> size = optimizers.exponential_decay(1.0, decay_steps=10, decay_rate=0.5)
    >>> size(0), size(10), size(20)
    (1.0, 0.5, 0.25)
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: float, decay_steps: float, decay_rate: float, staircase: bool = False) -> Schedule:
    """step_size / (1 + decay_rate i / decay_steps); with `staircase` i / decay_steps is rounded down.

    >>> size = optimizers.inverse_time_decay(1.0, decay_steps=10, decay_rate=1.0)
    >>> size(0), size(10), size(30)
    (1.0, 0.5, 0.25)
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size: float, decay_steps: float, final_step_size: float, power: float = 1.0) -> Schedule:
    """From step_size to final_step_size, in `decay_steps` steps, along (1 - i / decay_steps)^power.

    >>> size = optimizers.polynomial_decay(1.0, decay_steps=10, final_step_size=0.5)
    >>> [float(size(i)) for i in (0, 5, 20)]
    [1.0, 0.75, 0.5]
    """

    def schedule(step_num: Any) -> Any:
        part = jnp.minimum(step_num, decay_steps) / decay_steps
        return (1 - part) ** power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """values[k] in the steps after boundaries[k - 1], up to boundaries[k]. ValueError unless the lengths fit.

    >>> size = optimizers.piecewise_constant([100, 200], [1.0, 0.5, 0.25])
    >>> size(50), size(150), size(250)
    (Array(1., dtype=float32), Array(0.5, dtype=float32), Array(0.25, dtype=float32))
    """
    steps, sizes = jnp.array(boundaries), jnp.array(values)
    if steps.ndim != 1 or sizes.ndim != 1:
        raise ValueError("boundaries and values must be sequences")
    if steps.shape[0] != sizes.shape[0] - 1:
        raise ValueError("boundaries length must be one shorter than values length")
    return lambda i: sizes[jnp.sum(i > steps)]


def make_schedule(scalar_or_schedule: float | Schedule) -> Schedule:
    """A function of the step: the given one, or a constant one for a number. TypeError for anything else.

    >>> optimizers.make_schedule(0.1)(5), optimizers.make_schedule(lambda i: 1 / (i + 1))(3)
    (0.1, 0.25)
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(f"a step size is a number or a function, not a {type(scalar_or_schedule)}")


# ---- tools


def l2_norm(tree: Any) -> Any:
    """The root of the sum of the squares of all leaves.

    >>> optimizers.l2_norm({"w": jnp.array([3.0]), "b": jnp.array([4.0])})
    Array(5., dtype=float32)
    """
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in _leaves(tree)))


_leaves = tree.leaves


def clip_grads(grad_tree: Any, max_norm: float) -> Any:
    """The gradients, scaled so that their norm is at most `max_norm`.

    >>> optimizers.clip_grads([jnp.array([3.0]), jnp.array([4.0])], 2.5)
    [Array([1.5], dtype=float32), Array([2.], dtype=float32)]
    """
    norm = l2_norm(grad_tree)
    return tree.map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


class JoinPoint:
    """A leaf of a pytree that holds another pytree, `subtree`.

    >>> state = optimizers.sgd(0.1).init_fn(jnp.array([1.0]))
    >>> optimizers.unpack_optimizer_state(state).subtree
    Array([1.], dtype=float32)
    """

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree

    def __iter__(self) -> Iterator[Any]:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """The state as a pytree like the parameters, with a JoinPoint for each leaf: a form to be written to files.

    >>> state = optimizers.momentum(0.1, 0.9).init_fn({"w": jnp.array([1.0])})
    >>> optimizers.unpack_optimizer_state(state)["w"].subtree
    (Array([1.], dtype=float32), Array([0.], dtype=float32))
    """
    return tree.unflatten(opt_state.tree_def, [JoinPoint(state) for state in _states(opt_state)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The inverse of `unpack_optimizer_state`. TypeError for leaves that are not JoinPoints.

    >>> state = optimizers.momentum(0.1, 0.9).init_fn({"w": jnp.array([1.0])})
    >>> optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state)).packed_state
    ([Array([1.], dtype=float32), Array([0.], dtype=float32)],)
    """
    leaves, outer = tree.flatten(marked_pytree)
    for leaf in leaves:
        if not isinstance(leaf, JoinPoint):
            raise TypeError(f"each leaf must be a JoinPoint, not a {type(leaf).__name__}")
    return _packed([leaf.subtree for leaf in leaves], outer)
