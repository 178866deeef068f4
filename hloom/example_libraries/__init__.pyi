from . import optimizers as optimizers, stax as stax
