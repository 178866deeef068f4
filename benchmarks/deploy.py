"""A network that reads digits as a shipped program: speed, size and start, beside ONNX Runtime, LiteRT and others.

    python -m benchmarks.deploy                    # all peers that are installed; one thread
    python -m benchmarks.deploy --batch 1 --rounds 50

`make deploy` uses the same network: 784 inputs, 64 hidden, 10 probabilities. Each peer gets the same weights and
images, and its result is compared. A time is the best of many short samples, in turns, on one processor; from Python,
where each peer is called in its fastest way: arguments and results stay in its own memory where it has such a way.
Start to first result is a new process each time, with the files already read once.

Peers: onnxruntime and onnx, ai-edge-litert (what TensorFlow Lite became), jax, torch.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import hloom
import hloom.aot
import hloom.numpy as jnp

NDArray = np.ndarray[Any, Any]
SIZES = (784, 64, 10)
SAMPLE_SECONDS = 3e-4
Run = Callable[[], Any]


def weights() -> dict[str, NDArray]:
    """As drawn before training."""
    rng = np.random.default_rng(0)
    found = {}
    for k, (n_in, n_out) in enumerate(pairwise(SIZES)):
        found[f"w{k}"] = rng.standard_normal((n_in, n_out), np.float32) * np.float32((2 / n_in) ** 0.5)
        found[f"b{k}"] = rng.standard_normal(n_out, np.float32) * np.float32(0.1)
    return found


def images(batch: int) -> NDArray:
    """Images f32[batch, 784]."""
    return np.random.default_rng(1).random((batch, SIZES[0]), np.float32)


def network(params: Any, x: Any, numpy: Any = jnp, nn: Any = hloom.nn) -> Any:
    """Probabilities f32[batch, 10]."""
    hidden = numpy.maximum(x @ params["w0"] + params["b0"], 0)
    return nn.softmax(hidden @ params["w1"] + params["b1"])


def reference(x: NDArray) -> NDArray:
    """The same in float64."""
    p = {name: value.astype(np.float64) for name, value in weights().items()}
    scores = np.maximum(x @ p["w0"] + p["b0"], 0) @ p["w1"] + p["b1"]
    powers = np.exp(scores - scores.max(1, keepdims=True))
    found: NDArray = powers / powers.sum(1, keepdims=True)
    return found


# ---- the peers: each writes its model into a folder, and gives a function that runs it


def compiled(folder: Path, batch: int) -> hloom.aot.AotProgram:
    """hloom's program, written into the folder."""
    params = weights()
    name = f"digits{batch}"
    program = hloom.aot.compile(network, (params, images(batch)), name=name, freeze={"params": params}, target="native")
    program.write(folder / name)  # each has a Makefile
    return program


def hloom_run(folder: Path, batch: int) -> Run:
    program, x = hloom.aot.load(folder / f"digits{batch}" / f"digits{batch}.json"), images(batch)
    return lambda: program(x)


def write_onnx(path: Path, batch: int) -> None:
    """The model for ONNX Runtime, node by node."""
    onnx = importlib.import_module("onnx")
    helper = onnx.helper
    nodes = [
        helper.make_node("Gemm", ["x", "w0", "b0"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "w1", "b1"], ["s"]), helper.make_node("Softmax", ["s"], ["p"], axis=-1),
    ]  # fmt: skip
    f32 = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes, "digits",
        [helper.make_tensor_value_info("x", f32, [batch, SIZES[0]])],
        [helper.make_tensor_value_info("p", f32, [batch, SIZES[-1]])],
        [onnx.numpy_helper.from_array(value, name) for name, value in weights().items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())


def onnxruntime_run(folder: Path, batch: int) -> Run:
    runtime = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    path = folder / f"digits{batch}.onnx"
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    binding.bind_cpu_input("x", images(batch))
    result = runtime.OrtValue.ortvalue_from_numpy(np.zeros((batch, SIZES[-1]), np.float32))
    binding.bind_ortvalue_output("p", result)

    def run() -> Any:
        session.run_with_iobinding(binding)
        return result

    return run


