#!/usr/bin/env python3
"""Compares the ONNX export of runs with `wisp eval`, over the whole test set, in onnxruntime.

  check_onnx.py [--wisp PROGRAM] RUN... [KEY=VALUE...]

For each run the script exports the model, checks the file with onnx.checker, and runs it on the inputs of
`wisp eval --predictions`. A model that carries state starts from zeros and runs position by position, each time with the
state that it returned before. The script fails unless every top-1 is equal and all logits are within 1e-4. It needs
numpy, onnx and onnxruntime (pip).
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime

TOLERANCE = 1e-4
BATCH = 100
TYPES = {"tensor(float)": numpy.float32, "tensor(int32)": numpy.int32, "tensor(int64)": numpy.int64}


def read_safetensors(path):
    """The tensors of a file, by name."""
    types = {"F32": numpy.float32, "F64": numpy.float64, "I32": numpy.int32, "I64": numpy.int64}
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        array = numpy.frombuffer(data[start + begin : start + end], types[entry["dtype"]])
        tensors[name] = array.reshape(entry["shape"])
    return tensors


def states_of(session):
    """The inputs that carry state: each has an output NAME_after."""
    outputs = {output.name for output in session.get_outputs()}
    return [value for value in session.get_inputs() if value.name + "_after" in outputs]


def run_batches(session, inputs):
    """The logits of all samples."""
    count = len(next(iter(inputs.values())))
    batches = [{name: data[at : at + BATCH] for name, data in inputs.items()} for at in range(0, count, BATCH)]
    return numpy.concatenate([session.run(["logits"], batch)[0] for batch in batches])


def run_positions(session, inputs, states):
    """The logits of all positions and columns. `inputs` have the shape (T, N, ...)."""
    positions, columns = next(iter(inputs.values())).shape[:2]
    state = {value.name: numpy.zeros([columns, *value.shape[1:]], numpy.float32) for value in states}
    wanted = ["logits"] + [name + "_after" for name in state]
    logits = []
    for at in range(positions):
        now, *after = session.run(wanted, {name: data[at : at + 1] for name, data in inputs.items()} | state)
        logits.append(now)
        state = dict(zip(state, after))
    return numpy.concatenate(logits)


def check(program, run, overrides):
    """Prints one line for a run. True if the export and `wisp eval` agree."""
    with tempfile.TemporaryDirectory() as folder:
        graph = pathlib.Path(folder) / "model.onnx"
        predictions = pathlib.Path(folder) / "predictions.safetensors"

        def wisp(*words):
            subprocess.run([program, *words, *overrides], check=True, stdout=subprocess.DEVNULL)

        wisp("export", run, "--to", graph)
        onnx.checker.check_model(str(graph), full_check=True)
        session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
        states = states_of(session)
        # with one worker the text is in one piece: row t + 1 of the file follows row t in every column
        whole = ["workers=1", "train.accumulate=1"] if states else []
        wisp("eval", run, "--predictions", predictions, *whole)
        expected = read_safetensors(predictions)
    carried = [value.name for value in states]
    inputs = {
        value.name: expected[value.name].astype(TYPES[value.type])
        for value in session.get_inputs()
        if value.name not in carried
    }
    logits = run_positions(session, inputs, states) if states else run_batches(session, inputs)
    apart = numpy.abs(logits - expected["logits"]).max()
    equal = int((logits.argmax(1) == expected["logits"].argmax(1)).sum())
    print(f"{run}: top-1 equal for {equal} of {len(logits)}, logits within {apart:.2g} of up to "
          f"{numpy.abs(expected['logits']).max():.3g}")
    return equal == len(logits) and apart <= TOLERANCE


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wisp", default="build/release/wisp", help="the program")
    parser.add_argument("arguments", nargs="+", metavar="RUN", help="run directories; KEY=VALUE: overrides")
    options = parser.parse_args()
    overrides = [word for word in options.arguments if "=" in word]
    runs = [word for word in options.arguments if "=" not in word]
    results = [check(options.wisp, run, overrides) for run in runs]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
