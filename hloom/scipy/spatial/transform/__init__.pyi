from .rotation import Rotation as Rotation
from .slerp import Slerp as Slerp
