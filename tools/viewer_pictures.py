#!/usr/bin/env python3
"""The pictures of docs/viewer.md: the viewer's page with real programs, as a browser shows it.

    python tools/viewer_pictures.py

Needs Chromium and chromedriver.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "examples"), str(ROOT)]

import numpy as np  # noqa: E402

import hloom  # noqa: E402
import hloom.numpy as jnp  # noqa: E402
import train_mnist  # noqa: E402
from hloom.viewer import bundle  # noqa: E402
from hloom.viewer.inspection import inspect  # noqa: E402
from hloom.viewer.model import model_of, to_text  # noqa: E402
from support.browser import browser  # noqa: E402
from support.viewer_page import show  # noqa: E402

SIZE = 1700, 950


def mnist() -> tuple[Any, tuple[Any, ...]]:
    parameters = train_mnist.init_params(hloom.random.key(0), [784, 512, 512, 10])
    state = parameters, hloom.tree.map(jnp.zeros_like, parameters)
    return train_mnist.train_step, (state, np.ones((64, 784), np.float32), np.zeros(64, np.int32), 0.05, 0.9)


def attention() -> tuple[Any, tuple[Any, ...]]:
    def block(weights: Any, x: Any) -> Any:
        q, k, v = (x @ w for w in weights[:3])
        h = x + hloom.nn.softmax(q @ k.T / 8) @ v
        return jnp.mean((h + hloom.nn.gelu(h @ weights[3])) ** 2)

    return hloom.value_and_grad(block), ([jnp.ones((64, 64)) * 0.01] * 4, jnp.ones((128, 64)))


def loop() -> tuple[Any, tuple[Any, ...]]:
    def simulate(x: Any, forces: Any) -> Any:
        def step(state: Any, force: Any) -> Any:
            state = jnp.tanh(state @ force) + 0.1 * state
            return state, state.sum()

        return hloom.lax.scan(step, x, forces)

    return simulate, (jnp.ones((16, 16)), jnp.ones((200, 16, 16)))


PICTURES = {
    "mnist": (mnist, "fusion", "lines,hlo,graph,kernels,details,rows,buffers", "light"),
    "attention": (attention, "fusion", "lines,beside,hlo,details,rules,passes", "dark"),
    "loop": (loop, "dot", "lines,hlo,graph,details,rows,buffers", "light"),
}
"""By name: the program, the opcode of the selected instruction, the panes, the theme."""


def main() -> None:
    folder = ROOT / "docs" / "images" / "viewer"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, browser() as window:
        window.resize(*SIZE)
        for name, (program, opcode, panes, theme) in PICTURES.items():
            f, args = program()
            data = model_of(inspect(f, args, {}, calls=200))
            page = Path(temporary, f"{name}.html")
            page.write_text(bundle.single_file(to_text(data), data["title"]), encoding="utf-8")
            codes = [data["strings"][n] for n in data["instructions"]["opcode"]]
            last = {i for c in data["stages"][-1]["computations"] for i in data["computations"][c]["instructions"]}
            chosen = next(i for i in sorted(last) if codes[i] == opcode)
            stage = f"&stage={data['stages'][-3]['name']}" if "beside" in panes else ""
            show(window, page.as_uri(), f"#panes={panes}&selected=i{chosen}&theme={theme}{stage}")
            time.sleep(1)  # the graph is laid out after the page is ready
            (folder / f"{name}.png").write_bytes(window.picture())
            print(f"{folder / name}.png")


if __name__ == "__main__":
    main()
