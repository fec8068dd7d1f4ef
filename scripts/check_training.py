#!/usr/bin/env python3
"""Compares the losses of Wisp's first steps on photos with those of PyTorch.

    check_training.py WISP FOLDER [MODEL...]    # resnet18, alexnet, vgg11, vgg11_bn

Both train torchvision's MODEL from the same weights on 32 photos of FOLDER, which has a folder of JPEGs for each class.
A batch is all 32, and there are 20 steps of SGD with momentum and weight decay. PyTorch sees the photos through
torchvision's Resize(256) and CenterCrop(224). Dropout is off: the two draw it differently. The script needs torch,
torchvision and a Pillow before 13 (check_images.py says why).

The reference is PyTorch in f64. Rounding to f32 moves PyTorch's own losses away from it, and with batch norm the distance
grows from step to step. Exit status 1 if Wisp's distance is more than a thousandth of the loss and more than 3 times the
distance that PyTorch in f32 has reached.
"""
import copy
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import torch
import torchvision
from PIL import Image

PHOTOS = 32
STEPS = 20
MOST = 1e-3
KEYS = {  # Wisp's keys and PyTorch's model
    "resnet18": (["model.name=resnet", "model.depth=18"], {}),
    "alexnet": (["model.name=alexnet", "model.dropout=0"], {"dropout": 0.0}),
    "vgg11": (["model.name=vgg", "model.depth=11", "model.dropout=0"], {"dropout": 0.0}),
    "vgg11_bn": (["model.name=vgg", "model.depth=11", "model.batch_norm=true", "model.dropout=0"], {"dropout": 0.0}),
}
CONFIG = """
workers = 1
data = { name = "photos", augment = false }
train = { batch = 32, epochs = 20, log_every = 1 }
optimizer = { lr = 0.005, momentum = 0.9, weight_decay = 1e-4 }
compression.method = "none"
"""


def save(path, tensors):
    """Writes a file in the format safetensors."""
    header, content = {}, b""
    for name, tensor in tensors.items():
        data = tensor.detach().numpy().tobytes()
        kind = "F32" if tensor.dtype == torch.float32 else "I64"
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(content), len(content) + len(data)]}
        content += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + content)


def losses_of_torch(model, files, classes, kind):
    view = torchvision.transforms.Compose([
        torchvision.transforms.Resize(256),
        torchvision.transforms.CenterCrop(224),
        torchvision.transforms.ToTensor(),
        torchvision.transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ])
    x = torch.stack([view(Image.open(file).convert("RGB")) for file in files]).to(kind)
    model = copy.deepcopy(model).to(kind)
    y = torch.tensor([classes.index(file.parent.name) for file in files])
    sgd = torch.optim.SGD(
        [
            {"params": [p for p in model.parameters() if p.ndim > 1]},
            {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},  # Wisp decays no vectors
        ],
        lr=0.005, momentum=0.9, weight_decay=1e-4)
    losses = []
    for _ in range(STEPS):
        sgd.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    return losses


def losses_of_wisp(wisp, keys, weights, data, work):
    (work / "run.toml").write_text(CONFIG)
    subprocess.run([wisp, "train", work / "run.toml", *keys, f"data.path={data}", f"model.init={weights}", "--quiet",
                    "--out", work / "run", "--overwrite"], check=True)
    rows = map(json.loads, (work / "run" / "metrics.jsonl").read_text().splitlines())
    return [row["loss"] for row in rows if row["type"] == "step"]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    wisp, folder, names = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:] or list(KEYS)
    classes = sorted(path.name for path in folder.iterdir() if path.is_dir())[:4]
    if any(len(list((folder / label).iterdir())) < PHOTOS // 4 + 1 for label in classes) or len(classes) < 4:
        sys.exit(f"{folder}: expected four folders with {PHOTOS // 4 + 1} photos each")
    failed = False
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        files = []
        for label in classes:
            for part, numbers in (("train", slice(0, PHOTOS // len(classes))), ("val", slice(-1, None))):
                (work / "data" / part / label).mkdir(parents=True)
                for file in sorted((folder / label).iterdir())[numbers]:
                    photo = work / "data" / part / label / file.name
                    shutil.copy(file, photo)
                    files += [photo] if part == "train" else []
        for model_name in names:
            keys, options = KEYS[model_name]
            torch.manual_seed(1)
            model = getattr(torchvision.models, model_name)(num_classes=len(classes), **options)
            save(work / "weights.safetensors", model.state_dict())
            ours = losses_of_wisp(wisp, keys, work / "weights.safetensors", work / "data", work)
            single, double = (losses_of_torch(model, files, classes, kind) for kind in (torch.float32, torch.float64))
            most = reached = 0.0
            for step, (a, b, exact) in enumerate(zip(ours, single, double, strict=True), 1):
                reached = max(reached, abs(b - exact))
                most = max(most, abs(a - exact))
                if not abs(a - exact) <= max(MOST * exact, 3 * reached):
                    failed = True
                    print(f"{model_name}, step {step}: loss {a:.6f}, expected {exact:.6f}")
            print(f"{model_name}: losses {double[0]:.4f} to {double[-1]:.4f}; largest distance from f64: Wisp {most:.1e}, "
                  f"PyTorch in f32 {reached:.1e}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
