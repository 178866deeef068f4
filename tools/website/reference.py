"""The reference: a page for each public namespace, with the signature and the text of each of its names.

The names are those of `__all__`, which each namespace makes of its stub (`hloom/namespaces`). Two records in
`tests/data/` say how a name relates to JAX: `jax_names.json` has the names of its namespaces, `jax_signatures.json` the
signatures of its functions. A name that `docs/differences.md` mentions has a link to that section. A function of arrays
has types and errors, which its example shows when it runs, and when its calls are changed (`behaviour.py`).
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import re
import sys
import types
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import hloom  # noqa: E402
from hloom.namespaces.not_written import NotWritten  # noqa: E402
from support import jax_names, jax_signatures  # noqa: E402

from . import behaviour, calls  # noqa: E402
from .docstrings import markdown  # noqa: E402

_LOOSE = ("test_util",)
"""Namespaces that no other one names: `import hloom.test_util` makes them."""


def namespaces() -> dict[str, types.ModuleType]:
    """The public namespaces by their full names: `hloom`, and all that are reached from it by public names."""
    found: dict[str, types.ModuleType] = {}

    def visit(module: types.ModuleType) -> None:
        if module.__name__ not in found:
            found[module.__name__] = module
            for name in module.__all__:
                if _is_namespace(inner := getattr(module, name)):
                    visit(inner)

    for name in ("", *jax_names.NAMESPACES, *_LOOSE):
        visit(import_module(f"hloom.{name}".rstrip(".")))
    return dict(sorted(found.items()))


def _is_namespace(value: Any) -> bool:
    return isinstance(value, types.ModuleType) and value.__name__.startswith("hloom") and hasattr(value, "__all__")


def pages() -> dict[str, str]:
    """The path of each page of the reference below the site, and its Markdown."""
    spaces = namespaces()
    rows = [f"- [{name}]({name}.md), {len(m.__all__)} names: {_summary(m)}" for name, m in spaces.items()]
    entries = "\n".join(spaces)
    index = (
        "# Reference\n\nEvery public name, with its signature and an example. A namespace has the names of the same "
        "namespace of JAX; [its names](../namespaces.md) says which are missing, and why. The examples are run by the "
        "tests.\n\n" + "\n".join(rows)
        + f"\n\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n"
    )  # fmt: skip
    with calls.in_a_corner():
        made = {f"reference/{name}.md": page(name, module) for name, module in spaces.items()}
    return {"reference/index.md": index, **made}


def _summary(module: types.ModuleType) -> str:
    """The first sentence of a namespace's text, without its name."""
    first = markdown((module.__doc__ or "").strip().split("\n\n")[0]).replace("\n", " ")
    return re.split(r"(?<=\.) ", first)[0].removeprefix(f"`{module.__name__}`: ")


def page(space: str, module: types.ModuleType) -> str:
    """The page of a namespace: its text, the namespaces in it, its names."""
    parts = [f"# {space}", f"```{{py:module}} {space}\n```", markdown(module.__doc__ or "")]
    values = {name: getattr(module, name) for name in sorted(module.__all__, key=lambda n: (n.lower(), n))}
    inner = {name: value for name, value in values.items() if _is_namespace(value)}
    if inner:
        parts.append("\n".join(f"- [{n}]({value.__name__}.md): {_summary(value)}" for n, value in inner.items()))
    parts += [_entry(space, name, value) for name, value in values.items() if name not in inner]
    return "\n\n".join(parts) + "\n"


def _entry(space: str, name: str, value: Any) -> str:
    """The directive that describes a name."""
    path = space.removeprefix("hloom").lstrip(".")
    if isinstance(value, NotWritten):
        return _directive("py:data", name, [markdown(value.__doc__ or "")])
    body = [_in_jax(path, name, value), _text(value), *behaviour_of(f"{space}.{name}", value)]
    if isinstance(value, type):
        kind = "exception" if issubclass(value, BaseException) else "class"
        body += [_member(each, found) for each, found in _members(value)]
        return _directive(f"py:{kind}", name + _signature(value), body)
    if callable(value) and (signature := _signature(value)):
        return _directive("py:function", name + signature, body)
    kind = type(value).__name__
    options = {} if kind.startswith("_") else {"type": kind}
    return _directive("py:data", name, body, options)


def behaviour_of(name: str, value: Any) -> list[str]:
    """The types and errors of a function of arrays."""
    names = _examples().get(getattr(value, "__doc__", None) or "", ())
    return [behaviour.text(*names)] if name in names else []


@cache
def _examples() -> dict[str, list[str]]:
    return calls.by_text(calls.spaces(list(namespaces())))


def _directive(
    kind: str, signature: str, body: list[str], options: dict[str, str] | None = None, colons: str = "::::::"
) -> str:
    lines = [f"{colons}{{{kind}}} {signature}", *(f":{key}: {value}" for key, value in (options or {}).items()), ""]
    return "\n".join([*lines, "\n\n".join(part for part in body if part), colons])


def _text(value: Any) -> str:
    """The text of an object; none if it only has that of its class."""
    text = getattr(value, "__doc__", None)
    if not isinstance(text, str) or (not isinstance(value, type) and text == type(value).__doc__):
        return ""
    if isinstance(value, type) and dataclasses.is_dataclass(value) and text.startswith(f"{value.__name__}("):
        return ""  # the signature, which dataclasses write where there is no text
    return markdown(text, _arguments(value))


