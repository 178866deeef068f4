"""HLO texts for tests: one line for each form that an instruction can take, and the files recorded from JAX."""

from __future__ import annotations

import re
from pathlib import Path

RECORDED = sorted((Path(__file__).resolve().parent.parent / "data" / "hlo").glob("*.hlo"))

PARAMETERS = {
    "x": "f32[2,3]{1,0}",
    "y": "f32[2,3]{1,0}",
    "w": "f32[3,4]{1,0}",
    "b": "f32[5,2,3]{2,1,0}",
    "c": "f32[5,3,4]{2,1,0}",
    "n": "s32[2,3]{1,0}",
    "u": "u32[2,3]{1,0}",
    "q": "pred[2,3]{1,0}",
    "z": "c64[2,3]{1,0}",
    "f": "f32[]",
    "i": "s32[]",
    "p": "pred[]",
    "k": "u64[2]{0}",
    "t": "(f32[2,3]{1,0}, s32[])",
}
"""The values that a line in `INSTRUCTIONS` may use, by name."""

COMPUTATIONS = {
    "sum": """%sum (sum.a: f32[], sum.b: f32[]) -> f32[] {
  %sum.a = f32[] parameter(0)
  %sum.b = f32[] parameter(1)
  ROOT %sum.r = f32[] add(%sum.a, %sum.b)
}""",
    "both": """%both (both.a: f32[], both.i: s32[], both.b: f32[], both.j: s32[]) -> (f32[], s32[]) {
  %both.a = f32[] parameter(0)
  %both.i = s32[] parameter(1)
  %both.b = f32[] parameter(2)
  %both.j = s32[] parameter(3)
  ROOT %both.r = (f32[], s32[]) tuple(%both.b, %both.i)
}""",
    "twice": """%twice (twice.a: f32[2,3]) -> f32[2,3] {
  %twice.a = f32[2,3]{1,0} parameter(0)
  ROOT %twice.r = f32[2,3]{1,0} add(%twice.a, %twice.a)
}""",
    "less": """%less (less.t: (f32[2,3], s32[])) -> pred[] {
  %less.t = (f32[2,3]{1,0}, s32[]) parameter(0)
  %less.i = s32[] get-tuple-element(%less.t), index=1
  %less.n = s32[] constant(3)
  ROOT %less.r = pred[] compare(%less.i, %less.n), direction=LT
}""",
    "next": """%next (next.t: (f32[2,3], s32[])) -> (f32[2,3], s32[]) {
  ROOT %next.t = (f32[2,3]{1,0}, s32[]) parameter(0)
}""",
}
"""What a line may call."""

