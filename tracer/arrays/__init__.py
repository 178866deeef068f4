"""Arrays: concrete ones and their operators, indices, layouts, and dtypes that HLO lacks."""
