"""The documentation site: every public name has a place in it, it builds without a warning, its links lead somewhere,
it needs nothing from outside, and its search works in a browser."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote_plus, unquote, urlsplit

import pytest
from hloom.hlo import Opcode
from hloom.hlo.ops import SPECS

from support.browser import browser, has_browser

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tools.website import derivatives, docstrings, operations, pages, reference, traced  # noqa: E402

needs_sphinx = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("sphinx", "furo", "myst_parser")),
    reason="needs Sphinx, Furo and MyST: pip install -e .[docs]",
)


# ---- the sources


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        ("docs/aot.md", "[a](ops.md#x)", "[a](ops.md#x)"),
        ("docs/aot.md", "![a](images/examples/ode.png)", "![a](images/examples/ode.png)"),
        ("docs/aot.md", "[the broadcast](../hlo/broadcasting.py)", "the broadcast (`hlo/broadcasting.py`)"),
        ("docs/aot.md", "[../hlo/](../hlo/)", "`../hlo/`"),
        ("docs/aot.md", "[c](../CONTRIBUTING.md#random-programs)", "[c](contributing.md#random-programs)"),
        ("docs/architecture/hlo.md", "[a](../ops.md), [r](../../README.md#x)", "[a](../ops.md), [r](../index.md)"),
        ("docs/index.md", "[r](../tools/website/reference.py)", "[r](reference/index.md)"),
        ("CONTRIBUTING.md", "[a](docs/architecture/adding.md)", "[a](architecture/adding.md)"),
        ("docs/aot.md", "[x](https://x.org) [y](#z)", "[x](https://x.org) [y](#z)"),
        ("docs/aot.md", "```\na[0](../hlo/ir.py)\n```", "```\na[0](../hlo/ir.py)\n```"),
    ],
)
def test_links_stay_inside(page: str, text: str, expected: str) -> None:
    assert pages.with_links_inside(text, page) == expected


def test_every_page_is_in_one_section() -> None:
    found = [*pages.OF_THE_ROOT.values(), *(p.relative_to(pages.DOCS).as_posix() for p in pages.DOCS.rglob("*.md"))]
    found = [page.removesuffix(".md") for page in found]
    sections = pages.sections([*found, "reference/index", "reference/hloom", "operations/index", "operations/dot"])
    listed = [page for section in sections.values() for page in section]
    assert sorted(listed) == sorted({*found, "reference/index", "operations/index"} - {"index"})
    assert "a_new_page" in pages.sections(["a_new_page"])["Guides"]


def test_a_docstring_becomes_markdown() -> None:
    text = """The sum of `x` and *args, <b>.

    x, y: arrays,
      of one shape
    >>> f(1)
    2

    Note: [1]
    """
    assert docstrings.markdown(text, ("x", "y")).split("\n\n") == [
        r"The sum of `x` and \*args, \<b\>.",
        "- `x`, `y`: arrays,\n  of one shape",
        "```pycon\n>>> f(1)\n2\n```",
        r"Note: \[1\]",
    ]
    assert docstrings.markdown("A.\n\nArgs:\n  x: it\n    is\n") == "A.\n\n**Args:**\n\n- `x`: it\n  is"


def test_each_operation_has_a_page_with_a_meaning_and_how_it_runs() -> None:
    page = operations.page(SPECS[Opcode.TRANSPOSE], {})
    assert "\n# transpose\n\n" in page and "ROOT %transpose = " in page and "result = [[" in page
    assert "| `dimensions` |" in page and "- `ComputationBuilder`: `transpose`" in page
    for opcode, spec in SPECS.items():
        assert (spec.shape_rule.__doc__ or "").strip(), opcode


@pytest.mark.parametrize(
    ("opcode", "words"),
    [
        (Opcode.SIN, ["no rule: it is not linear", "= cos a"]),
        (Opcode.SLICE, ["rules/linear.py", "padded with zeros", "added to another cotangent", "pad["]),
        (Opcode.DOT, ["A product rule", "Backwards, of"]),
        (Opcode.WHILE, ["The loop carries the tangents", "in reverse mode"]),
        (Opcode.FLOOR, ["Zero: the result"]),
        (Opcode.CUSTOM_CALL, ["Not differentiable: it comes from HLO text only"]),
    ],
)
def test_a_page_has_the_derivative_that_the_tables_have(opcode: Opcode, words: list[str]) -> None:
    section = derivatives.section(opcode, operations._cases(opcode))
    assert all(word in section for word in words), section


def test_every_rule_of_a_derivative_says_its_meaning() -> None:
    derivatives.load()
    for table in (derivatives.JVP, derivatives.TRANSPOSE, derivatives.LINEARIZE, derivatives.ADD_TO):
        for opcode in Opcode:
            assert opcode not in table or len(derivatives.text_of(table[opcode])) > 12, opcode


def test_functions_of_an_operation_are_those_that_trace_to_it() -> None:
    import hloom.numpy as jnp

    before = jnp.argsort
    found, *_ = traced.opcodes_of("hloom.numpy.argsort")
    assert Opcode.SORT in found and Opcode.SELECT not in found, "the comparator is not counted"
    assert jnp.argsort is before
    assert traced.opcodes_of("hloom.numpy.argwhere") == [], "it needs values"
    users = {"hloom.numpy.sort": frozenset({Opcode.SORT, Opcode.CONSTANT}), "hloom.numpy.argsort": found}
    alone, others = traced.section(Opcode.SORT, users).split("\n- ")[1:]
    assert "`numpy.sort <hloom.numpy.sort>`" in alone and "`numpy.argsort <hloom.numpy.argsort>`" in others


def test_an_entry_has_signature_text_example_and_a_comparison_with_jax() -> None:
    import hloom.numpy as jnp

    entry = reference._entry("hloom.numpy", "argsort", jnp.argsort)
    assert entry.startswith("::::::{py:function} argsort(a: ArrayLike, axis: int | None = -1, *, kind: None = None")
    assert "As `jax.numpy.argsort`" in entry and ">>> jnp.argsort(x)" in entry
    assert "Not in JAX's namespace." in reference._entry("hloom.numpy", "fix", jnp.fix)


# ---- the site


class _Page(HTMLParser):
    """The links, the resources and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.resources: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self.anchors.update(value for name in ("id", "name") if (value := found.get(name)))
        if tag == "a" and found.get("href"):
            self.links.append(found["href"] or "")
        elif tag in ("script", "img", "iframe", "source") and found.get("src"):
            self.resources.append(found["src"] or "")
        elif tag == "link" and found.get("href"):
            self.resources.append(found["href"] or "")


