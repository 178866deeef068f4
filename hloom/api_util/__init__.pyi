from .flat_functions import (
    debug_info as debug_info, flatten_fun as flatten_fun, flatten_fun_nokwargs as flatten_fun_nokwargs,
    safe_map as safe_map, shaped_abstractify as shaped_abstractify,
)
