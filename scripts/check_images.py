#!/usr/bin/env python3
"""Compares Wisp's decoding and scaling of photos with Pillow's, pixel by pixel.

    check_images.py IMAGE_PIXELS FOLDER    # all JPEGs below FOLDER
    check_images.py --table                # the tables of the tests of scaling, colours and RandAugment

IMAGE_PIXELS is the program of tests/bench. For each file it writes the pixels of evaluation and of random crops, bilinear
and bicubic. The script needs numpy and a Pillow before 13, which scales the rows of some pictures before the columns. The
tables need torchvision, too.
Exit status 1 if a pixel differs.
"""
import pathlib
import subprocess
import sys

import numpy
import PIL
from PIL import Image, ImageEnhance, features

FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


def scaled(picture, source, size, window, kind):
    """The pixels of a view: `source` and `window` are (top, left, height, width), `size` is (height, width)."""
    top, left, height, width = source
    part = picture.crop((left, top, left + width, top + height)).resize((size[1], size[0]), FILTERS[kind])
    top, left, height, width = window
    return numpy.asarray(part)[top : top + height, left : left + width]


def evaluation(picture):
    """torchvision's Resize(256) and CenterCrop(224), as source, size and window."""
    width, height = picture.size
    longer = int(256 * max(width, height) / min(width, height))
    size = (longer, 256) if width <= height else (256, longer)
    top, left = (int(round((extent - 224) / 2.0)) for extent in size)
    return (0, 0, height, width), size, (top, left, 224, 224)


def compare(program, folder):
    files = sorted(str(path) for path in pathlib.Path(folder).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    views = different = largest = 0
    for file in files:
        with Image.open(file) as opened:
            picture = opened.convert("RGB")
        # before the pixels of each view stands a line: what, filter, source, size, window
        answer = subprocess.run([program, file], stdout=subprocess.PIPE, check=True).stdout
        while answer:
            line, answer = answer.split(b"\n", 1)
            what, kind, *numbers = line.decode().split()
            numbers = [int(number) for number in numbers]
            source, size, window = tuple(numbers[:4]), tuple(numbers[4:6]), tuple(numbers[6:])
            count = window[2] * window[3] * 3
            pixels = numpy.frombuffer(answer[:count], numpy.uint8).reshape(window[2], window[3], 3)
            answer = answer[count:]
            if what == "evaluation" and (source, size, window) != evaluation(picture):
                raise SystemExit(f"check_images: {file}: Wisp scales {source} to {size} and keeps {window}")
            apart = numpy.abs(pixels.astype(int) - scaled(picture, source, size, window, kind))
            views += 1
            if apart.any():
                different += 1
                largest = max(largest, apart.max())
                print(f"{file}: {line.decode()}: {(apart > 0).sum()} of {count} numbers differ, by at most {apart.max()}")
    if views == 0:
        sys.exit(f"{folder}: no JPEG was compared")
    print(f"Pillow {PIL.__version__}, libjpeg-turbo {features.version('libjpeg_turbo')}: {len(files)} files, "
          f"{views} views, {different} differ, by at most {largest}")
    return different


def drawn(kind, height, width):
    """The pictures of the tests."""
    y, x, c = numpy.ogrid[:height, :width, :3]
    number = {
        "noise": (x * 7919 + y * 104729 + c * 1299709) * 2654435761 % 2**32 >> 24,
        "checks": ((x // 3 + y // 2 + c) % 2) * 255,
    }[kind]
    return numpy.ascontiguousarray(number.astype(numpy.uint8))


def fnv(data):
    """hash_text of core/base/hash.h."""
    value = 0xCBF29CE484222325
    for byte in data + len(data).to_bytes(8, "little"):
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


# height, width, source, size, window
VIEWS = [
    (375, 500, (0, 0, 375, 500), (256, 341), (16, 58, 224, 224)),
    (500, 333, (0, 0, 500, 333), (384, 256), (80, 16, 224, 224)),
    (375, 500, (31, 40, 233, 301), (224, 224), (0, 0, 224, 224)),
    (37, 53, (0, 0, 37, 53), (224, 224), (0, 0, 224, 224)),
    (133, 211, (5, 9, 101, 77), (32, 32), (3, 5, 20, 25)),
    (60, 7, (0, 0, 60, 7), (20, 9), (0, 0, 20, 9)),
    (7, 60, (0, 0, 7, 60), (9, 20), (0, 0, 9, 20)),
    (64, 64, (0, 0, 64, 64), (64, 64), (0, 0, 64, 64)),
    (1, 1, (0, 0, 1, 1), (5, 7), (0, 0, 5, 7)),
    (400, 400, (0, 0, 400, 400), (1, 1), (0, 0, 1, 1)),
]


def print_table():
    print(f"// Pillow {PIL.__version__}")
    for height, width, source, size, window in VIEWS:
        hashes = []
        for picture in ("noise", "checks"):
            for kind in FILTERS:
                pixels = scaled(Image.fromarray(drawn(picture, height, width)), source, size, window, kind)
                hashes.append(f"0x{fnv(pixels.tobytes()):016x}")
                if (picture, kind) == ("noise", "bicubic"):
                    middle = ", ".join(map(str, pixels[window[2] // 2, window[3] // 2]))
        source, window = (", ".join(map(str, region)) for region in (source, window))
        print(f"{{{height}, {width}, {{{{{source}}}, {size[0]}, {size[1]}, {{{window}}}}}, {', '.join(hashes)}, "
              f"{{{middle}}}}},")
    noise = Image.fromarray(drawn("noise", 17, 23))
    for name, change in (("Brightness", "brightness"), ("Contrast", "contrast"), ("Color", "saturation")):
        for factor in (0.0, 0.6, 1.0, 1.37, 3.0):
            pixels = numpy.asarray(getattr(ImageEnhance, name)(noise).enhance(factor))
            print(f"{{change_{change}, {factor}f, 0x{fnv(pixels.tobytes()):016x}}},")
    print_rand_augment()


def print_rand_augment():
    import torchvision
    from torchvision.transforms import InterpolationMode, autoaugment

    print(f"// torchvision {torchvision.__version__}")
    picture = Image.fromarray(drawn("noise", 29, 41) // 2 + 100)
    space = autoaugment.RandAugment()._augmentation_space(31, (29, 41))
    for change, (name, (magnitudes, signed)) in enumerate(space.items()):
        hashes = []
        for magnitude, sign in ((9, 1), (9, -1), (24, 1)):
            level = magnitudes[magnitude].item() if magnitudes.ndim > 0 else 0
            level = sign * level if signed else level
            pixels = numpy.asarray(autoaugment._apply_op(picture, name, level, InterpolationMode.NEAREST, None))
            hashes.append(f"0x{fnv(pixels.tobytes()):016x}")
        print(f"{{{change}, {{{', '.join(hashes)}}}}},  // {name}")


def main():
    if sys.argv[1:] == ["--table"]:
        print_table()
    elif len(sys.argv) == 3:
        sys.exit(1 if compare(sys.argv[1], sys.argv[2]) else 0)
    else:
        sys.exit("usage: check_images.py IMAGE_PIXELS FOLDER | --table")


if __name__ == "__main__":
    main()
