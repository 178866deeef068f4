#!/usr/bin/env python3
"""The output blocks of a Markdown file, made by running its Python blocks.

Every ```python block runs, in order, in one namespace; what it prints belongs into the ```text block that follows it.

    python tools/readme.py README.md            # says where the file differs from what its code prints
    python tools/readme.py README.md --write    # puts the real output there
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import re
import sys
from pathlib import Path
from typing import Any

_BLOCK = re.compile(r"^```(?P<kind>python|text)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


def with_real_output(markdown: str, name: str = "README.md") -> str:
    """`markdown` with each text block replaced by what the Python block before it prints."""
    namespace: dict[str, Any] = {"__name__": name}
    printed = ""

    def replace(match: re.Match[str]) -> str:
        nonlocal printed
        if match["kind"] == "text":
            return f"```text\n{printed.rstrip()}\n```"
        line = markdown.count("\n", 0, match.start()) + 1
        code = compile("\n" * line + match["body"], name, "exec")  # so that errors name lines of the file
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(code, namespace)
        printed = output.getvalue()
        return match[0]

    return _BLOCK.sub(replace, markdown)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    old = options.file.read_text()
    new = with_real_output(old, str(options.file))
    if options.write:
        options.file.write_text(new)
        return 0
    difference = difflib.unified_diff(old.splitlines(), new.splitlines(), "as written", "as run", lineterm="")
    lines = list(difference)
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