_UNARY_FLOAT = (
    "copy abs acos acosh asin asinh atanh cbrt ceil cosine cosh erf exponential exponential-minus-one floor log "
    "log-plus-one logistic negate round-nearest-afz round-nearest-even rsqrt sign sine sinh sqrt tan tanh opt-barrier"
)
_BINARY_FLOAT = "add atan2 divide maximum minimum multiply power remainder subtract"
_BINARY_INTEGER = "and or xor shift-left shift-right-arithmetic shift-right-logical"
INSTRUCTIONS = [
    *(f"f32[2,3]{{1,0}} {op}(%x)" for op in _UNARY_FLOAT.split()),
    *(f"s32[2,3]{{1,0}} {op}(%n)" for op in ("not", "popcnt", "count-leading-zeros")),
    *(f"f32[2,3]{{1,0}} {op}(%z)" for op in ("real", "imag")),
    *(f"f32[2,3]{{1,0}} {op}(%x, %y)" for op in _BINARY_FLOAT.split()),
    *(f"s32[2,3]{{1,0}} {op}(%n, %n)" for op in _BINARY_INTEGER.split()),
    "pred[2,3]{1,0} is-finite(%x)",
    "c64[2,3]{1,0} complex(%x, %y)",
    *(f"pred[2,3]{{1,0}} compare(%x, %y), direction={d}" for d in ("EQ", "NE", "GE", "GT", "LE", "LT")),
    "pred[2,3]{1,0} compare(%x, %y), direction=LT, type=TOTALORDER",
    "f32[2,3]{1,0} select(%q, %x, %y)",
    "f32[2,3]{1,0} clamp(%f, %x, %f)",
    "bf16[2,3]{1,0} convert(%x)",
    "u32[2,3]{1,0} bitcast-convert(%x)",
    "u16[2,3,2]{2,1,0} bitcast-convert(%x)",
    "f32[6]{0} bitcast(%x)",
    "f32[2,3]{0,1} copy(%x)",
    "f32[2,3]{1,0:T(8,128)} copy(%x)",
    "f32[2,3]{1,0:T(2,128)(2,1)S(5)} copy(%x)",
    "f32[4,2,3]{2,1,0} broadcast(%x), dimensions={1,2}",
    "f32[7]{0} broadcast(%f), dimensions={}",
    "f32[2,6]{1,0} concatenate(%x, %y), dimensions={1}",
    "f32[2,1]{1,0} dynamic-slice(%x, %i, %i), dynamic_slice_sizes={2,1}",
    "f32[2,3]{1,0} dynamic-update-slice(%x, %y, %i, %i)",
    "s32[4,5]{1,0} iota(), iota_dimension=1",
    "f32[4,9]{1,0} pad(%x, %f), padding=0_2x1_1_2",
    "f32[1,3]{1,0} pad(%x, %f), padding=-1_0x0_0",
    "f32[] pad(%f, %f), padding=",
    "f32[3,2]{1,0} reshape(%x)",
    "f32[] constant(-0.0)",
    "f32[2,3]{1,0} constant({{1, 2, 3}, {0.1, nan, -inf}})",
    "c64[2]{0} constant({(1, 2), (0, -1.5)})",
    "pred[] constant(true)",
    "f32[2,0]{1,0} constant({{}, {}})",
    "f32[2,3]{1,0} reverse(%x), dimensions={0,1}",
    "f32[1,2]{1,0} slice(%x), slice={[1:2], [0:3:2]}",
    "f32[] slice(%f), slice={}",
    "f32[3,2]{1,0} transpose(%x), dimensions={1,0}",
    "f32[2]{0} reduce(%x, %f), dimensions={1}, to_apply=%sum",
    "f32[] reduce(%x, %f), dimensions={0,1}, to_apply=%sum",
    "(f32[3]{0}, s32[3]{0}) reduce(%x, %n, %f, %i), dimensions={0}, to_apply=%both",
    "f32[2,4]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "f32[2,4]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={highest,high}",
    "f32[5,2,4]{2,1,0} dot(%b, %c), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, "
    "rhs_contracting_dims={1}",
    "f32[2,3,3,4]{3,2,1,0} dot(%x, %w), lhs_contracting_dims={}, rhs_contracting_dims={}",
    "(u64[2]{0}, u32[5]{0}) rng-bit-generator(%k), algorithm=rng_three_fry",
    "(u64[2]{0}, u32[5]{0}) rng-bit-generator(%k), algorithm=rng_philox",
    "(u64[2]{0}, u32[5]{0}) rng-bit-generator(%k), algorithm=rng_default",
    "f32[2,3]{1,0} call(%x), to_apply=%twice",
    "f32[2,3]{1,0} call(%x), to_apply=%twice, is_composite=true, "
    'frontend_attributes={composite.attributes={},composite.name="my.op",composite.version="0"}',
    "f32[2,3]{1,0} call(%x), to_apply=%twice, is_composite=true, "
    'frontend_attributes={composite.attributes={length = 3, name = "a \\22}"},composite.name="scan",'
    'composite.version="1"}',
    "f32[2,3]{1,0} conditional(%p, %x, %y), true_computation=%twice, false_computation=%twice",
    "f32[2,3]{1,0} conditional(%i, %x, %y, %x), branch_computations={%twice, %twice, %twice}",
    "(f32[2,3]{1,0}, s32[]) while(%t), condition=%less, body=%next",
    "f32[2,3]{1,0} fusion(%x), kind=kLoop, calls=%twice",
    "f32[2,3]{1,0} fusion(%x), kind=kInput, calls=%twice",
    "f32[2,3]{1,0} fusion(%x), kind=kOutput, calls=%twice",
    "f32[2,3]{1,0} fusion(%x), kind=kCustom, calls=%twice",
    "s32[] get-tuple-element(%t), index=1",
    "(f32[2,3]{1,0}, s32[]) tuple(%x, %i)",
    "() tuple()",
    '(f32[2,3]{1,0}, s32[]) opt-barrier(%t), frontend_attributes={a="b",c={d = 1}}',
    'f32[2,3]{1,0} negate(%x), metadata={op_name="jit(f)/\\"neg\\"" source_file="a b/\\n.py" source_line=12}',
    'f32[2,3]{1,0} negate(%x), frontend_attributes={note="tab\\t, brace }"}, metadata={op_name="neg"}',
]
"""Each opcode in each form, as our printer writes it."""


def module_with(instruction: str) -> str:
    """A module whose entry returns `instruction`, one of `INSTRUCTIONS`, as our printer writes it."""
    used = [name for name in PARAMETERS if re.search(rf"%{name}\b", instruction.split("metadata")[0].split("=")[0])]
    called = list(dict.fromkeys(name for name in re.findall(r"%(\w+)", instruction) if name in COMPUTATIONS))
    result = _shape(instruction)
    signature = ", ".join(f"{name}: {_without_layout(PARAMETERS[name])}" for name in used)
    layouts = ", ".join(PARAMETERS[name] for name in used)
    lines = [f"  %{name} = {PARAMETERS[name]} parameter({i})" for i, name in enumerate(used)]
    entry = "\n".join(
        [
            f"ENTRY %main ({signature}) -> {_without_layout(result)} {{",
            *lines,
            f"  ROOT %result = {instruction}",
            "}",
        ]
    )
    header = f"HloModule test, entry_computation_layout={{({layouts})->{result}}}"
    return "\n\n".join([header, *(COMPUTATIONS[name] for name in called), entry]) + "\n"


def _shape(instruction: str) -> str:
    match = re.match(r"\([^()]*(?:\([^()]*\)[^()]*)*\)(?= )|\S+", instruction)
    assert match is not None
    return match.group()


def _without_layout(shape: str) -> str:
    return re.sub(r"\{[^}]*\}", "", shape)
