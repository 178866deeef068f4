"""flax.nnx: modules with state, transformations of them, training, mutable arrays as variables."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx


class Model(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(2, 16, rngs=rngs)
        self.norm = nnx.BatchNorm(16, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.last = nnx.Linear(16, 1, rngs=rngs)
        self.calls = nnx.Variable(jnp.array(0))

    def __call__(self, x):
        self.calls.value += 1
        return self.last(self.dropout(nnx.relu(self.norm(self.first(x)))))


model = Model(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
x = jax.random.normal(jax.random.key(0), (64, 2))
y = x[:, :1] - 2 * x[:, 1:]


@nnx.jit
def step(model, optimizer, x, y):
    loss, grads = nnx.value_and_grad(lambda m: ((m(x) - y) ** 2).mean())(model)
    optimizer.update(model, grads)
    return loss


losses = [float(step(model, optimizer, x, y)) for _ in range(100)]
assert losses[-1] < 0.3 * losses[0], losses
assert int(model.calls.value) == 100
assert not np.allclose(model.norm.mean.value, 0)

model.eval()
graph, state = nnx.split(model)
again = nnx.merge(graph, state)
np.testing.assert_allclose(again(x), model(x), rtol=1e-6)


@nnx.split_rngs(splits=3)
@nnx.vmap(in_axes=0, out_axes=0)
def layers(rngs):
    return nnx.Linear(4, 4, rngs=rngs)


@nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
def through(x, layer):
    return jnp.tanh(layer(x))


assert through(jnp.ones((2, 4)), layers(nnx.Rngs(1))).shape == (2, 4)
