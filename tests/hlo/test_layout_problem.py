"""The choice of orders against all possibilities, on problems small enough to try all of them."""

from __future__ import annotations

import itertools
import random

import pytest
from hloom.hlo.passes.layout.orders import Order, completed, meets, reshaped_order
from hloom.hlo.passes.layout.problem import Edge, Problem, Solver

from support.steps import steps_of

ROWS, COLUMNS = (0, 1), (1, 0)


def _same(order: Order) -> Order:
    return order


def _turned(order: Order) -> Order:
    return tuple(1 - d for d in order)


def random_problem(rng: random.Random, count: int) -> Problem:
    """Matrices that are made of earlier ones, some of them transposed; a few are fixed, and the last ones are."""
    problem = Problem()
    for number in range(count):
        fixed = rng.choice([None, None, None, ROWS, COLUMNS]) if number else COLUMNS
        problem.variable((3, 5), fixed)
        for source in rng.sample(range(number), min(number, rng.randint(1, 2))):
            cost = rng.choice([10, 10, 20, 50])
            turns = rng.random() < 0.2
            change = _turned if turns else _same
            problem.edges.append(Edge(source, number, cost, change, change, (1, 0) if turns else (0, 1)))
    return problem


def cheapest(problem: Problem) -> int:
    """By trying everything."""
    solver = Solver(problem)
    choices = [[ROWS, COLUMNS] if v.fixed is None else [v.fixed] for v in problem.variables]
    return min(solver.total(orders) for orders in itertools.product(*choices))


def test_few_bytes_are_copied() -> None:
    rng = random.Random(3)
    found, best, default, exact = 0, 0, 0, 0
    for _ in range(150):
        problem = random_problem(rng, rng.randint(3, 9))
        orders = problem.solve()
        for order, variable in zip(orders, problem.variables, strict=True):
            assert variable.fixed in (None, order)
        solver = Solver(problem)
        cost, least = solver.total(orders), cheapest(problem)
        assert least <= cost <= solver.total([v.fixed or ROWS for v in problem.variables])
        found, best, exact = found + cost, best + least, exact + (cost == least)
        default += solver.total([v.fixed or ROWS for v in problem.variables])
    assert exact >= 140, f"{exact} of 150 are as cheap as can be"
    assert found <= 1.02 * best < 0.7 * default, (found, best, default)


def test_chains_are_solved_exactly() -> None:
    """One end in rows, one in columns: one copy, at the cheapest place."""
    rng = random.Random(4)
    for _ in range(50):
        problem = Problem()
        costs = [rng.randint(1, 100) for _ in range(rng.randint(1, 30))]
        problem.variable((3, 5), COLUMNS)
        for number, cost in enumerate(costs, 1):
            problem.variable((3, 5), ROWS if number == len(costs) else None)
            problem.edges.append(Edge(number - 1, number, cost, _same, _same, (0, 1)))
        assert Solver(problem).total(problem.solve()) == min(costs)


def test_restrictions_hold() -> None:
    rng = random.Random(5)
    for _ in range(100):
        problem = random_problem(rng, 8)
        for variable in problem.variables:
            if variable.fixed is None and rng.random() < 0.5:
                variable.allows = lambda order: order == ROWS
        for order, variable in zip(problem.solve(), problem.variables, strict=True):
            assert variable.allows is None or variable.allows(order)


def test_steps_grow_with_the_size() -> None:
    def steps(count: int) -> int:
        return steps_of(random_problem(random.Random(6), count).solve)

    steps(100)
    small, large = steps(250), steps(2000)
    assert large < 16 * small, (small, large)  # n log n, and not 64 times


@pytest.mark.parametrize(
    ("source", "target", "order", "wanted"),
    [
        ((4, 5, 30), (20, 5, 6), (2, 0, 1), (1, 2, 0)),
        ((4, 5, 30), (20, 5, 6), (2, 1, 0), None),  # 4 and 5 become one dimension: they must be neighbours in order
        ((4, 5, 30), (20, 5, 6), (0, 2, 1), None),
        ((20, 30), (600,), (1, 0), None),
        ((20, 30), (600,), (0, 1), (0,)),
        ((20, 1, 30), (20, 30), (2, 1, 0), (1, 0)),
        ((20, 30), (1, 20, 30), (1, 0), (0, 2, 1)),
        ((0, 3), (3, 0), (1, 0), (0, 1)),
        ((2, 3), (2, 3), (1, 0), (1, 0)),
    ],
)
def test_reshape_as_bitcast(
    source: tuple[int, ...], target: tuple[int, ...], order: Order, wanted: Order | None
) -> None:
    assert reshaped_order(source, target, order) == wanted


def test_orders() -> None:
    assert completed((2, 0), (0, 1, 2)) == (2, 1, 0)
    assert meets((2, 1, 0), (2, 0), (3, 4, 5)) and not meets((2, 1, 0), (0, 2), (3, 4, 5))
    assert meets((2, 1, 0), (0, 2), (1, 4, 5)), "a dimension of size 1 has no place in memory"
