#!/usr/bin/env python3
"""Trains ResNet-20 on CIFAR-10 with random_k or random_block in PyTorch, to compare with wisp.

  check_random_selection.py DIR METHOD [--ratio 0.01] [--lr 0.1] [--momentum 0.9] [--vectors] [--epochs 1]

DIR holds cifar-10-batches-bin; METHOD is random_k, random_block or none. Selection, residual and recipe are written from
the papers, independently of Wisp. Each of 4 workers has 32 images a step. As all draw the same positions, the script keeps
one residual, that of the mean gradient. Vectors (biases, norms) go dense; with --vectors the method takes them too. The
learning rate follows a cosine over 10 epochs, as with `train.epochs=10`, even if fewer run. As with
`data.validation=5000`, 5,000 images are held out of training; the printed accuracy is measured on them. The script needs
numpy and torch (pip).
"""

import argparse
import math
import pathlib

import numpy
import torch
from torch import nn
from torch.nn import functional

WORKERS, BATCH, EPOCHS, HELD_OUT = 4, 32, 10, 5000
DECAY = 5e-4
MEAN = torch.tensor([125.3, 123.0, 113.9]).view(1, 3, 1, 1)
DEVIATION = torch.tensor([63.0, 62.1, 66.7]).view(1, 3, 1, 1)


class Block(nn.Module):
    def __init__(self, width_in, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.grows = width - width_in

    def forward(self, x):
        y = functional.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        if self.grows:
            x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 0, self.grows))
        return functional.relu(x + y)


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        blocks, width_in = [], 16
        for width in (16, 32, 64):
            for _ in range(3):
                blocks.append(Block(width_in, width, 1 if width == width_in else 2))
                width_in = width
        self.blocks = nn.Sequential(*blocks)
        self.classifier = nn.Linear(64, 10)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        return self.classifier(self.blocks(self.stem(x)).mean((2, 3)))


def load(directory, names):
    """Normalised images (N, 3, 32, 32) and labels (N)."""
    records = numpy.concatenate([numpy.fromfile(directory / name, numpy.uint8).reshape(-1, 3073) for name in names])
    images = torch.tensor(records[:, 1:].reshape(-1, 3, 32, 32)).float()
    return (images - MEAN) / DEVIATION, torch.tensor(records[:, 0].astype(numpy.int64))


def augment(images, draw):
    """Random crops of 32 x 32 from images padded with 4 zeros; half of them are flipped."""
    padded = functional.pad(images, (4, 4, 4, 4))
    result = torch.empty_like(images)
    for i, (y, x, flip) in enumerate(draw.randint(0, (9, 9, 2), (len(images), 3))):
        crop = padded[i, :, y : y + 32, x : x + 32]
        result[i] = crop.flip(2) if flip else crop
    return result


class Exchange:
    """An exchange of gradients. Of each tensor's residual + gradient it sends the drawn elements and keeps the rest."""

    def __init__(self, method, ratio, vectors, parameters):
        self.method, self.ratio, self.vectors = method, ratio, vectors
        self.residuals = [torch.zeros(p.numel()) for p in parameters]
        self.draw = numpy.random.RandomState(0)

    def positions(self, numel):
        count = math.ceil(self.ratio * numel)
        if self.method == "random_k":
            return torch.tensor(self.draw.choice(numel, count, replace=False))
        return (torch.arange(count) + self.draw.randint(numel)) % numel

    def __call__(self, index, gradient):
        if self.method == "none" or (gradient.dim() == 1 and not self.vectors):
            return gradient
        residual = self.residuals[index]
        residual += gradient.reshape(-1)
        drawn = self.positions(residual.numel())
        sent = torch.zeros_like(residual)
        sent[drawn] = residual[drawn]
        residual[drawn] = 0
        return sent.view_as(gradient)


@torch.no_grad()
def update(parameters, velocities, exchange, rate, momentum):
    """Exchanges the gradients, then updates with Nesterov momentum and the weight decay of matrices."""
    for index, (p, u) in enumerate(zip(parameters, velocities)):
        gradient = exchange(index, p.grad)
        if p.dim() > 1:
            gradient = gradient + DECAY * p
        u.mul_(momentum).add_(gradient)
        p -= rate * (gradient + momentum * u)


@torch.no_grad()
def accuracy(model, images, labels):
    model.eval()
    answers = torch.cat([model(part).argmax(1) for part in images.split(500)])
    model.train()
    return (answers == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("method", choices=["none", "random_k", "random_block"])
    parser.add_argument("--ratio", type=float, default=0.01)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--vectors", action="store_true")
    parser.add_argument("--epochs", type=int, default=1)
    options = parser.parse_args()

    torch.manual_seed(1)
    draw = numpy.random.RandomState(1)
    directory = options.directory / "cifar-10-batches-bin"
    images, labels = load(directory, [f"data_batch_{i}.bin" for i in range(1, 6)])
    order = torch.tensor(draw.permutation(len(images)))
    held_out, order = order[:HELD_OUT], order[HELD_OUT:]
    steps = len(order) // (WORKERS * BATCH)
    model = ResNet20()
    parameters = list(model.parameters())
    velocities = [torch.zeros_like(p) for p in parameters]
    exchange = Exchange(options.method, options.ratio, options.vectors, parameters)
    for epoch in range(options.epochs):
        order = order[torch.tensor(draw.permutation(len(order)))]
        total = 0.0
        for step in range(steps):
            model.zero_grad()
            for batch in order[step * WORKERS * BATCH :][: WORKERS * BATCH].split(BATCH):
                loss = functional.cross_entropy(model(augment(images[batch], draw)), labels[batch])
                (loss / WORKERS).backward()
                total += loss.item() / WORKERS
            done = (epoch * steps + step) / (EPOCHS * steps)
            rate = options.lr * (1 + math.cos(math.pi * done)) / 2
            update(parameters, velocities, exchange, rate, options.momentum)
        reached = accuracy(model, images[held_out], labels[held_out])
        print(f"epoch {epoch + 1}: train loss {total / steps:.3f}, held-out accuracy {reached:.2%}", flush=True)


if __name__ == "__main__":
    main()