def _arguments(value: Any) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return ()


# ---- signatures


def _signature(value: Any, *, without_self: bool = False) -> str:
    """The signature as it is shown: without types that say nothing, and with defaults that Python can read."""
    if isinstance(value, type) and issubclass(value, enum.Enum | BaseException):
        return ""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    shown = [_parameter(p) for p in signature.parameters.values() if p.name[0] != "_" or p.default is p.empty]
    if without_self:
        shown = shown[1:]
    try:
        signature = signature.replace(parameters=shown, return_annotation=_annotation(signature.return_annotation))
    except ValueError:  # a parameter without a default after one that has been left out
        signature = signature.replace(parameters=(), return_annotation=inspect.Signature.empty)
    if isinstance(value, type):
        signature = signature.replace(return_annotation=inspect.Signature.empty)
    text = str(signature)
    return text if _is_python(f"def f{text}: ...") else "(...)"


class _Word:
    """Text that a signature shows as it is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _parameter(parameter: inspect.Parameter) -> inspect.Parameter:
    default = parameter.default
    if default is not parameter.empty:
        text = repr(default)
        default = _Word(getattr(default, "__name__", "...") if not _is_python(text) else text)
    return parameter.replace(default=default, annotation=_annotation(parameter.annotation))


def _annotation(found: Any) -> Any:
    text = found if isinstance(found, str) else getattr(found, "__name__", None) or str(found)
    is_variable = re.search(r"\b[A-Z]\b", text)  # a type variable, which is the same as nothing for a reader
    if found is inspect.Parameter.empty or text == "Any" or is_variable or not _is_python(text):
        return inspect.Parameter.empty
    return _Word(text)


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


# ---- methods


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that the library defines for a class, by name."""
    if issubclass(kind, BaseException):
        return
    for name in sorted(dir(kind)):
        if name.startswith("_"):
            continue
        home = next((base for base in kind.__mro__ if name in vars(base)), None)
        found = inspect.getattr_static(kind, name)
        is_ours = home is not None and home.__module__.partition(".")[0] == hloom.__name__
        if is_ours and isinstance(found, types.FunctionType | property | classmethod | staticmethod):
            yield name, found


def _member(name: str, found: Any) -> str:
    if isinstance(found, property):
        return _directive("py:property", name, [_text(found)], colons=":::::")
    is_bound = not isinstance(found, staticmethod)
    function = found.__func__ if isinstance(found, classmethod | staticmethod) else found
    options = {type(found).__name__: ""} if not isinstance(found, types.FunctionType) else {}
    signature = _signature(function, without_self=is_bound)
    return _directive("py:method", name + (signature or "()"), [_text(function)], options, colons=":::::")


# ---- beside JAX


@cache
def _records() -> tuple[dict[str, set[str]], dict[str, dict[str, str]]]:
    names = {space: set(found) for space, found in jax_names.recorded().items()}
    for space, found in jax_names.newer().items():
        names.setdefault(space, set()).update(found)
    return names, jax_signatures.recorded()


@cache
def _sections() -> dict[str, list[tuple[str, str]]]:
    """For a name that docs/differences.md has as code: the headings of the sections, with their anchors."""
    found: dict[str, list[tuple[str, str]]] = {}
    heading = ""
    for line in (ROOT / "docs" / "differences.md").read_text().splitlines():
        if match := re.match(r"##+ (.*)", line):
            heading = match[1].replace("`", "")
        elif heading:
            anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for code in re.findall(r"`([^`]+)`", line):
                for name in re.findall(r"(?:\w+\.)*\w+", code)[:1]:
                    if (heading, anchor) not in found.setdefault(name, []):
                        found[name].append((heading, anchor))
    return found


_SHORT = {"numpy": "jnp", "numpy.linalg": "jnp.linalg", "numpy.fft": "jnp.fft"}


def _in_jax(space: str, name: str, value: Any) -> str:
    """The line that compares a name with JAX's."""
    names, signatures = _records()
    if space not in names:
        return "JAX has no such namespace."
    if name not in names[space]:
        return "Not in JAX's namespace."
    line = f"As `{'.'.join(filter(None, ('jax', space, name)))}`"
    theirs = signatures.get(space, {}).get(name)
    if theirs is not None and callable(value) and jax_signatures.signature_of(value) not in (theirs, None):
        line += f", which has the signature `{_call(name, theirs)}`"
    sections = _sections()
    full = [f"{_SHORT.get(space, space)}.{name}".lstrip("."), f"{space}.{name}".lstrip("."), f"hloom.{space}.{name}"]
    places = dict.fromkeys(place for key in full for place in sections.get(key.replace("..", "."), ()))
    if places:
        line += "; see " + ", ".join(f"[{heading}](../differences.md#{anchor})" for heading, anchor in places)
    return line + "."


def _call(name: str, words: str) -> str:
    """The recorded words of a signature as Python writes it."""
    parts: list[str] = []
    for word in words.split():
        if word[0] == "!" and not any(part.startswith("*") for part in parts):
            parts.append("*")
        parts.append(word.lstrip("!"))
    positional = [k for k, part in enumerate(parts) if part[0] == "/"]
    parts = [f"x{part[1:]}" if part[0] == "/" else part for part in parts]
    if positional:
        parts.insert(positional[-1] + 1, "/")
    return f"{name}({', '.join(parts)})"
