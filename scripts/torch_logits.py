#!/usr/bin/env python3
"""Prints the logits, parameter counts and names that the tests of image models expect, from torchvision's models.

  torch_logits.py

Weights, statistics and images come from the formula of tests/support/formula_weights.h. The script needs torch and
torchvision (pip).
"""

import math

import numpy
import torch
import torchvision

CLASSES = 8
SIZES = [(224, 224), (64, 288)]


def seed_of(name):
    """FNV-1a over the name and its length, as wisp's hash_text()."""
    seed = 0xCBF29CE484222325
    for byte in name.encode() + len(name).to_bytes(8, "little"):
        seed = (seed ^ byte) * 0x100000001B3 % 2**64
    return seed % 2**32


def formula(name, shape, center, width):
    """Numbers in center +- width / 2, by MurmurHash3's finalizer of the index."""
    h = numpy.arange(math.prod(shape), dtype=numpy.uint32) * numpy.uint32(0x9E3779B9) + numpy.uint32(seed_of(name))
    h ^= h >> 16
    h *= numpy.uint32(0x85EBCA6B)
    h ^= h >> 13
    h *= numpy.uint32(0xC2B2AE35)
    h ^= h >> 16
    u = (h >> 8).astype(numpy.float32) / numpy.float32(2**24) - numpy.float32(0.5)
    return torch.from_numpy((numpy.float32(center) + numpy.float32(width) * u).reshape(shape))


def alexnet_of_2012(**options):
    """The network with groups of Krizhevsky et al. 2012, without local response normalisation."""
    model = torchvision.models.alexnet(**options)
    model.features[0] = torch.nn.Conv2d(3, 96, 11, stride=4, padding=2)
    model.features[3] = torch.nn.Conv2d(96, 256, 5, padding=2, groups=2)
    model.features[6] = torch.nn.Conv2d(256, 384, 3, padding=1)
    model.features[8] = torch.nn.Conv2d(384, 384, 3, padding=1, groups=2)
    model.features[10] = torch.nn.Conv2d(384, 256, 3, padding=1, groups=2)
    return model


def weight(name, tensor):
    shape = tuple(tensor.shape)
    if len(shape) > 1:
        return formula(name, shape, 0.0, 2 * math.sqrt(6 / math.prod(shape[1:])))
    if name.endswith("running_mean") or name.endswith("bias"):
        return formula(name, shape, 0.0, 0.2)
    if name.endswith("bn3.weight"):  # the last norm of a residual block; sums of larger ones would grow
        return formula(name, shape, 0.25, 0.25)
    return formula(name, shape, 1.0, 1.0)


def logits(build):
    model = build(num_classes=CLASSES).double().eval()
    state = model.state_dict()
    model.load_state_dict({n: t if n.endswith("tracked") else weight(n, t) for n, t in state.items()})
    for height, width in SIZES:
        image = formula("input", (1, 3, height, width), 0.0, 1.0)
        with torch.no_grad():
            values = model(image.double())[0].tolist()
        print(f"  {height} x {width}: " + ", ".join(f"{value:.6f}" for value in values), flush=True)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def names(build):
    """The checksum of the sorted lines "NAME (EXTENT, ...)\n" without num_batches_tracked, and the parameter count."""
    with torch.device("meta"):
        model = build()
    lines = [
        f"{name} ({', '.join(str(extent) for extent in tensor.shape)})\n"
        for name, tensor in model.state_dict().items()
        if not name.endswith("tracked")
    ]
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"  names 0x{crc32c(''.join(sorted(lines)).encode()):08x}, {count} parameters", flush=True)


if __name__ == "__main__":
    models = torchvision.models
    print("torch", torch.__version__, "torchvision", torchvision.__version__)
    for build in [models.alexnet, alexnet_of_2012, models.vgg16, models.vgg16_bn, models.resnet50]:
        print(build.__name__)
        logits(build)
    for build in [models.alexnet, alexnet_of_2012] + [getattr(models, f"vgg{d}{n}") for d in [11, 13, 16, 19] for n in ["", "_bn"]]:
        print(build.__name__)
        names(build)
