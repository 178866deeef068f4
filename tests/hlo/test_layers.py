"""Every opcode in every layer has a rule, or an explicit reason why it has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_type_hints

import pytest
from hloom.autodiff.rules.tables import BATCH, JVP, TRANSPOSE
from hloom.hlo.evaluator import EVALUATE
from hloom.hlo.opcode import Opcode
from hloom.hlo.ops import SPECS
from hloom.hlo.ops.declare import declared
from hloom.hlo.passes.layout.order_rules import STRUCTURE, rule_of
from hloom.hlo.passes.simplify.call_inliner import INLINED
from hloom.hlo.rules import RuleTable
from hloom.hlo.shape import Shape
from hloom.hlo.text.attributes import form_of
from hloom.hlo.text.codecs import MARK
from hloom.numba_backend.emit.element import ELEMENT
from hloom.numba_backend.expansions import NUMBA_EXPANSIONS
from hloom.numba_backend.lowering import LOWERED
from hloom.numba_backend.lowering_rules import LOWERING_RULES, load_all
from hloom.tracer.arrays.overlay import EXTENDED

from hloom.backend_check.op_table import CASES, WITHOUT_CASES
from hloom.jaxpr.rules import SHOWN

import hloom.autodiff.api  # isort: skip
import hloom.jaxpr.view  # isort: skip
import hloom.numba_backend.emit  # isort: skip
import hloom.tracer.arrays.extended_ops  # noqa: F401  # isort: skip

load_all()
TABLES: list[RuleTable] = [EVALUATE, ELEMENT, JVP, TRANSPOSE, BATCH, EXTENDED, SHOWN]
TESTED = {case.opcode for case in CASES}


def says(table: RuleTable) -> Callable[[Opcode], object]:
    """A rule, or why there is none."""
    return lambda opcode: opcode in table or table.reason(opcode)


def is_compiled(opcode: Opcode) -> object:
    """In a loop nest, as a row of the program, inlined, or written with other ops. Memory needs no code."""
    memory = opcode in (Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.OPT_BARRIER)
    elsewhere = (LOWERING_RULES, LOWERED, NUMBA_EXPANSIONS, INLINED)
    return memory or opcode in ELEMENT or any(opcode in table for table in elsewhere)


LAYERS: dict[str, Callable[[Opcode], object]] = {
    "declaration (hlo/ops)": lambda opcode: opcode in SPECS,
    "text (hlo/ops: Attr of each field)": lambda opcode: form_of(SPECS[opcode].attributes),
    "meaning (hlo/evaluator)": says(EVALUATE),
    "layouts (hlo/passes/layout)": lambda opcode: opcode in STRUCTURE or rule_of(opcode),
    "element rule (numba_backend/emit)": says(ELEMENT),
    "compiled code (numba_backend, hlo/passes/expand)": is_compiled,
    "jvp (autodiff/rules)": says(JVP),
    "transpose (autodiff/rules)": says(TRANSPOSE),
    "batching (autodiff/rules)": says(BATCH),
    "keys (tracer/arrays/extended_ops.py)": says(EXTENDED),
    "jaxprs (hloom/jaxpr)": says(SHOWN),
    "test cases (tests/support)": lambda opcode: opcode in TESTED or opcode in WITHOUT_CASES,
}
"""All that every opcode must have. Cost and effects follow from traits."""


@pytest.mark.parametrize("layer", LAYERS)
def test_every_opcode_is_in_every_layer(layer: str) -> None:
    assert [opcode for opcode in Opcode if not LAYERS[layer](opcode)] == [], f"forgotten: {layer}"


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.what)
def test_a_second_rule_is_refused(table: RuleTable) -> None:
    with pytest.raises(AssertionError, match=r"two .* rules"):
        table.register(next(o for o in Opcode if o in table))(lambda: None)


def test_fields_that_look_like_dimensions_are_declared_as_such() -> None:
    """The layout passes, and other code that renumbers dimensions, would overlook such fields."""
    kinds = {spec.attributes for spec in SPECS.values()}
    silent = {
        f"{kind.__name__}.{field.name}"
        for kind in kinds
        for field in declared(kind)
        if "dim" in field.name and field.attr.dims == type(field.attr.dims)()
    }
    assert silent == {"ConvolutionAttributes.dimension_numbers"}  # a record; its fields are declared


def test_codecs_read_what_fields_hold() -> None:
    """The type of a field is its codec's reader's return type, if it is a plain type."""
    checked = 0
    for kind in {spec.attributes for spec in SPECS.values()}:
        for field in declared(kind):
            codec = field.attr.codec
            gives = None if codec is None else get_type_hints(codec.read).get("return")
            if codec is not MARK and gives in (int, bool, float, str, tuple[int, ...], tuple[str, str], Shape):
                assert field.type in (gives, gives | None), f"{kind.__name__}.{field.name}"
                checked += 1
    assert checked > 60
