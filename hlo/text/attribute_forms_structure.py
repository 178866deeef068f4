"""How the attributes of calls, control flow, custom calls, asynchronous pairs, queues and collectives are read.

`attribute_writer_structure.py` writes them.
"""

from __future__ import annotations

from ..ir import NO_ATTRIBUTES, Attributes
from ..ops.asynchronous import AsyncAttributes, ChannelAttributes, InfeedAttributes, OutfeedAttributes
from ..ops.collective import CollectiveAttributes
from ..ops.control_flow import CallAttributes, ConditionalAttributes, WhileAttributes
from ..ops.custom_call import CustomCallApiVersion, CustomCallAttributes, CustomCallSchedule
from ..ops.structure import (
    ConstantAttributes,
    DomainAttributes,
    FusionAttributes,
    FusionKind,
    GetTupleElementAttributes,
    ParameterAttributes,
)
from ..shape import read_shape
from .attribute_form import Form, Values, keywords
from .attribute_values import (
    read_any_text,
    read_bool,
    read_braced,
    read_computation,
    read_computations,
    read_enum,
    read_integer,
    read_integer_lists,
    read_one_dimension,
    read_output_operand_aliases,
    read_pairs,
    read_replica_groups,
    read_shapes,
    read_string,
)


def _conditional(values: Values) -> Attributes:
    branches = values.get("branch_computations")
    on_true, on_false = values.get("true_computation"), values.get("false_computation")
    if branches is not None and on_true is None and on_false is None:
        return ConditionalAttributes(branches)
    if branches is None and on_true is not None and on_false is not None:
        return ConditionalAttributes((on_true, on_false))
    raise ValueError("conditional needs either branch_computations, or true_computation and false_computation")


def _custom_call(values: Values) -> Attributes:
    given = dict(values)
    renamed = {"called_computations": "callees", "custom_call_has_side_effect": "has_side_effect"}
    given = {renamed.get(key, key): value for key, value in given.items()}
    if "to_apply" in given:
        if "callees" in given:
            raise ValueError("custom-call takes called_computations or to_apply, not both")
        given["callees"] = (given.pop("to_apply"),)
    return CustomCallAttributes(**given)


def _collective(values: Values) -> Attributes:
    given = dict(values)
    if "dimensions" in given:
        given["dimension"] = given.pop("dimensions")
    return CollectiveAttributes(**given)


FORMS: dict[type[Attributes], Form] = {
    Attributes: Form({}, lambda v: NO_ATTRIBUTES),
    CallAttributes: Form(
        {"to_apply": read_computation, "is_composite": read_bool},
        lambda v: CallAttributes(v["to_apply"], v.get("composite")),
        ("to_apply",),
    ),
    ConditionalAttributes: Form(
        {
            "branch_computations": read_computations,
            "true_computation": read_computation,
            "false_computation": read_computation,
        },
        _conditional,
    ),
    FusionAttributes: Form(
        {"kind": read_enum(FusionKind), "calls": read_computation},
        lambda v: FusionAttributes(v["kind"], v["calls"]),
        ("kind", "calls"),
    ),
    GetTupleElementAttributes: Form(
        {"index": read_integer}, lambda v: GetTupleElementAttributes(v["index"]), ("index",)
    ),
    ParameterAttributes: Form({}, lambda v: ParameterAttributes(v["number"])),
    ConstantAttributes: Form({}, lambda v: ConstantAttributes(v["literal"])),
    WhileAttributes: Form(
        {"condition": read_computation, "body": read_computation},
        lambda v: WhileAttributes(v["condition"], v["body"]),
        ("condition", "body"),
    ),
    AsyncAttributes: Form(
        {"calls": read_computation, "async_execution_thread": read_string}, keywords(AsyncAttributes)
    ),
    ChannelAttributes: Form({"channel_id": read_integer, "is_host_transfer": read_bool}, keywords(ChannelAttributes)),
    CollectiveAttributes: Form(
        {
            "replica_groups": read_replica_groups,
            "channel_id": read_integer,
            "use_global_device_ids": read_bool,
            "constrain_layout": read_bool,
            "dimensions": read_one_dimension,
            "to_apply": read_computation,
            "source_target_pairs": read_pairs,
            "slice_sizes": read_integer_lists,
        },
        _collective,
    ),
    CustomCallAttributes: Form(
        {
            "custom_call_target": read_string,
            "operand_layout_constraints": read_shapes,
            "custom_call_has_side_effect": read_bool,
            "called_computations": read_computations,
            "to_apply": read_computation,
            "output_to_operand_aliasing": read_output_operand_aliases,
            "schedule": read_enum(CustomCallSchedule),
            "api_version": read_enum(CustomCallApiVersion),
            "backend_config": read_any_text,
        },
        _custom_call,
        ("custom_call_target",),
    ),
    DomainAttributes: Form({"domain": read_braced}, keywords(DomainAttributes), ("domain",)),
    InfeedAttributes: Form({"infeed_config": read_string}, keywords(InfeedAttributes)),
    OutfeedAttributes: Form({"outfeed_shape": read_shape, "outfeed_config": read_string}, keywords(OutfeedAttributes)),
}
