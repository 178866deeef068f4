"""Programs that use custom derivatives, checkpoint, solves and the options of grad, written for JAX and hloom alike.

Each is a function of a package, `jax` or `hloom`, and returns numbers in containers. Their results with JAX are in
`tests/data/derivative_programs.json`:

    python tests/support/derivative_programs.py      # writes it anew, with the JAX that is installed
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

PATH = Path(__file__).parent.parent / "data" / "derivative_programs.json"
PROGRAMS: dict[str, Callable[[Any], Any]] = {}
A = np.array([[4.0, 1.0, 0.0], [2.0, 5.0, 1.0], [0.0, 1.0, 3.0]], np.float32)
B = np.array([1.0, 2.0, 3.0], np.float32)


class Point(NamedTuple):
    x: Any
    y: Any


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS[function.__name__] = function
    return function


def plain(value: Any, package: Any) -> Any:
    """A result as numbers, lists and dictionaries."""
    if isinstance(value, dict):
        return {k: plain(v, package) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [plain(v, package) for v in value]
    if value is None or isinstance(value, str):
        return value
    if getattr(value, "dtype", None) == package.float0:
        return f"float0{list(value.shape)}"
    array = np.asarray(value)
    if array.dtype.kind == "c":
        return [array.real.tolist(), array.imag.tolist()]
    return array.astype(np.float64).tolist()


def both(j: Any, f: Any) -> tuple[Any, Any]:
    """A function as it is and jitted."""
    return f, j.jit(f)


# --- custom_jvp


@program
def jvp_rule_that_clips(j: Any) -> Any:
    @j.custom_jvp
    def root(x: Any) -> Any:
        return j.numpy.sqrt(x)

    @root.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return root(x), t / j.numpy.maximum(2 * j.numpy.sqrt(x), 0.1)

    return [[j.grad(f)(0.0), j.vmap(j.grad(f))(B), j.grad(j.grad(f))(2.0)] for f in both(j, root)]


@program
def jvp_rules_for_each_argument(j: Any) -> Any:
    @j.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return j.numpy.sin(x) * y

    f.defjvps(lambda t, result, x, y: j.numpy.cos(x) * t * y * 3, lambda t, result, x, y: result / y * t)
    return [[j.grad(g, argnums=(0, 1))(1.0, 2.0), j.jvp(g, (1.0, 2.0), (1.0, 1.0))] for g in both(j, f)]


@program
def jvp_symbolic_zeros(j: Any) -> Any:
    kinds: list[str] = []

    @j.custom_jvp
    def f(x: Any, y: Any, n: Any) -> Any:
        return x * y * n

    def rule(primals: Any, tangents: Any) -> Any:
        x, y, n = primals
        zero = j.custom_derivatives.SymbolicZero
        kinds.extend(f"{type(t) is zero} {t.shape}" for t in tangents if type(t) is zero)
        dx, dy = (0.0 if type(t) is zero else t for t in tangents[:2])
        return f(x, y, n), dx * y * n + x * dy * n

    f.defjvp(rule, symbolic_zeros=True)
    found = [j.grad(f)(2.0, 3.0, 4), j.grad(f, argnums=1)(2.0, 3.0, 4), j.grad(f, argnums=(0, 1))(2.0, 3.0, 4)]
    return found, kinds, j.jit(j.grad(f))(2.0, 3.0, 4), j.vmap(j.grad(f), (0, None, None))(B, 2.0, 3)


@program
def jvp_returns_symbolic_zero(j: Any) -> Any:
    @j.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return x * y

    f.defjvp(lambda p, t: (p[0] * p[1], t[1]), symbolic_zeros=True)
    return [[j.grad(g)(2.0, 3.0), j.jvp(lambda x, g=g: g(x, 3.0), (2.0,), (1.0,))] for g in both(j, f)]


@program
def jvp_nondiff_argnums(j: Any) -> Any:
    @partial(j.custom_jvp, nondiff_argnums=(0, 2))
    def app(f: Any, x: Any, n: Any) -> Any:
        return f(x) * n

    @app.defjvp
    def _(f: Any, n: Any, primals: Any, tangents: Any) -> Any:
        return f(primals[0]) * n, 5.0 * n * tangents[0]

    g = j.grad(lambda x: app(j.numpy.sin, x, 3))
    return g(1.0), j.jit(g)(1.0), j.grad(lambda n: app(j.numpy.sin, 1.0, n))(2.0)


@program
def nondiff_argnames(j: Any) -> Any:
    def power(x: Any, n: Any) -> Any:
        return x**n

    f = j.custom_jvp(power, nondiff_argnames=("n",))
    f.defjvp(lambda n, p, t: (p[0] ** n, 10 * n * p[0] ** (n - 1) * t[0]))
    g = j.custom_vjp(power, nondiff_argnames=("n",))
    g.defvjp(lambda x, n: (x**n, x), lambda n, x, ct: (10 * ct * n * x ** (n - 1),))
    return [[j.grad(lambda x, h=h: h(x, 3))(2.0), j.grad(lambda x, h=h: h(x=x, n=3))(2.0)] for h in (f, g)]


@program
def rule_within_a_rule(j: Any) -> Any:
    @j.custom_jvp
    def inner(x: Any) -> Any:
        return x**2

    inner.defjvp(lambda p, t: (inner(*p), 7.0 * p[0] * t[0]))

    @j.custom_jvp
    def outer(x: Any) -> Any:
        return inner(x) + 1

    outer.defjvp(lambda p, t: (outer(*p), inner(p[0]) * t[0]))
    return [[j.grad(f)(3.0), j.grad(j.grad(f))(3.0), j.grad(j.grad(j.grad(f)))(3.0)] for f in both(j, outer)]


@program
def rule_closes_over_another_level(j: Any) -> Any:
    def level(y: Any) -> Any:
        @j.custom_jvp
        def g(x: Any) -> Any:
            return x * y

        g.defjvp(lambda p, t: (p[0] * y, t[0] * y * p[0]))
        return j.grad(g)(3.0)

    return [[j.grad(f)(2.0), j.jvp(f, (2.0,), (1.0,))] for f in both(j, level)]


# --- custom_vjp


@program
def vjp_clips_gradients(j: Any) -> Any:
    @partial(j.custom_vjp, nondiff_argnums=(0, 1))
    def clip(lo: Any, hi: Any, x: Any) -> Any:
        return x

    clip.defvjp(lambda lo, hi, x: (x, None), lambda lo, hi, _, g: (j.numpy.clip(g, lo, hi),))
    f = lambda x: j.numpy.sin(clip(-0.5, 0.5, x)).sum()  # noqa: E731
    return [[j.grad(g)(B), j.vmap(j.grad(g))(B)] for g in both(j, f)]


@program
def vjp_symbolic_zeros(j: Any) -> Any:
    seen: list[str] = []

    @j.custom_vjp
    def f(x: Any, y: Any, n: Any) -> Any:
        return {"product": x["a"] * y, "sum": x["a"] + y}

    def fwd(x: Any, y: Any, n: Any) -> Any:
        seen.append(f"{x['a'].perturbed} {y.perturbed} {n.perturbed}")
        return f({"a": x["a"].value}, y.value, n.value), (x["a"].value, y.value)

    def bwd(kept: Any, cts: Any) -> Any:
        x, y = kept
        zero = j.custom_derivatives.SymbolicZero
        seen.append(f"{type(cts['product']) is zero} {type(cts['sum']) is zero}")
        product, total = (0.0 if type(c) is zero else c for c in (cts["product"], cts["sum"]))
        return {"a": product * y + total}, product * x + total, None

    f.defvjp(fwd, bwd, symbolic_zeros=True, optimize_remat=False)
    first = j.grad(lambda x: f({"a": x}, 3.0, 1)["product"])(2.0)
    second = j.grad(lambda y: f({"a": 2.0}, y, 1)["sum"])(3.0)
    third = j.jit(j.grad(lambda x, y: f({"a": x}, y, 1)["product"], argnums=(0, 1)))(2.0, 3.0)
    return first, second, third, seen


@program
def vjp_returns_symbolic_zero(j: Any) -> Any:
    @j.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return x * y

    zero = j.custom_derivatives.zero_from_primal
    f.defvjp(lambda x, y: (x.value * y.value, (x.value, y.value)),
             lambda kept, ct: (zero(kept[0], symbolic_zeros=True), ct * kept[0]), symbolic_zeros=True)  # fmt: skip
    return j.grad(f, argnums=(0, 1))(2.0, 3.0)


@program
def fixed_point(j: Any) -> Any:
    """The fixed point of f(a, x); its derivative follows from another fixed point."""

    def iterate(f: Any, start: Any) -> Any:
        def unlike(carry: Any) -> Any:
            return j.numpy.abs(carry[0] - carry[1]) > 1e-5

        return j.lax.while_loop(unlike, lambda carry: (carry[1], f(carry[1])), (start, f(start)))[1]

    @partial(j.custom_vjp, nondiff_argnums=(0,))
    def solve(f: Any, a: Any, guess: Any) -> Any:
        return iterate(partial(f, a), guess)

    def fwd(f: Any, a: Any, guess: Any) -> Any:
        found = solve(f, a, guess)
        return found, (a, found)

    def bwd(f: Any, kept: Any, ct: Any) -> Any:
        a, x = kept
        _, by_a = j.vjp(lambda a: f(a, x), a)
        _, by_x = j.vjp(lambda x: f(a, x), x)
        (answer,) = by_a(iterate(lambda u: ct + by_x(u)[0], ct))
        return answer, j.numpy.zeros_like(x)

    solve.defvjp(fwd, bwd)
    f = lambda a: solve(lambda a, x: 0.5 * (x + a / x), a, a)  # noqa: E731
    return [[g(2.0), j.grad(g)(2.0)] for g in both(j, f)]


@program
def custom_gradient_in_one_piece(j: Any) -> Any:
    @j.custom_gradient
    def f(x: Any, y: Any) -> Any:
        s = j.numpy.sin(x)
        return s * y, lambda ct: (ct * j.numpy.cos(x) * y * 10, ct * s)

    @j.custom_gradient
    def g(x: Any) -> Any:
        return {"a": x**2, "n": j.numpy.int32(3)}, lambda ct: ct["a"] * x

    found = [[h(1.0, 2.0), j.grad(h, argnums=(0, 1))(1.0, 2.0), j.grad(j.grad(h))(1.0, 2.0)] for h in both(j, f)]
    return found, j.vmap(j.grad(f))(B, B), g(3.0), j.grad(lambda x: g(x)["a"])(3.0)


@program
def closures_as_arguments(j: Any) -> Any:
    @partial(j.custom_vjp, nondiff_argnums=(0,))
    def run(objective: Any, x: Any, *closed: Any) -> Any:
        return x * objective(x, *closed)

    def fwd(objective: Any, x: Any, *closed: Any) -> Any:
        return run(objective, x, *closed), (x, closed)

    def bwd(objective: Any, kept: Any, ct: Any) -> Any:
        x, closed = kept
        _, pull = j.vjp(lambda *c: objective(x, *c), *closed)
        return (ct * 0.0, *pull(ct))

    run.defvjp(fwd, bwd)

    def use(c: Any) -> Any:
        converted, closed = j.closure_convert(lambda x: (x - c) ** 2 * 2.0, 3.0)
        return run(converted, 3.0, *closed)

    known = len(j.closure_convert(lambda x: (x * B).sum(), 1.0)[1])
    return [[j.grad(f)(1.0), j.vmap(j.grad(f))(B)] for f in both(j, use)], known


@program
def rules_of_containers(j: Any) -> Any:
    """Named tuples, dictionaries and None as arguments and results."""

    @j.custom_jvp
    def polar(p: Any) -> Any:
        return {"r": p.x * p.y, "both": (j.numpy.sin(p.x), Point(p.y, None))}

    @polar.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (p,), (t,) = primals, tangents
        moved = {"r": t.x * p.y + 2 * p.x * t.y, "both": (j.numpy.cos(p.x) * t.x * 3, Point(t.y * 4, None))}
        return polar(p), moved

    @j.custom_vjp
    def area(p: Any, scale: Any) -> Any:
        return Point(p.x * p.y * scale["s"], p.x)

    def fwd(p: Any, scale: Any) -> Any:
        return area(p, scale), (p, scale)

    def bwd(kept: Any, ct: Any) -> Any:
        p, _ = kept
        return Point(ct.x * p.y, ct.y * 7), {"s": None}

    area.defvjp(fwd, bwd)
    f = lambda x, y: sum(j.tree_util.tree_leaves(polar(Point(x, y))))  # noqa: E731
    g = lambda x, y: sum(area(Point(x, y), {"s": 2.0}))  # noqa: E731
    found = [[j.grad(h, argnums=(0, 1))(2.0, 3.0), j.vmap(j.grad(h))(B, B)] for k in (f, g) for h in both(j, k)]
    return found, list(j.jacfwd(polar)(Point(2.0, 3.0))["both"][1].x), j.vjp(area, Point(1.0, 2.0), {"s": 3.0})[0].x


@program
def rules_with_python_control_flow(j: Any) -> Any:
    """Outside of jit, a function and its rule may read values."""
    taken = []

    @j.custom_jvp
    def f(x: Any) -> Any:
        taken.append("f")
        return x if x > 0 else 0.0 * x

    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        taken.append("up" if x > 0 else "down")
        return f(x), (2.0 if x > 0 else 3.0) * t

    f.defjvp(rule)
    return j.jvp(f, (1.0,), (1.0,)), j.jvp(f, (-1.0,), (1.0,)), taken


@program
def stopped_gradients(j: Any) -> Any:
    stop = j.lax.stop_gradient

    def error(w: Any) -> Any:
        value, target = w @ B, stop(1.0 + w @ (2 * B))
        return ((target - value) ** 2).sum()

    through = lambda x: (x + stop(j.numpy.round(x) - x)) ** 2  # noqa: E731
    zero = lambda x: stop({"a": x, "n": 3})["a"] * x  # noqa: E731
    return [
        [j.grad(wrap(error))(B / 4), j.grad(wrap(through))(1.7), j.grad(wrap(zero))(2.0), j.vmap(j.grad(through))(B)]
        for wrap in (lambda f: f, j.jit)
    ]


@program
def linear_functions_are_values(j: Any) -> Any:
    """The results of vjp and linearize pass through jit, vmap and tree_map."""
    f = lambda x, y: {"s": j.numpy.sin(x) * y}  # noqa: E731
    _, pull = j.vjp(f, B, B)
    _, push = j.linearize(f, B, B)
    apply = j.jit(lambda g, *args: g(*args))
    many = np.stack([B, 2 * B])
    by_rows = j.vmap(lambda x: j.vjp(f, x, B)[1])(many)
    return [
        apply(pull, {"s": B}),
        apply(push, B, B),
        j.vmap(lambda ct: pull({"s": ct}))(many),
        j.vmap(push, (0, None))(many, B),
        j.vmap(lambda g, ct: g({"s": ct}))(by_rows, many),
        j.jit(lambda x: j.vjp(f, x, B)[1])(B)({"s": B}),
        j.grad(lambda x: j.vjp(f, x, B)[1]({"s": B})[0].sum())(B),
    ]


# --- linear functions


@program
def transposes(j: Any) -> Any:
    t = j.linear_transpose
    like = j.ShapeDtypeStruct((3,), np.float32)
    loop = lambda x: j.lax.scan(lambda c, _: (A @ c, None), x, None, length=2)[0]  # noqa: E731
    return [
        t(lambda x, y: 0.5 * x - 0.5 * y, 1.0, 1.0)(1.0),
        t(lambda p: {"o": A @ p["x"]}, {"x": like})({"o": B}),
        t(j.jit(lambda x: A @ x), B)(B),
        j.jit(lambda y: t(lambda x: A @ x, B)(y))(B),
        j.vmap(t(lambda x: A @ x, B))(A),
        t(loop, B)(B),
        t(lambda x, y: 2 * x, 1.0, B)(1.0),
        t(lambda y: t(lambda x: A @ x, B)(y)[0], B)(B),
    ]


@program
def linear_calls(j: Any) -> Any:
    call = j.custom_derivatives.linear_call

    def f(x: Any, r: Any) -> Any:
        return x + call(lambda r, x: x / r, lambda r, t: 10 * t / r, r, x)

    transposed = j.linear_transpose(partial(f, r=3.0), 1.0)
    back = j.linear_transpose(lambda c: transposed(c)[0], 1.0)
    return f(9.0, 3.0), transposed(18.0), j.jit(transposed)(18.0), back(18.0)


@program
def passes_as_functions(j: Any) -> Any:
    found = []
    for jitted in (True, False):
        fwd, bwd = j.fwd_and_bwd(lambda x, w: j.numpy.sin(x @ w), argnums=(0, 1), jitted=jitted)
        result, residuals = fwd(A, A)
        found.append([result, bwd(residuals, A), bwd(residuals, 2 * A)])
        fwd, bwd = j.fwd_and_bwd(lambda x, w: (x @ w, {"k": x.sum()}), argnums=1, has_aux=True, jitted=jitted)
        result, residuals, aux = fwd(A, A)
        found.append([result, aux, bwd(residuals, A)])
    return found


@program
def pullbacks_hold_their_values(j: Any) -> Any:
    def layer(w: Any, parts: Any, unused: Any) -> Any:
        return j.numpy.sin(parts["x"] @ w) + unused.sum()

    def held(pull: Any) -> Any:
        w, (x, y), unused = pull.args_res
        return [w, x, *(type(v).__name__ == "NotNeeded" for v in (w, x, y, unused))]

    w, x, y = (j.numpy.array(s * A) for s in (1, 2, 3))
    parts = {"x": x, "y": y}
    value, pull = j.vjp(layer, w, parts, B)
    found = [held(pull), pull(value)]
    pull.args_res[0] = y
    found.append(pull(value))
    pull.args_res = [w, {"x": y, "y": pull.args_res[1][1]}, pull.args_res[2]]
    found.append(pull(value))
    halved = j.tree.map(lambda x: x / 2, pull)
    _, jitted = j.jit(lambda w: j.vjp(layer, w, parts, B))(w)
    return [*found, held(halved), halved(value), held(jitted), jitted(value), j.jit(lambda p: p(value))(jitted)]


# --- solves


def _newton(j: Any, f: Any, guess: Any) -> Any:
    return j.lax.fori_loop(0, 20, lambda _, x: x - f(x) / j.grad(f)(x), guess)


@program
def roots(j: Any) -> Any:
    def f(x: Any) -> Any:
        equation = lambda y: y**2 - x**3  # noqa: E731
        return j.lax.custom_root(equation, np.float32(2), partial(_newton, j), lambda g, y: y / g(1.0))

    def derivatives(f: Any) -> Any:
        first = [j.jvp(f, (5.0,), (1.0,)), j.grad(f)(5.0)]
        second = [j.grad(j.grad(f))(5.0), j.jvp(j.grad(f), (5.0,), (1.0,))]
        return f(5.0), [*first, *second], j.vmap(f)(B), j.vmap(j.grad(f))(B), j.grad(lambda x: j.vmap(f)(x).sum())(B)

    return [derivatives(g) for g in both(j, f)]


@program
def roots_with_aux(j: Any) -> Any:
    def f(x: Any) -> Any:
        def solve(f: Any, guess: Any) -> Any:
            return {"a": _newton(j, lambda t: f({"a": t})["a"], guess["a"])}, {"steps": np.float32(20)}

        def of_tangents(g: Any, y: Any) -> Any:
            return {"a": y["a"] / g({"a": 1.0})["a"]}

        equation = lambda y: {"a": y["a"] ** 2 - x**3}  # noqa: E731
        return j.lax.custom_root(equation, {"a": np.float32(2)}, solve, of_tangents, has_aux=True)

    return [[g(5.0), j.jvp(g, (5.0,), (1.0,)), j.grad(lambda x, g=g: g(x)[0]["a"])(5.0)] for g in both(j, f)]


def _richardson(j: Any, matvec: Any, b: Any) -> Any:
    def step(state: Any) -> Any:
        x, _ = state
        return x + 0.15 * (b - matvec(x)), j.numpy.abs(b - matvec(x)).max()

    return j.lax.while_loop(lambda s: s[1] > 1e-5, step, (j.numpy.zeros_like(b), np.float32(1)))[0]


def _linear(j: Any, a: Any, b: Any, **options: Any) -> Any:
    solve = partial(_richardson, j)
    if options.get("has_aux"):
        solve = lambda matvec, b: (_richardson(j, matvec, b), b.sum())  # noqa: E731
    transpose = None if options.get("symmetric") else solve
    return j.lax.custom_linear_solve(lambda x: a @ x, b, solve, transpose, **options)


@program
def linear_solves(j: Any) -> Any:
    def derivatives(solve: Any) -> Any:
        f = lambda a, b: (solve(a, b) ** 2).sum()  # noqa: E731
        return [
            solve(A, B),
            j.jvp(solve, (A, B), (A, B)),
            j.grad(f, argnums=(0, 1))(A, B),
            j.hessian(lambda b: (solve(A, b) ** 3).sum())(B),
            j.jacrev(j.jacrev(lambda b: (solve(A, b) ** 3).sum()))(B),
            j.vmap(solve, (None, 0))(A, np.stack([B, 2 * B])),
            j.vmap(j.grad(f), (0, None))(np.stack([A, 1.1 * A]), B),
            j.grad(lambda a: (j.vmap(solve, (None, 0))(a, np.stack([B, 2 * B])) ** 2).sum())(j.numpy.array(A)),
        ]

    return [derivatives(f) for f in both(j, partial(_linear, j))]


@program
def symmetric_linear_solves_with_aux(j: Any) -> Any:
    s = A @ A.T / 4
    solve = partial(_linear, j, symmetric=True, has_aux=True)
    f = lambda a, b: (solve(a, b)[0] ** 2).sum()  # noqa: E731
    return [[solve(s, B), j.jvp(solve, (s, B), (s, B)), j.grad(g, argnums=(0, 1))(s, B)] for g in both(j, f)]


# --- options of grad


@program
def integers_have_float0(j: Any) -> Any:
    n = np.arange(3, dtype=np.int32)
    scaled = lambda x, n: (x * n).sum()  # noqa: E731
    zeros = np.zeros(3, j.float0)
    _, pull = j.vjp(lambda x, n: (x * n, n + 1, n > 1), B, n)
    rounded = lambda x: (x, x.astype(np.int32))  # noqa: E731
    return [
        j.grad(scaled, argnums=(0, 1), allow_int=True)(B, n),
        j.grad(lambda p: (p["x"] * p["n"]).sum(), allow_int=True)({"x": B, "n": n, "flag": np.array([True])}),
        j.value_and_grad(scaled, argnums=1, allow_int=True)(B, n),
        pull((B, zeros, zeros)),
        j.jvp(scaled, (B, n), (B, zeros)),
        j.jvp(rounded, (B,), (B,)),
        j.linearize(rounded, B)[1](B),
        j.vjp(rounded, B)[1]((B, zeros)),
        j.jvp(lambda n: n * 2, (n,), (zeros,)),
    ]


@program
def discrete_paths_have_no_derivative(j: Any) -> Any:
    jnp = j.numpy
    functions = [
        lambda x: x * x.astype(np.int32),
        lambda x: jnp.where(x > 1.5, x, 2 * x),
        lambda x: x * jnp.argmax(x),
        lambda x: x * jnp.floor(x) + jnp.sign(x),
        lambda x: j.lax.cond(x[0] > 0, lambda x: x * 2, lambda x: x, x) * jnp.array([1, 2, 3]),
        lambda x: j.lax.fori_loop(0, 3, lambda i, s: (s[0] + 1, s[1] * s[0]), (1, x))[1],
        lambda x: j.lax.scan(lambda c, y: ((c[0] + 1, c[1] + y * c[0]), c[0]), (0, 0.0 * x[0]), x)[0][1],
    ]
    return [j.grad(lambda x, f=f: f(x).sum())(B) for f in functions]


@program
def forms_of_arguments(j: Any) -> Any:
    f = lambda x, y, *, k=1.0: (x["a"] * y * k).sum()  # noqa: E731
    x = {"a": B, "none": None}
    return [
        j.grad(f)(x, 2.0),
        j.grad(f, argnums=-1)(x, 2.0, k=3.0),
        j.grad(f, argnums=[1, 0])(x, 2.0),
        j.grad(f, argnums=np.int64(1))(x, 2.0, k=2.0),
        j.grad(f, 0, False, False, False, ())(x, 2.0),
        j.grad(lambda x, y: (f(x, y), {"s": "text", "y": y}), argnums=1, has_aux=True)(x, 2.0),
        j.value_and_grad(lambda x, y: [f(x, y), y], has_aux=True)(x, 2.0),
        j.vjp(lambda x, n: x * 2.0, 3.0, None)[1](1.0),
        j.vjp(lambda x: x * 2.0, 3.0, reduce_axes=())[1](1.0),
        j.vjp(lambda: 2.0)[1](1.0),
        j.linearize(lambda x: (x * x, {"aux": x}), 3.0, has_aux=True)[2],
        j.grad(lambda z: z * z * z, holomorphic=True)(np.complex64(1 + 2j)),
        j.grad(lambda z: (z * z.conj()).real)(np.complex64(1 + 2j)),
        j.jacrev(lambda z: (z * z.conj()).real)(np.complex64(1 + 2j)),
        j.jacfwd(lambda x, y: x * y, argnums=(0, -1))(3.0, 2.0),
    ]


# --- levels of derivatives do not mix


@program
def perturbations(j: Any) -> Any:
    d = j.grad
    sin = j.numpy.sin

    @j.custom_jvp
    def f(x: Any) -> Any:
        return sin(x)

    f.defjvp(lambda p, t: (f(*p), d(lambda y: y * sin(p[0]))(2.0) * t[0]))

    def by_aux(x: Any) -> Any:
        slope, aux = d(lambda y: (x * y**2, x * y), has_aux=True)(3.0)
        return slope * aux

    def by_vjp(x: Any) -> Any:
        value, pull = j.vjp(lambda y: x * sin(y), x)
        return pull(x)[0] * value

    def by_push(x: Any) -> Any:
        value, push = j.linearize(lambda y: x * y * y, x)
        return push(x) * value

    def by_list(x: Any) -> Any:
        kept: list[Any] = []
        d(lambda y: kept.append(x * 2) or y * x)(1.0)
        return kept[0] * x

    return [
        [
            d(lambda x: x * d(lambda y: x + y)(1.0))(1.0),
            d(lambda x: x * d(lambda y: x * y)(1.0))(3.0),
            d(lambda x: j.jvp(lambda y: x * y * y, (x,), (x,))[1])(2.0),
            j.jvp(lambda x: d(lambda y: sin(x * y) * x)(x), (1.5,), (1.0,)),
            d(d(lambda x: x**2 * d(lambda y: x * y**3)(x)))(1.2),
            d(lambda x: d(f)(x) * x)(0.7),
            *(d(wrap(g))(1.3) for g in (by_aux, by_vjp, by_push, by_list)),
            d(lambda x: j.vmap(d(lambda y: (x * y * y)))(B).sum())(2.0),
            d(lambda x: j.checkpoint(d(lambda y: x * sin(x * y)))(x))(0.4),
        ]
        for wrap in (lambda g: g, j.jit)
    ]


# --- checkpoint


def _layers(j: Any) -> Any:
    name = j.ad_checkpoint.checkpoint_name

    def f(w: Any, x: Any) -> Any:
        x = name(j.numpy.sin(w @ x), "first")
        x = name(j.numpy.sin(w @ x), "second")
        return j.numpy.sin(w @ x).sum()

    return f


def policies(j: Any) -> dict[str, Any]:
    p = j.checkpoint_policies
    return {
        "none": None,
        "everything": p.everything_saveable,
        "nothing": p.nothing_saveable,
        "dots": p.dots_saveable,
        "dots without batch": p.dots_with_no_batch_dims_saveable,
        "one name": p.save_only_these_names("first"),
        "all names but one": p.save_any_names_but_these("first"),
        "anything except names": p.save_anything_except_these_names("first", "second"),
        "both": p.save_from_both_policies(p.dots_saveable, p.save_only_these_names("second")),
        "by name of the primitive": lambda prim, *types, **params: prim.name in ("cos", "mul"),
    }


@program
def checkpoint_policies(j: Any) -> Any:
    f = _layers(j)
    found = {}
    for name, policy in policies(j).items():
        g = j.checkpoint(f, policy=policy)
        gradient = j.grad(g, argnums=(0, 1))
        loop = lambda x, g=g: j.lax.scan(lambda c, _: (c * g(A / 5, c), None), x, None, length=3)[0].sum()  # noqa: E731
        found[name] = [
            g(A, B), gradient(A, B), j.jit(gradient)(A, B), j.grad(j.jit(g))(A, B), j.jvp(g, (A, B), (A, B)),
            j.hessian(g, argnums=1)(A / 5, B), j.vmap(gradient, (None, 0))(A, np.stack([B, B / 2])),
            j.grad(lambda w, g=g: j.vmap(g, (None, 0))(w, np.stack([B, B / 2])).sum())(A),
            j.grad(loop)(B / 9), j.grad(j.checkpoint(loop, policy=policy))(B / 9),
            j.vmap(j.grad(j.checkpoint(loop, policy=policy)))(np.stack([B / 9, B / 8])),
        ]  # fmt: skip
    return found


@program
def checkpoints_nest(j: Any) -> Any:
    sin, c = j.numpy.sin, j.checkpoint
    inner = c(lambda x: sin(sin(x)))

    def chain(functions: Any) -> Any:
        if len(functions) == 1:
            return functions[0]
        half = len(functions) // 2
        first, second = chain(functions[:half]), chain(functions[half:])
        return lambda x: first(c(second)(x))

    functions = [
        c(lambda x: inner(inner(x) * x)),
        chain([sin, j.numpy.cos, sin, lambda x: x * x]),
        c(lambda x: j.lax.cond(x > 0, inner, lambda x: x * x, x)),
        c(lambda x: j.lax.fori_loop(0, 3, lambda i, y: inner(y) * x, x)),
        lambda x: j.lax.scan(c(lambda s, y: (inner(s) * y, s)), x, x * B)[0],
        c(lambda x: j.jit(inner)(x) * x, prevent_cse=False),
        j.remat(lambda x: j.grad(inner)(x) * x),
    ]
    return [
        [f(0.7), j.grad(f)(0.7), j.grad(j.grad(f))(0.7), j.jit(j.grad(f))(0.7), j.vmap(j.grad(f))(B / 4)]
        for f in functions
    ]


@program
def checkpoint_of_custom_rules(j: Any) -> Any:
    @j.custom_vjp
    def f(x: Any) -> Any:
        return x**2

    f.defvjp(lambda x: (x**2, x), lambda x, ct: (ct * x * 10,), optimize_remat=True)

    @j.custom_jvp
    def g(x: Any) -> Any:
        return x**3

    g.defjvp(lambda p, t: (g(*p), t[0] * p[0] * 7))
    h = j.checkpoint(lambda x: f(g(x)) * x)
    return [[k(2.0), j.grad(k)(2.0), j.grad(j.grad(k))(2.0), j.vmap(j.grad(k))(B)] for k in both(j, h)]


@program
def checkpoint_static_arguments(j: Any) -> Any:
    def f(x: Any, deep: Any, *, scale: Any = 1.0) -> Any:
        return j.numpy.sin(x) * scale if deep else x

    by_number = j.checkpoint(f, static_argnums=(1,))
    negative = j.checkpoint(f, static_argnums=-1)
    return j.grad(by_number)(1.0, True, scale=2.0), j.grad(by_number)(1.0, False), j.grad(negative)(1.0, True)


if __name__ == "__main__":
    import jax
    import jax.ad_checkpoint
    import jax.custom_derivatives

    answers = {name: plain(f(jax), jax) for name, f in PROGRAMS.items()}
    rounded = json.loads(json.dumps(answers), parse_float=lambda text: float(f"{float(text):.7g}"))
    lines = [f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in rounded.items()]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")
