"""The difference of two stages of a program: the lines of HLO that passes took out and put in.

The lines of each computation are compared with those of the computation that has its name in the other stage, as text,
as `diff` does: an instruction with a new name is another line. Around changes are a few lines that did not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from difflib import SequenceMatcher
from enum import Enum

from ..ir import HloModule, header_text
from ..notebooks import in_notebooks
from ..support.records import dataclass
from ..support.terminal import shows_colours
from ..text.printer import computation_texts
from .rewriter import Application

_AROUND = 3
"""Unchanged lines before and after a change."""
_FEW_ELEMENTS = 64
"""Larger constants are shown as `{...}`."""


class Side(Enum):
    """On which side of a difference a line is; the value stands before it."""

    BOTH = " "
    REMOVED = "-"
    ADDED = "+"


_COLOURS = {Side.BOTH: "", Side.REMOVED: "\x1b[31m", Side.ADDED: "\x1b[32m"}
_BOLD, _FAINT, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of HLO."""

    side: Side
    text: str


@dataclass(frozen=True, slots=True)
class Group:
    """Changes that are near each other, in a computation."""

    computation: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class ModuleDiff:
    """Two stages of a program, `before` and `after`, and what is between them. It prints as lines with `-` and `+`: in
    colours in a terminal (unless NO_COLOR is set), and in a notebook."""

    title: str
    before: HloModule = field(repr=False)
    after: HloModule = field(repr=False)
    rules: Mapping[str, int] = field(default_factory=dict)
    """How often each rule fired, of passes that have rules."""
    applications: Sequence[Application] = field(default=(), repr=False)
    """Each application of a rule, in order: `str` shows the instructions before and after."""

    def groups(self) -> Iterator[Group]:
        """The changes: of computations that are gone, then of the others in the order of the program after them."""
        old, new = _computations(self.before), _computations(self.after)
        for name in [*[name for name in old if name not in new], *new]:
            was, now = old.get(name, ()), new.get(name, ())
            matcher = SequenceMatcher(None, was, now, autojunk=False)
            for codes in matcher.get_grouped_opcodes(_AROUND) if was != now else ():
                found = []
                for code, start, end, new_start, new_end in codes:
                    if code == "equal":
                        found += [Line(Side.BOTH, text) for text in now[new_start:new_end]]
                    else:
                        found += [Line(Side.REMOVED, text) for text in was[start:end]]
                        found += [Line(Side.ADDED, text) for text in now[new_start:new_end]]
                yield Group(name, tuple(found))

    @property
    def about(self) -> str:
        """How many instructions there were and are, and the rules that fired."""
        counts = [sum(len(c.instructions) for c in module.computations) for module in (self.before, self.after)]
        rules = "".join([f", {name} x{count}" for name, count in sorted(self.rules.items())])
        return f"{counts[0]} -> {counts[1]} instructions{rules}"

    def to_text(self, colour: bool = False) -> str:
        """The lines, with ANSI's colours if they are asked for."""

        def painted(text: str, style: str) -> str:
            return f"{style}{text}{_PLAIN}" if colour and style else text

        lines = [painted(f"{self.title}: {self.about}", _BOLD)]
        for group in self.groups():
            lines += ["", painted(f"@ {group.computation}", _FAINT)]
            lines += [painted(f"{line.side.value} {line.text}".rstrip(), _COLOURS[line.side]) for line in group.lines]
        if len(lines) == 1:
            lines.append("no line differs")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.to_text(shows_colours())

    __repr__ = __str__
    _repr_html_ = in_notebooks


def _computations(module: HloModule) -> dict[str, tuple[str, ...]]:
    """The lines of each computation of a module, by its name in the text, and before them the line of the module."""
    texts = computation_texts(module.computations, module.entry, _FEW_ELEMENTS, metadata=False)
    named = {text.partition(" (")[0].removeprefix("ENTRY "): tuple(text.split("\n")) for text in texts}
    return {"HloModule": (header_text(module),), **named}


class ModuleDiffs(tuple[ModuleDiff, ...]):
    """Several differences, which print below each other."""

    __slots__ = ()

    def to_text(self, colour: bool = False) -> str:
        """The text of each one, with ANSI's colours if they are asked for."""
        return "\n\n".join([diff.to_text(colour) for diff in self])

    def __str__(self) -> str:
        return self.to_text(shows_colours())

    __repr__ = __str__
    _repr_html_ = in_notebooks
