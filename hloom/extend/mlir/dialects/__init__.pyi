from . import chlo as chlo, stablehlo as stablehlo
