"""Which schedule an algorithm gets on a machine: the only place that knows of cases. One file for each kind of
algorithm; each choice has the measurement that justifies it."""
