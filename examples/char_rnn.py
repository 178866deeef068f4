#!/usr/bin/env python3
"""A recurrent network learns a nursery rhyme letter by letter, and shows what it would write as it learns.

    python examples/char_rnn.py
    python examples/char_rnn.py --steps 2000 --hidden 96

"This is the house that Jack built" grows by a line in each verse, so the next letters follow from the earlier lines:
they say which animal did what to another one. The network is one gated recurrent unit (GRU); it sees one letter, keeps
what it needs in its hidden state, and gives the probabilities of the next letter.

* reading a window: `scan` over its letters, for all windows of a batch at once; its gradient is a scan backwards;
* writing: `scan` with the network's own draws as its next input.

Everything from `init_params` to `write` is a JAX program: `import jax as hloom` and `import jax.numpy as jnp`.
Source of the unit: K. Cho and others, "Learning phrase representations using RNN encoder-decoder" (2014).
"""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

import common
import hloom
import hloom.numpy as jnp

NDArray = np.ndarray[Any, Any]

# ---- the text: who, and what it did to the one before

PARTS = [
    ("house that Jack built", ""),
    ("malt", "lay in"),
    ("rat", "ate"),
    ("cat", "killed"),
    ("dog", "worried"),
    ("cow with the crumpled horn", "tossed"),
    ("maiden all forlorn", "milked"),
    ("man all tattered and torn", "kissed"),
    ("priest all shaven and shorn", "married"),
    ("cock that crowed in the morn", "woke"),
    ("farmer sowing his corn", "kept"),
    ("horse and the hound and the horn", "belonged to"),
]


def rhyme() -> str:
    """All twelve verses."""
    verses, rest = [], ""
    for who, did in PARTS:
        rest = f"the {who}" + (f"\nthat {did} {rest}" if did else "")
        verses.append(f"This is {rest}.\n\n")
    return "".join(verses)


TEXT = rhyme()
LETTERS = sorted(set(TEXT))
CODES = np.array([LETTERS.index(letter) for letter in TEXT], np.int32)
FIRST = LETTERS.index("\n")

BATCH, WINDOW = 32, 64


# ---- the network


def init_params(key: Any, hidden: int) -> Any:
    """The gates and the candidate in one matrix: [letters + hidden, 3 * hidden]; then the weights of the output."""
    count, keys = len(LETTERS), hloom.random.split(key, 3)
    return {
        "input": 0.5 * hloom.random.normal(keys[0], (count, 3 * hidden)),
        "state": hloom.random.normal(keys[1], (hidden, 3 * hidden)) / hidden**0.5,
        "bias": jnp.zeros(3 * hidden),
        "output": hloom.random.normal(keys[2], (hidden, count)) / hidden**0.5,
        "output_bias": jnp.zeros(count),
    }


def gru(params: Any, state: Any, letter: Any) -> Any:
    """The next hidden state f32[batch, hidden] after letters s32[batch]."""
    seen = hloom.nn.one_hot(letter, len(LETTERS)) @ params["input"] + params["bias"]
    kept = state @ params["state"]
    seen_update, seen_reset, seen_new = jnp.split(seen, 3, axis=-1)
    kept_update, kept_reset, kept_new = jnp.split(kept, 3, axis=-1)
    update = hloom.nn.sigmoid(seen_update + kept_update)
    reset = hloom.nn.sigmoid(seen_reset + kept_reset)
    new = jnp.tanh(seen_new + reset * kept_new)
    return (1 - update) * new + update * state


def read(params: Any, letters: Any) -> Any:
    """The hidden states f32[window, batch, hidden] while reading s32[window, batch]."""

    def step(state: Any, letter: Any) -> Any:
        state = gru(params, state, letter)
        return state, state

    start = jnp.zeros((letters.shape[1], params["state"].shape[0]))
    return hloom.lax.scan(step, start, letters)[1]


def loss(params: Any, letters: Any) -> Any:
    """Bits per letter: the cross-entropy of each letter s32[window + 1, batch] but the first, given those before."""
    scores = read(params, letters[:-1]) @ params["output"] + params["output_bias"]
    log_probabilities = hloom.nn.log_softmax(scores)
    wanted = hloom.nn.one_hot(letters[1:], len(LETTERS))
    return -jnp.mean(jnp.sum(log_probabilities * wanted, axis=-1)) / jnp.log(2.0)


@partial(hloom.jit, donate_argnums=0)
def train_step(state: Any, letters: Any, count: int, rate: float) -> Any:
    """One step of Adam, number `count` from 0 on, with a gradient of a norm of at most 1."""
    params, mean, square = state
    value, gradient = hloom.value_and_grad(loss)(params, letters)
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in hloom.tree.leaves(gradient)))
    gradient = hloom.tree.map(lambda g: g / jnp.maximum(norm, 1.0), gradient)
    mean = hloom.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
    square = hloom.tree.map(lambda s, g: 0.999 * s + 0.001 * g**2, square, gradient)
    scale_mean, scale_square = 1 / (1 - 0.9 ** (count + 1.0)), 1 / (1 - 0.999 ** (count + 1.0))

    def update(p: Any, m: Any, s: Any) -> Any:
        return p - rate * (m * scale_mean) / (jnp.sqrt(s * scale_square) + 1e-8)

    return (hloom.tree.map(update, params, mean, square), mean, square), value


@partial(hloom.jit, static_argnames="length")
def write(params: Any, key: Any, length: int) -> Any:
    """Letters s32[length], each drawn from the network's probabilities after those before it."""

    def step(carry: Any, key: Any) -> Any:
        state, letter = carry
        state = gru(params, state, letter)
        letter = hloom.random.categorical(key, state @ params["output"] + params["output_bias"])
        return (state, letter), letter[0]

    start = jnp.zeros((1, params["state"].shape[0])), jnp.full(1, FIRST)
    return hloom.lax.scan(step, start, hloom.random.split(key, length))[1]


