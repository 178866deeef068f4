from . import vq as vq
