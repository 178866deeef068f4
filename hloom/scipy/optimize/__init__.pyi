from .minimization import minimize as minimize, OptimizeResults as OptimizeResults
