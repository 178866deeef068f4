"""Schedules as text, as they are printed above kernels, and as users give them in a file. ::

    dot.3:
        Part(dimension='j', loop='strip')
        Split(loop='j', outer='column', size=32, tail='shift')
        ...
    *:
        Vectors(bits=256)

A name is a kernel's in `kernels()`; "*" are all kernels of a program. A printed kernel may be given as it is, and only
its comments are read. The text is read as data: names in it are short words, numbers are in bounds, and nothing else is
possible.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, get_args

from ...hlo.errors import ScheduleError
from ..loops.expressions import Name
from . import steps
from .steps import EVERY, KernelStep, Schedules, Step, Steps

KERNEL_STEPS = get_args(KernelStep)
STEPS: dict[str, Any] = {step.__name__: step for step in (*get_args(Step), *KERNEL_STEPS)}

MOST = 1 << 30
_MOST_CHARACTERS = 2000
_WORD = re.compile(r"[a-z][a-z0-9_]{0,29}")
_KERNEL = re.compile(r"(?P<name>[\w.\-]+|\*)(?P<colon>:.*)?")
_STEP = re.compile(r"([A-Z]\w*)\(.*\)")
_PARAMETER = re.compile(r"<(\w+)>")
_ALGORITHM = re.compile(r"\w+\[.*\] = .*")


def to_text(schedules: Schedules) -> str:
    """The text that `parse` turns back into these schedules."""
    return "".join(
        f"{name}:\n" + "".join(f"    {step}\n" for step in schedule) for name, schedule in schedules.items()
    )


def parse(text: str) -> dict[str, Steps]:
    """Schedules by kernel. ScheduleError, with the line, for another text."""
    found: dict[str, list[Step | KernelStep]] = {}
    names: list[str] = []
    in_names = in_code = False
    for number, line in enumerate(text.split("\n"), 1):
        words = line.strip()
        bare = words.lstrip("#").strip()
        is_header = line.startswith("#") or not in_code
        try:
            if not bare or (_ALGORITHM.fullmatch(bare) and words != bare):
                continue
            if (in_code and words == bare) or words.startswith(("def ", "@vectors(")):
                if words.startswith("@vectors("):
                    for name in names:
                        found[name].append(steps.Vectors(_number(words[len("@vectors(") : -1])))
                in_code, in_names = True, False
            elif _STEP.fullmatch(bare):
                if not names:
                    raise ScheduleError("a step comes after the name of its kernel")
                for name in names:
                    found[name].append(step_of(bare))
                in_names = False
            elif is_header and (header := _KERNEL.fullmatch(bare)) and (header["colon"] == ":" or words != bare):
                if not in_names:
                    names = []
                names.append(header["name"])
                if header["name"] in found:
                    raise ScheduleError(f"there are two schedules of {header['name']}")
                found[header["name"]] = []
                in_names, in_code = True, False
            elif not in_code:
                raise ScheduleError(f"{bare[:60]!r} is no step, and no name of a kernel with a colon")
        except ScheduleError as error:
            raise ScheduleError(f"line {number} of the schedules: {error}") from None
    return _checked_names({name: tuple(dict.fromkeys(each)) for name, each in found.items()})


def step_of(text: str) -> Step | KernelStep:
    """The step on a line of text. ScheduleError for any other text."""
    try:
        as_python = _PARAMETER.sub(r"Name('\1')", text)
        call = ast.parse(as_python, mode="eval").body if len(text) <= _MOST_CHARACTERS else None
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        call = None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ScheduleError(f"{text[:60]!r} is no step")
    kind = STEPS.get(call.func.id)
    if kind is None:
        raise ScheduleError(f"no step {call.func.id}: there are {', '.join(STEPS)}")
    given: dict[str, object] = {}
    shown = [f.name for f in fields(kind) if f.name not in ("names", "start", "count", "above")]
    keywords = [(k.arg or "**", k.value) for k in call.keywords]
    if kind is steps.Order and call.args:
        given["loops"] = tuple([_value(e) for e in call.args])
    else:
        keywords = [*zip(shown, call.args), *keywords]
        if len(call.args) > len(shown):
            raise ScheduleError(f"{kind.__name__} takes {', '.join(shown) or 'nothing'}")
    for name, node in keywords:
        if name not in shown or name in given:
            raise ScheduleError(f"{kind.__name__} takes each of {', '.join(shown) or 'nothing'} once, not {name}")
        given[name] = _value(node)
    for f in fields(kind):
        if f.name in given:
            _check(f"{kind.__name__}: {f.name}", str(f.type), given[f.name])
        elif f.name in shown and f.default is MISSING:
            raise ScheduleError(f"{kind.__name__} needs {f.name}")
    step: Step | KernelStep = kind(*given["loops"]) if kind is steps.Order else kind(**given)  # type: ignore[misc]
    return checked(step)


def checked(step: Step | KernelStep) -> Step | KernelStep:
    """The same step, with numbers and names that a kernel may have."""
    match step:
        case steps.Vectors(bits=bits) if bits not in (128, 256, 512):
            raise ScheduleError(f"vectors have 128, 256 or 512 bits, not {bits}")
        case steps.Split(tail=tail) if tail not in ("shift", "rest", "short"):
            raise ScheduleError(f"a tail is 'shift', 'rest' or 'short', not {tail!r}")
    if type(step).__name__ not in STEPS:
        raise ScheduleError(f"{step!r:.60} is no step: there are {', '.join(STEPS)}")
    for f in fields(step):
        _check(f"{type(step).__name__}: {f.name}", str(f.type), getattr(step, f.name))
    return step


def _value(node: ast.expr) -> object:
    match node:
        case ast.Constant(value=None | str() | bool() | int() as value):
            return value
        case ast.Tuple(elts=elements):
            return tuple([_value(e) for e in elements])
        case ast.Call(func=ast.Name(id="Name"), args=[ast.Constant(value=str(word))], keywords=[]):
            return Name(word)
    raise ScheduleError("a step has words, numbers and tuples of them")


def _check(where: str, kind: str, value: object) -> None:
    """`kind`: the field's type, as it is written."""
    words: Iterable[object] = (value,)
    match value:
        case None if "None" in kind:
            return
        case bool() if kind == "bool":
            return
        case int() if kind.startswith("int") and type(value) is int:
            if not 0 <= value <= MOST:
                raise ScheduleError(f"{where} is a number from 0 to {MOST}, not {value}")
            return
        case Name() if "Name" in kind:
            words = (value.name,)
        case tuple() if kind == "tuple[tuple[str, int], ...]":
            if any(not isinstance(e, tuple) or len(e) != 2 for e in value):
                raise ScheduleError(f"{where} has pairs of a loop and a number")
            for _, most in value:
                _check(where, "int", most)
            words = [word for word, _ in value]
        case tuple() if kind.startswith("tuple[str"):
            words = value
        case str() if kind in ("str", "Tail"):
            pass
        case _:
            raise ScheduleError(f"{where} is a {kind}, not {value!r:.40}")
    for word in words:
        if word != "" and (not isinstance(word, str) or not _WORD.fullmatch(word)):
            raise ScheduleError(f"{where} has short words of small letters, not {word!r:.40}")


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


