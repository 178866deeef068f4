from . import ad as ad, batching as batching, mlir as mlir, partial_eval as partial_eval, pxla as pxla, xla as xla
