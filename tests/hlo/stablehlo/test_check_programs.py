"""`tools/stablehlo_tests.py` finds what does not hold in programs that check themselves."""

from __future__ import annotations

from pathlib import Path

from tools.stablehlo_tests import outcomes, programs


def test_programs_that_check_themselves(root: Path) -> None:
    file = root / "tests" / "data" / "mlir" / "checks.mlir"
    found = [outcome for text in programs(file) for outcome in outcomes(text, "f.mlir", "evaluator")]
    assert found[:6] == [
        ("holds", "passed"),
        ("not_equal", "failed: check.expect_eq_const: at [1] 2 is not 3"),
        ("not_almost_equal", "failed: check.expect_almost_eq_const: at [] 0.0 is not 0.0010000000474974513"),
        ("not_close", "failed: check.expect_close: at [] 1.0 is not 1.0000003576278687"),
        ("probes", "failed: check.expect_serialized_eq: nothing was probed"),
        ("main", "passed"),
    ]
    name, outcome = found[6]
    assert name == "?" and outcome.startswith("not read: f.mlir:60:19: the value %0 is not defined before this use")
    assert len(found) == 7