def schedules_of_user(given: str | Mapping[str, str | Sequence[Step | KernelStep]]) -> dict[str, Steps]:
    """The schedules that a user gives: the text, or for each kernel its steps, or their lines. ScheduleError for
    others."""
    if isinstance(given, str):
        return parse(given)
    if not isinstance(given, Mapping):
        raise ScheduleError(f"schedules are a text, or steps by the names of kernels, not {given!r:.60}")
    found: dict[str, Steps] = {}
    for name, schedule in given.items():
        if not re.fullmatch(r"[\w.\-]+|\*", str(name)):
            raise ScheduleError(f"{name!r:.60} is no name of a kernel")
        if isinstance(schedule, str):
            lines = [line.strip().lstrip("#").strip() for line in schedule.split("\n")]
            found[name] = tuple([step_of(line) for line in lines if line])
        elif not isinstance(schedule, Iterable):
            raise ScheduleError(f"the schedule of {name} is its steps or their lines, not {schedule!r:.60}")
        else:
            found[name] = tuple([checked(step) for step in schedule])
    return _checked_names(found)


def _checked_names(schedules: dict[str, Steps]) -> dict[str, Steps]:
    for name, schedule in schedules.items():
        for kind in (steps.Vectors, steps.Share):
            if len(different := {str(step) for step in schedule if isinstance(step, kind)}) > 1:
                raise ScheduleError(f"{name} has one step {kind.__name__}, not {' and '.join(sorted(different))}")
        for step in schedule:
            if name == EVERY and not isinstance(step, KERNEL_STEPS):
                raise ScheduleError(f"{step} is for one kernel, by its name, not for all")
            if name != EVERY and isinstance(step, steps.Jumps):
                raise ScheduleError(f"{step} is for a program, {EVERY!r}, not for one kernel")
    return schedules
