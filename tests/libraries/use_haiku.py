"""haiku: transformed functions with parameters, state and random numbers; convolutions, recurrence, attention."""

import haiku as hk
import jax
import jax.numpy as jnp

key = jax.random.PRNGKey(0)


def network(x, is_training):
    x = hk.Conv2D(4, 3)(x)
    x = hk.BatchNorm(True, True, 0.9)(x, is_training)
    x = hk.Flatten()(hk.max_pool(jax.nn.relu(x), 2, 2, "SAME"))
    return hk.Linear(3)(hk.dropout(hk.next_rng_key(), 0.5, x))


images = jax.random.normal(key, (2, 8, 8, 1))
transformed = hk.transform_with_state(network)
params, state = transformed.init(key, images, True)
apply = jax.jit(transformed.apply, static_argnums=4)
out, new_state = apply(params, state, key, images, True)
assert out.shape == (2, 3) and jax.tree.structure(new_state) == jax.tree.structure(state)


@jax.jit
def step(params, state, key):
    def loss(p):
        out, s = transformed.apply(p, state, key, images, True)
        return jnp.mean((out - 1) ** 2), s

    (value, state), gradient = jax.value_and_grad(loss, has_aux=True)(params)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, gradient), state, value


first = None
for _ in range(20):
    params, state, value = step(params, state, key)
    first = value if first is None else first
assert value < first


def unrolled(x):
    core = hk.LSTM(5)
    return hk.dynamic_unroll(core, x, core.initial_state(2))[0]


recurrent = hk.without_apply_rng(hk.transform(unrolled))
weights = recurrent.init(key, jnp.ones((7, 2, 3)))
assert jax.jit(recurrent.apply)(weights, jnp.ones((7, 2, 3))).shape == (7, 2, 5)
attention = hk.transform(lambda x: hk.MultiHeadAttention(2, 4, w_init_scale=1.0)(x, x, x))
weights = attention.init(key, jnp.ones((2, 5, 8)))
assert attention.apply(weights, key, jnp.ones((2, 5, 8))).shape == (2, 5, 8)
assert "sequential" in hk.experimental.tabulate(lambda x: hk.Sequential([hk.Linear(2), hk.Linear(3)])(x))(x=images[0])
