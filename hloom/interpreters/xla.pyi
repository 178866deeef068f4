from .handlers import (
    apply_primitive as apply_primitive, Backend as Backend,
    canonicalize_dtype_handlers as canonicalize_dtype_handlers,
)
