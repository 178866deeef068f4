"""`hloom.view`: show a program in all its stages."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path
from typing import Any

from ..hlo.text.escape import escape
from . import bundle
from .inspection import inspect
from .model import model_of, to_text
from .server import ViewServer


def view(
    f: Any, /, *args: Any, profile: int = 0, html: str | os.PathLike[str] | None = None, open: bool = True,
    port: int = 0, **kwargs: Any,
) -> None:  # fmt: skip
    """Show a program in all its stages in a browser: the user's lines, HLO before and after each pass, kernels, memory.

    f: a function, jitted or not, which is compiled for the arguments; or what `lower` or `compile` returned, or an
      `HloModule`, which take none.
    profile: run the program so often, and show the time of each kernel, and its share of the machine's speed.
    html: write one file there, which needs no server and no network, instead of serving the page. It holds the lines of
      your files that the program comes from.
    open: open a browser. The address is printed in any case.
    port: of the server, which only this machine reaches; 0: any that is free.

    Serves until Ctrl-C is pressed. TypeError if `f` is none of these, ValueError for a negative `profile`, OSError if
    the file cannot be written or the port is taken.

    >>> import os, tempfile
    >>> import hloom, hloom.numpy as jnp
    >>> path = os.path.join(tempfile.mkdtemp(), "double.html")
    >>> hloom.view(lambda x: 2 * jnp.tanh(x), jnp.ones(3), html=path)
    >>> os.path.exists(path)
    True
    """
    if profile < 0:
        raise ValueError(f"hloom.view: profile is how often the program runs, 0 or more, not {profile}")
    show(model_of(inspect(f, args, kwargs, int(profile))), html, open, port)


def show(data: dict[str, Any], html: str | os.PathLike[str] | None, open: bool, port: int) -> None:
    """Write the page of this data to a file, or serve it until Ctrl-C."""
    text = to_text(data)
    if html is not None:
        Path(html).write_text(bundle.single_file(text, data["title"]), encoding="utf-8")
        return
    with ViewServer(text, port) as server:
        print(f"{escape(data['title'])}: {server.address}  (Ctrl-C ends)", file=sys.stderr, flush=True)
        if open:
            webbrowser.open(server.address)
        try:
            server.wait()
        except KeyboardInterrupt:
            print(file=sys.stderr)
