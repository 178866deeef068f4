"""lineax: direct and iterative solvers, operators that are functions, derivatives and batches of solutions."""

import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np

a = jax.random.normal(jax.random.key(0), (4, 4)) + 4 * jnp.eye(4)
spd, b = a @ a.T, jnp.arange(4.0)
expected = np.linalg.solve(np.asarray(a), np.asarray(b))
matrix = lx.MatrixLinearOperator(a)
for solver in (lx.LU(), lx.QR(), lx.SVD(), lx.AutoLinearSolver(well_posed=True), lx.GMRES(1e-6, 1e-6)):
    np.testing.assert_allclose(lx.linear_solve(matrix, b, solver).value, expected, rtol=1e-3, atol=1e-4)
    jitted = jax.jit(lambda a, s=solver: lx.linear_solve(lx.MatrixLinearOperator(a), b, s).value)
    np.testing.assert_allclose(jitted(a), expected, rtol=1e-3, atol=1e-4)
positive = lx.MatrixLinearOperator(spd, lx.positive_semidefinite_tag)
for solver in (lx.Cholesky(), lx.CG(1e-6, 1e-6)):
    found = lx.linear_solve(positive, b, solver).value
    np.testing.assert_allclose(spd @ found, b, atol=1e-2)
function = lx.FunctionLinearOperator(lambda x: a @ x, jax.ShapeDtypeStruct((4,), jnp.float32))
np.testing.assert_allclose(lx.linear_solve(function, b, lx.LU()).value, expected, rtol=1e-3, atol=1e-4)
slope = jax.jacobian(lambda b: lx.linear_solve(matrix, b, lx.LU()).value)(b)
np.testing.assert_allclose(slope, np.linalg.inv(np.asarray(a)), rtol=1e-3, atol=1e-4)
gradient = jax.grad(lambda a: lx.linear_solve(lx.MatrixLinearOperator(a), b).value.sum())(a)
slopes = -np.outer(np.linalg.inv(np.asarray(a)).T @ np.ones(4), expected)
np.testing.assert_allclose(gradient, slopes, rtol=1e-2, atol=1e-4)
rows = jax.vmap(lambda b: lx.linear_solve(matrix, b, lx.QR()).value)(jnp.stack([b, 2 * b]))
np.testing.assert_allclose(rows[1], 2 * expected, rtol=1e-3, atol=1e-4)
tall = lx.MatrixLinearOperator(jnp.vstack([a, a]))
least = lx.linear_solve(tall, jnp.concatenate([b, b]), lx.AutoLinearSolver(well_posed=None)).value
np.testing.assert_allclose(least, expected, rtol=1e-3, atol=1e-4)
