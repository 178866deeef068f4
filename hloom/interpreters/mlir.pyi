from ..extend.protocol import LoweringRuleContext as LoweringRuleContext
from .lowering import (
    emit_python_callback as emit_python_callback, lower_fun as lower_fun, register_lowering as register_lowering,
)
