"""XLA's results for the op cases, kept in `tests/data/xla_results.npz`, so that comparing with them needs no XLA.

`python tests/support/record_oracle.py` makes the file again, from the current cases.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from hloom.hlo import Opcode, PaddingValue, Shape
from hloom.hlo.ops.window import SelectAndScatterAttributes

from hloom.backend_check.op_table import CASES, OpCase
from hloom.backend_check.op_values import NDArray

PATH = Path(__file__).resolve().parent.parent / "data" / "xla_results.npz"

UNANSWERED_OPCODES: dict[Opcode, str] = {
    Opcode.RAGGED_DOT: "XLA's CPU compiler has no code for it (test_dots.py compares with JAX)",
    Opcode.SCALED_DOT: "the client's conversion to StableHLO does not know it",
    Opcode.RNG_GET_AND_UPDATE_STATE: "in XLA each compiled module has a state of its own",
    Opcode.BITCAST: "XLA makes these after layouts are assigned, and takes none before",
    Opcode.RAGGED_ALL_TO_ALL: "XLA crashes",
    Opcode.AFTER_ALL: "a token is no result that can be looked at",
    **dict.fromkeys(
        (
            Opcode.ALL_GATHER_DONE, Opcode.ALL_GATHER_START, Opcode.ALL_REDUCE_DONE, Opcode.ALL_REDUCE_START,
            Opcode.COLLECTIVE_PERMUTE_DONE, Opcode.COLLECTIVE_PERMUTE_START,
        ),
        "XLA takes only a start and its done together: test_structure_programs.py",
    ),
    **dict.fromkeys(
        (
            Opcode.ASYNC_DONE, Opcode.ASYNC_START, Opcode.ASYNC_UPDATE, Opcode.COLLECTIVE_BROADCAST, Opcode.COPY_DONE,
            Opcode.COPY_START, Opcode.DOMAIN,
        ),
        "XLA has no code for it on the CPU",
    ),
}
_BERNOULLI = "today's XLA has no text for it"
_S4_DOT = "XLA's compiler makes an ill-typed module of it"
_F4 = "XLA's conversion of f4e2m1fn takes the largest number for infinity"
_INTEGERS = ("s2", "s4", "s8", "s16", "s32", "s64", "u2", "u4", "u8", "u16", "u32", "u64")
UNANSWERED_CASES: dict[str, str] = {
    **{f"convert-f4e2m1fnx16x17-{t}": _F4 for t in _INTEGERS},
    **{f"concatenate-{t}x2x5-{t}x3x5": "XLA crashes" for t in ("f4e2m1fn", "s2", "s4", "u2", "u4")},
    **{f"map-s32{dims}-f32{dims}-looping": "XLA crashes" for dims in ("", "x0", "x1", "x3x0x2", "x1x37", "x5x7x3")},
    "dot-f32x4x5-f32x5x3-dot_bf16_bf16_f32_x9": "XLA crashes",
    **{f"dot-s4{dims}-s32": _S4_DOT for dims in ("x5x7-s4x7x6", "x1x1-s4x1x1", "x3x0-s4x0x2")},
    "dot-s4x5x7-bf16x7x6-bf16": _S4_DOT,
    "rng-s8-s8-uniform": "XLA crashes",
    "rng-u16-u16-uniform": "XLA crashes",
    **{f"rng-f32-bernoulli-{case}": _BERNOULLI for case in ("pred-0", "pred-1", "s32-1", "f32-1")},
    "convert-f64x16x17-f8e8m0fnu": "XLA flushes the smallest numbers to zero, and this type has none",
    **dict.fromkeys(
        (f"mulhi-{t}x{n}x{n}-{t}x{n}x{n}" for t, n in (("s2", 4), ("u2", 4), ("s4", 16), ("u4", 16))),
        "XLA gives the upper half of the product of bytes",
    ),
    "popcnt-s4x16": "XLA counts copies of the sign bit",
    "popcnt-s2x4": "XLA counts copies of the sign bit",
    "convert-c64x11x17-pred": "XLA crashes",
    "convert-c128x11x17-pred": "XLA crashes",
    "add-dependency-(f32x2,(s32,token))-token": "StableHLO, by which this goes to XLA, has none of a tuple",
    "all-to-all-f32x2x3-tuple": "XLA crashes",
    "all-gather-f32x0": "StableHLO refuses it",
    "all-gather-f32x3x0x2": "StableHLO refuses it",
    "reduce-scatter-f32x0": "StableHLO refuses it",
    "reduce-scatter-f32x3x0x2": "StableHLO refuses it",
    "pad-f32-f32": "XLA's text has no padding of a scalar",
    "scatter-f32-s32x5x0-scalars": "XLA makes an ill-typed module of it",
    "dynamic-slice-f32-size": "StableHLO, by which this goes to XLA, has no dynamic slice of a scalar",
}


_LONG = "1500.1.1499.0.1.1"
UNANSWERED_CASES |= dict.fromkeys(
    (
        f"reduce-window-f32x2x3x1500-s32x2x3x1500-argmax-window-1.1.0.0.1.1,1.1.0.0.1.1,{_LONG}",
        f"reduce-window-f32x1500x3-s32x1500x3-argmax-window-{_LONG},1.1.0.0.1.1",
    ),
    "XLA runs out of memory",
)
UNANSWERED_CASES |= dict.fromkeys(
    ("select-and-scatter-f32-f32-GE-add-window-", "select-and-scatter-f32-f32-LT-add-window-"),
    "XLA crashes",
)


UNANSWERED_CASES |= {
    case.id: "StableHLO, by which this goes to XLA, has no dilation there"
    for case in CASES
    if isinstance(case.attributes, SelectAndScatterAttributes)
    and any(part.base_dilation != 1 or part.window_dilation != 1 for part in case.attributes.window)
}


def is_answered(case: OpCase) -> bool:
    """Whether XLA can be asked about `case`."""
    return case.opcode not in UNANSWERED_OPCODES and case.id not in UNANSWERED_CASES and not case.is_subnormal


def _signature(case: OpCase) -> int:
    """A number that changes when the case does."""
    shapes = [str(array.shape) for array in case.arrays]
    text = repr((case.opcode, shapes, case.attributes, str(case.result)))
    return zlib.crc32(_LATER.sub("", text).encode())


_LATER = re.compile(
    rf"{re.escape(f', padded_dimensions=(), padding_value={PaddingValue.UNKNOWN_PAD!r}')}"
    r"|(?<=largest=True), is_stable=True|(?<=largest=False), is_stable=True"
)
"""The defaults of fields that layouts and attributes have had only since the answers were recorded."""


def save(answers: Mapping[OpCase, tuple[Sequence[NDArray], Sequence[NDArray]]]) -> None:
    """Write inputs and results, all cases' bytes in one row."""
    index: dict[str, tuple[int, int]] = {}
    parts: list[bytes] = []
    offset = 0
    for case, (inputs, results) in answers.items():
        index[case.id] = (_signature(case), offset)
        for array in (*inputs, *results):
            parts.append(array.tobytes())
            offset += len(parts[-1])
    blob = np.frombuffer(b"".join(parts), np.uint8)
    PATH.parent.mkdir(exist_ok=True)
    np.savez_compressed(PATH, blob=blob, index=np.frombuffer(json.dumps(index).encode(), np.uint8))


