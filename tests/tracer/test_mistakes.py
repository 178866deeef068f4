"""Messages of typical mistakes name the function, the argument, shapes and dtypes, the user's line, and a way out.

The table is in `support/mistakes.py`. `tools/jax_messages.py` records the errors that JAX raises for the same programs.
"""

from __future__ import annotations

import inspect
import json
import re
from types import CodeType

import pytest

from support import mistakes
from support.mistakes import FILE, MISTAKES, Mistake, error_of, with_namespaces

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
