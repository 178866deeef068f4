from .taylor import fact as fact, jet as jet, jet2 as jet2