def recorded() -> Iterator[tuple[OpCase, tuple[list[NDArray], list[NDArray]] | None]]:
    """Each case about which XLA can be asked: the inputs, and what XLA made of them; None if it was recorded otherwise
    or not at all."""
    with np.load(PATH) as file:
        blob, index = file["blob"], json.loads(file["index"].tobytes())

    def arrays(shapes: Sequence[Shape], offset: int) -> Iterator[NDArray]:
        for shape in shapes:
            yield blob[offset : offset + shape.byte_size].view(shape.element.dtype).reshape(shape.dimensions)
            offset += shape.byte_size

    for case in filter(is_answered, CASES):
        signature, offset = index.get(case.id, (None, 0))
        if signature != _signature(case):
            yield case, None
            continue
        inputs = [array.shape for array in case.arrays]
        everything = list(arrays([*inputs, *case.result.leaves()], offset))
        yield case, (everything[: len(inputs)], everything[len(inputs) :])


def load() -> dict[str, tuple[list[NDArray], list[NDArray]]]:
    """By case id: the inputs, and what XLA made of them. LookupError if a case was recorded otherwise or not at all."""
    found: dict[str, tuple[list[NDArray], list[NDArray]]] = {}
    for case, answer in recorded():
        if answer is None:
            raise LookupError(f"{case.id} is not in {PATH.name}, or was another case then: run record_oracle.py")
        found[case.id] = answer
    return found
