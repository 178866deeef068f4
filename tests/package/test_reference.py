"""The reference: most texts name errors, shapes and dtypes, and have an example; derived types and errors are true."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hloom.hlo.ops import spec_of
from hloom.hlo.stablehlo.ops import OPS

import hloom
import hloom.numpy as jnp
from hloom.extend.mlir.dialects import chlo, stablehlo

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.website import behaviour, calls, described, reference

OF_ALL = {"errors": 0.60, "examples": 0.97}
"""The least shares of all functions whose texts have it."""
OF_ARRAYS = {"errors": 0.78, "shapes": 0.94, "dtypes": 0.95, "examples": 0.99}
"""The same of the functions of arrays."""


def _shares(spaces: list[str], every: int = 1) -> dict[str, float]:
    names = dict(list(described.functions(spaces))[::every])
    return {kind: 1 - len(missing) / len(names) for kind, missing in described.without(names).items()}


def test_functions_of_arrays_say_errors_shapes_and_dtypes() -> None:
    """One function in 12; the slow test has all."""
    shares = _shares(calls.spaces(list(reference.namespaces())), 12)
    assert not {kind: share for kind, share in shares.items() if share < OF_ARRAYS[kind] - 0.05}


@pytest.mark.slow
def test_all_functions_say_errors_and_have_examples() -> None:
    every = list(reference.namespaces())
    for spaces, floors in ((every, OF_ALL), (calls.spaces(every), OF_ARRAYS)):
        shares = _shares(spaces)
        assert not {kind: shares[kind] for kind, floor in floors.items() if shares[kind] < floor}


def test_a_text_without_a_word_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def plain() -> None:
        """Returns nothing."""

    missing = described.without({"hloom.plain": plain})
    assert all(names == ["hloom.plain"] for names in missing.values())


@pytest.mark.usefixtures("evaluator")
def test_types_are_those_of_the_example() -> None:
    found = behaviour.types("hloom.numpy.argsort")
    assert "argsort(" in found and "-> int32[" in found
    assert "complex64 raise" in behaviour.types("hloom.lax.erf")


@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("hloom.numpy.add", ["`x1` has 3 elements and `x2` has 4", "is a string"]),
        ("hloom.numpy.sum", ["`axis` is", "out of bounds"]),
        ("hloom.numpy.linalg.cholesky", ["has no dimensions"]),
    ],
)
def test_errors_are_those_that_occur(name: str, words: list[str]) -> None:
    found = behaviour.errors(name)
    assert all(word in found for word in words), found
    for call in calls.recorded(name)[:3]:
        for change, places in behaviour._changes(call):
            fails = isinstance(behaviour._again(call, places), Exception)
            assert not fails or change in found, change


def test_a_function_that_takes_a_function_has_no_derived_errors() -> None:
    """They may be those of the function in the example."""
    assert behaviour.errors("hloom.lax.map") == ""


@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("dialect", [stablehlo, chlo])
def test_operations_of_a_dialect_raise_what_their_texts_say(dialect: object) -> None:
    arity = {op.name: spec_of(op.opcode).arity for op in OPS}
    kind = dialect.__name__.rpartition(".")[2]
    for name in dialect.__all__:
        function, count = getattr(dialect, name), arity[f"{kind}.{name.rstrip('_')}"]
        assert "OperandError (a ValueError and TypeError)" in function.__doc__
        wrong = [jnp.ones((2, 3))] * ((count or 0) + 1)
        with pytest.raises(hloom.errors.OperandError):
            function(*wrong)