def write_tflite(path: Path, batch: int) -> None:
    """The model for LiteRT, in its format's own classes."""
    schema = importlib.import_module("ai_edge_litert.schema_py_generated")
    flatbuffers = importlib.import_module("flatbuffers")
    params = weights()
    model, graph = schema.ModelT(), schema.SubGraphT()
    model.version, model.subgraphs, model.buffers, graph.tensors = 3, [graph], [schema.BufferT()], []
    codes = schema.BuiltinOperator

    def tensor(name: str, shape: tuple[int, ...], values: NDArray | None = None) -> int:
        made = schema.TensorT()
        made.name, made.shape, made.type, made.buffer = name, list(shape), schema.TensorType.FLOAT32, 0
        if values is not None:
            data = schema.BufferT()
            data.data = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
            model.buffers.append(data)
            made.buffer = len(model.buffers) - 1
        graph.tensors.append(made)
        return len(graph.tensors) - 1

    def operator(code: int, inputs: list[int], output: int, kind: Any, options: Any) -> Any:
        made = schema.OperatorT()
        made.opcodeIndex, made.inputs, made.outputs = code, inputs, [output]
        made.builtinOptionsType, made.builtinOptions = kind, options
        return made

    model.operatorCodes = []
    for code in (codes.FULLY_CONNECTED, codes.SOFTMAX):
        entry = schema.OperatorCodeT()
        entry.builtinCode = entry.deprecatedBuiltinCode = code
        entry.version = 1
        model.operatorCodes.append(entry)
    x, hidden, scores, result = (
        tensor(name, (batch, size)) for name, size in zip(("x", "h", "s", "p"), (*SIZES, SIZES[-1]))
    )
    constants = [
        (tensor(f"w{k}", params[f"w{k}"].T.shape, params[f"w{k}"].T), tensor(f"b{k}", params[f"b{k}"].shape,
         params[f"b{k}"])) for k in range(2)
    ]  # fmt: skip
    dense, last, softmax = schema.FullyConnectedOptionsT(), schema.FullyConnectedOptionsT(), schema.SoftmaxOptionsT()
    dense.fusedActivationFunction = schema.ActivationFunctionType.RELU
    softmax.beta = 1.0
    kinds = schema.BuiltinOptions
    graph.inputs, graph.outputs = [x], [result]
    graph.operators = [
        operator(0, [x, *constants[0]], hidden, kinds.FullyConnectedOptions, dense),
        operator(0, [hidden, *constants[1]], scores, kinds.FullyConnectedOptions, last),
        operator(1, [scores], result, kinds.SoftmaxOptions, softmax),
    ]
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(bytes(builder.Output()))


def litert_run(folder: Path, batch: int) -> Run:
    interpreter = importlib.import_module("ai_edge_litert.interpreter").Interpreter(
        str(folder / f"digits{batch}.tflite"), num_threads=1
    )
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], images(batch))
    result = interpreter.tensor(interpreter.get_output_details()[0]["index"])

    def run() -> Any:
        interpreter.invoke()
        return result

    return run


def jax_run(folder: Path, batch: int) -> Run:
    jax = importlib.import_module("jax")
    params, x = jax.device_put(weights()), jax.device_put(images(batch))
    step = jax.jit(lambda x: network(params, x, jax.numpy, jax.nn))
    return lambda: step(x).block_until_ready()


def torch_run(folder: Path, batch: int) -> Run:
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    params = {name: torch.from_numpy(value) for name, value in weights().items()}
    x, linear = torch.from_numpy(images(batch)), torch.nn.functional.linear
    w0, w1 = params["w0"].T.contiguous(), params["w1"].T.contiguous()

    def run() -> Any:
        with torch.inference_mode():
            return linear(linear(x, w0, params["b0"]).relu(), w1, params["b1"]).softmax(-1)

    return run


def no_file(path: Path, batch: int) -> None:
    """For peers with a Python program as the model."""


PEERS: dict[str, tuple[tuple[str, ...], str, Callable[[Path, int], None], Callable[[Path, int], Run]]] = {
    "ONNX Runtime": (("onnxruntime", "onnx"), ".onnx", write_onnx, onnxruntime_run),
    "LiteRT": (("ai_edge_litert", "flatbuffers"), ".tflite", write_tflite, litert_run),
    "JAX": (("jax",), "", no_file, jax_run),
    "PyTorch": (("torch",), "", no_file, torch_run),
}
"""For each: the modules that it needs, the suffix of its model's file, what writes that, and what runs it."""
PACKAGES = {"ai_edge_litert": "ai-edge-litert"}


