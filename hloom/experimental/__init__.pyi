from . import (
    array_serialization as array_serialization, checkify as checkify, colocated_python as colocated_python,
    compute_on as compute_on, custom_partitioning as custom_partitioning, error_check as error_check, hijax as hijax,
    jet as jet, key_reuse as key_reuse, layout as layout, mesh_utils as mesh_utils,
    multihost_utils as multihost_utils, ode as ode, pallas as pallas, pjit as pjit, random as random, rnn as rnn,
    scheduling_groups as scheduling_groups, serialize_executable as serialize_executable, shard_map as shard_map,
    sparse as sparse, xla_metadata as xla_metadata,
)
from ..debug.callbacks import io_callback as io_callback
from ..tracer.settings.config import enable_x64 as enable_x64
from .qdd import cur_qdd as cur_qdd
from .x64 import disable_x64 as disable_x64
