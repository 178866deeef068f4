from ..tracer.token import abstract_token as abstract_token
from .calls import ffi_call as ffi_call
from .lowering import build_ffi_lowering_function as build_ffi_lowering_function, ffi_lowering as ffi_lowering
from .registration import (
    include_dir as include_dir, pycapsule as pycapsule, register_ffi_target as register_ffi_target,
    register_ffi_target_as_batch_partitionable as register_ffi_target_as_batch_partitionable,
    register_ffi_type as register_ffi_type, register_ffi_type_id as register_ffi_type_id,
)
