"""Docstrings as Markdown (MyST).

The library's docstrings are paragraphs, descriptions of arguments (``axis: the axis ...``), and examples of doctest.
`code` and ``code`` mean the same in Markdown; every other character is itself.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator

_ARGUMENT = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*): ")
_HEADING = re.compile(r"^[A-Z]\w*:$")
_CODE = re.compile(r"(``.+?``|`[^`\n]+`)", re.DOTALL)
_SPECIAL = re.compile(r"[*_<>\[\]#$\\|~{}]")
_LIST = re.compile(r"^\s*(?:[-*]|\d+\.) ")


def markdown(text: str, arguments: Collection[str] = ()) -> str:
    """The Markdown of a docstring. Lines that describe one of `arguments` become a list."""
    return "\n\n".join(part for block in _blocks(inspect.cleandoc(text)) for part in _formatted(block, arguments))


def _blocks(text: str) -> Iterator[list[str]]:
    """The lines of each paragraph; an example is one of its own."""
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        begins = line.lstrip().startswith(">>>") and block and not block[0].lstrip().startswith(">>>")
        if block and (not line.strip() or begins):
            yield block
            block = []
        if line.strip():
            block.append(line)


def _formatted(block: list[str], arguments: Collection[str]) -> Iterator[str]:
    first = block[0]
    indent = len(first) - len(first.lstrip())
    if first.lstrip().startswith(">>>"):
        yield "\n".join(["```pycon", *_dedented(block, indent), "```"])
    elif _HEADING.match(first) and block[1:] and all(line.startswith("  ") for line in block[1:]):
        yield f"**{first}**"
        inner = [line[2:] for line in block[1:]]
        yield "\n".join(_items(inner)) if _describes(inner, None) else _escaped("\n".join(inner))
    elif indent >= 4:  # code, or a table that stays as it is written
        yield "\n".join(["```text", *_dedented(block, indent), "```"])
    elif _describes(block, arguments):
        yield "\n".join(_items(block))
    else:
        yield _escaped("\n".join(line.strip() if not _LIST.match(first) else line for line in block))


def _dedented(block: list[str], indent: int) -> Iterator[str]:
    """Lines without the indent of the first, as far as they have it."""
    return (line[min(indent, len(line) - len(line.lstrip())) :] for line in block)


def _describes(block: list[str], arguments: Collection[str] | None) -> bool:
    """Whether the lines of a paragraph describe arguments (None: of any names); those of one are indented after the
    first."""
    named = [_ARGUMENT.match(line) for line in block if not line.startswith(" ")]
    words = [word.strip(" *") for match in named if match for word in match[1].split(",")]
    return bool(named) and all(named) and (arguments is None or any(word in arguments for word in words))


def _items(block: list[str]) -> Iterator[str]:
    for line in block:
        match = _ARGUMENT.match(line)
        if match and not line.startswith(" "):
            names = ", ".join(f"`{name.strip()}`" for name in match[1].split(","))
            yield f"- {names}: {_escaped(line[match.end():])}"
        else:
            yield f"  {_escaped(line.strip())}"


def _escaped(text: str) -> str:
    """Text in which Markdown changes nothing but code."""
    parts = _CODE.split(text)
    parts[::2] = [_SPECIAL.sub(r"\\\g<0>", part) for part in parts[::2]]
    return "".join(parts)
