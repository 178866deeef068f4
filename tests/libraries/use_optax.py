"""optax: every optimizer minimises a quadratic under jit; schedules, losses, clipping, chains, L-BFGS."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

target = {"a": jnp.array([1.0, -2.0, 3.0]), "b": jnp.array(0.5)}
start = jax.tree.map(jnp.zeros_like, target)


def loss(params):
    return sum(jnp.sum((p - t) ** 2) for p, t in zip(jax.tree.leaves(params), jax.tree.leaves(target), strict=True))


OPTIMIZERS = {
    "sgd": optax.sgd(0.1, momentum=0.5, nesterov=True),
    "adam": optax.adam(0.1),
    "adamw": optax.adamw(0.1, weight_decay=1e-4),
    "adamax": optax.adamax(0.1),
    "adagrad": optax.adagrad(0.5),
    "adabelief": optax.adabelief(0.1),
    "adafactor": optax.adafactor(1.0),
    "amsgrad": optax.amsgrad(0.1),
    "lamb": optax.lamb(0.1),
    "lion": optax.lion(0.05),
    "nadam": optax.nadam(0.1),
    "radam": optax.radam(0.1),
    "rmsprop": optax.rmsprop(0.05),
    "yogi": optax.yogi(0.1),
    "chain": optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam(), optax.scale(-0.1)),
    "schedule": optax.sgd(optax.warmup_cosine_decay_schedule(0.0, 0.2, 10, 100)),
    "multi": optax.partition({"x": optax.adam(0.1), "y": optax.sgd(0.1)}, {"a": "x", "b": "y"}),
}
for name, optimizer in OPTIMIZERS.items():

    @jax.jit
    def step(params, state, optimizer=optimizer):
        value, gradient = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, value

    params, state = start, optimizer.init(start)
    for _ in range(60):
        params, state, value = step(params, state)
    assert loss(params) < 0.6 * loss(start), (name, loss(params))

search = optax.lbfgs()


@jax.jit
def newton(params, state):
    value, gradient = optax.value_and_grad_from_state(loss)(params, state=state)
    updates, state = search.update(gradient, state, params, value=value, grad=gradient, value_fn=loss)
    return optax.apply_updates(params, updates), state


params, state = start, search.init(start)
for _ in range(5):
    params, state = newton(params, state)
np.testing.assert_allclose(params["a"], target["a"], atol=1e-3)

logits, labels = jnp.array([[2.0, 0.5, -1.0], [0.0, 1.0, 0.0]]), jnp.array([0, 2])
np.testing.assert_allclose(
    optax.softmax_cross_entropy_with_integer_labels(logits, labels), [0.241311, 1.551445], rtol=1e-4
)
assert optax.huber_loss(jnp.array(3.0), jnp.array(0.0)) == 2.5
assert optax.tree.norm({"a": jnp.array([3.0, 4.0])}) == 5
