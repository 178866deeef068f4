from .cosine import dct as dct, dctn as dctn, idct as idct, idctn as idctn
