"""The options of each subcommand. Nothing big is imported here, so that help is printed at once."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .. import __version__

_FILE = 'FILE is HLO text as XLA and JAX print it, or StableHLO (text or bytecode); "-" is stdin.'
_EXIT_CODES = """\
exit codes:
  0  all is well
  1  the HLO is bad, cannot be run, or its results differ
  2  the command line is wrong
"""
_EPILOG = f"""\
{_FILE} `hloom COMMAND --help` says more.

{_EXIT_CODES}
examples:
  hloom run model.hlo --random
  hloom opt model.hlo --until fusion
  hloom check model.hlo --compare
  hloom bisect model.hlo -o small.hlo
  hloom layout "f32[3,5]{{1,0:T(2,2)}}" --index 2,3
  hloom jax train.py --epochs 3
  hloom profile train.py --epochs 3
  hloom debug --stop nan train.py
  hloom explain OperandError
"""


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of one call; `command` is the subcommand. After help or an error argparse ends the process."""
    parser = argparse.ArgumentParser(
        prog="hloom",
        description="Run, optimise and check HLO programs on the CPU, see how their arrays lie in memory, and run "
        "programs that are written for JAX.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"hloom {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for add in (
        *(_run, _opt, _check, _bisect, _view, _layout, _scaling, _aot),
        *(_jax, _profile, _debug, _explain, _machine, _doctor),
    ):
        add(commands)
    own, program = _split(list(sys.argv[1:] if arguments is None else arguments))
    options = parser.parse_args(own)
    options.program = program
    return options


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Of a command that runs a program: our own arguments, and the program with its arguments, which argparse must not
    read."""
    with_values = _RUNS_PROGRAMS.get(arguments[0]) if arguments else None
    if with_values is None:
        return arguments, []
    end = 1
    while end < len(arguments) and arguments[end].startswith("-") and arguments[end] not in ("-m", "-c", "-"):
        end += 2 if arguments[end] in with_values else 1
    return arguments[:end], arguments[end:]


_RUNS_PROGRAMS: dict[str, tuple[str, ...]] = {
    "jax": (), "profile": ("--timeline", "--top"), "debug": ("--stop", "--break", "--function"),
    "view": ("--html", "--profile", "--port", "--function", "--target", "--input", "--seed"),
}  # fmt: skip
"""The commands that run a program, and their own options that take a value."""


_Commands = argparse._SubParsersAction  # the type that add_subparsers is documented to return has no public name


def _command(
    commands: _Commands[argparse.ArgumentParser],
    name: str,
    summary: str,
    examples: str,
    subject: str = _FILE,
    codes: str = _EXIT_CODES,
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"{subject}\n\n{codes}\nexamples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


_RUN_EXAMPLES = """\
  hloom run model.hlo --random                                   random arrays
  hloom run model.hlo --input x.npy weights.npz -o results/      arrays from files and into files
  hloom run model.hlo --random --repeat 100                      how long it takes
  hloom run model.hlo --random --timeline out.json               what it does when
"""
_OPT_EXAMPLES = """\
  hloom opt model.hlo --until fusion                             the usual passes up to one
  hloom opt model.hlo --passes call-inliner,cse,dce -o new.hlo   these passes only
  hloom opt model.hlo --explain                                  each rewrite: rule, instruction, result
"""
_CHECK_EXAMPLES = """\
  hloom check *.hlo                                              whether they can be read and are valid
  hloom check model.hlo --compare                                compiled code against the reference
"""
_BISECT_EXAMPLES = """\
  hloom bisect model.hlo                                         the first wrong pass, rule or kernel, for random arrays
  hloom bisect model.hlo --input x.npy -o small.hlo              and the smallest program that shows it
"""
_VIEW_EXAMPLES = """\
  hloom view train.py --epochs 1                                 the largest program that a script compiles
  hloom view --function train_step train.py                      this one
  hloom view --profile 100 model.hlo                             a file, run 100 times on random arrays for its times
  hloom view --html model.html model.mlir                        one file that needs no server and no network
  hloom view out.json                                            a timeline that `hloom profile --timeline` wrote
"""
_AOT_EXAMPLES = """\
  hloom aot model.hlo --name model -o build/                     an HLO file as C and C++
  hloom aot matmul.toml -o build/                                as a specification says
  hloom aot model.hlo --config model.config.pbtxt                with feeds and fetches as tfcompile's Config
  hloom aot model.hlo --fetch add.3 --target aarch64-linux-gnu   a part of it, for another machine
  hloom aot train.py:trained --freeze weights.npz -o build/      a Python function
"""
_PROFILE_EXAMPLES = """\
  hloom profile train.py --epochs 3                              where the time of a script went
  hloom profile --timeline out.json --top 10 train.py            and a timeline for ui.perfetto.dev
  hloom profile --json -m package.train > profile.json           for machines
  hloom profile model.mlir --random --repeat 100                 where the time of `hloom run` went
"""
_DEBUG_EXAMPLES = """\
  hloom debug train.py --epochs 1                                a prompt at each call of a jitted function
  hloom debug --stop nan train.py                                where a value becomes NaN
  hloom debug --break train.py:31 --function step train.py       at a line, of one function
  hloom debug --kernels model.mlir --random                      a module after all passes, kernel by kernel
"""
_EXPLAIN_EXAMPLES = """\
  hloom explain                                                  the names of all errors
  hloom explain TracerBoolConversionError                        what happened, and what to do
"""
_MACHINE_EXAMPLES = """\
  hloom machine                                                  caches, registers, cores, and their measured speeds
  HLOOM_MACHINE=register_bytes=32 hloom machine                  as programs are then compiled
"""
_DOCTOR_EXAMPLES = """\
  hloom doctor                                                   the machine, the store, and whether results are right
  hloom doctor --json > report.json                              for a program
  hloom doctor --no-test                                         without compiling anything
"""
_JAX_EXAMPLES = """\
  hloom jax train.py --epochs 3                                  a script with its arguments
  hloom jax --report train.py                                    and which names of JAX it did not get
  hloom jax -m pytest -q tests                                   a module
  hloom jax -c "import jax; print(jax.__version__)"              a text
"""
_SCALING_EXAMPLES = """\
  hloom scaling step.hlo                                         the data that the devices in its shardings send
  hloom scaling step.hlo --devices 1,2,4,8 --cut 6:0 --cut 7:0   arguments 6 and 7 cut along dimension 0, the rest whole
  hloom scaling step.hlo --flops 5e10 --between 20e-6,1.2e9      on another cluster
"""
_LAYOUT_EXAMPLES = """\
  hloom layout "f32[3,5]{1,0:T(2,2)}"                            the array and its memory, in the terminal
  hloom layout "f32[3,5]{1,0:T(2,2)}" --svg tiles.svg            the same as a figure
  hloom layout "f32[3,5]{1,0:T(2,2)}" --index 2,3                how element (2,3) gets its place
  hloom layout model.hlo --target tpu                            what its buffers take on a TPU, the worst first
"""


def _run(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "run", "run a module on arrays, and print or store its results", _RUN_EXAMPLES)
    parser.add_argument("file", metavar="FILE", help="HLO or StableHLO")
    _inputs(parser)
    parser.add_argument(
        "--backend", choices=("numba", "evaluator"), default="numba", help="compiled code (default), or the reference"
    )
    _target(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        help="store the results: all in PATH if it ends in .npz; in PATH/result0.npy, ... if it is a folder or ends "
        "in a slash; else in PATH0.npy, ...; of a module for several devices, the names begin with device0. and so on",
    )
    parser.add_argument("--print", action="store_true", help="print the results, as is done without --output")
    parser.add_argument(
        "--mpi", action="store_true", help="run a module for several devices as one of the processes of mpiexec"
    )
    parser.add_argument(
        "--repeat", metavar="N", type=_positive, help="run N times more, and print how long that took to stderr"
    )
    parser.add_argument("--timeline", metavar="PATH", help="write a timeline for ui.perfetto.dev there")
    _schedule(parser)


def _opt(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "opt", "run passes over a module, and print the result", _OPT_EXAMPLES)
    parser.add_argument("file", metavar="FILE", nargs="?", help="HLO or StableHLO")
    _target(parser)
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--passes", metavar="A,B,...", type=_names, help="these passes, in this order, each once")
    chosen.add_argument("--until", metavar="PASS", help="the usual passes up to and including the first run of PASS")
    chosen.add_argument("--rules", action="store_true", help="print the rules of the passes, and when each is valid")
    chosen.add_argument(
        "--kernels", action="store_true", help="compile, and print the kernels, with their schedules, instead"
    )
    chosen.add_argument("--list-passes", action="store_true", help="print the names of the usual passes, in order")
    _schedule(parser)
    parser.add_argument("--disable", metavar="A,B,...", type=_names, default=[], help="leave these passes out")
    parser.add_argument("-o", "--output", metavar="PATH", help="write there instead of to stdout")
    parser.add_argument("--dot", action="store_true", help="write a graph for Graphviz instead of HLO text")
    parser.add_argument("--no-metadata", action="store_true", help="leave out the source line of each instruction")
    parser.add_argument("--no-verify", action="store_true", help="do not verify the module after each pass")
    parser.add_argument("--stats", action="store_true", help="print a table of the passes to stderr")
    parser.add_argument(
        "--explain",
        action="store_true",
        help="print each rewrite (rule, instruction, result) instead of the module",
    )
    parser.add_argument(
        "--check-rules", action="store_true", help="evaluate both sides of each rewrite, on random arrays"
    )


def _check(commands: _Commands[argparse.ArgumentParser]) -> None:
    summary = "read and verify modules, and compare compiled code with the reference"
    parser = _command(commands, "check", summary, _CHECK_EXAMPLES)
    parser.add_argument("files", metavar="FILE", nargs="+", help="HLO or StableHLO")
    parser.add_argument(
        "--compare", action="store_true", help="run each module, compiled and op by op, and compare the results"
    )
    _inputs(parser)
    _target(parser)
    _tolerance(parser)
    _schedule(parser)


def _bisect(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "bisect",
        "find the pass, the rule or the kernel after which a result is wrong, and the smallest program that shows it",
        _BISECT_EXAMPLES,
    )
    parser.add_argument("file", metavar="FILE", help="HLO or StableHLO")
    _inputs(parser)
    _target(parser)
    _tolerance(parser)
    parser.add_argument(
        "-o", "--output", metavar="PATH", help="write the smallest program there, and its arguments to PATH.npz"
    )


def _view(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "view",
        "show a program in all its stages in a browser: lines, passes, kernels, memory, times",
        _VIEW_EXAMPLES,
        "The subject is a file with HLO or StableHLO, a timeline (.json, .json.gz), or a Python program with its\n"
        "arguments; our options come before it. The page is served on this machine, until Ctrl-C: docs/viewer.md.",
    )
    parser.usage = "hloom view [OPTION...] (FILE.hlo | FILE.mlir | TIMELINE.json | SCRIPT.py | -m MODULE) [ARGUMENT...]"
    parser.add_argument("--html", metavar="PATH", help="write the page there as one file, instead of serving it")
    parser.add_argument(
        "--profile", metavar="N", type=_seed, default=0,
        help="times: run a module N times, on random arrays unless there is --input; of a script, with any N above 0, "
        "record the runs that it makes itself",
    )  # fmt: skip
    parser.add_argument("--function", metavar="NAME", help="of a script: the jitted function to show")
    parser.add_argument("--no-open", action="store_true", help="print the address, and open no browser")
    parser.add_argument("--port", metavar="N", type=_seed, default=0, help="of the server (default: any that is free)")
    _target(parser)
    parser.add_argument(
        "--input", metavar="FILE", action="append", help="arrays for the parameters, .npy or .npz; may come again"
    )
    parser.add_argument("--seed", metavar="N", type=_seed, default=0, help="for random arrays (default: 0)")
    parser.set_defaults(random=True)


def _scaling(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "scaling",
        "partition a module, and predict the data that its devices send and the time of a run on a cluster",
        _SCALING_EXAMPLES,
    )
    parser.add_argument("file", metavar="FILE", help="HLO or StableHLO: of whole arrays, or of one device's program")
    parser.add_argument(
        "--devices", metavar="N,N,...", type=_numbers, help="numbers of devices (default: as the module's text says)"
    )
    parser.add_argument(
        "--cut",
        metavar="K:D",
        type=_cut,
        action="append",
        default=[],
        help="cut argument K (arrays, from 0) along dimension D, whatever the text says; the others are whole",
    )
    parser.add_argument("--flops", type=_amount, default=5e10, help="operations a second of a device (default: 5e10)")
    parser.add_argument(
        "--inside", metavar="LATENCY,BANDWIDTH", type=_link, default=(2e-6, 1e10),
        help="seconds, and bytes a second, between devices of a host (default: 2e-6,1e10)",
    )  # fmt: skip
    parser.add_argument(
        "--between", metavar="LATENCY,BANDWIDTH", type=_link, default=(2e-5, 1.25e9),
        help="the same for a host's network card (default: 2e-5,1.25e9)",
    )  # fmt: skip
    parser.add_argument("--devices-per-host", metavar="N", type=_devices, default=8, help="default: 8")
    parser.add_argument("--collectives", action="store_true", help="also each collective, and why it is there")


def _numbers(text: str) -> list[int]:
    return [_devices(part) for part in text.split(",")]


def _devices(text: str) -> int:
    if not text.strip().isdecimal() or not 0 < int(text) <= 4096:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 4096")
    return int(text)


def _cut(text: str) -> tuple[int, int]:
    argument, colon, dimension = text.partition(":")
    if not (colon and argument.isdecimal() and dimension.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not ARGUMENT:DIMENSION, such as 6:0")
    return int(argument), int(dimension)


def _amount(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return value


def _link(text: str) -> tuple[float, float]:
    latency, comma, bandwidth = text.partition(",")
    if not comma:
        raise argparse.ArgumentTypeError(f"{text!r} is not LATENCY,BANDWIDTH, such as 2e-6,1e10")
    return _amount(latency), _amount(bandwidth)


def _layout(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "layout",
        "show the places of elements in memory, and the cost of layouts in a module",
        _LAYOUT_EXAMPLES,
        'SUBJECT is a shape as HLO text writes it, or a file with a module; "-" is stdin.',
    )
    parser.add_argument("subject", metavar="SUBJECT", help="a shape, or a file with HLO text")
    of_shape = parser.add_argument_group("for a shape")
    place = of_shape.add_mutually_exclusive_group()
    place.add_argument(
        "--index", metavar="I,J,...", type=_index, help="show step by step the place of this element; () for a scalar"
    )
    place.add_argument("--linear", metavar="N", type=_place, help="show step by step the element at place N")
    of_shape.add_argument("--svg", metavar="PATH", help='draw it there as SVG; "-" is stdout')
    of_shape.add_argument("--png", metavar="PATH", help="draw it there as PNG (needs Matplotlib)")
    of_shape.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        help="colour by tile (default: on a terminal, unless NO_COLOR is set)",
    )
    of_module = parser.add_argument_group("for a module")
    of_module.add_argument(
        "--target",
        choices=("as-written", "cpu", "tpu"),
        help="the module's own layouts (default), or the buffers of the program that is compiled for a target",
    )
    of_module.add_argument(
        "--on-device",
        action="store_true",
        help="with --target: where the module says nothing, arguments and results have the target's layouts too",
    )
    of_module.add_argument("--all", action="store_true", help="list all buffers, not the 20 that waste most")
    of_module.add_argument("--json", action="store_true", help="print the report for machines, with all buffers")


def _aot(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "aot",
        "compile a program ahead of time: headers, an object file and C source, which need neither Python nor hloom",
        _AOT_EXAMPLES,
        "SUBJECT is a specification (.toml, .pbtxt), a file with HLO text, or FILE.py:FUNCTION: docs/aot.md.",
    )
    parser.add_argument("subject", metavar="SUBJECT", help="a specification, HLO text, or FILE.py:FUNCTION")
    parser.add_argument("--config", metavar="FILE", help="feeds and fetches, as a specification")
    parser.add_argument("--source", metavar="SOURCE", help="HLO text or module:function, where the SUBJECT names none")
    parser.add_argument("--name", help="of the files and of the C function; by default that of the SUBJECT")
    parser.add_argument("--cpp-class", metavar="CLASS", help="with namespaces: foo::bar::MatMulComp")
    for what, meant in (("feed", "an argument"), ("fetch", "a result")):
        parser.add_argument(
            f"--{what}", metavar="NAME", dest=f"{what}{'s' if what == 'feed' else 'es'}", action="append",
            type=_name_or_number, help=f"{meant}, by name, number or path; may be given several times",
        )  # fmt: skip
    parser.add_argument("--freeze", metavar="FILE", help="values of arguments, .npz or .safetensors")
    parser.add_argument("--target", metavar="TRIPLE", help="for example aarch64-linux-gnu; default: this machine")
    parser.add_argument("--cpu", help="for example x86-64-v3 (default for x86-64), cortex-a72, native")
    parser.add_argument("--features", help="for example +avx2,-fma")
    parser.add_argument(
        "--blas", metavar="NAMES", nargs="?", const=True,
        help="products call CBLAS, which is linked with the program; NAMES: of its functions, cblas_* by default",
    )  # fmt: skip
    parser.add_argument(
        "--static-arena", action="store_const", const=True, help="the code has its temporary memory itself"
    )
    parser.add_argument("-o", "--output", metavar="FOLDER", default=".", help="where to write; default: here")


def _name_or_number(text: str) -> str | int:
    return int(text) if text.lstrip("-").isdecimal() else text


def _jax(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "jax",
        "run a program that is written for JAX, as it is",
        _JAX_EXAMPLES,
        "`import jax` finds hloom in the program: docs/jax_programs.md. Our options come before the program.",
        "exit codes:\n  those of the program\n  1  it ended with an error\n  2  the command line is wrong\n",
    )
    parser.usage = "hloom jax [-h] [--report] [--subprocesses] (SCRIPT.py | -m MODULE | -c CODE | -) [ARGUMENT...]"
    parser.add_argument(
        "--report",
        action="store_true",
        help="at exit print to stderr the names of JAX that the program used and hloom lacks",
    )
    parser.add_argument(
        "--subprocesses",
        action="store_true",
        help="all processes of this Python that the program starts do the same, not only workers of pools",
    )


def _profile(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "profile",
        "run a Python program or a module, and say where its time went",
        _PROFILE_EXAMPLES,
        "Our options come before the program. docs/profiling.md explains the tables.",
        "exit codes:\n  those of the program\n  1  it ended with an error\n  2  the command line is wrong\n",
    )
    parser.usage = "hloom profile [OPTION...] (SCRIPT.py | -m MODULE | -c CODE | - | FILE.mlir) [ARGUMENT...]"
    parser.add_argument("--timeline", metavar="PATH", help="write a timeline for ui.perfetto.dev there, too")
    parser.add_argument("--top", metavar="N", type=_positive, default=20, help="rows of a table (default: 20)")
    parser.add_argument(
        "--json", action="store_true", help="print the summary for machines, and the program's output to stderr"
    )
    parser.add_argument("--python", action="store_true", help="record calls of the program's Python functions, too")
    parser.add_argument(
        "--measure", action="store_true", help="measure the machine's speed again, which was kept from an earlier run"
    )
    parser.add_argument("--jax", action="store_true", help="`import jax` finds hloom, as in `hloom jax`")


def _debug(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "debug",
        "run a Python program whose jitted functions stop, or a module, instruction by instruction",
        _DEBUG_EXAMPLES,
        "Our options come before the program. `help` at the prompt lists its commands; docs/debugging.md has more.",
        "exit codes:\n  those of the program\n  1  it ended with an error\n  2  the command line is wrong\n",
    )
    parser.usage = "hloom debug [OPTION...] (SCRIPT.py | -m MODULE | -c CODE | - | FILE.mlir) [ARGUMENT...]"
    parser.add_argument(
        "--stop", action="append", metavar="WHAT",
        help='run until a value is so: "nan", "inf", "outside LOW HIGH", each with "of NAME", or "when EXPRESSION"',
    )  # fmt: skip
    parser.add_argument(
        "--break", action="append", metavar="PLACE",
        help="run until a line (31, train.py:31), an instruction or an opcode",
    )  # fmt: skip
    parser.add_argument("--function", metavar="NAME", help="stop in this jitted function only")
    parser.add_argument("--kernels", action="store_true", help="the program after all passes, kernel by kernel")
    parser.add_argument("--jax", action="store_true", help="`import jax` finds hloom, as in `hloom jax`")


def _explain(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "explain",
        "say what an error means, and what to do",
        _EXPLAIN_EXAMPLES,
        "The names are those of hloom.errors.",
        "exit codes:\n  0  fine\n  2  there is no such error\n",
    )
    parser.add_argument("name", metavar="ERROR", nargs="?", help="the name of the error, as a traceback has it")


def _machine(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "machine",
        "print the machine that programs are compiled for, and its speed",
        _MACHINE_EXAMPLES,
        "Sizes are in bytes, per core for the first two caches; 0: not known.",
        "exit codes:\n  0  fine\n  1  HLOOM_MACHINE is wrong\n  2  the command line is wrong\n",
    )
    parser.add_argument("--json", action="store_true", help="print one object of JSON")
    parser.add_argument(
        "--measure", action="store_true", help="measure the speed again, which was kept from an earlier run"
    )


def _doctor(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "doctor",
        "print what this installation has and lacks, and test it: for reports of errors",
        _DOCTOR_EXAMPLES,
        "The test compiles a dozen small programs and compares them with the evaluator, in five to ten seconds.",
        "exit codes:\n  0  fine, even if something is slower than it could be\n  1  a program of the test failed\n"
        "  2  the command line is wrong\n",
    )
    parser.add_argument("--json", action="store_true", help="print one object of JSON")
    parser.add_argument("--no-test", action="store_true", help="compile nothing")


def _index(text: str) -> tuple[int, ...]:
    inner = text.strip().removeprefix("(").removesuffix(")").strip().removesuffix(",")
    try:
        return tuple(int(part) for part in inner.split(",")) if inner else ()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no index: numbers with commas between, as 2,3") from None


def _inputs(parser: argparse.ArgumentParser) -> None:
    given = parser.add_mutually_exclusive_group()
    given.add_argument(
        "--input",
        metavar="FILE",
        nargs="+",
        help="arrays for the parameters, in order: .npy files, or .npz files of which all arrays are taken; for "
        "several devices, those of device 0, then those of device 1, ...",
    )
    given.add_argument("--random", action="store_true", help="random arrays for the parameters")
    parser.add_argument("--seed", metavar="N", type=_seed, default=0, help="for random arrays (default: 0)")


def _tolerance(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tolerance",
        metavar="T",
        type=_not_negative,
        help="largest difference that is fine, in parts of the largest number of a result (default: half of the "
        "digits of the result's type; integers and booleans must be equal)",
    )


def _schedule(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--schedule", metavar="FILE", help="other schedules for kernels, as `hloom opt --kernels` prints them"
    )


def _target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--target",
        metavar="NAME",
        help="whose layouts and memories the program uses inside: cpu, tpu (default: HLOOM_TARGET's, or cpu)",
    )


def _positive(text: str) -> int:
    return _number(text, 1)


def _seed(text: str) -> int:
    return _number(text, 0)


def _place(text: str) -> int:
    return _number(text, 0, digits=19)


def _number(text: str, least: int, digits: int = 18) -> int:
    if not text.isdecimal() or len(text) > digits or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
    return int(text)


def _not_negative(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return value


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
