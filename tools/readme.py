#!/usr/bin/env python3
"""The output blocks and pictures of a Markdown file, made by running its Python blocks and its `hloom` commands.

Every ```python block runs, in order, in one namespace, and so does every ```sh block of `hloom` commands; the output of
a block belongs in the ```text block after it. All run in an empty folder. Pictures that a command writes there
(`hloom layout ... --svg tiles.svg`) belong beside the file, in `images/NAME/` for `NAME.md`.

    python tools/readme.py README.md            # says where the file differs from what its code prints
    python tools/readme.py README.md --write    # puts the real output and the pictures there
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

_BLOCK = re.compile(r"^```(?P<kind>python|sh|text)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


def with_real_output(markdown: str, name: str = "README.md") -> str:
    """`markdown` with each text block replaced by the output of the block before it."""
    from hloom.hlo.backend import registered_backends, unregister_backend

    from hloom import config, registered_custom_calls, unregister_custom_call

    for target in registered_custom_calls():
        unregister_custom_call(target)  # of the run before this one
    config.update("hloom_backend", "numba")
    for backend in registered_backends():
        if backend not in ("numba", "evaluator"):
            unregister_backend(backend)
    namespace: dict[str, Any] = {"__name__": name}
    printed = ""

    def replace(match: re.Match[str]) -> str:
        nonlocal printed
        if match["kind"] == "text":
            return f"```text\n{printed.rstrip()}\n```"
        line = markdown.count("\n", 0, match.start()) + 1
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            if match["kind"] == "sh":
                run_commands(match["body"], f"{name}:{line}")
            else:
                # lines before it, so that errors name those of the file; its own __future__ imports, not this file's
                code = compile("\n" * line + match["body"], name, "exec", dont_inherit=True)
                exec(code, namespace)
        printed = output.getvalue()
        return match[0]

    return _BLOCK.sub(replace, markdown)


def run_commands(lines: str, where: str) -> None:
    """Run `hloom ...` lines in this process; a line that ends in a backslash continues. Other commands are refused."""
    from hloom.command_line import main

    for line in lines.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        if words[0] != "hloom":
            raise SystemExit(f"{where}: only `hloom` commands are run, not {words[0]!r}")
        code = main(words[1:])
        if code:
            raise SystemExit(f"{where}: exit code {code} of: {line}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("HLOOM_MACHINE", "register_bytes=32")  # so kernels are the same wherever the file is written
    file = options.file.resolve()
    images = file.parent / "images" / file.stem
    old = file.read_text()
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.chdir(folder):
            new = with_real_output(old, file.name)
            if options.write and new.count("\n") != old.count("\n"):
                new = with_real_output(new, file.name)  # in case the output names lines of the file, which have moved
        made = {path.name: path.read_text() for path in Path(folder).glob("*.svg")}
    if options.write:
        file.write_text(new)
        for name, picture in made.items():
            images.mkdir(parents=True, exist_ok=True)
            (images / name).write_text(picture)
        return 0
    difference = difflib.unified_diff(old.splitlines(), new.splitlines(), "as written", "as run", lineterm="")
    lines = list(difference)
    stored = {path.name: path.read_text() for path in images.glob("*.svg")}
    for name in sorted(made.keys() | stored.keys()):
        if made.get(name) != stored.get(name):
            what = "is not there" if name not in stored else "no command makes" if name not in made else "has changed"
            lines.append(f"picture {os.path.join('images', file.stem, name)}: {what}")
        if f"]({os.path.join('images', file.stem, name)})" not in old:
            lines.append(f"picture {name} is not shown")
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
