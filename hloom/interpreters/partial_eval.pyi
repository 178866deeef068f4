from .partial import PartialVal as PartialVal, trace_to_jaxpr_nounits as trace_to_jaxpr_nounits
