#!/usr/bin/env python3
"""Compares the ONNX export of runs with `wisp eval`, over the whole test set, in onnxruntime.

  check_onnx.py [--wisp PROGRAM] RUN... [KEY=VALUE...]

For each run: exports it, lets onnx.checker read the file, and runs it on the very input that `wisp eval --predictions`
saw. Fails unless every top-1 is equal and all logits are within 1e-4. Needs numpy, onnx and onnxruntime (pip).
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


def read_safetensors(path):
    """The tensors of a file, by name."""
    types = {"F32": numpy.float32, "F64": numpy.float64, "I32": numpy.int32}
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


def check(program, run, overrides):
    """Prints one line. True if the two agree."""
    with tempfile.TemporaryDirectory() as folder:
        graph = pathlib.Path(folder) / "model.onnx"
        predictions = pathlib.Path(folder) / "predictions.safetensors"
        for command in (["export", run, "--to", graph], ["eval", run, "--predictions", predictions]):
            subprocess.run([program, *command, *overrides], check=True, stdout=subprocess.DEVNULL)
        onnx.checker.check_model(str(graph), full_check=True)
        session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
        expected = read_safetensors(predictions)
    inputs = expected["input"].astype(numpy.float32)
    batches = [inputs[at : at + BATCH] for at in range(0, len(inputs), BATCH)]
    logits = numpy.concatenate([session.run(["logits"], {"input": batch})[0] for batch in batches])
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
