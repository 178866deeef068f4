"""Messages of typical mistakes name the function, the argument, shapes and dtypes, the user's line, and a way out.

The table is in `support/mistakes.py`. `tools/jax_messages.py` records the errors that JAX raises for the same programs.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np
import pytest

from support import mistakes
from support.mistakes import FILE, MISTAKES, ONES, Mistake, error_of, with_namespaces

hloom = with_namespaces("hloom")
ADVICE = re.compile(
    r"\b(must|should|needs?|requires?|expected|expects|accepts?|takes?|only|cannot|can be|allowed|valid|equal|one of|"
    r"use|pass|give|call|make|try|convert|write|revise|return|set|did you mean|"
    r"check|choose|replace|reduce|take|add|register|missing|at most|pad|change|consider)\b",
    re.IGNORECASE,
)
"""Words of a requirement, or of an advice."""
HLO_WORDS = re.compile(r"\b(?:pred|[su]\d+|b?f\d+|c64|c128)(?:\[|\b)|\[[\w-]+_c\d+\]")
"""Types as HLO writes them, and labels of its rules."""
OTHER = {"checkpoint of a number", "setting flag", "sum axis text", "glu", "custom_vjp keyword"}
"""Programs that JAX runs, or refuses with another of Python's errors."""
RULES = ("function", "argument", "shapes and dtypes", "line", "advice", "words of users")


def lines_of(code: CodeType) -> set[int]:
    """The lines of a function of the table, and of the functions of that file that it calls."""
    lines = {line for _, _, line in code.co_lines() if line is not None}
    for name in code.co_names:
        called = getattr(mistakes, name, None)
        if inspect.isfunction(called) and name != "jnp_ones":
            lines |= lines_of(called.__code__)
    return lines.union(*[lines_of(c) for c in code.co_consts if isinstance(c, CodeType)])


def broken_rules(message: str, mistake: Mistake) -> list[str]:
    """The rules that a message breaks."""
    found = re.findall(r"mistakes\.py:(\d+)", message)
    own = re.sub(r"(?m)^  (in|at|called at) .*$", "", message)  # without the call and the line
    kept = {
        "function": re.search(rf"(?<!\w){re.escape(mistake.function)}(?!\w)", message),
        "argument": re.search(rf"(?<!\w){re.escape(mistake.argument)}(?!\w)", message),
        "shapes and dtypes": all(word in message or type_with(word) in message for word in mistake.words),
        "line": {int(line) for line in found} & lines_of(mistake.call.__code__),
        "advice": ADVICE.search(own),
        "words of users": not HLO_WORDS.search(own),
    }
    return [rule for rule in RULES if not kept[rule]]


def type_with(shape: str) -> str:
    """A shape as types have it: "(2, 3)" is "[2,3]"."""
    return f"[{shape.strip('()').rstrip(',').replace(', ', ',')}]"


@pytest.mark.parametrize("name", MISTAKES)
def test_the_message_helps(name: str) -> None:
    message = str(error_of(name, hloom))
    assert broken_rules(message, MISTAKES[name]) == [], message


def test_jax_refuses_them_too() -> None:
    """An `except` clause for JAX's error, if it is one of Python, catches that of hloom: all that is allowed beside it
    is in `OTHER`."""
    recorded = json.loads(FILE.read_text())
    assert list(recorded) == list(MISTAKES) and len(MISTAKES) >= 240
    differ = set()
    for name, found in recorded.items():
        error = error_of(name, hloom)
        if found is None or not {*found["classes"][:1]} <= {c.__name__ for c in type(error).__mro__}:
            differ.add(name)
    assert differ == OTHER


def test_the_recorded_errors_are_those_of_jax() -> None:
    jax = pytest.importorskip("jax")
    if jax.__version__ != mistakes.VERSION:
        pytest.skip(f"the errors were recorded from JAX {mistakes.VERSION}")
    jax, recorded = with_namespaces("jax"), json.loads(FILE.read_text())
    for name in list(MISTAKES)[::7]:
        error, found = error_of(name, jax), recorded[name]
        assert (error is None) is (found is None), name
        assert error is None or found["message"][:40] in str(error), name


def test_hloom_breaks_fewer_rules() -> None:
    """The same rules, where they can be asked of a message without a traceback, for JAX's messages."""
    recorded = json.loads(FILE.read_text())
    broken = [broken_rules(recorded[name]["message"], m) for name, m in MISTAKES.items() if recorded[name] is not None]
    assert sum("function" in rules for rules in broken) > 40
    assert sum("argument" in rules for rules in broken) > 100
    assert sum("shapes and dtypes" in rules for rules in broken) > 40


