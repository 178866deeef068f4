"""Regular expressions that are compiled when they are first used."""

from __future__ import annotations

import re

import pytest
from hloom.hlo.support.lazy import lazy_pattern


def test_a_pattern_is_compiled_at_its_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    compile_it = re.compile
    monkeypatch.setattr(re, "compile", lambda *given: compiled.append(given) or compile_it(*given))
    word = lazy_pattern("[a-z]+", re.IGNORECASE)
    assert not compiled
    for text in ("Ab1", "x"):
        found = word.match(text)
        assert found is not None
        assert found[0] == text[:2].rstrip("1")
    assert word.sub("-", "a1b") == "-1-"
    assert compiled == [("[a-z]+", re.IGNORECASE)] * 2, "once for each method"


def test_an_error_is_that_of_the_pattern() -> None:
    with pytest.raises(AttributeError, match="no_method"):
        _ = lazy_pattern("a").no_method  # type: ignore[attr-defined]
