"""lax.custom_root and lax.custom_linear_solve: solutions with a derivative from the implicit function theorem.

Each is a primitive. Its meaning is the user's solver; derivatives do not go through it. They solve a linear equation at
the solution instead, by the user's solver for that. While nothing is traced the solver itself runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..hlo.ir import HloComputation
from ..hlo.support.records import dataclass
from ..tracer.arguments import check_function
from ..tracer.arrays.array import as_value
from ..tracer.arrays.overlay import overlaid_all
from ..tracer.aval import ShapedArray
from ..tracer.core import EVAL, Call, Primitive, Value, bind_call, current_trace, eval_computation, run_meaning
from ..tracer.errors import TreeStructureError
from ..tracer.ops import neg, sub, zeros
from ..tracer.recording import trace_to_computation
from ..tracer.source import function_line
from ..tracer.trees import tree
from .api import linearize
from .functions import TracedFunction, divided, linear_transpose, traced_function
from .jvp import jvp_computation, moving_mask
from .tangents import Linear, Operand, Tangent, Zero, instantiate

Function = Callable[..., Any]
Solver = Callable[[Function, Any], Any]


class _Problem:
    """The unknown of a call: its leaves, their types, their tree."""

    def __init__(self, name: str, example: Any) -> None:
        self.name = name
        leaves, self.tree = tree.flatten(example)
        self.leaves: list[Value] = [as_value(leaf) for leaf in leaves]
        self.avals = [v.aval for v in self.leaves]

    def check(self, what: str, fun: Function, found_tree: Any, found: Sequence[ShapedArray]) -> None:
        """TreeStructureError unless a result of `fun` is like the unknown."""
        if found_tree != self.tree:
            raise TreeStructureError(
                f"{self.name}: {what} {function_line(fun)} returns a pytree of structure {found_tree}, "
                f"but the unknown has the structure {self.tree}"
            )
        for ours, theirs in zip(self.avals, found, strict=True):
            if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
                raise TreeStructureError(
                    f"{self.name}: {what} {function_line(fun)} returns {theirs.str_short()} where the unknown has "
                    f"{ours.str_short()}"
                )

    def solution(self, fun: Function, found: Any, has_aux: bool) -> Any:
        """The result of a solver, checked: the solution alone, or with aux."""
        if has_aux and (not isinstance(found, tuple | list) or len(found) != 2):
            raise TypeError(
                f"{self.name} with has_aux=True: the solver {function_line(fun)} must return a pair (solution, aux), "
                f"but it returned a {type(found).__name__}"
            )
        leaves, structure = tree.flatten(found[0] if has_aux else found)
        self.check("the solver", fun, structure, [as_value(leaf).aval for leaf in leaves])
        return found

    def results(self, part: TracedFunction, results: Sequence[Value]) -> Any:
        return tree.unflatten(part.out_tree, overlaid_all(results, part.out_avals))


def _call(primitive: Primitive, params: Any, operands: Sequence[Value]) -> Call:
    """A call with the meaning `solve` on the last operands; its captured values are the second part of the others."""

    def run(values: list[Value]) -> list[Value]:
        parts = params.split(values)
        return eval_computation(params.solve.computation, [*parts[-1], *parts[1]])

    name = primitive.name
    traced = trace_to_computation(run, [o.aval for o in operands], name, tracks_varying=True)
    return Call(primitive, traced.computation, params, name, (("name", name),))


# --- linear equations


@dataclass(frozen=True, slots=True)
class _LinearSolve:
    """The parameters of a call of LINEAR_SOLVE. Its operands: the captured values of matvec, solve, vecmat and
    transpose_solve, then the right-hand side."""

    matvec: TracedFunction
    solve: TracedFunction
    vecmat: TracedFunction | None
    transpose_solve: TracedFunction | None

    @property
    def parts(self) -> list[TracedFunction]:
        every = (self.matvec, self.solve, self.vecmat, self.transpose_solve)
        return [p for p in every if p is not None]

    def split(self, operands: Sequence[Any]) -> tuple[list[Any], ...]:
        return divided(operands, [len(p.captured) for p in self.parts])

    def call(self, operands: Sequence[Value]) -> Call:
        return _call(LINEAR_SOLVE, self, operands)

    def transposed(self) -> _LinearSolve:
        if self.vecmat is None or self.transpose_solve is None:
            raise TypeError(
                "transpose_solve required for backwards mode automatic differentiation of custom_linear_solve: give "
                "transpose_solve, or symmetric=True"
            )
        return _LinearSolve(self.vecmat, self.transpose_solve, self.matvec, self.solve)


LINEAR_SOLVE = Primitive("custom_linear_solve", evaluate=run_meaning, is_linear=True)
"""Linear in the right-hand side."""


def custom_linear_solve(
    matvec: Function,
    b: Any,
    solve: Solver,
    transpose_solve: Solver | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """See `hloom.lax.custom_linear_solve`, which calls this."""
    check_function(matvec, "custom_linear_solve")
    problem = _Problem("custom_linear_solve", b)
    if current_trace() is EVAL:
        return problem.solution(solve, solve(matvec, b), has_aux)
    avals, structure = problem.avals, tree.structure((b,))
    forwards = traced_function(matvec, avals, structure, "matvec")
    problem.check("the function", matvec, forwards.out_tree, forwards.out_avals)

    def solving(solver: Solver, function: Function) -> TracedFunction:
        def solution(y: Any) -> Any:
            return problem.solution(solver, solver(function, y), has_aux)

        return traced_function(solution, avals, structure, "solve")

    solved = solving(solve, matvec)
    backwards = solved_backwards = None
    if symmetric:
        backwards = forwards
        solved_backwards = solved if transpose_solve is None else solving(transpose_solve, matvec)
    elif transpose_solve is not None:

        def vecmat(y: Any) -> Any:
            (x,) = linear_transpose(matvec, b)(y)
            return x

        backwards = traced_function(vecmat, avals, structure, "vecmat")
        solved_backwards = solving(transpose_solve, vecmat)
    params = _LinearSolve(forwards, solved, backwards, solved_backwards)
    operands = [*(v for p in params.parts for v in p.captured), *problem.leaves]
    return problem.results(solved, bind_call(params.call(operands), operands))


@LINEAR_SOLVE.def_jvp
def _linear_solve_jvp(
    call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]
) -> tuple[list[Value], list[Tangent]]:
    """A x = b, so A x' = b' - A' x."""
    params: _LinearSolve = call.params
    results = bind_call(call, primals)
    *known, b = params.split(primals)
    of_matvec, *_, of_b = params.split(tangents)
    x, aux = results[: len(b)], results[len(b) :]
    moved = _along(params.matvec.computation, x, known[0], of_matvec)
    right = [_difference(t, m) for t, m in zip(of_b, moved, strict=True)]
    still: list[Tangent] = [Zero(a.aval) for a in aux]
    if all(isinstance(t, Zero) for t in right):
        return results, [*(Zero(v.aval) for v in x), *still]
    operands = [*primals[: len(primals) - len(b)], *(instantiate(t) for t in right)]
    return results, [*bind_call(call, operands)[: len(b)], *still]