def installed() -> list[str]:
    """The peers that are here."""
    found = []
    for name, (modules, *_) in PEERS.items():
        missing = [module for module in modules if importlib.util.find_spec(module) is None]
        if missing:
            print(f"without {name}: {', '.join(missing)} not installed", file=sys.stderr)
        else:
            found.append(name)
    return found


# ---- measuring


def value(result: Any) -> NDArray:
    """A peer's result as an array."""
    if callable(result):
        result = result()
    return np.asarray(result.numpy() if hasattr(result, "numpy") else result)


def best_times(runs: dict[str, Run], rounds: int) -> dict[str, float]:
    """Seconds a call of each: the best of many samples, in turns."""
    counts, best = {}, dict.fromkeys(runs, np.inf)
    for name, run in runs.items():
        for _ in range(20):
            run()
        counts[name] = max(1, int(SAMPLE_SECONDS / _seconds(run, 3)))
    for _ in range(rounds):
        for name, run in runs.items():
            best[name] = min(best[name], _seconds(run, counts[name]))
    return best


def _seconds(run: Run, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - start) / count


def cpp_time(folder: Path, batch: int, form: str) -> float:
    """Seconds that the generated benchmark prints."""
    command = ["make", "-s", "-B", f"digits{batch}_benchmark", f"FORM={form}"]
    folder = folder / f"digits{batch}"
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    said = [
        subprocess.run([f"./digits{batch}_benchmark"], cwd=folder, capture_output=True, text=True, check=True).stdout
        for _ in range(3)
    ]
    return min(float(text.split(": ")[1].split()[0]) for text in said) * 1e-6


STARTS = {
    "hloom.aot.load": """
        import sys, hloom.aot
        program = hloom.aot.load(sys.argv[1] + "/digits1/digits1.json")
        import numpy as np
        print(program(np.zeros((1, 784), np.float32)))
    """,
    "hloom.jit": """
        from benchmarks import deploy
        import hloom
        params = deploy.weights()
        print(hloom.jit(deploy.network)(params, deploy.images(1)))
    """,
    "ONNX Runtime": """
        import sys, numpy as np, onnxruntime
        session = onnxruntime.InferenceSession(sys.argv[1] + "/digits1.onnx", providers=["CPUExecutionProvider"])
        print(session.run(None, {"x": np.zeros((1, 784), np.float32)}))
    """,
    "LiteRT": """
        import sys, numpy as np
        from ai_edge_litert.interpreter import Interpreter
        interpreter = Interpreter(sys.argv[1] + "/digits1.tflite", num_threads=1)
        interpreter.allocate_tensors()
        interpreter.invoke()
        print(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    """,
    "JAX": """
        import sys, numpy as np, jax
        with np.load(sys.argv[1] + "/weights.npz") as file: p = dict(file)
        def network(x):
            return jax.nn.softmax(jax.numpy.maximum(x @ p["w0"] + p["b0"], 0) @ p["w1"] + p["b1"])
        print(jax.jit(network)(np.zeros((1, 784), np.float32)))
    """,
    "PyTorch": """
        import sys, numpy as np, torch
        with np.load(sys.argv[1] + "/weights.npz") as file: p = {k: torch.from_numpy(v) for k, v in file.items()}
        with torch.inference_mode():
            print(((torch.zeros(1, 784) @ p["w0"] + p["b0"]).relu() @ p["w1"] + p["b1"]).softmax(-1))
    """,
}


