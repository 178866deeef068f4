"""flax.linen: a network trained with dropout, convolution and batch statistics, recurrence, attention."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax


class Network(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.LayerNorm()(nn.relu(nn.Dense(32)(x)))
        return nn.Dense(1)(nn.Dropout(0.1, deterministic=False)(x))


network, x = Network(), jnp.linspace(-1, 1, 64)[:, None]
y = jnp.sin(3 * x)
parameters = network.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, x)
optimizer = optax.adam(1e-2)
state = optimizer.init(parameters)


@jax.jit
def step(parameters, state, key):
    def loss(parameters):
        return ((network.apply(parameters, x, rngs={"dropout": key}) - y) ** 2).mean()

    value, gradient = jax.value_and_grad(loss)(parameters)
    updates, state = optimizer.update(gradient, state, parameters)
    return optax.apply_updates(parameters, updates), state, value


losses = []
for k in range(200):
    parameters, state, value = step(parameters, state, jax.random.fold_in(jax.random.key(2), k))
    losses.append(float(value))
assert losses[-1] < 0.2 * losses[0], losses[::20]


class Images(nn.Module):
    @nn.compact
    def __call__(self, x, train=True):
        x = nn.BatchNorm(use_running_average=not train)(nn.Conv(8, (3, 3))(x))
        x = nn.max_pool(nn.relu(x), (2, 2), strides=(2, 2))
        return nn.Dense(10)(x.reshape(x.shape[0], -1))


images, pictures = Images(), jax.random.normal(jax.random.key(0), (2, 8, 8, 1))
variables = images.init(jax.random.key(0), pictures)
scores, changed = images.apply(variables, pictures, mutable=["batch_stats"])
assert scores.shape == (2, 10)
means = jax.tree.leaves(changed["batch_stats"])
assert any(bool((mean != 0).any()) for mean in means)

recurrent = nn.RNN(nn.LSTMCell(8))
sequence = jnp.ones((2, 5, 3))
found, _ = recurrent.init_with_output(jax.random.key(0), sequence)
assert found.shape == (2, 5, 8)

attention = nn.MultiHeadDotProductAttention(2)
found, _ = attention.init_with_output(jax.random.key(0), jnp.ones((1, 4, 8)))
assert found.shape == (1, 4, 8)