def faults(site: Path) -> list[str]:
    """The links that lead nowhere, and the resources that are not in the site."""
    parsed = {path: _Page(path.read_text()) for path in site.rglob("*.html")}
    found = []
    for path, page in parsed.items():
        for link in (*page.links, *page.resources):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.resources and parts.scheme != "data":
                    found.append(f"{path.name}: {link} is outside")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{path.name}: {link}: no such file")
            elif parts.fragment and target in parsed and unquote(parts.fragment) not in parsed[target].anchors:
                found.append(f"{path.name}: {link}: no such place")
    return found


def test_faults_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="#here"></a><a href="#there"></a><a href="b.html"></a><a href="https://x.org"></a>'
        '<script src="https://x.org/x.js"></script><img src="c.png">'
    )
    found = [fault.partition(": ")[2] for fault in faults(tmp_path)]
    assert found == [
        *("#there: no such place", "b.html: no such file", "https://x.org/x.js is outside", "c.png: no such file"),
    ]


@pytest.mark.slow
@needs_sphinx
def test_the_site(tmp_path: Path) -> None:
    """One test, so that the site is built once, without a warning."""
    site = tmp_path / "website" / "site"
    command = [sys.executable, "-m", "tools.website", "--output", str(site)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800)
    assert built.returncode == 0, built.stdout + built.stderr
    links_lead_somewhere_and_nothing_is_outside(site)
    every_public_name_has_a_place(site)
    if has_browser():
        search_works_from_files_and_nothing_is_logged(site)
        narrow_and_dark(site)


def links_lead_somewhere_and_nothing_is_outside(site: Path) -> None:
    assert faults(site) == []
    for style in site.rglob("*.css"):
        assert "url(http" not in style.read_text() and "@import" not in style.read_text(), style


def every_public_name_has_a_place(site: Path) -> None:
    spaces = reference.namespaces()
    assert len(spaces) > 100 and {"hloom", "hloom.numpy", "hloom.scipy.stats.norm", "hloom.test_util"} <= spaces.keys()
    missing, count = [], 0
    for space, module in spaces.items():
        anchors = _Page((site / "reference" / f"{space}.html").read_text()).anchors
        for name in module.__all__:
            count += 1
            inner = getattr(getattr(module, name), "__name__", None)
            if f"{space}.{name}" not in anchors and inner not in spaces:
                missing.append(f"{space}.{name}")
    assert missing == [] and count > 2500


SEARCHES = {
    "jit": "#hloom.jit",
    "argsort": "#hloom.numpy.argsort",
    "reduce-window": "operations/reduce-window.html",
    "dot-general": "operations/dot.html",
    **dict.fromkeys(
        [
            *("seed", "print inside jit", "avoid a recompile", "find a NaN", "see the kernels", "save a model"),
            *("two devices", "ship to C", "register a primitive", "compare with JAX", "limit threads", "clear caches"),
        ],
        "questions.html",
    ),
}
"""Words, and a part of the address that is the first or second result for them."""


def search_works_from_files_and_nothing_is_logged(site: Path) -> None:
    """Without a server: what a browser logs as an error, such as a script that is missing, fails the test."""
    with browser() as window:
        for path in ("index.html", "reference/hloom.numpy.html", "tutorials/loops.html"):
            window.open((site / path).as_uri())
            assert window.ask("return document.querySelector('h1') !== null")
            assert window.errors() == [], path
        for words, expected in SEARCHES.items():
            window.open((site / "search.html").as_uri() + "?q=" + quote_plus(words))
            window.wait("return document.querySelector('.search-summary')?.textContent.includes('finished')")
            found = window.ask("return [...document.querySelectorAll('ul.search li a')].slice(0, 2).map(a => a.href)")
            assert any(expected in address for address in found), (words, found)
        assert window.errors() == []


def narrow_and_dark(site: Path) -> None:
    """No page is wider than a narrow window; the dark theme has light text on a dark ground."""
    with browser() as window:
        window.resize(420, 800)
        for path in ("index.html", "quickstart.html", "reference/hloom.lax.html", "settings.html"):
            window.open((site / path).as_uri())
            assert window.ask("return document.documentElement.scrollWidth <= window.innerWidth"), path
        window.ask("document.body.dataset.theme = 'dark'")
        shade = "return getComputedStyle(document.body).{}.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0)"
        assert window.ask(shade.format("backgroundColor")) < 150 < 450 < window.ask(shade.format("color"))
