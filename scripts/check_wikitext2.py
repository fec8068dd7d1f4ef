#!/usr/bin/env python3
"""Trains apps/configs/wikitext2_powersgd.toml in PyTorch, in one process, and prints the mean loss of every 100 steps.

    check_wikitext2.py TRAIN_TOKENS [STEPS]

TRAIN_TOKENS is WikiText-2's wiki.train.tokens. The script is written from the recipe, independently of Wisp, with its own
random draws. It needs torch.
"""
import sys

import torch
from torch import nn

COLUMNS, WINDOW, UNITS, LAYERS, DROPOUT, RATE, CLIP = 64, 30, 650, 3, 0.4, 1.25, 0.4


class Model(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.table = nn.Embedding(words, UNITS)
        self.table.weight.data.uniform_(-0.1, 0.1)
        self.lstm = nn.LSTM(UNITS, UNITS, LAYERS, dropout=DROPOUT)
        self.dropout = nn.Dropout(DROPOUT)
        self.bias = nn.Parameter(torch.zeros(words))

    def forward(self, ids, state):
        y, state = self.lstm(self.dropout(self.table(ids)), state)
        return nn.functional.linear(self.dropout(y).flatten(0, 1), self.table.weight, self.bias), state


def main():
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    torch.manual_seed(1)
    torch.set_num_threads(2)
    with open(sys.argv[1], encoding="utf-8") as text:
        tokens = [word for line in text for word in line.split() + ["<eos>"]]
    number = {word: i for i, word in enumerate(dict.fromkeys(tokens))}
    ids = torch.tensor([number[word] for word in tokens])
    rows = (len(ids) - 1) // COLUMNS
    inputs, targets = (ids[at : at + COLUMNS * rows].view(COLUMNS, rows).t() for at in (0, 1))
    model = Model(len(number))
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    state = (torch.zeros(LAYERS, COLUMNS, UNITS),) * 2
    total = 0.0
    for step in range(steps):
        window = slice(step * WINDOW, (step + 1) * WINDOW)
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            logits, state = model(inputs[window], state)
        state = tuple(one.detach() for one in state)
        loss = nn.functional.cross_entropy(logits.float(), targets[window].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        total += loss.item()
        if step % 100 == 99 or step + 1 == steps:
            print(f"step {step + 1}: loss {total / (step % 100 + 1):.4f}", flush=True)
            total = 0.0


if __name__ == "__main__":
    main()
