"""diffrax: explicit, implicit and adaptive solvers, dense output, events, derivatives through a solution, SDEs."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

term = diffrax.ODETerm(lambda t, y, args: -args * y)


def end(solver, rate, adjoint=None, **options):
    controller = diffrax.PIDController(rtol=1e-5, atol=1e-6)
    extra = {} if adjoint is None else {"adjoint": adjoint}
    found = diffrax.diffeqsolve(
        term, solver, 0.0, 1.0, 0.1, jnp.array([1.0, 2.0]), rate, stepsize_controller=controller, **extra, **options
    )
    return found.ys[-1]


expected = np.exp(-0.7) * np.array([1.0, 2.0])
for solver in (diffrax.Tsit5(), diffrax.Dopri5(), diffrax.Dopri8(), diffrax.Heun()):
    np.testing.assert_allclose(jax.jit(lambda r, s=solver: end(s, r))(0.7), expected, rtol=1e-3)
for adjoint in (diffrax.RecursiveCheckpointAdjoint(), diffrax.DirectAdjoint(), diffrax.BacksolveAdjoint()):
    slope = jax.jit(jax.grad(lambda r, a=adjoint: end(diffrax.Tsit5(), r, a).sum()))(0.7)
    np.testing.assert_allclose(slope, -expected.sum(), rtol=1e-3)
whole = diffrax.SaveAt(dense=True)
dense = diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 1.0, 0.05, jnp.array(1.0), 1.0, saveat=whole)
np.testing.assert_allclose(dense.evaluate(0.33), np.exp(-0.33), rtol=1e-4)
ts = jnp.linspace(0, 1, 5)
saved = jax.vmap(
    lambda y: diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 1.0, 0.05, y, 1.0, saveat=diffrax.SaveAt(ts=ts)).ys
)(jnp.array([1.0, 3.0]))
np.testing.assert_allclose(saved, np.exp(-np.asarray(ts)) * np.array([[1.0], [3.0]]), rtol=1e-4)
event = diffrax.Event(lambda t, y, args, **kw: y - 0.5)
stopped = diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 5.0, 0.01, jnp.array(1.0), 1.0, event=event)
np.testing.assert_allclose(stopped.ts[-1], np.log(2), atol=0.02)
noise = diffrax.VirtualBrownianTree(0.0, 1.0, 1e-3, (), jax.random.key(0))
terms = diffrax.MultiTerm(
    diffrax.ODETerm(lambda t, y, a: -y), diffrax.ControlTerm(lambda t, y, a: 0.1 * jnp.ones_like(y), noise)
)
walk = diffrax.diffeqsolve(terms, diffrax.Euler(), 0.0, 1.0, 0.01, jnp.array(1.0))
assert abs(walk.ys[-1] - np.exp(-1)) < 0.4


def robertson(t, y, rate):
    fast, slow = 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return jnp.stack([-rate * y[0] + fast, rate * y[0] - fast - slow, slow])


with jax.enable_x64(True):
    start = jnp.array([1.0, 0.0, 0.0])
    control = diffrax.PIDController(rtol=1e-6, atol=1e-9)
    stiff = diffrax.diffeqsolve(
        diffrax.ODETerm(robertson), diffrax.Kvaerno3(), 0.0, 10.0, None, start, 0.04, stepsize_controller=control
    )
np.testing.assert_allclose(stiff.ys[0], [0.841369868, 1.62339050e-5, 0.158613898], rtol=1e-7)
