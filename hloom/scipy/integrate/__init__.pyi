from .samples import trapezoid as trapezoid
