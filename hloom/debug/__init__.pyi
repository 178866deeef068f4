from .callbacks import debug_callback as _debug_callback
from .printing import debug_log as _debug_log, debug_print as _debug_print
from .prompt import breakpoint as breakpoint
from .shardings import (
    inspect_array_sharding as inspect_array_sharding, visualize_array_sharding as visualize_array_sharding,
    visualize_sharding as visualize_sharding,
)
from .stepping.start import step as step
from .stepping.stepper import Stepper as Stepper

callback = _debug_callback
log = _debug_log
print = _debug_print