def test_each_rule_can_be_broken() -> None:
    mistake = MISTAKES["dot"]
    message = str(error_of("dot", hloom))
    assert broken_rules("nothing helps", mistake) == list(RULES[:5])
    assert broken_rules(f"of f32[3] {message}", mistake) == ["words of users"]


def _in_a_vmap(rule: Callable[..., Any]) -> Any:
    """The vmap of a custom_vmap function of a number, with this rule."""
    function = hloom.custom_batching.custom_vmap(lambda x: x)
    function.def_vmap(rule)
    return hloom.vmap(function)(ONES(3))


def named(axis_size: int, in_batched: Any, x: Any) -> Any:
    """A rule with a result of another structure than the function's."""
    return [x], [True]


SENTENCES: dict[str, tuple[Callable[[], Any], str]] = {
    "truth of many": (lambda: bool(hloom.numpy.ones(2)), "The truth value of an array with more than one element is"),
    "truth of none": (lambda: bool(hloom.numpy.ones(0)), "The truth value of an empty array is ambiguous"),
    "cotangent": (lambda: hloom.vjp(lambda x: x, 1.0)[1](ONES(2)), "unexpected JAX type"),
    "vmap of nothing": (
        lambda: hloom.vmap(lambda x: x)({}),
        r"or axis_size must be specified, got empty \*args=\(\{\},\) and \*\*kwargs=\{\}",
    ),
    "pmap of nothing": (lambda: hloom.pmap(lambda x: x)({}), "pmap requires at least one argument with a mapped axis"),
    "custom_vmap, a result": (
        lambda: _in_a_vmap(named), r"structure of output returned by custom vmap rule \(named\) does not match that of",
    ),
    "custom_vmap, flags": (
        lambda: _in_a_vmap(lambda n, b, x: (x, [True])),
        "structure of output value and output batching specification returned by custom vmap rule",
    ),
    "strict promotion": (
        lambda: hloom.numpy_dtype_promotion("strict")(hloom.numpy.add)(ONES(2), np.int32(1)),
        "no available implicit dtype promotion path when jax_numpy_dtype_promotion=strict",
    ),
    "narrow floats": (
        lambda: hloom.numpy.add(ONES(2), hloom.numpy.ones(2, "float8_e5m2")),
        "8-bit floats do not support implicit promotion",
    ),
    "float0": (
        lambda: hloom.lax.add(hloom.grad(lambda x: x + 0.0, allow_int=True)(1), 1.0),
        "float0s do not support any operations by design",
    ),
    "condition": (
        lambda: hloom.lax.while_loop(lambda x: (x, x), lambda x: x, 1.0),
        r"cond_fun must return a boolean scalar, but got pytree PyTreeDef\(\(\*, \*\)\)",
    ),
    "permutation": (
        lambda: hloom.vmap(lambda x: hloom.lax.pshuffle(x, "i", [1]), axis_name="i")(ONES(1)),
        r"`perm` does not represent a permutation: \[1\]",
    ),
    "two generators": (
        lambda: hloom.random.key(0, impl="rbg", dtype="rbg"), "Cannot specify both `impl` and `dtype`",
    ),
    "an array as seed": (lambda: hloom.random.key(np.arange(2)), "key accepts a scalar seed"),
    "a float as seed": (lambda: hloom.random.key(1.5), "PRNG key seed must be an integer"),
    "signed bits": (
        lambda: hloom.random.bits(hloom.random.key(0), (), "int8"), "dtype argument .* must be an unsigned int dtype",
    ),
    "a generator": (lambda: hloom.random.key(0, impl=object()), "unrecognized type .* for specifying PRNG"),
    "keys as numbers": (
        lambda: np.asarray(hloom.random.key(0)), "JAX array with PRNGKey dtype cannot be converted to a NumPy array.",
    ),
    "keywords with in_shardings": (
        lambda: hloom.jit(lambda x: x, in_shardings=hloom.P())(x=1.0),
        "does not support kwargs when in_shardings is specified",
    ),
    "types of a compiled function": (
        lambda: hloom.jit(lambda x: x).lower(ONES(2)).compile()(ONES(3)),
        "Argument types differ from the types for which this computation was compiled",
    ),
    "negative sizes": (lambda: hloom.lax.broadcast_shapes((-1,)), "Only non-negative indices are allowed"),
}  # fmt: skip
"""What programs for JAX look for in messages."""


@pytest.mark.parametrize("case", SENTENCES)
def test_messages_have_the_sentences_of_jax(case: str) -> None:
    call, sentence = SENTENCES[case]
    with pytest.raises((TypeError, ValueError), match=sentence):
        call()
