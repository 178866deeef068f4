"""The marks of tests/conftest.py: each value of a table with `one_in` is in a default case, but for those marked slow;
tests with `first` come first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

FILE = """\
import pytest

slow = pytest.param("slow", marks=pytest.mark.slow)

@pytest.mark.one_in(3)
@pytest.mark.parametrize("x", [slow, *"abcdefg"])
def test_one_table(x):
    pass

@pytest.mark.one_in(2)
@pytest.mark.parametrize("y", [*"abc", slow])
@pytest.mark.parametrize("x", ["a", slow, "b", slow, "c", slow])
def test_two_tables(x, y):
    pass

@pytest.mark.one_in(3)
@pytest.mark.parametrize("z", ["first", "last"])
@pytest.mark.parametrize("y", [*"abc"])
@pytest.mark.parametrize("x", [slow, "a", slow, "b", "c", "d"])
def test_three_tables(x, y, z):
    pass

@pytest.mark.slow
@pytest.mark.one_in(2)
@pytest.mark.parametrize("x", [*"abc"])
def test_that_is_slow(x):
    pass
"""


class Collected:
    """pytest's hook, as conftest.py has it, and the items after it."""

    def __init__(self, conftest: Any) -> None:
        self._conftest = conftest
        self.items: list[pytest.Function] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Function]) -> None:
        self._conftest.pytest_collection_modifyitems(items)
        self.items = list(items)

    def by_default(self, name: str) -> list[dict[str, str]]:
        """The parameters of a table's default cases."""
        return [
            dict(item.callspec.params)
            for item in self.items
            if item.originalname == name and item.get_closest_marker("slow") is None
        ]


@pytest.fixture
def conftest(request: pytest.FixtureRequest, root: Path) -> Any:
    return request.config.pluginmanager.get_plugin(str(root / "tests" / "conftest.py"))


def collected(conftest: Any, folder: Path, text: str) -> tuple[int, Collected]:
    (folder / f"{folder.name}.py").write_text(text)  # a name of its own, as modules are kept
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow\n    one_in\n    first\n")
    found = Collected(conftest)
    options = ["--collect-only", "-qq", "-p", "no:cacheprovider", "-p", "no:xdist", "--import-mode", "importlib"]
    return int(pytest.main([*options, "--rootdir", str(folder), str(folder)], plugins=[found])), found


@pytest.mark.parametrize(
    ("name", "values", "count"),
    [
        ("test_one_table", {"x": "adg"}, 3),
        ("test_two_tables", {"x": "abc", "y": "abc"}, 5),
        ("test_three_tables", {"x": "abcd", "y": "abc", "z": ("first", "last")}, 8),
        ("test_that_is_slow", {}, 0),
    ],
)
def test_each_value_is_in_a_default_case(
    name: str, values: dict[str, Any], count: int, conftest: Any, tmp_path: Path
) -> None:
    code, found = collected(conftest, tmp_path, FILE)
    assert code == 0
    cases = found.by_default(name)
    assert len(cases) == count
    for argument, own in values.items():
        assert {case[argument] for case in cases} == set(own)


TWO_OF_FOUR = """
@pytest.mark.one_in(3)
@pytest.mark.parametrize("y", [*"abcd"])
@pytest.mark.parametrize("x", ["a", slow, "b", slow])
def test(x, y):
    pass
"""
FIXTURE = """
@pytest.fixture(params=["a", "b"])
def x(request):
    return request.param

@pytest.mark.one_in(2)
@pytest.mark.parametrize("y", [*"abcd"])
def test(x, y):
    pass
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TWO_OF_FOUR, "one_in(2) at most, to have all values"),
        (FIXTURE, "of a parametrized fixture one_in loses values"),
        (FIXTURE.replace('"y", [*"abcd"])', '"y", [*"abcd"])\n@pytest.mark.parametrize("x", "ab", indirect=True)'), ""),
    ],
    ids=["a product", "a fixture", "a fixture by a mark"],
)
def test_a_sample_without_some_values_is_not_collected(
    text: str, message: str, conftest: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = collected(conftest, tmp_path, FILE.partition("@pytest")[0] + text)
    assert (code != 0) is bool(message) and message in capsys.readouterr().out


ORDER = """
def test_a():
    pass

@pytest.mark.parametrize("x", ["a", pytest.param("b", marks=pytest.mark.first), "c"])
def test_b(x):
    pass

@pytest.mark.first
def test_c():
    pass
"""


def test_the_longest_tests_come_first(conftest: Any, tmp_path: Path) -> None:
    code, found = collected(conftest, tmp_path, FILE.partition("slow =")[0] + ORDER)
    assert code == 0
    assert [item.name for item in found.items] == ["test_b[b]", "test_c", "test_a", "test_b[a]", "test_b[c]"]
