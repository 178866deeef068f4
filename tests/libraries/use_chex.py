"""chex: assertions, dataclasses, variants without compilation, checks inside of compiled functions."""

import chex
import jax
import jax.numpy as jnp
import numpy as np


@chex.dataclass
class State:
    position: chex.Array
    speed: chex.Array


state = State(position=jnp.ones(3), speed=jnp.zeros(2))
moved = jax.jit(lambda s: jax.tree.map(lambda x: x + 1, s))(state)
np.testing.assert_array_equal(moved.position, [2, 2, 2])
chex.assert_shape(state.position, (3,))
chex.assert_trees_all_close(moved, moved)
chex.assert_trees_all_equal_shapes_and_dtypes(state, moved)
chex.assert_tree_all_finite(state)
chex.assert_numerical_grads(lambda x: jnp.sin(x).sum(), (jnp.ones(3),), order=1)


def fails(kind, call):
    try:
        call()
    except kind:
        return True
    return False


assert fails(AssertionError, lambda: chex.assert_shape(state.position, (4,)))
assert fails(AssertionError, lambda: chex.assert_type(state.position, int))


@jax.jit
@chex.assert_max_traces(n=1)
def once(x):
    return x + 1


once(1.0)
assert fails(AssertionError, lambda: once(jnp.ones(2)))


@chex.chexify
@jax.jit
def checked(x):
    chex.assert_tree_all_finite(x)
    return x


checked(jnp.ones(2))
checked.wait_checks()
assert fails(AssertionError, lambda: (checked(jnp.array([jnp.nan, 1.0])), checked.wait_checks()))
with chex.restrict_backends(allowed=["cpu"]):
    assert jax.jit(lambda x: x * 5.25)(2.0) == 10.5
with chex.restrict_backends(forbidden=["cpu"]):
    assert fails(RuntimeError, lambda: jax.jit(lambda x: x * 7.25)(2.0))
with chex.fake_jit():
    assert jax.jit(lambda x: x + 1)(1) == 2
