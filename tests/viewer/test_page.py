"""The viewer's page in a browser: marks of a selection in each pane, keys, search, links, looks, large programs."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from support.browser import Browser, browser, needs_browser
from support.node import VIEWER_PAGE
from support.viewer_page import milliseconds, served, show
from support.viewer_programs import viewer_program

pytestmark = [pytest.mark.slow, needs_browser]
ALL = "lines,beside,hlo,graph,kernels,details,rows,buffers,passes,rules,devices"
PANES = ALL.split(",")


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with browser() as opened:
        opened.resize(1920, 1080)
        yield opened


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(viewer_program(60, 6)) as url:
        yield url


@pytest.fixture(autouse=True)
def nothing_is_logged(window: Browser) -> Iterator[None]:
    window.errors()
    yield
    assert window.errors() == []


def marked(window: Browser, pane: str) -> int:
    """How many things of a pane are marked, of those in view."""
    found: int = window.ask(f"return document.querySelectorAll('#pane-{pane} :is(.exact, .related, .around)').length")
    return found


def fragment(window: Browser) -> dict[str, str]:
    found: str = window.ask("return location.hash.slice(1)")
    return dict(entry.split("=", 1) for entry in found.split("&") if entry)


def shown(window: Browser) -> list[str]:
    """The panes that are in the window."""
    found: list[str] = window.ask("return [...document.querySelectorAll('.pane')].map((p) => p.dataset.pane)")
    return found


def click(window: Browser, selector: str) -> None:
    event = "new MouseEvent('click', {bubbles: true})"
    window.ask(f"document.querySelector({json.dumps(selector)}).dispatchEvent({event})")


SELECTABLE = {
    "lines": ".line.used",
    "hlo": ".instruction[data-index='5']",
    "graph": ".node.fusion",
    "kernels": ".head",
    "rows": ".columns.row[data-index='2']",
    "buffers": ".buffer.again",
}


@pytest.mark.parametrize("pane", SELECTABLE)
def test_a_selection_marks_all_panes(window: Browser, address: str, pane: str) -> None:
    show(window, address, f"#panes={ALL}")
    window.wait("return document.querySelector('.node') !== null")
    assert all(marked(window, name) == 0 for name in PANES if name != "passes")
    click(window, f"#pane-{pane} {SELECTABLE[pane]}")
    expected = {"lines", "beside", "hlo", "graph", "kernels", "rows", "buffers"}
    if pane in ("lines", "hlo"):
        expected -= {"kernels"}  # the first line is a product, which has none
    for name in expected:
        window.wait(f"return document.querySelectorAll('#pane-{name} :is(.exact, .related, .around)').length > 0")
    assert fragment(window)["selected"][0] == {"lines": "l", "hlo": "i", "graph": "i"}.get(pane, pane[0])
    assert window.ask("return document.querySelectorAll('#pane-details dt').length") > 2
    # what is marked has been brought into view
    inside = """
      const [list, row] = ['.list', ':is(.exact, .related)'].map((s) => document.querySelector(`#pane-hlo ${s}`));
      const [a, b] = [list.getBoundingClientRect(), row.getBoundingClientRect()];
      return a.top <= b.top + 1 && b.bottom <= a.bottom + 1;
    """
    assert window.ask(inside)
    window.press("Escape")
    assert "selected" not in fragment(window) and marked(window, "hlo") == 0


def test_stages_by_keys_and_what_they_changed(window: Browser, address: str) -> None:
    show(window, address, f"#panes={ALL}")
    assert "stage" not in fragment(window)
    window.press("[", "[")
    assert fragment(window)["stage"] == "dce"
    note = window.ask("return document.querySelector('#pane-hlo .note').textContent")
    assert note.startswith("dce") and "+0" in note and "~" in note and "−0" not in note
    assert window.ask("return document.querySelectorAll('#pane-beside .removed').length") > 0
    signs = window.ask("return [...document.querySelectorAll('#pane-beside .removed .sign')].map((s) => s.title)")
    assert "identity" in signs
    # both sides are aligned: as many rows, scrolled together
    counts = "return ['beside', 'hlo'].map((p) => document.querySelector(`#pane-${p} .sizer`).style.height)"
    left, right = window.ask(counts)
    assert left == right
    window.ask("document.querySelector('#pane-hlo .list').scrollTop = 200")
    window.wait("return document.querySelector('#pane-beside .list').scrollTop === 200")
    # c goes from one difference to the next, C back
    places = []
    for key in ("[", "c", "c", "C"):
        window.press(key)
        places.append(int(window.ask("return document.querySelector('#pane-hlo .row.active').dataset.index")))
    assert places[0] < places[1] == places[3] < places[2]
    window.press("]")
    # a rule application is selected in its table
    window.wait("return document.querySelectorAll('#pane-rules .columns.row').length > 1")
    click(window, "#pane-rules .columns.row")
    assert fragment(window)["selected"][0] == "i" and marked(window, "beside") > 0
    # the sign of a row that a rule made leads to the rules
    show(window, address, "#stage=dce&panes=beside,hlo")
    click(window, "#pane-beside .ruled")
    assert fragment(window)["panes"] == "beside,hlo,rules"
    window.wait("return document.querySelector('#pane-rules .columns.row.exact') !== null")
    window.press("]", "]", "]")
    assert "stage" not in fragment(window)
    assert window.ask("return document.querySelector('input[type=range]').ariaValueText") == "scheduling"


def test_the_slider_moves_by_arrows(window: Browser, address: str) -> None:
    show(window, address)
    window.ask("document.querySelector('input[type=range]').focus()")
    window.press("Left")
    assert fragment(window)["stage"] == "fusion"
    window.press("Right")
    assert "stage" not in fragment(window)


def test_lists_by_keys(window: Browser, address: str) -> None:
    show(window, address, f"#panes={ALL}")
    window.press("3")
    assert window.ask("return document.activeElement.closest('.pane').dataset.pane") == "hlo"
    assert window.ask("return document.activeElement.getAttribute('role')") == "tree"
    window.press("Down", "Down", "Down")
    named = "document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))"
    assert window.ask(f"return {named}.dataset.index") == "2"
    assert window.ask(f"return getComputedStyle({named}).outlineStyle") == "solid"
    window.press("Enter")
    assert fragment(window)["selected"] == "i1"  # rows: the entry, then its parameters
    rows = "return document.querySelector('#pane-hlo .sizer').style.height"
    before = window.ask(rows)
    window.press("Up", "Up", "Left")
    assert window.ask(rows) != before
    window.press("Right")
    assert window.ask(rows) == before
    for key, pane in (("4", "graph"), ("8", "buffers")):
        window.press(key, "Down", "Right", "Enter")
        assert window.ask("return document.activeElement.closest('.pane').dataset.pane") == pane
        assert fragment(window)["selected"][0] == {"graph": "i", "buffers": "b"}[pane]


def test_search(window: Browser, address: str) -> None:
    show(window, address, f"#panes={ALL}")
    window.press("/", *"exponential")
    count = "return document.querySelector('.count').textContent"
    total = int(window.ask(count))
    assert total > 5
    window.press("Enter")
    assert window.ask(count) == f"1 / {total}"
    first = fragment(window)
    assert first["search"] == "exponential" and "selected" in first
    window.press("Enter")
    assert fragment(window)["selected"] != first["selected"]
    window.press("Up")
    assert fragment(window)["selected"] == first["selected"]
    window.press("Escape")
    assert "search" not in fragment(window) and window.ask("return document.activeElement.tagName") != "INPUT"
    window.press("/", *"no such thing")
    assert window.ask(count) == "0"


def test_links_back_and_forward(window: Browser, address: str) -> None:
    link = "#stage=cse&selected=l0:42&pane=kernels&search=tanh&panes=lines,hlo,kernels&theme=dark"
    show(window, address, link)
    assert "#" + window.ask("return location.hash.slice(1)") == link
    assert shown(window) == ["lines", "hlo", "kernels"]
    assert window.ask("return document.querySelector('.stage select').selectedOptions[0].textContent") == "2. cse"
    assert marked(window, "lines") == 1 and marked(window, "hlo") > 0
    click(window, "#pane-kernels .head")
    window.press("]")
    assert fragment(window)["selected"] == "k0" and fragment(window)["stage"] == "dce"
    window.ask("history.back()")
    window.wait("return document.querySelector('#pane-hlo .note').textContent.startsWith('cse')")
    assert fragment(window)["stage"] == "cse"
    window.ask("history.back()")
    window.wait("return location.hash.includes('l0:42') && document.querySelector('#pane-lines .exact') !== null")
    window.ask("history.forward()")
    window.wait("return document.querySelector('#pane-kernels .head.exact') !== null")


def test_panes_are_hidden_dragged_and_shown(window: Browser, address: str) -> None:
    show(window, address, "#panes=lines,hlo,rows")
    widths = "return ['lines', 'hlo'].map((p) => document.getElementById(`pane-${p}`).offsetWidth)"
    lines, hlo = window.ask(widths)
    box = "document.querySelector('.splitter.vertical').getBoundingClientRect()"
    x, y = window.ask(f"const box = {box}; return [box.left + 2, box.top + 50].map(Math.round)")
    window.draw([[(0, 0), (60, 0), (120, 0)]], x, y)
    assert window.ask(widths) == [pytest.approx(lines + 120, abs=6), pytest.approx(hlo - 120, abs=6)]
    window.ask("document.querySelector('.splitter.horizontal').focus()")
    top = "return document.getElementById('pane-hlo').getBoundingClientRect().height"
    before = window.ask(top)
    window.press("Down")
    assert window.ask(top) > before
    # a pane keeps where it is scrolled to while another is hidden
    window.ask("document.querySelector('#pane-hlo .list').scrollTop = 300")
    click(window, "#panes [data-pane=lines]")
    assert window.ask("return document.getElementById('pane-lines') === null")
    assert window.ask("return document.querySelector('#pane-hlo .list').scrollTop") == 300
    assert fragment(window)["panes"] == "hlo,rows"
    click(window, "#panes [data-pane=passes]")
    assert window.ask("return document.querySelectorAll('#pane-passes .columns.row').length") == 6


def test_rows_of_hlo_are_gathered_by_line(window: Browser, address: str) -> None:
    show(window, address, "#panes=hlo&stage=traced")
    choice = "const choice = document.querySelector('#pane-hlo select')"
    window.ask(f"{choice}; choice.value = 'line'; choice.dispatchEvent(new Event('change'))")
    height = "return parseInt(document.querySelector('#pane-hlo .sizer').style.height) / 20"
    unfolded = window.ask(height)
    window.ask("[...document.querySelectorAll('#pane-hlo .tool')].find((b) => b.textContent === 'fold').click()")
    folded = window.ask(height)
    assert folded < unfolded / 3
    window.ask("document.querySelector('#pane-hlo .head .twist').closest('.row').nextElementSibling.click()")
    click(window, "#pane-hlo .head:not([aria-level='1']) b")
    assert fragment(window)["selected"][0] == "l" and window.ask(height) == folded


def test_tables_sort(window: Browser, address: str) -> None:
    show(window, address, f"#panes={ALL}")
    cells = "return [...document.querySelectorAll('#pane-rows .columns.row')].map((r) => r.children[2].textContent)"
    head = "[...document.querySelectorAll('#pane-rows [role=columnheader]')].find((h) => h.textContent === 'share')"
    window.ask(f"{head}.click()")
    shares = [float(text.strip().rstrip("%")) for text in window.ask(cells)]
    assert shares == sorted(shares, reverse=True) and shares[0] > shares[-1]
    assert window.ask(f"return {head}.ariaSort") == "descending"


def test_buffers_are_stretched(window: Browser, address: str) -> None:
    show(window, address, "#panes=buffers,hlo&pane=buffers")
    window.press("8")
    count = "return document.querySelectorAll('.buffer').length"
    everything = window.ask(count)
    for _ in range(5):
        window.press("+")
        time.sleep(0.05)
    window.wait(count + f" < {everything}")
    # a selection that is out of view brings the whole back
    click(window, "#pane-hlo .instruction[data-index='5']")
    window.wait("return document.querySelector('.buffer.related') !== null")
    window.press("8", "0")
    window.wait(count + f" === {everything}")


def test_the_graph_unfolds(window: Browser, address: str) -> None:
    show(window, address, "#panes=graph")
    window.wait("return document.querySelector('.node') !== null")
    count = "return document.querySelectorAll('.node').length"
    before = window.ask(count)
    click(window, ".node.loop .twist")
    assert window.ask(count) > before and window.ask("return document.querySelectorAll('.node.cluster').length") == 1
    click(window, ".node.cluster .twist")
    assert window.ask(count) == before
    choice = "const choice = document.querySelectorAll('#pane-graph select')[1]"
    window.ask(f"{choice}; choice.value = 'line'; choice.dispatchEvent(new Event('change'))")
    assert window.ask(count) < before and window.ask("return document.querySelectorAll('.node.group').length") > 0


def test_names_for_assistive_technology(window: Browser, address: str) -> None:
    show(window, address, f"#panes={ALL}")
    nameless = """
      return [...document.querySelectorAll('button, select, input, [tabindex="0"], [role=separator]')].filter((e) =>
        !(e.getAttribute('aria-label') || e.textContent.trim() || e.title)).map((e) => e.outerHTML.slice(0, 90));
    """
    assert window.ask(nameless) == []
    parents = """
      const inside = { option: 'listbox', treeitem: 'tree', gridcell: 'row' };
      return [...document.querySelectorAll('[role]')].filter((e) => inside[e.getAttribute('role')] &&
        !e.closest(`[role=${inside[e.getAttribute('role')]}]`)).map((e) => e.outerHTML.slice(0, 90));
    """
    assert window.ask(parents) == []
    window.press("?")
    assert window.ask("return document.querySelector('dialog').open")
    window.press("Escape")
    assert not window.ask("return document.querySelector('dialog').open")


def test_narrow_and_dark(window: Browser, address: str) -> None:
    """A narrow window has one pane, with tabs; the dark theme has light text on a dark ground, with contrast."""
    try:
        window.resize(600, 800)
        show(window, address, "#theme=dark")
        assert shown(window) == ["hlo"]
        assert window.ask("return document.documentElement.scrollWidth <= window.innerWidth")
        click(window, "#panes [data-pane=buffers]")
        assert window.ask("return document.querySelector('.pane').dataset.pane") == "buffers"
        assert window.ask("return document.querySelector('#panes [aria-selected=true]').textContent") == "Buffers"
        assert window.ask("return document.querySelectorAll('.buffer').length") > 5
        shade = "return getComputedStyle(document.querySelector('.pane')).{}.match(/\\d+/g).reduce((a, b) => a + +b, 0)"
        assert window.ask(shade.format("backgroundColor")) < 150 < 450 < window.ask(shade.format("color"))
        click(window, ".theme")
        assert window.ask(shade.format("backgroundColor")) > 700
    finally:
        window.resize(1920, 1080)


def test_a_large_program(window: Browser) -> None:
    """5,000 instructions in 25 stages: the page has elements for what is in view, and answers soon."""
    with served(viewer_program(5000, 25)) as url:
        show(window, url, "#panes=lines,beside,hlo,graph,kernels,details,rows")
        assert milliseconds(window)["ready"] < 10_000  # two seconds on a machine that does nothing else
        assert window.ask("return document.querySelectorAll('*').length") < 6000
        for pane in ("lines", "hlo", "kernels", "rows"):
            window.ask("performance.clearMeasures()")
            click(window, f"#pane-{pane} {SELECTABLE[pane]}")
            longest = "return Math.max(...performance.getEntriesByType('measure').map((m) => m.duration))"
            assert window.ask(longest) < 1500, pane
        window.press("[", "[")
        window.press("/", *"tanh")
        assert window.ask("return document.querySelector('.count').textContent") == "500+"


def test_a_program_of_which_nothing_is_known(window: Browser) -> None:
    """No sources, kernels, rows, buffers, passes: the panes say so."""
    program: dict[str, Any] = viewer_program(20, 4)
    empty = {name: [] for name in ("sources", "kernels", "rows", "buffers", "schedule", "arenas", "passes", "facts")}
    program |= {**empty, "profile": None, "devices": None, "stages": program["stages"][:1]}
    program["instructions"]["source"] = [-1] * len(program["instructions"]["source"])
    with served(program) as url:
        show(window, url, f"#panes={ALL}")
        time.sleep(0.3)
        said = window.ask("return [...document.querySelectorAll('.empty:not([hidden])')].map((e) => e.textContent)")
        assert len(said) == 7 and all(said)
        click(window, "#pane-hlo .instruction")
        assert marked(window, "hlo") > 0


def test_no_name_of_the_modules_hides_one_of_the_browser(window: Browser, address: str) -> None:
    """In a single file the modules are one script: a function `history` would hide the window's."""
    show(window, address)
    found = re.compile(r"^(?:export )?(?:async )?(?:function|class|const|let) (\w+)", re.MULTILINE)
    modules = [path.read_text(encoding="utf-8") for path in VIEWER_PAGE.glob("*.js") if path.name != "dagre.min.js"]
    names = [name for text in modules for name in found.findall(text)]
    assert len(names) > 60
    assert window.ask(f"return {json.dumps(names)}.filter((name) => name in window)") == []


def test_text_is_not_markup(window: Browser) -> None:
    program = viewer_program(20, 4)
    evil = "<img src=x onerror=document.title='x'><script>document.title='x'</script>"
    program["title"] = evil
    program["strings"] = [text + evil for text in program["strings"]]
    program["sources"][0]["lines"] = [line + evil for line in program["sources"][0]["lines"]]
    program["kernels"][0]["text"] = evil
    program["instructions"]["name"] = [name + evil for name in program["instructions"]["name"]]
    with served(program) as url:
        show(window, url, f"#panes={ALL}&selected=i9&search=img")
        assert window.ask("return document.querySelectorAll('img, body script').length") == 0
        assert window.ask("return document.title").startswith("<img")


def test_data_that_does_not_come(window: Browser) -> None:
    with served(b"{") as url:
        window.open(url)
        window.wait("return document.querySelector('.failure') !== null")
        assert "cannot be shown" in window.ask("return document.querySelector('.failure').textContent")
        assert len(window.errors()) == 1
