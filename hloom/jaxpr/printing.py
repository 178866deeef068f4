"""The notation of jaxprs: ``{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }``.

It reads the attributes of jaxprs and equations, and knows which parameters JAX does not show. Variables are named in
the order in which they are printed. A jaxpr that is used more than once, or is long, is printed first, as
``let f = { ... } in``. Line breaks are chosen by documents: a group is one line if it fits, else each of its breaks is
a new line.

    group("[", nest(2, brk(""), "axes=(0,)", brk(), "keepdims=True"), brk(""), "]")

is ``[axes=(0,) keepdims=True]``, or three indented lines. A text may have a note (the user's line), which is printed at
the end of its line, behind all code.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from ..hlo.support.records import dataclass
from .atoms import DropVar, Literal, Var, number, short


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Break:
    """A new line, or `text` where the group is one line."""

    text: str = " "


@dataclass(frozen=True, slots=True)
class Concat:
    parts: tuple[Doc, ...]


@dataclass(frozen=True, slots=True)
class Nest:
    """Its breaks are indented by `indent` more."""

    indent: int
    doc: Doc


@dataclass(frozen=True, slots=True)
class Group:
    doc: Doc


Doc: TypeAlias = Text | Break | Concat | Nest | Group
WIDTH = 80
"""Of a line, as in JAX."""


def seq(*parts: Doc | str) -> Doc:
    """One after another."""
    return Concat(tuple([Text(p) if isinstance(p, str) else p for p in parts]))


def brk(text: str = " ") -> Doc:
    return Break(text)


def nest(indent: int, *parts: Doc | str) -> Doc:
    return Nest(indent, seq(*parts))


def group(*parts: Doc | str) -> Doc:
    return Group(seq(*parts))


def join(separator: Doc, docs: Iterable[Doc]) -> Doc:
    """`docs` with the separator between neighbours."""
    parts: list[Doc] = []
    for doc in docs:
        parts += [separator, doc] if parts else [doc]
    return Concat(tuple(parts))


def formatted(doc: Doc, width: int = WIDTH) -> str:
    """The text, with lines of at most `width` where breaks allow it."""
    return _with_notes(_lines(doc, width))


def _lines(doc: Doc, width: int) -> list[tuple[str, list[str]]]:
    """Each line with its notes."""
    lines: list[tuple[str, list[str]]] = []
    line, notes = "", []
    stack: list[tuple[int, bool, Doc]] = [(0, False, doc)]
    while stack:
        indent, is_flat, node = stack.pop()
        match node:
            case Text(text, note):
                line += text
                if note:
                    notes.append(note)
            case Break(text) if is_flat:
                line += text
            case Break():
                lines.append((line.rstrip() if not line.strip() else line, notes))
                line, notes = " " * indent, []
            case Concat(parts):
                stack += [(indent, is_flat, p) for p in reversed(parts)]
            case Nest(more, inner):
                stack.append((indent + more, is_flat, inner))
            case Group(inner):
                stack.append((indent, is_flat or _fits(inner, width - len(line)), inner))
    lines.append((line, notes))
    return lines


def _fits(doc: Doc, room: int) -> bool:
    """Whether the document as one line has at most `room` characters."""
    stack = [doc]
    while stack and room >= 0:
        match stack.pop():
            case Text(text) | Break(text):
                room -= len(text)
            case Concat(parts):
                stack += reversed(parts)
            case Nest(_, inner) | Group(inner):
                stack.append(inner)
    return room >= 0


def _with_notes(lines: list[tuple[str, list[str]]]) -> str:
    column = max((len(line) for line, notes in lines if notes), default=0)
    result = []
    for line, notes in lines:
        result.append(f"{line.ljust(column)} # {notes[0]}" if notes else line)
        result += [f"{' ' * column} # {note}" for note in notes[1:]]
    return "\n".join(result)


LONG = 10
"""A nested jaxpr with more equations is printed before the jaxpr that uses it."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `pretty_print`."""

    source_info: bool = False
    print_shapes: bool = True
    custom_pp_eqn_rules: bool = True
    name_stack: bool = False
    print_effects: bool = False


@dataclass(slots=True)
class _Context:
    options: Options
    names: dict[Var, str] = field(default_factory=dict)
    shared: dict[Any, str] = field(default_factory=dict)
    """The jaxprs that are printed first, with their names."""
    fresh: Iterator[str] = field(default_factory=iter)  # type: ignore[arg-type]

    def name(self, var: Var) -> str:
        found = self.names.get(var)
        if found is None:
            taken = set(self.shared.values())
            found = self.names[var] = next(n for n in self.fresh if n not in taken)
        return found

    def name_alike(self, inner: Sequence[Any], outer: Sequence[Any]) -> None:
        """The variables of a nested jaxpr get the names of those that they stand for."""
        used: set[Var] = set()
        for a, b in zip(inner, outer):
            if isinstance(a, Var) and isinstance(b, Var) and a not in self.names and b not in used:
                used.add(b)
                self.names[a] = "_" if isinstance(b, DropVar) else self.name(b)


