"""Cases of HLO text that asks for too much: numbers of thousands of digits, brackets in brackets, endless names.

Such text is refused with a place, or it is a program, as in `text_cases.py`; nothing else may happen to it, and not
slowly.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from . import module_runs, text_cases
from .case import Case, Outcome, Stage
from .minimise import Shows

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?![\w.])")
_NAME = re.compile(r"%?[A-Za-z_][\w.\-]*")
_ANY = re.compile(r"(?s).")
LONG = 5000


def long_number(match: re.Match[str], rng: random.Random) -> str:
    return rng.choice("-+ ").strip() + rng.choice("0189") * rng.choice((25, LONG, 20 * LONG))


def deep(match: re.Match[str], rng: random.Random) -> str:
    opening, closing = rng.choice(("()", "{}", "[]", "<>", '""', ("/*", "*/"), ("{a=", "}"), ("(f32[], ", ")")))
    return opening * LONG + match.group() + closing * rng.choice((0, LONG))


def long_name(match: re.Match[str], rng: random.Random) -> str:
    return match.group() + rng.choice(("a", ".1", "_", "-", "%", "\\", "\0", "\u00e9")) * (20 * LONG)


def many(match: re.Match[str], rng: random.Random) -> str:
    return (match.group() + rng.choice((", ", "\n", " ", ""))) * LONG


EXTREMES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], random.Random], str]], ...] = (
    (_NUMBER, long_number), (_NUMBER, long_number), (_NUMBER, deep), (_NAME, deep), (_ANY, deep), (_NAME, long_name),
    (_NUMBER, many), (_NAME, many), (_ANY, many),
)  # fmt: skip


def draw(seed: int) -> Case:
    """The case of a seed."""
    rng = random.Random(seed)
    text = text_cases.base_text(rng)
    pattern, change = rng.choice(EXTREMES)
    matches = list(pattern.finditer(text))
    if matches:
        match = rng.choice(matches)
        text = text[: match.start()] + change(match, rng) + text[match.end() :]
    return Case("hostile", seed, text, options=module_runs.random_options(rng))


def check(case: Case, stage: Stage) -> Outcome:
    """See `text_cases.check`."""
    return text_cases.check(case, stage)


def minimised(case: Case, shows: Shows) -> Case:
    """See `text_cases.minimised`."""
    return text_cases.minimised(case, shows)
