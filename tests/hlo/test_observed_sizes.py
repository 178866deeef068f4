"""Sizes that note how they are used: the answers, the trials with other sizes, what has no place in a result."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hloom.hlo.analyses.forms import Form, ModuleForm, OpaqueConstant, with_sizes
from hloom.hlo.analyses.size_classes import classes_of
from hloom.hlo.literal import Literal
from hloom.hlo.support.kept import Kept
from hloom.hlo.support.memory_pressure import relieve
from hloom.hlo.support.observed import MOST_ANSWERS, Observations, Recalled, Trial

from hloom import hlo


def _observed(function: Callable[..., Any], *values: int) -> tuple[Observations, Any]:
    seen = Observations(values)
    return seen, function(*seen.sizes())


def _holds(seen: Observations, *values: int) -> bool:
    return Trial(seen, values).holds()


def test_a_result_is_computed_from_other_sizes() -> None:
    seen, result = _observed(lambda n, m: -(-(n * m + 1 - m // 3) // 8) % 100 + (n << 2) + (m & 6), 30, 7)
    assert result.value == -(-(30 * 7 + 1 - 7 // 3) // 8) % 100 + 120 + 6
    assert not seen.answers
    assert Trial(seen, (50, 9)).number(result) == -(-(50 * 9 + 1 - 9 // 3) // 8) % 100 + 200 + 0
    assert Trial(seen, (50, 9)).number("n") == "n"


@pytest.mark.parametrize(
    "question, same, other",
    [
        (lambda n: n > 16, 17, 16),
        (lambda n: 16 < n, 17, 16),  # noqa: SIM300
        (lambda n: n % 32 == 0, 128, 97),
        (lambda n: bool(n - 96), 96, 97),
        (lambda n: n in (1, 96), 96, 97),
        (lambda n: n == 96.0, 96, 97),
        (lambda n: n * 0.5 < 48.5, 96, 97),
        (lambda n: max(n, 100), 99, 101),
        (lambda n: (n, 2) == (96, 2), 96, 97),
        (lambda n: (n, 2) < (97, 0), 40, 98),
        (lambda n: list(range(n)), 96, 97),
        (lambda n: f"{n}", 96, 95),
        (lambda n: f"{n:3}", 96, 95),
        (lambda n: str(n), 96, 95),
        (lambda n: n / 3, 96, 95),
        (lambda n: 3 / n, 96, 95),
        (lambda n: math.sqrt(n), 96, 95),
        (lambda n: np.zeros(n), 96, 95),
        (lambda n: abs(n - 100), 99, 100),
        (lambda n: n.bit_length() == 7, 64, 63),
        (lambda n: math.prod([n, 3]) < 300, 99, 100),
        (lambda n: sum([n, n]) != 192, 96, 95),
    ],
)
def test_an_answer_holds_for_some_sizes(question: Callable[[Any], Any], same: int, other: int) -> None:
    seen, answer = _observed(question, 96)
    plain = question(96)
    assert np.array_equal(plain, answer.value if hasattr(answer, "term") else answer)
    assert _holds(seen, 96)
    assert _holds(seen, same)
    assert not _holds(seen, other)


def test_what_is_the_same_by_construction_asks_nothing() -> None:
    seen, _ = _observed(lambda n, m: (n == n, n * m <= n * m, n + 0 == n, 1 * n != n, n != None), 5, 6)  # noqa: E711
    assert not seen.answers


def test_an_answer_is_noted_once() -> None:
    seen, _ = _observed(lambda n: [n * 2 > 16 for _ in range(5)], 96)
    assert len(seen.answers) == 1


def test_what_would_take_the_number_unseen() -> None:
    (n,), (other,) = Observations((5,)).sizes(), Observations((5,)).sizes()
    uses: tuple[Callable[[Any], Any], ...] = (
        hash, lambda x: {x: 1}, lambda x: x == "5", lambda x: x + other, lambda x: x < other, lambda x: x**2,
        lambda x: x.to_bytes(2), np.asarray,
    )  # fmt: skip
    for use in uses:
        with pytest.raises(TypeError):
            use(n)


def test_a_trial_that_divides_by_zero_fails() -> None:
    seen, _ = _observed(lambda n, m: n // (m - 1) > 3, 100, 2)
    assert not _holds(seen, 100, 1)
    seen, _ = _observed(lambda n, m: m > 1 and n // (m - 1) > 3, 100, 2)
    assert not _holds(seen, 100, 1)


@pytest.mark.parametrize("same", [False, True])
def test_an_answer_that_may_make_no_difference(same: bool) -> None:
    asked: list[int] = []

    def is_same() -> bool:
        asked.append(1)
        return same

    for first, other in ((5, 50), (50, 5)):
        asked.clear()
        seen, is_less = _observed(lambda n: n.is_less(16, is_same), first)
        assert is_less is (first < 16)
        assert not asked
        assert _holds(seen, first + 1)
        assert not asked
        assert _holds(seen, other) is same
        assert _holds(seen, other + 1) is same
        assert len(asked) == 1


def test_what_is_asked_then_is_noted_too() -> None:
    seen, _ = _observed(lambda n, m: n.is_less(16, lambda: m > 100), 5, 200)
    assert _holds(seen, 6, 7)
    assert _holds(seen, 50, 300)
    assert not _holds(seen, 50, 7)
    assert not _holds(seen, 5, 7)  # it holds, but nobody knows that any more


def test_what_is_asked_then_is_a_part_of_all_questions_after_it() -> None:
    """The number of the first answers was noted before it was asked."""
    seen, _ = _observed(lambda n, m: n.is_less(16, lambda: m > 100), 5, 200)
    count = len(seen.answers)
    assert Trial(seen, (50, 300)).holds(count)
    assert not Trial(seen, (50, 7)).holds(count)
    assert Trial(seen, (6, 7)).holds(count)


def test_the_observed_sizes_hold() -> None:
    seen, _ = _observed(lambda n: n > 16, 100)
    assert Trial(seen, (100,)).holds()


def test_a_part_of_the_answers() -> None:
    seen, _ = _observed(lambda n: (n > 16, n > 64), 100)
    trial = Trial(seen, (32,))
    assert trial.holds(1)
    assert not trial.holds(2)
    assert not trial.holds()


def _drawn(rng: random.Random) -> Callable[..., Any]:
    """A function of three sizes, which decides and computes."""
    steps = [(rng.choice("+-*/%<=!m&"), rng.randrange(5), rng.randrange(5), rng.randint(1, 9)) for _ in range(8)]

    def function(*sizes: Any) -> list[Any]:
        values: list[Any] = [*sizes, 3, 16]
        for kind, a, b, k in steps:
            x, y = values[-1 - a], values[b]
            if kind == "<":
                values.append(x + 1 if x < y else y * 2)
            elif kind == "=":
                values.append(x if x == y + k else 7)
            elif kind == "!":
                values.append(y if (x - y) % k else x)
            elif kind == "m":
                values.append(max(x, y, k))
            else:
                operations = {"+": x + y, "-": x - y, "*": x * k, "/": x // k, "%": x % k, "&": x & (k - 1)}
                values.append(operations[kind])
        return values

    return function


@pytest.mark.parametrize("seed", range(40))
def test_random_functions(seed: int) -> None:
    """Where the answers hold, the result is the one that plain numbers give."""
    rng = random.Random(seed)
    function = _drawn(rng)
    held = 0
    for _ in range(30):
        values = [rng.choice((1, 2, 5, 16, 17, 30, 96, 128)) for _ in range(3)]
        seen, result = _observed(function, *values)
        assert [Trial(seen, values).number(x) for x in result] == function(*values)
        for _ in range(10):
            others = [rng.choice((v, v + 1, 2 * v, 7, 64)) for v in values]
            trial = Trial(seen, others)
            if trial.holds():
                held += 1
                assert [trial.number(x) for x in result] == function(*others)
    assert held


def test_recalled() -> None:
    calls: list[Sequence[Any]] = []

    def text(sizes: Sequence[Any]) -> str:
        calls.append(sizes)
        return "large" if sizes[0] > 16 else "small"

    recalled: Recalled[str] = Recalled()
    assert [recalled.of([n], text) for n in (20, 30, 4, 5, 40)] == ["large", "large", "small", "small", "large"]
    assert len(calls) == 2
    numbers: Recalled[str] = Recalled()
    assert [numbers.of([n], lambda sizes: f"{sizes[0]}") for n in range(3 * MOST_ANSWERS)] == [
        str(n) for n in range(3 * MOST_ANSWERS)
    ]
    assert len(numbers._found) == MOST_ANSWERS


def test_recalled_without_observation() -> None:
    """A function that cannot be observed is called with numbers."""
    recalled: Recalled[int] = Recalled()
    for n in (3, 4, 3):
        assert recalled.of([n], lambda sizes: {3: 9, 4: 16}[sizes[0]]) == n * n


def test_kept_within_a_limit() -> None:
    kept: Kept[str, int] = Kept(10)
    assert kept.keep("a", 1, 6) == 1 and kept.keep("b", 2, 4) == 2 and len(kept) == 2
    kept.keep("c", 3, 1)
    assert kept == {"c": 3}
    kept.keep("d", 4, 9)
    assert kept == {"c": 3, "d": 4}
    relieve()
    assert not kept


HEADER = "HloModule m\n\nENTRY main {\n"


ADD = "r {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b)\n}\n\n"


def _form(text: str) -> Form:
    return Form(hlo.parse(HEADER + text + "\n}\n").entry)


def test_a_form_has_no_sizes_and_no_ordinary_constants() -> None:
    text = """x = f32[96,30]{1,0} parameter(0)
        c = f32[] constant(0.25)
        b = f32[96,30]{1,0} broadcast(c), dimensions={}
        y = f32[96,30]{1,0} multiply(x, b)
        ROOT s = f32[90,30]{1,0} slice(y), slice={[6:96], [0:30]}"""
    form = _form(text)
    other = _form(text.replace("96", "128").replace("90", "122").replace("0.25", "2.5"))
    assert form.structure == other.structure
    assert form.sizes == (*(96, 30) * 3, 6, 96, 30, 90, 30)
    assert other.sizes == (*(128, 30) * 3, 6, 128, 30, 122, 30)
    assert (form.constants, other.constants) == ((Literal(np.float32(0.25)),), (Literal(np.float32(2.5)),))
    swapped = text.replace("multiply(x, b)", "multiply(b, x)")
    constants = [text.replace("0.25", value) for value in ("1", "-1", "0", "inf", "nan")]
    for different in (text.replace("f32", "f64"), swapped, *constants):
        assert _form(different).structure != form.structure
    assert _form(text.replace("96", "30").replace("90", "24")).structure == form.structure  # equal sizes by chance


CLASSES = {
    "elementwise": (
        """x = f32[96,30]{1,0} parameter(0)
        y = f32[96,30]{1,0} parameter(1)
        ROOT z = f32[96,30]{1,0} add(x, y)""",
        (0, 1) * 3,
    ),
    "a constant has none": (
        """x = s32[6]{0} parameter(0)
        c = s32[6]{0} constant({1, 2, 3, 4, 5, 6})
        ROOT z = s32[6]{0} add(x, c)""",
        (0, 0),
    ),
    "broadcast and transpose": (
        """x = f32[30]{0} parameter(0)
        b = f32[30,30,7]{2,1,0} broadcast(x), dimensions={1}
        ROOT t = f32[7,30,30]{2,1,0} transpose(b), dimensions={2,1,0}""",
        (0, 1, 0, 2, 2, 0, 1),
    ),
    "product": (
        """x = f32[9,30,20]{2,1,0} parameter(0)
        y = f32[9,40,20]{2,1,0} parameter(1)
        ROOT z = f32[9,30,40]{2,1,0} dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2},"""
        " rhs_contracting_dims={2}",
        (0, 1, 2, 0, 3, 2, 0, 1, 3),
    ),
    "tuple": (
        """x = f32[9]{0} parameter(0)
        y = s32[9]{0} parameter(1)
        t = (f32[9]{0}, s32[9]{0}) tuple(x, y)
        ROOT z = s32[9]{0} get-tuple-element(t), index=1""",
        (0, 1, 0, 1, 1),
    ),
    "concatenation": (
        """x = f32[9,8]{1,0} parameter(0)
        y = f32[9,30]{1,0} parameter(1)
        ROOT z = f32[9,38]{1,0} concatenate(x, y), dimensions={1}""",
        (0, 1, 0, 2, 0, 3),
    ),
    "reduction": (
        """x = f32[9,8,7]{2,1,0} parameter(0)
        c = f32[] constant(0)
        ROOT z = f32[9,7]{1,0} reduce(x, c), dimensions={1}, to_apply=r""",
        (0, 1, 2, 0, 2),
    ),
    "reshape": (
        """x = f32[9,8]{1,0} parameter(0)
        ROOT z = f32[72]{0} reshape(x)""",
        (0, 1, 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_classes_are_the_sizes_that_operations_require_to_be_equal(name: str) -> None:
    text, expected = CLASSES[name]
    computation = hlo.parse(HEADER.replace("ENTRY", ADD + "ENTRY") + text + "\n}\n").entry
    classes, form = classes_of([computation]), Form(computation)
    count = max(expected) + 1
    assert tuple(classes.places(range(count))) == expected
    assert classes.hold(form.sizes)
    assert len(classes.sizes(form.sizes)) == count
    assert not classes.hold([size + k for k, size in enumerate(form.sizes)]) or count == len(expected)


def test_the_state_of_a_loop_is_one_class() -> None:
    text = """HloModule m

