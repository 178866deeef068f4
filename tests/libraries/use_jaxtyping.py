"""jaxtyping: annotations check shapes and dtypes of arrays and tracers; trees and keys."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PyTree, Scalar

x = jnp.ones((2, 3))
assert isinstance(x, Float[Array, "2 3"]) and isinstance(x, Float[jax.Array, "..."])
assert not isinstance(x, Float[Array, "2"]) and not isinstance(x, Int[Array, "2 3"])
assert isinstance(jnp.float32(1), Scalar) and isinstance(jax.random.key(0), Key[Array, ""])
assert isinstance({"a": x, "b": [x]}, PyTree[Float[Array, "2 3"]])
assert not isinstance({"a": x, "b": [1]}, PyTree[Float[Array, "2 3"]])


@jax.jit
def check(y):
    assert isinstance(y, Float[Array, "n 3"]) and not isinstance(y, Float[Array, "n 4"])
    return y.sum()


assert check(x) == 6
