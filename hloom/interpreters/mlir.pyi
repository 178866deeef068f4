from ..extend.contexts import LoweringRuleContext as LoweringRuleContext, TokenSet as TokenSet
from ..extend.effects import lowerable_effects as lowerable_effects
from .lowering import (
    emit_python_callback as emit_python_callback, lower_fun as lower_fun, register_lowering as register_lowering,
)
