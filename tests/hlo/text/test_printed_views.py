"""The printed forms of a program: its HLO, and tables of its passes, kernels, memory and costs.

Their forms in notebooks: tests/notebooks/.
"""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import hloom.hlo
import numpy as np
import pytest
from hloom.hlo.kernel_texts import KernelTexts
from hloom.hlo.passes.record import PassRecord, PassRecords
from hloom.hlo.support.tables import Table

import hloom
import hloom.numpy as jnp


def step(w: Any, x: Any) -> Any:
    return jnp.sum(jnp.tanh(x @ w))


LOWERED = hloom.jit(step).lower(jnp.ones((3, 4)), jnp.ones((5, 3)))
COMPILED = LOWERED.compile()

# ---- HLO


@pytest.mark.parametrize("of", [LOWERED, COMPILED, LOWERED.module, COMPILED.executable], ids=lambda o: type(o).__name__)
def test_the_text_is_short_and_whole_on_request(of: Any) -> None:
    short = of.as_text()
    assert short == of.as_text("hlo") == of.as_text(dialect="hlo", metadata=False) == of.as_text(None)
    assert "metadata" not in short and __file__ not in short
    whole = of.as_text(metadata=True)
    assert whole == of.as_text(debug_info=True) and __file__ in whole
    assert re.sub(r", metadata={[^}]*}", "", whole) == short
    for text in (short, whole):
        x, w = np.ones((5, 3), np.float32), np.ones((3, 4), np.float32)
        np.testing.assert_allclose(hloom.hlo.evaluate(hloom.hlo.parse(text), w, x), [20 * np.tanh(3)], rtol=1e-5)
    for dialect in ("mhlo", "HLO", "", 3, *(() if of is LOWERED else ("stablehlo",))):
        with pytest.raises(hloom.errors.UnsupportedError, match=rf"is written as HLO.*not in the dialect {dialect!r}"):
            of.as_text(dialect)


def test_what_is_no_metadata_stays() -> None:
    text = """HloModule m

ENTRY e {
  x = f32[2] parameter(0), metadata={op_name="x, metadata={}"}
  ROOT y = f32[2] negate(x), metadata={op_name="n" source_file="}" source_line=3}, backend_config={"a":1}
}
"""
    short = hloom.hlo.parse(text).as_text()
    assert short.endswith('parameter(0)\n  ROOT %y = f32[2]{0} negate(%x), backend_config={"a":1}\n}\n')


def test_a_module_is_short_at_the_prompt() -> None:
    assert repr(LOWERED.module) == "<HloModule jit_step: 2 computations, 10 instructions>"
    assert str(LOWERED.module) == LOWERED.as_text(metadata=True), "all of it, for files"


# ---- tables


def test_a_table() -> None:
    table = Table(("name", "n"), [("a", "1"), ("longer", "20,000")], frozenset({1}))
    assert table.to_text() == "name         n\na            1\nlonger  20,000"
    assert Table(("only",), []).to_text() == "only"


def test_passes() -> None:
    passes = COMPILED.passes()
    assert isinstance(passes, tuple) and [p.name for p in passes] == [p.name for p in list(passes)]
    lines = str(passes).splitlines()
    assert lines[0].split() == ["pass", "ms", "instructions", "rules"]
    assert len(lines) == len(passes) + 2 and lines[-1].startswith("all ")
    assert len({line.index("ms") for line in lines[:1]}) == 1 and repr(passes) == str(passes)
    for record, line in zip(passes, lines[1:]):
        assert line.startswith(record.name) and f"{record.milliseconds:.2f}" in line
        assert ("no change" in line) == (not record.changed)
    first = PassRecord("p", 1.234, 5, 3, True, {"b": 2, "a": 1}, ("c",))
    records = PassRecords([first, PassRecord("q", 1.0, 3, 3, False)])
    assert str(records).splitlines() == [
        "pass    ms  instructions  rules",
        "p     1.23        5 -> 3  a x1, b x2, NOT SETTLED: c",
        "q     1.00     no change",
        "all   2.23        5 -> 3",
    ]
    assert str(PassRecords()) == "pass  ms  instructions  rules"
    assert pickle.loads(pickle.dumps(records)) == records == copy.deepcopy(records)


def test_kernels() -> None:
    kernels = hloom.jit(lambda x: jnp.sum(jnp.tanh(x))).lower(jnp.ones((5, 3))).compile().kernels()
    assert isinstance(kernels, dict) and list(kernels) == list(dict(kernels))
    ((name, text),) = kernels.items()
    table, source = str(kernels).split("\n\n", 1)
    assert table.splitlines()[0].split() == ["kernel", "uses", "lines"] and source == text.strip()
    assert table.splitlines()[1].split() == [name, "1", str(text.strip().count("\n"))]
    assert repr(kernels) == table
    assert str(KernelTexts()) == "kernel  uses  lines"
    two = KernelTexts({"a": "# a: n = 1\n# b: n = 2\ndef f():\n    pass\n", "c": "negate"})
    assert repr(two).splitlines()[1:] == ["a          2      2", "c          1      1"]


def test_memory() -> None:
    memory = COMPILED.memory_analysis()
    assert memory.argument_size_in_bytes == 4 * (12 + 15) and memory.output_size_in_bytes == 4
    assert memory.temp_size_in_bytes >= 80
    assert memory.peak_memory_in_bytes == 112 + memory.temp_size_in_bytes + memory.constant_size_in_bytes
    said = dict(re.findall(r"^ *(.*?)  +([\d,]+)$", str(memory).split("\n\n")[0], re.MULTILINE))
    assert said["arguments"] == "108" and said["results"] == "4"
    assert said["peak of a call"] == f"{memory.peak_memory_in_bytes:,}"
    assert str(memory).endswith(memory.text) and "text" not in repr(memory)


def test_memory_of_a_donated_argument_is_counted_once() -> None:
    compiled = hloom.jit(lambda s: s + 1, donate_argnums=0).lower(jnp.ones(1000)).compile()
    memory = compiled.memory_analysis()
    assert memory.alias_size_in_bytes == 4000 and memory.peak_memory_in_bytes == 4000 + memory.temp_size_in_bytes


def test_costs() -> None:
    costs = COMPILED.cost_analysis()
    assert costs == dict(costs) == LOWERED.cost_analysis() and costs["transcendentals"] == 20
    assert str(costs).splitlines()[0].split() == ["cost", "number"]
    assert dict(re.findall(r"^(.*?)  +([\d,]+)$", str(costs), re.MULTILINE))["transcendentals"] == "20"


def test_the_other_backend_has_the_same_views() -> None:
    before = hloom.config.hloom_backend
    hloom.config.update("hloom_backend", "evaluator")
    try:
        compiled = hloom.jit(step).lower(jnp.ones((3, 4)), jnp.ones((5, 3))).compile()
    finally:
        hloom.config.update("hloom_backend", before)
    for view in (compiled.passes(), compiled.kernels(), compiled.memory_analysis(), compiled.cost_analysis()):
        assert str(view) and "<table" in view._repr_html_()
