from .operations import Operation as _Operation

acos: _Operation
acosh: _Operation
asin: _Operation
asinh: _Operation
atanh: _Operation
cosh: _Operation
erf: _Operation
mulhi: _Operation
sinh: _Operation
