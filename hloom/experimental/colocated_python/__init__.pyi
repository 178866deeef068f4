from . import func as func, obj as obj, serialization as serialization
from .func import colocated_cpu_devices as colocated_cpu_devices, colocated_python as colocated_python
from .obj import colocated_python_class as colocated_python_class