def starts(folder: Path, peers: list[str], rounds: int) -> Iterator[tuple[str, float, float]]:
    """Name, wall-clock and processor seconds from the start of a process to its end, medians."""
    (folder / "first.cc").write_text(
        '#include <cstdio>\n#include "digits1.h"\nint main() {\n  digits1 program;\n  program.Run();\n'
        '  std::printf("%g\\n", program.result0(0, 0));\n}\n'
    )
    command = ["c++", "-std=c++11", "-O2", "-Idigits1", "-o", "first", "first.cc", "digits1/digits1.o", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    names = ["C++ program", "hloom.aot.load", "hloom.jit", *[name for name in peers if name in STARTS]]
    programs = {name: [sys.executable, "-c", textwrap.dedent(STARTS[name]), str(folder)] for name in names[1:]}
    programs["C++ program"] = [str(folder / "first")]
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    for _ in range(rounds + 1):  # the first reads the files, and fills stores
        for name in names:
            before, start = os.times(), time.perf_counter()
            subprocess.run(programs[name], check=True, capture_output=True, env=environment)
            wall, after = time.perf_counter() - start, os.times()
            used = after.children_user + after.children_system - before.children_user - before.children_system
            taken[name].append((wall, used))
    for name in names:
        wall, used = (statistics.median(column) for column in zip(*taken[name][1:]))
        yield name, wall, used


def sizes(folder: Path, peers: list[str]) -> Iterator[tuple[str, int, int]]:
    """Name, bytes of code that must be shipped, and bytes of the model."""
    model = sum(array.nbytes for array in weights().values())
    code = (folder / "digits1" / "digits1.o").stat().st_size - model
    yield "hloom: object file", code, model
    wasm = hloom.aot.compile(
        network, (weights(), images(1)), name="digits", freeze={"params": weights()}, target="wasm32-unknown-unknown",
        features="+simd128",
    ).wasm  # fmt: skip
    yield "hloom: WebAssembly", len(wasm) - model, model
    subprocess.run(["strip", "-o", "stripped", "first"], cwd=folder, check=True)
    yield "hloom: C++ program", (folder / "stripped").stat().st_size - model, model
    for name in peers:
        (module, *_), suffix, *_ = PEERS[name]
        package = PACKAGES.get(module, module)
        if name == "JAX":
            package = "jaxlib"
        files = importlib.metadata.files(package) or []
        paths = [Path(str(f.locate())) for f in files if ".so" in f.name]
        largest = max(path.stat().st_size for path in paths)
        yield f"{name}: its largest library", largest, (folder / f"digits1{suffix}").stat().st_size if suffix else model


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.deploy", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--batch", type=int, action="append", help="images at once; may be repeated: 1 and 128")
    parser.add_argument("--rounds", type=int, default=300, help="samples of each peer")
    parser.add_argument("--starts", type=int, default=5, help="processes of each peer; 0: none")
    options = parser.parse_args()
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    peers = installed()
    versions = [f"{PEERS[n][0][0]} {importlib.metadata.version(PACKAGES.get(PEERS[n][0][0], PEERS[n][0][0]))}"
                for n in peers]  # fmt: skip
    print(f"hloom {hloom.version.__version__}, {', '.join(versions)}; one thread\n")
    batches = options.batch or [1, 128]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        np.savez(folder / "weights.npz", **weights())  # type: ignore[arg-type]
        for batch in dict.fromkeys([1, *batches]):
            compiled(folder, batch)
            for name in peers:
                _, suffix, write, _ = PEERS[name]
                write(folder / f"digits{batch}{suffix}", batch)
        for batch in batches:
            runs = {"hloom, from Python": hloom_run(folder, batch)}
            runs.update({name: PEERS[name][3](folder, batch) for name in peers})
            for name, run in runs.items():
                np.testing.assert_allclose(value(run()), reference(images(batch)), rtol=2e-4, atol=1e-6, err_msg=name)
            times = {f"hloom, from C++ ({form})": cpp_time(folder, batch, form) for form in ("object", "c")}
            times.update(best_times(runs, options.rounds))
            print(f"| batch {batch} | us | us an image |\n| :-- | --: | --: |")
            for name, seconds in times.items():
                print(f"| {name} | {seconds * 1e6:.1f} | {seconds * 1e6 / batch:.2f} |")
            print()
        if options.starts:
            print("| start to first result | ms | of them processor |\n| :-- | --: | --: |")
            for name, wall, used in starts(folder, peers, options.starts):
                print(f"| {name} | {wall * 1e3:.0f} | {used * 1e3:.0f} |")
            print("\n| size | code, kB | model, kB |\n| :-- | --: | --: |")
            for name, code, model in sizes(folder, peers):
                print(f"| {name} | {code / 1e3:,.1f} | {model / 1e3:,.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
