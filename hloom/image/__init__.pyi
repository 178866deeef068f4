from .resampling import resize as resize, ResizeMethod as ResizeMethod, scale_and_translate as scale_and_translate
