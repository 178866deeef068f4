from ..autodiff.vmappable import (
    is_vmappable as is_vmappable, register_vmappable as register_vmappable,
    unregister_vmappable as unregister_vmappable,
)
from .batches import (
    axis_primitive_batchers as axis_primitive_batchers, bdim_at_front as bdim_at_front,
    defbroadcasting as defbroadcasting, defvectorized as defvectorized,
    fancy_primitive_batchers as fancy_primitive_batchers, primitive_batchers as primitive_batchers,
)