def _letters() -> Iterator[str]:
    """a, b, ..., z, ba, bb, ...: numbers in base 26."""
    for n in itertools.count():
        text = ""
        while not text or n:
            n, digit = divmod(n, 26)
            text = chr(ord("a") + digit) + text
        yield text


def jaxpr_text(jaxpr: Any, options: Options, width: int) -> str:
    """A jaxpr as text."""
    context = _Context(options, fresh=_letters())
    for equation in _walk(jaxpr):
        for var in equation.outvars:
            if isinstance(var, DropVar):
                context.names[var] = "_"
    context.names.update(dict.fromkeys(_unused(jaxpr), "_"))
    context.shared = _shared(jaxpr)
    docs = []
    for inner, name in context.shared.items():
        docs.append(seq(f"let {name} = ", _jaxpr(inner, context), " in", brk()))
    return formatted(seq(*docs, _jaxpr(jaxpr, context)), width)


def equation_text(equation: Any, options: Options) -> str:
    """One equation as text; its variables are named from a."""
    return formatted(_equation(equation, _Context(options, fresh=_letters())))


# ---- search before printing


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Any]:
    """The jaxprs, not closed, among the values of an equation's parameters."""
    for value in params.values():
        for each in value if isinstance(value, tuple | list) else (value,):
            if _is_jaxpr(each):
                yield _opened(each)


def _is_jaxpr(value: Any) -> bool:
    has = {name for name in ("eqns", "invars", "jaxpr", "consts") if hasattr(value, name)}
    return {"eqns", "invars"} <= has or {"jaxpr", "consts"} <= has


def _opened(value: Any) -> Any:
    return value.jaxpr if hasattr(value, "jaxpr") else value


def _walk(jaxpr: Any) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        yield equation
        for inner in jaxprs_in_params(equation.params):
            yield from _walk(inner)


def _unused(jaxpr: Any) -> list[Var]:
    """Variables of the outermost equations that nothing needs."""
    used = {a for a in jaxpr.outvars if isinstance(a, Var)}
    found = []
    for equation in reversed(jaxpr.eqns):
        found += [v for v in equation.outvars if v not in used]
        used.update(a for a in equation.invars if isinstance(a, Var))
    return found


def _shared(jaxpr: Any) -> dict[Any, str]:
    """The jaxprs to print first, with their names, in the order in which they are met, outermost first."""
    counts: Counter[Any] = Counter()
    names: dict[Any, str] = {}
    waiting = [jaxpr]
    for each in waiting:  # grows while it is walked through
        counts[each] += 2 if each is not jaxpr and len(each.eqns) > LONG else 1
        for equation in each.eqns:
            name = equation.params.get("name")
            for inner in jaxprs_in_params(equation.params):
                waiting.append(inner)
                if name is not None:
                    names.setdefault(inner, name.strip("<>"))
    taken: Counter[str] = Counter()
    found = {}
    for each, count in counts.items():
        if count > 1:
            name = names.get(each, "jaxpr")
            number_of_name = taken[name]
            taken[name] += 1
            if number_of_name:
                name = f"{name}{number_of_name}"
                taken[name] += 1
            found[each] = name
    return found


# ---- documents


def _jaxpr(jaxpr: Any, context: _Context) -> Doc:
    constvars, invars = (_atoms(vs, context, is_binder=True) for vs in (jaxpr.constvars, jaxpr.invars))
    equations = join(brk("; "), [_equation(e, context) for e in jaxpr.eqns])
    results = seq("(", _atoms(jaxpr.outvars, context, ","), ")" if len(jaxpr.outvars) != 1 else ",)")
    effects = []
    if context.options.print_effects:
        effects = [f" : {{ {', '.join(map(str, jaxpr.effects))} }}"]
    inside = nest(
        2, "{ lambda ", constvars, "; ", invars, ". let", nest(2, brk(), equations), brk(), "in ", results, *effects
    )
    return group(inside, " }")


def _nested(jaxpr: Any, context: _Context) -> Doc:
    name = context.shared.get(jaxpr)
    return _jaxpr(jaxpr, context) if name is None else Text(name)


def _atoms(atoms: Iterable[Any], context: _Context, separator: str = "", *, is_binder: bool = False) -> Doc:
    shown = [_atom(a, context, is_binder and context.options.print_shapes) for a in atoms]
    return nest(2, group(join(seq(separator, group(brk())), shown)))


