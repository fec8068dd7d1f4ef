#!/usr/bin/env python3
"""Times Wisp's loader of photos in turn with torchvision's and, where it is installed, FFCV's.

    photo_loaders.py make SOURCE DIR [COUNT]     # COUNT photos (2,000) in DIR/photos, made of the JPEGs below SOURCE
    photo_loaders.py run BENCH DIR [ROUNDS]      # BENCH is the program photo_loader_bench

`make` scales two photos to 512 x 384 or 384 x 512, blends them, adds grain, so that a file has about as many bytes as
a camera's at that size, and writes JPEGs of quality 90 in ten classes. It then makes DIR/ffcv.beton, if FFCV is there
(Debian: python3-ffcv). Then pack:

    wisp pack DIR/photos DIR/shards --side 0
    wisp pack DIR/photos DIR/raw --raw --side 256

`run` prints images/s of the fastest of three epochs with two threads (or processes), and the ratio of the medians to Wisp's
shards. All do a random resized crop of 224, a flip and a normalisation.
"""
import pathlib
import random
import statistics
import subprocess
import sys
import time

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
BATCH, THREADS, EPOCHS = 64, 2, 3


def make(source, folder, count=2000):
    import numpy
    from PIL import Image

    files = sorted(path for path in pathlib.Path(source).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    draw, grain = random.Random(1), numpy.random.default_rng(1)
    size = 0
    for number in range(int(count)):
        sides = (384, 512) if number % 4 == 0 else (512, 384)
        parts = [Image.open(path).convert("RGB").resize(sides, Image.Resampling.BICUBIC) for path in draw.sample(files, 2)]
        pixels = numpy.asarray(Image.blend(*parts, draw.uniform(0.1, 0.3)), dtype=numpy.float32)
        pixels = pixels + grain.normal(0, 9, pixels.shape[:2] + (1,))
        path = pathlib.Path(folder, "photos", f"class{number % 10}", f"{number:05}.jpg")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.clip(0, 255).astype(numpy.uint8)).save(path, quality=90)
        size += path.stat().st_size
    print(f"{count} photos of {size / int(count) / 1000:.0f} kB in the mean")
    try:
        from ffcv.fields import IntField, RGBImageField
        from ffcv.writer import DatasetWriter
        from torchvision.datasets import ImageFolder
    except ImportError as error:
        print(f"no FFCV: {error}")
        return
    fields = {"image": RGBImageField(write_mode="jpg", max_resolution=512, jpeg_quality=90), "label": IntField()}
    DatasetWriter(str(pathlib.Path(folder, "ffcv.beton")), fields, num_workers=2).from_indexed_dataset(
        ImageFolder(str(pathlib.Path(folder, "photos")))
    )


def epochs(loader):
    """Images per second of each epoch."""
    for _ in range(EPOCHS):
        begin, images = time.perf_counter(), 0
        for batch in loader:
            images += len(batch[0])
        yield images / (time.perf_counter() - begin)


def torchvision_loader(folder):
    import torch
    from torchvision import datasets, transforms

    changes = [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
    photos = datasets.ImageFolder(
        str(pathlib.Path(folder, "photos")), transforms.Compose(changes + [transforms.Normalize(MEAN, DEVIATION)])
    )
    return torch.utils.data.DataLoader(
        photos, BATCH, shuffle=True, drop_last=True, num_workers=THREADS, persistent_workers=True
    )


def ffcv_loader(folder):
    import numpy
    from ffcv.fields.decoders import IntDecoder, RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor, ToTorchImage

    normalise = NormalizeImage(numpy.array(MEAN) * 255, numpy.array(DEVIATION) * 255, numpy.float32)
    image = [RandomResizedCropRGBImageDecoder((224, 224)), RandomHorizontalFlip(), normalise, ToTensor(), ToTorchImage()]
    return Loader(
        str(pathlib.Path(folder, "ffcv.beton")),
        batch_size=BATCH,
        num_workers=THREADS,
        order=OrderOption.RANDOM,
        drop_last=True,
        pipelines={"image": image, "label": [IntDecoder(), ToTensor()]},
    )


def run(bench, folder, rounds=3):
    commands = {}
    for data in ("shards", "raw", "photos"):
        if pathlib.Path(folder, data).exists():
            commands[f"wisp, {data}"] = [bench, str(pathlib.Path(folder, data)), str(THREADS), str(EPOCHS)]
    for name in LOADERS:
        commands[name] = [sys.executable, __file__, name, folder]
    speeds = {name: [] for name in commands}
    for _ in range(int(rounds)):
        for name, command in commands.items():
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                print(f"{name}: status {done.returncode}: {done.stderr.strip()[-300:]}", file=sys.stderr)
                continue
            speeds[name].append(max(float(word) for word in done.stdout.split()))
    reference = statistics.median(speeds.get("wisp, shards") or [float("nan")])
    for name, figures in speeds.items():
        if figures:
            print(f"{name:16} {' '.join(f'{x:6.0f}' for x in figures)}   {statistics.median(figures) / reference:5.2f}")


LOADERS = {"torchvision": torchvision_loader, "ffcv": ffcv_loader}
MODES = {"make": make, "run": run}

if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] in MODES:
        MODES[sys.argv[1]](*sys.argv[2:])
    elif len(sys.argv) > 2 and sys.argv[1] in LOADERS:
        for speed in epochs(LOADERS[sys.argv[1]](sys.argv[2])):
            print(speed)
    else:
        sys.exit(__doc__)