# ---- the program around it


def init_state(options: Any) -> Any:
    params = init_params(hloom.random.key(options.seed), options.hidden)
    zeros = hloom.tree.map(jnp.zeros_like, params)
    return params, zeros, hloom.tree.map(jnp.zeros_like, params)


def batch(rng: np.random.Generator) -> NDArray:
    """Windows of the rhyme from random places, s32[WINDOW + 1, BATCH]; the rhyme begins anew after its end."""
    starts = rng.integers(0, len(CODES), BATCH)
    return CODES[(np.arange(WINDOW + 1)[:, None] + starts) % len(CODES)]


def as_text(codes: Any) -> str:
    return "".join(LETTERS[code] for code in np.asarray(codes))


def train(options: Any) -> tuple[Any, list[float]]:
    """Train with a rate that falls to 0; writes a line of its own now and then. Gives parameters and losses."""
    state, rng = init_state(options), np.random.default_rng(options.seed)
    losses: list[float] = []
    shown = {0, *(options.steps * np.array([1, 2, 4, 8, 16]) // 16 - 1)}
    with common.bar(options.steps, "steps") as bar:
        for count in range(options.steps):
            rate = 0.01 * (1 + np.cos(np.pi * count / options.steps)) / 2
            state, value = train_step(state, batch(rng), count, rate)
            losses.append(float(value))
            bar.set_postfix(bits=f"{losses[-1]:.3f}", refresh=False)
            bar.update()
            if count in shown:
                sample = as_text(write(state[0], hloom.random.key(count), 70)).replace("\n", " / ")
                bar.write(f"step {count + 1:4}   {losses[-1]:.3f} bits a letter   {sample}", file=sys.stdout)
    return state[0], losses


# ---- the picture


def draw(params: Any, losses: list[float], words: str) -> Figure:
    picture = common.figure("A recurrent network learns “This is the house that Jack built”", words, 6.6)
    grid = picture.add_gridspec(
        3, 2, left=0.06, right=0.975, top=0.84, bottom=0.06, hspace=0.48, wspace=0.12, height_ratios=(1.35, 0.6, 1)
    )
    curve = picture.add_subplot(grid[0, 0])
    curve.plot(np.arange(1, len(losses) + 1), losses, color=common.BLUE, linewidth=1.6)
    common.log_scale(curve.xaxis)
    common.log_scale(curve.yaxis)
    common.style(curve, "Bits per letter, by step")

    written = picture.add_subplot(grid[0, 1])
    written.set_axis_off()
    written.set_title("What it writes at the end", loc="left", fontsize=11, color=common.INK)
    sample = as_text(write(params, hloom.random.key(3), 400))
    lines = sample[sample.index("This") if "This" in sample else 0 :].split("\n")[:10]
    written.text(0, 0.98, "\n".join(lines), va="top", fontsize=9.5, color=common.INK, linespacing=1.3)

    begin = TEXT.index("This is the cow")
    seen = slice(begin - 50, begin + 80)  # so that it knows where it is when the picture begins
    states = np.asarray(read(params, CODES[seen, None]))[:, 0]
    scores = states[49:-1] @ np.asarray(params["output"]) + np.asarray(params["output_bias"])
    surprise = -np.asarray(hloom.nn.log_softmax(scores))[np.arange(80), CODES[begin : begin + 80]] / np.log(2)
    letters = [{"\n": "¶", " ": "·"}.get(letter, letter) for letter in TEXT[begin : begin + 80]]

    bars = picture.add_subplot(grid[1, :])
    bars.bar(range(80), surprise, color=common.BLUE, width=0.8)
    common.style(bars, "Bits of each letter: what comes next is clear, but for what is new in the verse")
    bars.grid(False, axis="x")

    states = states[50:].T
    longest = np.argsort(np.abs(np.diff(states)).sum(1))[:16]
    heat = picture.add_subplot(grid[2, :], sharex=bars)
    colours = LinearSegmentedColormap.from_list("state", [common.BLUE, "#f7f7f5", common.GOLD])
    heat.imshow(states[longest], aspect="auto", cmap=colours, vmin=-1, vmax=1, interpolation="nearest")
    common.style(heat, "What is kept for longest: sixteen units of the hidden state, from -1 (blue) to 1 (yellow)")
    heat.grid(False)
    heat.set_xticks(range(80), letters, color=common.INK)
    heat.set_yticks([])
    heat.tick_params(axis="x", length=0)
    bars.tick_params(axis="x", length=0, labelbottom=False)
    return picture


def main() -> None:
    parser = common.parse(
        __doc__, "rnn.png", steps=(800, "steps of training"), hidden=(64, "the size of the hidden state")
    )
    options = parser.parse_args()
    print(f"{len(TEXT):,} letters, {len(LETTERS)} different ones")
    began = time.perf_counter()
    state, _ = train_step(init_state(options), batch(np.random.default_rng(0)), 0, 0.0)
    write(state[0], hloom.random.key(0), 70)
    print(f"compiling: {time.perf_counter() - began:.1f} s")
    began = time.perf_counter()
    params, losses = train(options)
    seconds = time.perf_counter() - began
    print(f"training: {seconds:.1f} s")
    words = f"{len(losses):,} steps, each of {BATCH} windows of {WINDOW} letters, in {seconds:.1f} s; "
    words += f"{np.mean(losses[-20:]):.2f} bits a letter at the end"
    common.save(draw(params, losses, words), options.out)
    print(f"Picture: {options.out}")


if __name__ == "__main__":
    common.run(main)