def _atom(atom: Any, context: _Context, with_type: bool) -> Doc:
    if isinstance(atom, Literal):
        return Text(f"{number(atom.val)}:{short(atom.aval)}")
    name = "_" if isinstance(atom, DropVar) else context.name(atom)
    return Text(f"{name}:{short(atom.aval)}" if with_type else name)


def _equation(equation: Any, context: _Context) -> Doc:
    options = context.options
    info = equation.source_info
    note = str(info) if options.source_info and info is not None else ""
    stack = f"[{info.name_stack}]" if options.name_stack and info is not None else ""
    bound = _atoms(equation.outvars, context, is_binder=True)
    params = {k: v for k, v in equation.params.items() if k != "call"}  # which `calls.py` keeps for itself
    if equation.primitive.name == "jit" and params["jaxpr"].jaxpr not in context.shared:
        context.name_alike(params["jaxpr"].jaxpr.invars, equation.invars)
        context.name_alike(params["jaxpr"].jaxpr.outvars, equation.outvars)
    pairs = [(k, params[k]) for k in sorted(params)]
    if options.custom_pp_eqn_rules:
        pairs = shown_params(equation.primitive.name, params)
    right = [Text(equation.primitive.name, stack), _params(pairs, context), " ", _atoms(equation.invars, context)]
    return seq(bound, Text(" = ", note), *right) if equation.outvars else seq(*right)


def _params(pairs: list[tuple[str, Any]], context: _Context) -> Doc:
    if not pairs:
        return seq()
    shown = join(brk(), [seq(f"{key}=", _param(value, context)) for key, value in pairs])
    return group(nest(2, "[", brk(""), shown), brk(""), "]")


def _param(value: Any, context: _Context) -> Doc:
    if isinstance(value, tuple) and all(map(_is_jaxpr, value)):
        inner = join(brk(), [_nested(_opened(v), context) for v in value])
        return group(nest(2, "(", brk(""), inner), brk(""), ")")
    if _is_jaxpr(value):
        return _nested(_opened(value), context)
    if isinstance(value, frozenset):
        return Text(f"frozenset({{{', '.join(map(repr, sorted(value)))}}})")
    return Text(re.sub(r" at 0x([0-9a-fA-F]+)", lambda m: " at 0x" + "X" * len(m[1]), str(value)))


# ---- parameters that are not shown, or shown in another form


def shown_params(name: str, params: dict[str, Any]) -> list[tuple[str, Any]]:
    """The parameters of an equation as they are printed, in order."""
    rule = _SHOWN.get(name)
    kept = {k: v for k, v in params.items() if not (k in _SILENT_IF_NONE and v is None)}
    if rule is not None:
        return rule(kept)
    return sorted(kept.items())


_SILENT_IF_NONE = frozenset({"accuracy", "out_dtype"})


def _broadcast_in_dim(params: dict[str, Any]) -> list[tuple[str, Any]]:
    """The variable that it binds shows the shape."""
    dimensions = params["broadcast_dimensions"]
    return [("broadcast_dimensions", dimensions)] if dimensions else []


def _convert(params: dict[str, Any]) -> list[tuple[str, Any]]:
    return sorted((k, v) for k, v in params.items() if k != "sharding")


def _dot_general(params: dict[str, Any]) -> list[tuple[str, Any]]:
    contracting, batch = params["dimension_numbers"]
    shown = {k: v for k, v in params.items() if v is not None and k != "out_sharding"}
    shown["dimension_numbers"] = tuple([tuple(map(list, pair)) for pair in (contracting, batch)])
    return sorted(shown.items())


def _jit(params: dict[str, Any]) -> list[tuple[str, Any]]:
    shown = {"jaxpr": params["jaxpr"]}
    if any(params.get("donated_invars", ())):
        shown["donated_invars"] = params["donated_invars"]
    if params.get("keep_unused"):
        shown["keep_unused"] = True
    return [("name", params["name"]), *sorted(shown.items())]


def _custom(*rules: str) -> Callable[[dict[str, Any]], list[tuple[str, Any]]]:
    """A function with a derivative of its own: the names of its rules."""

    def shown(params: dict[str, Any]) -> list[tuple[str, Any]]:
        kept = {k: v for k, v in params.items() if k != "name" and (k != "num_consts" or v)}
        for rule in rules:
            kept[rule.partition("_jaxpr_")[0]] = getattr(kept.pop(rule), "name", "<unnamed>")
        return [("name", params["name"]), *sorted(kept.items())]

    return shown


_SHOWN: dict[str, Callable[[dict[str, Any]], list[tuple[str, Any]]]] = {
    "broadcast_in_dim": _broadcast_in_dim,
    "convert_element_type": _convert,
    "custom_jvp_call": _custom("jvp_jaxpr_fun"),
    "custom_vjp_call": _custom("fwd_jaxpr_thunk", "bwd"),
    "dot_general": _dot_general,
    "reshard": lambda params: [],
    "jit": _jit,
}