def _along(
    computation: HloComputation, x: Sequence[Value], known: Sequence[Value], tangents: Sequence[Tangent]
) -> list[Tangent]:
    """How the results of a function at `x` move with the values that it captured."""
    if all(isinstance(t, Zero) for t in tangents):
        return [Zero(v.aval) for v in x]
    derived = jvp_computation(computation, (*[False] * len(x), *moving_mask(tangents)))
    given = [t for t in tangents if not isinstance(t, Zero)]
    return derived.unpack(eval_computation(derived.computation, [*x, *known, *given, *derived.captured]))[1]


def _difference(s: Tangent, t: Tangent) -> Tangent:
    if isinstance(t, Zero):
        return s
    return neg(t) if isinstance(s, Zero) else sub(s, t)


@LINEAR_SOLVE.def_transpose
def _linear_solve_transpose(
    call: Call, cts: Sequence[Value | None], operands: Sequence[Operand]
) -> Sequence[Value | None]:
    params: _LinearSolve = call.params
    back = params.transposed()
    *known, b = params.split(operands)
    if any(isinstance(k, Linear) for part in known for k in part):
        raise TypeError("custom_linear_solve is linear in the right-hand side only")
    right = [zeros(o.aval) if ct is None else ct for ct, o in zip(cts, b, strict=False)]
    given = [*(v for k in (2, 3, 0, 1) for v in known[k]), *right]
    found = bind_call(back.call(given), given)[: len(b)]
    return [*(None for part in known for _ in part), *found]


# --- roots


@dataclass(frozen=True, slots=True)
class _Root:
    """The parameters of a call of ROOT. Its operands: the captured values of the function, the solver and the tangents'
    solver, then the initial guess."""

    function: TracedFunction
    solve: TracedFunction
    tangent_solve: TracedFunction
    """Takes the solution and the right-hand side."""

    @property
    def parts(self) -> list[TracedFunction]:
        return [self.function, self.solve, self.tangent_solve]

    def split(self, operands: Sequence[Any]) -> tuple[list[Any], ...]:
        return divided(operands, [len(p.captured) for p in self.parts])


ROOT = Primitive("custom_root", evaluate=run_meaning)


def custom_root(
    f: Function, initial_guess: Any, solve: Solver, tangent_solve: Solver, has_aux: bool = False
) -> Any:
    """See `hloom.lax.custom_root`, which calls this."""
    check_function(f, "custom_root")
    problem = _Problem("custom_root", initial_guess)
    if current_trace() is EVAL:
        return problem.solution(solve, solve(f, initial_guess), has_aux)
    avals, structure = problem.avals, tree.structure((initial_guess,))
    function = traced_function(f, avals, structure, "f")
    problem.check("the function", f, function.out_tree, function.out_avals)
    solved = traced_function(lambda x: problem.solution(solve, solve(f, x), has_aux), avals, structure, "solve")

    def of_tangents(x: Any, y: Any) -> Any:
        _, g = linearize(f, x)
        return problem.solution(tangent_solve, tangent_solve(g, y), False)

    pair = tree.structure((initial_guess, initial_guess))
    strong = [a.with_weak_type(False) for a in avals]
    params = _Root(function, solved, traced_function(of_tangents, [*strong, *strong], pair, "tangent_solve"))
    operands = [*(v for p in params.parts for v in p.captured), *problem.leaves]
    return problem.results(solved, bind_call(_call(ROOT, params, operands), operands))


@ROOT.def_jvp
def _root_jvp(
    call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]
) -> tuple[list[Value], list[Tangent]]:
    """f(x, p) = 0, so (df/dx) x' = -(df/dp) p'."""
    params: _Root = call.params
    results = bind_call(call, primals)
    of_function, _, of_tangents, guess = params.split(primals)
    x, aux = results[: len(guess)], results[len(guess) :]
    moved = _along(params.function.computation, x, of_function, params.split(tangents)[0])
    still: list[Tangent] = [Zero(a.aval) for a in aux]
    if all(isinstance(t, Zero) for t in moved):
        return results, [*(Zero(v.aval) for v in x), *still]
    right = [neg(instantiate(t)) for t in moved]
    found = eval_computation(params.tangent_solve.computation, [*x, *right, *of_tangents])
    return results, [*found, *still]
