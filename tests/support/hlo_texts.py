"""HLO texts for tests: one line for each form of an instruction, and the files recorded from JAX."""

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
    "v": "f32[8]{0}",
    "j": "s32[4,1]{1,0}",
    "g": "f32[4,3]{1,0}",
    "m": "f32[5,3,3]{2,1,0}",
    "d": "f32[2,6,6,3]{3,2,1,0}",
    "r": "f32[3,3,3,7]{3,2,1,0}",
    "s": "f32[3]{0}",
    "e": "c64[2,4]{1,0}",
    "l": "s64[3]{0}",
    "h": "f32[3,3,4]{2,1,0}",
    "tok": "token[]",
    "pair": "(f32[2,3]{1,0}, u32[], token[])",
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
    "minus": """%minus (minus.a: f32[2,3]) -> f32[2,3] {
  %minus.a = f32[2,3]{1,0} parameter(0)
  %minus.b = f32[2,3]{1,0} abs(%minus.a)
  ROOT %minus.r = f32[2,3]{1,0} negate(%minus.b)
}""",
    "below": """%below (below.a: f32[], below.b: f32[]) -> pred[] {
  %below.a = f32[] parameter(0)
  %below.b = f32[] parameter(1)
  ROOT %below.r = pred[] compare(%below.a, %below.b), direction=LT
}""",
    "below2": """%below2 (below2.a: f32[], below2.b: f32[], below2.i: s32[], below2.j: s32[]) -> pred[] {
  %below2.a = f32[] parameter(0)
  %below2.b = f32[] parameter(1)
  %below2.i = s32[] parameter(2)
  %below2.j = s32[] parameter(3)
  ROOT %below2.r = pred[] compare(%below2.a, %below2.b), direction=GT
}""",
    "step": """%step (step.a: f32[3], step.c: f32[3]) -> (f32[3], f32[3]) {
  %step.a = f32[3]{0} parameter(0)
  %step.c = f32[3]{0} parameter(1)
  %step.s = f32[3]{0} add(%step.a, %step.c)
  ROOT %step.r = (f32[3]{0}, f32[3]{0}) tuple(%step.s, %step.s)
}""",
    "next": """%next (next.t: (f32[2,3], s32[])) -> (f32[2,3], s32[]) {
  ROOT %next.t = (f32[2,3]{1,0}, s32[]) parameter(0)
}""",
}
"""The computations that a line may call."""

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
    "f32[2,3]{1,0} map(%x, %y), dimensions={0,1}, to_apply=%sum",
    "f32[2,3]{1,0} reduce-precision(%x), exponent_bits=5, mantissa_bits=10",
    "s32[2,3]{1,0} mulhi(%n, %n)",
    "f32[2,3]{1,0} rng(%f), distribution=rng_bernoulli",
    "s32[2,3]{1,0} stochastic-convert(%x, %u)",
    "f32[2,3]{1,0} sort(%x), dimensions={1}, to_apply=%below",
    "(f32[2,3]{1,0}, s32[2,3]{1,0}) sort(%x, %n), dimensions={0}, is_stable=true, to_apply=%below2",
    "(f32[2,1]{1,0}, s32[2,1]{1,0}) topk(%x), k=1, largest=true",
    "(f32[2,2]{1,0}, s32[2,2]{1,0}) topk(%x), k=2, largest=false",
    "f32[4,3]{1,0} gather(%x, %j), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
    "slice_sizes={1,3}",
    "f32[4,3]{1,0} gather(%g, %j), offset_dims={1}, collapsed_slice_dims={}, start_index_map={1}, "
    "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=1, slice_sizes={1,3}, "
    "indices_are_sorted=true",
    "f32[2,3]{1,0} scatter(%x, %j, %g), update_window_dims={1}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=%sum",
    "f32[4,3]{1,0} scatter(%g, %j, %g), update_window_dims={1}, inserted_window_dims={}, "
    "scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0}, index_vector_dim=1, "
    "indices_are_sorted=true, unique_indices=true, to_apply=%sum",
    "f32[2,2]{1,0} reduce-window(%x, %f), window={size=1x2}, to_apply=%sum",
    "f32[2,3]{1,0} reduce-window(%x, %f), window={size=2x2 stride=2x1 pad=1_1x0_1}, "
    "to_apply=%sum",
    "f32[1,4]{1,0} reduce-window(%x, %f), window={size=2x2 pad=0_0x-1_2 lhs_dilate=1x2 rhs_dilate=1x2}, to_apply=%sum",
    "f32[] reduce-window(%f, %f), to_apply=%sum",
    "f32[2,3]{1,0} select-and-scatter(%x, %x, %f), window={size=1x1}, select=%below, scatter=%sum",
    "f32[2,4,4,7]{3,2,1,0} convolution(%d, %r), window={size=3x3}, dim_labels=b01f_01io->b01f",
    "f32[2,3,8,7]{3,2,1,0} convolution(%d, %r), window={size=3x3 stride=2x1 pad=1_0x-1_2 lhs_dilate=1x2 rhs_dilate=1x2 "
    "rhs_reversal=0x1}, dim_labels=b01f_01io->b01f, operand_precision={high,highest}",
    "f32[2,4]{1,0} convolution(%x, %w), dim_labels=bf_io->bf",
    "f32[4,2]{1,0} convolution(%x, %w), dim_labels=bf_io->fb",
    "(f32[2,6,6,3]{3,2,1,0}, f32[3]{0}, f32[3]{0}) batch-norm-training(%d, %s, %s), epsilon=0.001, feature_index=3",
    "f32[2,6,6,3]{3,2,1,0} batch-norm-inference(%d, %s, %s, %s, %s), epsilon=1e-05, feature_index=3",
    "(f32[2,6,6,3]{3,2,1,0}, f32[3]{0}, f32[3]{0}) batch-norm-grad(%d, %s, %s, %s, %d), epsilon=0.5, feature_index=3",
    "f32[5,3,3]{2,1,0} cholesky(%m), lower=true",
    "f32[5,3,3]{2,1,0} cholesky(%m)",
    "f32[5,3,4]{2,1,0} triangular-solve(%m, %c), left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
    "f32[5,3,4]{2,1,0} triangular-solve(%m, %c), left_side=true, unit_diagonal=true, transpose_a=ADJOINT",
    "c64[2,4]{1,0} fft(%e), fft_type=FFT, fft_length={4}",
    "f32[2,6]{1,0} fft(%e), fft_type=IRFFT, fft_length={6}",
    "f32[2,3]{1,0} rng(%f, %f), distribution=rng_uniform",
    "f32[2,3]{1,0} rng(%f, %f), distribution=rng_normal",
    "u64[2]{0} rng-get-and-update-state(), delta=4096",
    "f32[2,4]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, algorithm=dot_bf16_bf16_f32",
    "f32[2,4]{1,0} ragged-dot(%x, %h, %l), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
    "rhs_group_dims={0}",
    "(f32[2,3]{1,0}, f32[3]{0}) scan(%x, %s), dimensions={0}, is_reverse=true, is_associative=false, num_carries=1, "
    "to_apply=%step",
    "s32[] get-dimension-size(%x), dimensions={1}",
    "f32[2,3]{1,0} set-dimension-size(%x, %i), dimensions={1}",
    "f32[3,2]{1,0} dynamic-reshape(%x, %i, %i)",
    "f32[2,4]{1,0} scaled-dot(%x, %w, %x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "f32[2,3]{1,0} custom-call(%x), custom_call_target=\"Sharding\", sharding={devices=[2,1]<=[2]}",
    "f32[2,3]{1,0} custom-call(%x, %t), custom_call_target=\"a \\\"b\\\"\", "
    "operand_layout_constraints={f32[2,3]{1,0}, (f32[2,3]{1,0}, s32[])}, custom_call_has_side_effect=true, "
    "api_version=API_VERSION_STATUS_RETURNING",
    "(f32[2,3]{1,0}, s32[]) custom-call(%x), custom_call_target=\"f\", called_computations={%twice, %sum}, "
    "output_to_operand_aliasing={{0}: (0, {})}, schedule=SCHEDULE_LATEST, api_version=API_VERSION_TYPED_FFI, "
    "backend_config={n = 1 : i64, s = \"a b\"}",
    "f32[2,3]{1,0} custom-call(%x), custom_call_target=\"f\", backend_config=\"any text\"",
    "f32[2,3]{1,0} custom-call(%x), custom_call_target=\"f\", api_version=API_VERSION_TYPED_FFI, backend_config=\"a\"",
    "f32[2,3]{1,0} custom-call(%x), custom_call_target=\"f\", api_version=API_VERSION_TYPED_FFI, "
    "backend_config={a = {b = \"}\"}}",
    "f32[2,3]{1,0} domain(%x), domain={kind=\"sharding\", entry={maximal device=1}, exit={replicated}}",
    "f32[2,3]{1,0} add-dependency(%x, %tok)",
    "token[] after-all(%tok, %tok)",
    "token[] after-all()",
    "%begun = ((f32[2,3]{1,0}), f32[2,3]{1,0}, u32[]) async-start(%x), calls=%minus\n"
    "%later = ((f32[2,3]{1,0}), f32[2,3]{1,0}, u32[]) async-update(%begun)\n"
    "f32[2,3]{1,0} async-done(%later)",
    "%begun = ((f32[2,3]{1,0}), f32[2,3]{1,0}, u32[]) async-start(%x), async_execution_thread=\"other\", calls=%minus\n"
    "f32[2,3]{1,0} async-done(%begun)",
    "%begun = (f32[2,3]{1,0}, f32[2,3]{1,0}, u32[]) copy-start(%x)\nf32[2,3]{1,0} copy-done(%begun)",
    "((f32[2,3]{1,0}, s32[]), token[]) infeed(%tok)",
    "((f32[2,3]{1,0}, s32[]), token[]) infeed(%tok), infeed_config=\"c\"",
    "token[] outfeed(%x, %tok), outfeed_shape=f32[2,3]{1,0}",
    "token[] outfeed(%x, %tok), outfeed_shape=f32[2,3]{0,1}, outfeed_config=\"c\"",
    "%begun = (f32[2,3]{1,0}, u32[], token[]) send(%x, %tok), channel_id=15, is_host_transfer=true\n"
    "token[] send-done(%begun), channel_id=15, is_host_transfer=true",
    "%begun = (f32[2,3]{1,0}, u32[], token[]) recv(%tok), channel_id=16\n"
    "(f32[2,3]{1,0}, token[]) recv-done(%begun), channel_id=16",
    "f32[4,3]{1,0} all-gather(%x), replica_groups={{0,1}}, dimensions={0}",
    "%begun = (f32[2,3]{1,0}, f32[4,3]{1,0}) all-gather-start(%x), channel_id=1, replica_groups={{0,1}}, "
    "dimensions={0}\nf32[4,3]{1,0} all-gather-done(%begun)",
    "f32[2,3]{1,0} all-reduce(%x), replica_groups={}, to_apply=%sum",
    "f32[2,3]{1,0} all-reduce(%x), channel_id=1, replica_groups=[2,4]<=[4,2]T(1,0), use_global_device_ids=true, "
    "to_apply=%sum",
    "%begun = f32[2,3]{1,0} all-reduce-start(%x), replica_groups={{0,2},{1,3}}, to_apply=%sum\n"
    "f32[2,3]{1,0} all-reduce-done(%begun)",
    "f32[2,3]{1,0} all-to-all(%x), replica_groups={{0,1}}, dimensions={0}",
    "f32[2,3]{1,0} collective-broadcast(%x), replica_groups={{1,0}}",
    "f32[2,3]{1,0} collective-permute(%x), source_target_pairs={{0,1},{1,2}}",
    "%begun = (f32[2,3]{1,0}, f32[2,3]{1,0}, u32[], u32[]) collective-permute-start(%x), "
    "source_target_pairs={{0,1}}\nf32[2,3]{1,0} collective-permute-done(%begun)",
    "f32[1,3]{1,0} reduce-scatter(%x), replica_groups={{0,1}}, dimensions={0}, to_apply=%sum",
    "f32[8]{0} ragged-all-to-all(%v, %v, %l, %l, %l, %l), replica_groups={{0,1,2}}",
    "u32[] partition-id()",
    "u32[] replica-id()",
    "f32[2,3]{1,0} fusion(%x), kind=kLoop, calls=%twice, output_to_operand_aliasing={{}: (0, {})}",
    "f32[2,3]{1,0} exponential(%x), result_accuracy={mode=highest}",
    "f32[2,3]{1,0} exponential(%x), sharding={devices=[2,1]<=[2]}, frontend_attributes={a=\"b\"}, "
    "statistics={visualizing_index=0,stat-1=33}, origin={{\"v\"}}, metadata={op_name=\"exp\" "
    "source_file=\"f.py\" source_line=3 op_type=\"e\" source_end_line=4 source_column=1 source_end_column=9 "
    "scheduling_name=\"s\"}, backend_config={\"flag\":{\"x\":[1]}}",
    '(f32[2,3]{1,0}, s32[]) opt-barrier(%t), frontend_attributes={a="b",c={d = 1}}',
    'f32[2,3]{1,0} negate(%x), metadata={op_name="jit(f)/\\"neg\\"" source_file="a b/\\n.py" source_line=12}',
    'f32[2,3]{1,0} negate(%x), frontend_attributes={note="tab\\t, brace }"}, metadata={op_name="neg"}',
]
"""Each opcode in each form, as our printer writes it. Where an op needs another, that comes first, on a line of its
own and with a name."""


def module_with(instruction: str) -> str:
    """A module with an entry that returns `instruction`, one of `INSTRUCTIONS`, as our printer writes it."""
    *before, last = instruction.split("\n")
    operands = " ".join(re.sub(r"^%\w+ = ", "", line).split("=")[0] for line in [*before, last])
    used = [name for name in PARAMETERS if re.search(rf"%{name}\b", operands)]
    called = list(dict.fromkeys(name for name in re.findall(r"%(\w+)", instruction) if name in COMPUTATIONS))
    result = _shape(last)
    signature = ", ".join(f"{name}: {_without_layout(PARAMETERS[name])}" for name in used)
    layouts = ", ".join(PARAMETERS[name] for name in used)
    lines = [f"  %{name} = {PARAMETERS[name]} parameter({i})" for i, name in enumerate(used)]
    entry = "\n".join(
        [
            f"ENTRY %main ({signature}) -> {_without_layout(result)} {{",
            *lines,
            *(f"  {line}" for line in before),
            f"  ROOT %result = {last}",
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
