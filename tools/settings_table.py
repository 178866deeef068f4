#!/usr/bin/env python3
"""docs/settings.md: a row for each setting, from its declaration.

    python tools/settings_table.py            # says where the file differs from the declarations
    python tools/settings_table.py --write    # writes it
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))
for _variable in [name for name in os.environ if name.startswith(("HLOOM_", "JAX_"))]:
    del os.environ[_variable]  # the page has the declared defaults

from hloom.tracer.settings import config  # noqa: E402
from hloom.tracer.settings.setting import OfJax, OfProcess, Setting  # noqa: E402

DOCUMENT = ROOT / "docs" / "settings.md"

TEXT = """# Settings

`hloom.config.update(NAME, VALUE)` changes a setting of the process, `hloom.config.NAME` reads it. An environment
variable of the name in capitals sets it from the beginning: `JAX_ENABLE_X64=1`. A context manager changes it for one
thread, within a block, or for the calls of a function that it decorates: `with hloom.enable_x64(): ...`.

This page is made by `python tools/settings_table.py --write` from the declarations in `tracer/settings/config.py`.

| Setting | Default | Context manager | Meaning |
|---|---|---|---|
{own}

## Settings of JAX that change nothing

Programs make these settings; hloom checks the value, remembers it, and does nothing. A value that would have to change
something is an `UnsupportedError`. They are declared in `tracer/settings/of_jax.py`.

| Setting | Default | Values | Reason |
|---|---|---|---|
{of_jax}
"""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _is_block_of(name: str, found: object, setting: str) -> bool:
    """True for a function that makes the setting's blocks: its argument has another name."""
    return isinstance(found, FunctionType) and setting == f"jax_{name}"


def _own(name: str, setting: Setting[Any]) -> str:
    known = [(n, found) for n, found in vars(config).items() if not n.isupper()]
    names = [n for n, found in known if found is setting or _is_block_of(n, found, name)]
    block = ", ".join(f"`hloom.{n}`" for n in names)
    if isinstance(setting, OfProcess):
        block = "none: of the process"
    meaning = _cell(re.split(r"\n\s*\n", setting.__doc__ or "")[0])
    return f"| `{name}` | `{setting.default!r}` | {block or 'none'} | {meaning} |"


def _of_jax(name: str, setting: OfJax) -> str:
    values = "only this one" if setting.only else ", ".join(f"`{v!r}`" for v in setting.values) or "any of its type"
    return f"| `{name}` | `{setting.default!r}` | {values} | {_cell(setting.reason)} |"


def document() -> str:
    """The page."""
    own, of_jax = [], []
    for name, setting in config.SETTINGS.items():
        if isinstance(setting, OfJax):
            of_jax.append(_of_jax(name, setting))
        else:
            own.append(_own(name, setting))
    return TEXT.format(own="\n".join(own), of_jax="\n".join(of_jax))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    new = document()
    if options.write:
        DOCUMENT.write_text(new)
        return 0
    old = DOCUMENT.read_text()
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), "as written", "as made", lineterm=""))
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
