from .interpolation import map_coordinates as map_coordinates
