"""equinox: modules, filtered transformations, layers, errors at run time, loops with checkpoints."""

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np

keys = jax.random.split(jax.random.key(0), 8)
mlp = eqx.nn.MLP(3, 2, 8, 2, key=keys[0])
x, y = jnp.ones((5, 3)), jnp.zeros((5, 2))


@eqx.filter_jit
@eqx.filter_value_and_grad
def loss(model, x, y):
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)


before, gradient = loss(mlp, x, y)
better = eqx.apply_updates(mlp, jax.tree.map(lambda g: -0.1 * g, gradient))
assert loss(better, x, y)[0] < before
other = eqx.tree_at(lambda m: m.layers[0].bias, mlp, jnp.zeros(8))
assert eqx.tree_equal(other.layers[1], mlp.layers[1]) and not eqx.tree_equal(other, better)

assert eqx.filter_jit(eqx.nn.GRUCell(3, 4, key=keys[1]))(jnp.ones(3), jnp.zeros(4)).shape == (4,)
assert eqx.nn.Conv2d(1, 3, 3, key=keys[2])(jnp.ones((1, 8, 8))).shape == (3, 6, 6)
assert eqx.nn.MultiheadAttention(2, 4, key=keys[3])(*[jnp.ones((5, 4))] * 3).shape == (5, 4)
np.testing.assert_allclose(eqx.nn.LayerNorm(4)(jnp.arange(4.0)).sum(), 0, atol=1e-6)
norm = eqx.nn.BatchNorm(3, "batch", mode="ema")
normed, _ = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(
    jnp.arange(12.0).reshape(4, 3), eqx.nn.State(norm)
)
np.testing.assert_allclose(normed[:, 0], [-1.34164, -0.447213, 0.447213, 1.34164], rtol=1e-4)


@eqx.filter_jit
def root(x):
    return jnp.sqrt(eqx.error_if(x, x < 0, "a root of a negative number"))


assert root(jnp.array(4.0)) == 2
try:
    root(jnp.array(-1.0))
    raise AssertionError("no error")
except Exception as error:
    assert "a root of a negative number" in str(error), error


def squared(kind, y):
    return eqxi.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] ** 2), (0, y), max_steps=16, kind=kind)[1]


for kind in ("checkpointed", "bounded"):
    np.testing.assert_allclose(jax.grad(lambda y, kind=kind: squared(kind, y))(1.1), 32 * 1.1**31, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.grad(lambda y, kind=kind: squared(kind, y)))(1.1), 32 * 1.1**31, rtol=1e-5)
