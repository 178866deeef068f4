"""Discardable attributes, which any operation may have: shardings, frontend attributes, accuracy.

`mhlo.sharding` is XLA's text of a sharding. `sdy.sharding` names axes of a mesh; in HLO it is the text of a frontend
attribute, as Shardy's export writes it (`hlo/shardy.py`), beside XLA's text of the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import UnsupportedError
from ..mlir.tree import Attribute, Opaque, Operation, Record, function_type
from ..sharding import HloSharding
from ..shardy import SHARDING, NamedMesh, shardings_of
from .attributes import read_float, read_integer, read_word

FRONTEND = "mhlo.frontend_attributes"
MHLO_SHARDING = "mhlo.sharding"
SDY_SHARDING = "sdy.sharding"
ACCURACY = "result_accuracy"
ONE_VALUE, PER_VALUE = "#sdy.sharding", "#sdy.sharding_per_value<[{}]>"
"""How Shardy writes the sharding of an argument, and the shardings of an operation's results."""
OWN_COMPOSITES = "hloom."
"""The namespace of composites whose name has none: StableHLO wants one."""

Pairs = tuple[tuple[str, str], ...]


def read_discardable(attributes: Mapping[str, Attribute], meshes: Mapping[str, NamedMesh]) -> tuple[Pairs, Pairs]:
    """The frontend attributes and the annotations. `meshes`: the meshes of the module."""
    frontend: list[tuple[str, str]] = []
    annotations: list[tuple[str, str]] = []
    given = attributes.get(FRONTEND)
    if isinstance(given, dict):
        frontend += [(key, _text(value)) for key, value in given.items()]
    sharding = attributes.get(MHLO_SHARDING)
    if isinstance(sharding, str):
        annotations.append(("sharding", sharding))
    named = attributes.get(SDY_SHARDING)
    if isinstance(named, Opaque):
        frontend.append((SHARDING, named.text))
        if not isinstance(sharding, str):
            annotations.append(("sharding", text_of_xla(named.text, meshes)))
    accuracy = _accuracy(attributes.get(ACCURACY))
    if accuracy:
        annotations.append((ACCURACY, accuracy))
    return tuple(frontend), tuple(annotations)


def each_value(text: str) -> list[str]:
    """The sharding of each value in the text of a sharding of several."""
    first, last = PER_VALUE.split("{}")
    if not text.startswith(first):
        return []
    return [f"{ONE_VALUE}<{each}>" for each in text.removeprefix(f"{first}<").removesuffix(f">{last}").split(">, <")]


def complete_attributes(function: Operation) -> None:
    """Give a function a dictionary for each argument and each result."""
    type_ = function_type(function)
    for name, values in (("arg_attrs", type_.inputs), ("res_attrs", type_.results)):
        if not isinstance(function.attributes.get(name), tuple):
            function.attributes[name] = tuple([{} for _ in values])


def add_shardings(function: Operation, arguments: Sequence[str], results: Sequence[str]) -> None:
    """Say how the arguments and results of a function are divided, in XLA's words or in Shardy's; "" says nothing.
    Arguments after the given ones keep their attributes."""
    complete_attributes(function)
    for name, texts in (("arg_attrs", arguments), ("res_attrs", results)):
        own = function.attributes[name]
        assert isinstance(own, tuple)
        made = [{**each, **_sharding(text)} for each, text in zip(own, texts)]  # type: ignore[dict-item]
        function.attributes[name] = (*made, *own[len(made) :])


def _sharding(text: str) -> dict[str, Attribute]:
    if not text:
        return {}
    return {SDY_SHARDING: Opaque("sdy", text)} if text.startswith(ONE_VALUE) else {MHLO_SHARDING: text}


def text_of_xla(text: str, meshes: Mapping[str, NamedMesh]) -> str:
    """XLA's text of a sharding along the axes of a mesh. Several shardings become the sharding of a tuple."""
    found = [each.sharding for each in shardings_of(text, meshes)]
    return (found[0] if len(found) == 1 else HloSharding.tuple(found)).to_text()


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise UnsupportedError(f"a frontend attribute must be a string, not {str(value)[:60]}")


def _accuracy(given: object) -> str:
    """`{mode=highest}` or `{tolerance={atol=0,rtol=0,ulps=2}}`; "" for the default."""
    if not isinstance(given, Record):
        return ""
    mode = read_word(given.fields.get("mode", "DEFAULT")).lower()
    if mode == "tolerance":
        atol, rtol = (read_float(given.fields.get(key, 0.0)) for key in ("atol", "rtol"))
        ulps = read_integer(given.fields.get("ulps", 0))
        return f"{{tolerance={{atol={atol:g},rtol={rtol:g},ulps={ulps}}}}}"
    return "" if mode == "default" else f"{{mode={mode}}}"


def write_discardable(frontend: Pairs, annotations: Pairs) -> dict[str, Any]:
    """The attributes of an operation, argument or result. An accuracy is left out: it only permits to be less exact."""
    found: dict[str, Any] = {}
    kept = {key: text for key, text in frontend if key != SHARDING}
    if kept:
        found[FRONTEND] = kept
    named = dict(frontend).get(SHARDING)
    if named is not None:
        found[SDY_SHARDING] = Opaque("sdy", named)
    sharding = dict(annotations).get("sharding")
    if sharding is not None and named is None:
        found[MHLO_SHARDING] = sharding
    return found
