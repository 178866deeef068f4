"""Random functions of vectors, and random stacks of transformations of them.

A function is a list of names of `STEPS`, applied one after the other; a stack is a list of names of `TRANSFORMATIONS`,
the first one innermost. `Build` makes the Python function from both, with hloom or with JAX, or, as the reference, with
hloom but without `jit` and `checkpoint` and with loops over elements in place of `vmap`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

SIZE = 4
Vector: TypeAlias = Any
Function: TypeAlias = Callable[[Vector], Vector]

MATRIX = np.random.default_rng(5).uniform(-0.5, 0.5, (SIZE, SIZE))


class Build:
    """Functions made of one library's names. `is_reference`: nothing is compiled, nothing is batched."""

    def __init__(self, library: Any, numpy: Any, lax: Any, *, is_reference: bool = False) -> None:
        self.library, self.numpy, self.lax, self.is_reference = library, numpy, lax, is_reference

    def function(self, steps: Sequence[str], stack: Sequence[str]) -> Function:
        """The steps in sequence, transformed by the stack."""
        parts = [getattr(self, f"step_{name}") for name in steps]

        def run(x: Vector) -> Vector:
            for part in parts:
                x = part(x)
            return x

        transformed: Function = run
        for name in stack:
            transformed = getattr(self, f"transform_{name}")(transformed)
        return transformed

    # --- steps: smooth functions from vectors to vectors, with values near 1

    def step_sin(self, x: Vector) -> Vector:
        return self.numpy.sin(x) + 0.3 * x

    def step_rational(self, x: Vector) -> Vector:
        return x / (1 + x * x)

    def step_softplus(self, x: Vector) -> Vector:
        return self.numpy.log1p(self.numpy.exp(-x))

    def step_matrix(self, x: Vector) -> Vector:
        return self.numpy.tanh(self.numpy.dot(MATRIX, x))

    def step_outer(self, x: Vector) -> Vector:
        return self.numpy.dot(self.numpy.outer(x, self.numpy.cos(x)), x) / 3

    def step_shifted(self, x: Vector) -> Vector:
        return self.numpy.concatenate([x[1:], x[:1] * 2]) - x[::-1]

    def step_sums(self, x: Vector) -> Vector:
        return self.numpy.cumsum(x) / 3 + x.mean() * self.numpy.arange(float(SIZE))

    def step_normalized(self, x: Vector) -> Vector:
        return (x - x.mean()) / self.numpy.sqrt(((x - x.mean()) ** 2).mean() + 1)

    def step_where(self, x: Vector) -> Vector:
        return self.numpy.where(x > 0.2, x * x, 0.5 * x)

    def step_written(self, x: Vector) -> Vector:
        return x.at[1].set(x[0] * x[2]).at[3].add(0.5)

    def step_scan(self, x: Vector) -> Vector:
        def body(carry: Any, y: Any) -> Any:
            return self.numpy.sin(carry + y), carry * y

        last, ys = self.lax.scan(body, x[0], x)
        return ys + 0.5 * last

    def step_matrix_scan(self, x: Vector) -> Vector:
        def body(h: Any, y: Any) -> Any:
            return self.numpy.tanh(self.numpy.dot(MATRIX, h) + y), h[0]

        h, ys = self.lax.scan(body, x, x, reverse=True)
        return h + ys

    def step_fori(self, x: Vector) -> Vector:
        return self.lax.fori_loop(0, 3, lambda i, c: c + 0.3 * self.numpy.sin(x[i] * c), x)

    def step_cond(self, x: Vector) -> Vector:
        return self.lax.cond(x[0] > 0.1, lambda y: y * y[1], lambda y: self.numpy.cos(y) + x, x)

    def step_switch(self, x: Vector) -> Vector:
        index = (x[2] > 0).astype(self.numpy.int32) + (x[3] > 0.5).astype(self.numpy.int32)
        return self.lax.switch(index, [lambda y: 2 * y, self.numpy.sin, lambda y: y * y], x)

    def step_row(self, x: Vector) -> Vector:
        index = (x[1] > 0).astype(self.numpy.int32) * 2
        return self.lax.dynamic_slice(self.numpy.concatenate([x, x * x]), (index,), (SIZE,))

    def step_mapped(self, x: Vector) -> Vector:
        return self.mapped(lambda y: self.numpy.sin(y * x).sum() / 3)(x)

    def step_compiled(self, x: Vector) -> Vector:
        return self.compiled(self.step_sin)(x)

    def step_checkpointed(self, x: Vector) -> Vector:
        return self.transform_checkpoint(self.step_rational)(x)

    def step_custom_jvp(self, x: Vector) -> Vector:
        @self.library.custom_jvp
        def own(y: Any) -> Any:
            return y * y * y / 3

        own.defjvp(lambda primals, tangents: (own(*primals), primals[0] ** 2 * tangents[0]))
        return own(x)

    def step_jacobian(self, x: Vector) -> Vector:
        return self.library.jacfwd(self.step_rational)(x) @ x

    def step_gradient(self, x: Vector) -> Vector:
        return self.library.grad(lambda y: (self.numpy.sin(y) * x).sum() * y[0])(x)

    # --- transformations: from functions of vectors to functions of vectors

    def compiled(self, fun: Function) -> Function:
        return fun if self.is_reference else self.library.jit(fun)

    def mapped(self, fun: Callable[..., Any], axis: int = 0) -> Callable[[Any], Any]:
        """`fun` for each element of a batch along `axis` of the argument; the results along axis 0."""
        if not self.is_reference:
            mapped: Callable[[Any], Any] = self.library.vmap(fun, in_axes=axis)
            return mapped

        def loop(batch: Any) -> Any:
            rows = [fun(batch[(slice(None),) * axis + (k,)]) for k in range(batch.shape[axis])]
            return self.numpy.stack(rows)

        return loop

    def transform_jit(self, fun: Function) -> Function:
        return self.compiled(fun)

    def transform_checkpoint(self, fun: Function) -> Function:
        return fun if self.is_reference else self.library.checkpoint(fun)

    def transform_grad(self, fun: Function) -> Function:
        return self.library.grad(lambda x: self.numpy.sin(fun(x)).sum())

    def transform_jvp(self, fun: Function) -> Function:
        return lambda x: self.library.jvp(fun, (x,), (self.numpy.cos(x),))[1]

    def transform_vjp(self, fun: Function) -> Function:
        return lambda x: self.library.vjp(fun, x)[1](0.5 * x)[0]

    def transform_linearize(self, fun: Function) -> Function:
        return lambda x: self.library.linearize(fun, x)[1](x)

    def transform_jacfwd(self, fun: Function) -> Function:
        return lambda x: self.library.jacfwd(fun)(x).sum(0)

    def transform_jacrev(self, fun: Function) -> Function:
        return lambda x: self.library.jacrev(fun)(x).sum(1)

    def transform_aux(self, fun: Function) -> Function:
        """The gradient, and what the function returned beside its value."""

        def run(x: Vector) -> Vector:
            gradient, aux = self.library.grad(lambda y: (fun(y).sum(), y * x), has_aux=True)(x)
            return gradient + aux

        return run

    def transform_closure(self, fun: Function) -> Function:
        """Derivatives of different levels: the inner one sees the outer variable as a constant."""
        return lambda x: self.library.jvp(lambda y: fun(x) * y + fun(y) * x, (x,), (self.numpy.ones(SIZE),))[1]

    def transform_vmap(self, fun: Function) -> Function:
        return lambda x: self.mapped(fun)(self.numpy.stack([x, 0.5 * x, x[::-1]])).sum(0)

    def transform_vmap_columns(self, fun: Function) -> Function:
        return lambda x: self.mapped(lambda y: fun(y) * x, 1)(self.numpy.stack([x, x * x], 1)).mean(0)

    def transform_scan(self, fun: Function) -> Function:
        def run(x: Vector) -> Vector:
            last, ys = self.lax.scan(lambda c, _: (0.5 * fun(c), c * c), x, None, length=2)
            return last + ys.sum(0)

        return run

    def transform_cond(self, fun: Function) -> Function:
        return lambda x: self.lax.cond(x.sum() > 0.5, fun, lambda y: -y, x)


def _names(prefix: str) -> tuple[str, ...]:
    return tuple([name.removeprefix(prefix) for name in vars(Build) if name.startswith(prefix)])


STEPS = _names("step_")
TRANSFORMATIONS = _names("transform_")
COSTLY = {"jacfwd", "jacrev", "vmap", "vmap_columns", "scan", "closure"}
"""They multiply the work."""
