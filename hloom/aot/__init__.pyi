from ..hlo.subgraph import FeedError as FeedError
from ..numba_backend.ahead.blas import BlasError as BlasError
from ..numba_backend.ahead.targets import TargetError as TargetError, TargetMachine as TargetMachine
from .compiling import AotProgram as AotProgram, compile as compile
from .headers import IdentifierError as IdentifierError, Slot as Slot
from .loading import load as load, LoadedProgram as LoadedProgram