c {
  s = (s32[], f32[9]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}

b {
  s = (s32[], f32[9]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[9]{0} get-tuple-element(s), index=1
  n = s32[] constant(1)
  j = s32[] add(i, n)
  ROOT r = (s32[], f32[9]{0}) tuple(j, x)
}

ENTRY main {
  i = s32[] constant(0)
  x = f32[9]{0} parameter(0)
  s = (s32[], f32[9]{0}) tuple(i, x)
  ROOT w = (s32[], f32[9]{0}) while(s), condition=c, body=b
}
"""
    module = hlo.parse(text)
    form = ModuleForm(module)
    assert set(form.sizes) == {9}
    assert len(classes_of(module.computations).sizes(form.sizes)) == 1


def test_sizes_are_put_in_their_places() -> None:
    """In the order of the form, also where equal ones are in different classes."""
    text = """x = f32[9,9]{1,0} parameter(0)
        s = f32[9,8]{1,0} slice(x), slice={[0:9], [1:9]}
        ROOT t = (f32[9,9]{1,0}, f32[9,8]{1,0}) tuple(x, s)"""
    computation = hlo.parse(HEADER + text + "\n}\n").entry
    form = Form(computation)
    numbers = iter(range(100, 100 + len(form.sizes)))
    x, s, t = with_sizes(computation, numbers, {}).instructions
    assert next(numbers, None) is None
    assert x.shape.dimensions == (100, 101)
    assert (s.attributes.limit_indices, s.shape.dimensions) == ((102, 103), (104, 105))
    assert [e.dimensions for e in t.shape.elements] == [(106, 107), (108, 109)]


def test_padding_and_sizes_are_not_confused() -> None:
    """A size has a mark in the structure; an amount of padding may be negative."""
    text = """x = f32[96]{0} parameter(0)
        c = f32[] constant(0)
        ROOT p = f32[95]{0} pad(x, c), padding=-1_0"""
    assert _form(text).structure != _form(text.replace("-1_0", "96_0").replace("f32[95]", "f32[192]")).structure
    assert _form(text).structure != _form(text.replace("-1_0", "0_-1")).structure


def test_a_constant_in_a_reducer_is_part_of_the_form() -> None:
    text = """HloModule m

r {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] constant(0.25)
  d = f32[] multiply(a, c)
  ROOT e = f32[] add(d, b)
}

ENTRY main {
  x = f32[96]{0} parameter(0)
  z = f32[] constant(0)
  ROOT y = f32[] reduce(x, z), dimensions={0}, to_apply=r
}
"""
    first, second = (Form(hlo.parse(each).entry) for each in (text, text.replace("0.25", "0.5")))
    assert first.structure != second.structure
    assert not first.constants


def test_nobody_looks_into_an_opaque_constant() -> None:
    computation = hlo.parse(HEADER + "ROOT c = f32[] constant(0.25)\n}\n").entry
    changed = with_sizes(computation, iter(()), {Literal(np.float32(0.25)): OpaqueConstant(3)})
    assert changed.root.attributes.literal.number == 3
    for look in (lambda literal: literal.array, lambda literal: literal.shape):
        with pytest.raises(TypeError):
            look(changed.root.attributes.literal)
