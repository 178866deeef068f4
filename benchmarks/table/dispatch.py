"""The cost of a call: the work is a few elements."""

from __future__ import annotations

import numpy as np

from ..harness import Case, Program
from .declare import Group, Row, compiled

GROUP = Group("dispatch")
A, B = np.arange(8, dtype=np.float32), np.ones(8, np.float32)


def add(a, b):
    return a + b


def add_numba(a, b):
    return a + b


def plain(jax, jnp):
    return add


def row(title, arguments, text, numpy=None, torch=None, **more):
    return Row(title, arguments, text, numpy, torch=torch, wait_each=False, **more)


@GROUP.row("dispatch")
def own_arrays(rng):
    return row("call of a jitted a + b, f32[8], its own arrays", [A, B], plain, add, lambda torch: add, numba=add_numba)


@GROUP.row("dispatch-one")
def one_array(rng):
    return row(
        "call of a jitted a + a, f32[8]",
        [A],
        lambda jax, jnp: lambda a: a + a,
        lambda a: a + a,
        lambda torch: lambda a: a + a,
    )


@GROUP.row("dispatch-20")
def many_arrays(rng):
    total = lambda *a: sum(a[1:], a[0])  # noqa: E731
    return row("call with 20 arrays, f32[8]", [A] * 20, lambda jax, jnp: total, total, lambda torch: total)


def from_numpy(name, title, arguments, function):
    """hloom and JAX are called with what NumPy has, and not with arrays of their own."""

    def factory(rng):
        case = row(title, arguments, lambda jax, jnp: function, function, numba=None).case(name)

        def builder(package):
            def build():
                import importlib

                jax = importlib.import_module(package)
                run = jax.jit(function)
                return Program(lambda: run(*arguments), jax.block_until_ready)

            return build

        programs = dict(case.programs) | {package: builder(package) for package in ("hloom", "jax")}
        if all(isinstance(a, np.ndarray) for a in arguments):
            programs["numba"] = lambda: (lambda f: Program(lambda: f(*arguments)))(compiled(add_numba))
        return Case(name, title, programs, case.tolerance, wait_each=False, translated=case.translated)

    GROUP.row(name)(factory)


from_numpy("dispatch-numpy", "call of a jitted a + b, f32[8], NumPy arguments", [A, B], add)
from_numpy(
    "dispatch-scalar", "call of a jitted a * 2.5, f32[8] in NumPy and a Python number", [A, 2.5], lambda a, s: a * s
)


@GROUP.row("dispatch-tree")
def tree(rng):
    names = [f"layer{k}" for k in range(5)]
    given = {name: {"w": A + k, "b": B} for k, name in enumerate(names)}

    def f(tree):
        return {name: {"w": layer["w"] + layer["b"], "b": layer["b"]} for name, layer in tree.items()}

    return row(
        "call with a dictionary of 10 arrays, and as many results", [given], lambda jax, jnp: f, None, lambda torch: f
    )


@GROUP.row("dispatch-list")
def nested(rng):
    given = [(A, B), [A, (B, A)], A]

    def f(x):
        (a, b), (c, (d, e)), g = x
        return [a + b, (c + d, e + g)]

    return row("call with nested lists and tuples of 6 arrays", [given], lambda jax, jnp: f, f, lambda torch: f)


@GROUP.row("dispatch-names")
def names(rng):
    return row("call with keyword arguments, f32[8]", [{"a": A, "b": B}], plain, add, lambda torch: add, by_name=True)


@GROUP.row("dispatch-nested")
def jit_in_jit(rng):
    def text(jax, jnp):
        def layer(x, y):
            return x * y + 1

        inner = jax.jit(layer)

        def f(x, y):
            for _ in range(10):
                x = inner(x, y)
            return x

        return f

    def plain(a, b):
        for _ in range(10):
            a = a * b + 1
        return a

    return row("a jitted function that calls a jitted one ten times, f32[8]", [A, B], text, plain, lambda torch: plain)
