#!/usr/bin/env python3
"""Keeps word errors of runs speaker by speaker, and tells whether two ways to train differ.

    speaker_errors.py add NAME < EVAL.json        what "wisp eval RUN --speakers --json" printed of the run NAME
    speaker_errors.py compare A B                 runs A-sSEED against runs B-sSEED
    --csv docs/speaker_errors.csv

compare adds the edits of a way's seeds up, speaker by speaker, and prints both word error rates, their difference, and the
interval that holds 95 % of the differences when speakers are drawn with replacement, 10,000 times (Bisani and Ney 2004): the
speakers, not the words, are the sample. The seeds' own spread is in scripts/results_table.sh. Standard library only.
"""
import argparse
import collections
import csv
import json
import os
import random
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLUMNS = ["name", "way", "speaker", "utterances", "words", "word_edits", "characters", "character_edits"]
DRAWS, SEED = 10_000, 1


def add(path, name):
    """Appends what an evaluation says of each speaker."""
    decoded = json.load(sys.stdin).get("decoded", [])
    if not decoded:
        raise SystemExit("speaker_errors: the evaluation has no speakers; wisp eval RUN --speakers --json tells them")
    new = not os.path.exists(path)
    if not new and any(row["name"] == name for row in read(path)):
        raise SystemExit(f"{path}: {name} is there already")
    with open(path, "a", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            table.writeheader()
        for way in decoded:
            for speaker, counts in way["speakers"].items():
                table.writerow({"name": name, "way": way["way"], "speaker": speaker, **counts})


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def errors(path, prefix):
    """{speaker: (word edits, words)} of the best path over all seeds, and how many there are."""
    counts, seeds = collections.defaultdict(lambda: [0, 0]), set()
    for row in read(path):
        if row["way"] == "best path" and re.fullmatch(re.escape(prefix) + r"-s\d+", row["name"]):
            seeds.add(row["name"])
            counts[row["speaker"]][0] += int(row["word_edits"])
            counts[row["speaker"]][1] += int(row["words"])
    if not seeds:
        raise SystemExit(f"{path}: no run {prefix}-sSEED")
    return counts, len(seeds)


def rate(counts, speakers):
    return sum(counts[s][0] for s in speakers) / sum(counts[s][1] for s in speakers)


def compare(path, a, b):
    (of_a, seeds_a), (of_b, seeds_b) = errors(path, a), errors(path, b)
    speakers = sorted(of_a)
    if speakers != sorted(of_b):
        raise SystemExit(f"{path}: {a} and {b} have not the same speakers")
    draw = random.Random(SEED)
    differences = []
    for _ in range(DRAWS):
        drawn = draw.choices(speakers, k=len(speakers))
        differences.append(rate(of_b, drawn) - rate(of_a, drawn))
    differences.sort()
    low, high = differences[DRAWS * 25 // 1000], differences[DRAWS * 975 // 1000 - 1]
    for name, counts, seeds in ((a, of_a, seeds_a), (b, of_b, seeds_b)):
        print(f"{name}: {100 * rate(counts, speakers):.2f} % of the words wrong, {seeds} seeds, {len(speakers)} speakers")
    print(f"difference {100 * (rate(of_b, speakers) - rate(of_a, speakers)):+.2f} points, "
          f"{100 * low:+.2f} to {100 * high:+.2f} in 95 % of the draws of speakers")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", default=os.path.join(ROOT, "docs", "speaker_errors.csv"))
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("add").add_argument("name")
    comparison = commands.add_parser("compare")
    comparison.add_argument("a")
    comparison.add_argument("b")
    arguments = parser.parse_args()
    if arguments.command == "add":
        add(arguments.csv, arguments.name)
    else:
        compare(arguments.csv, arguments.a, arguments.b)


if __name__ == "__main__":
    main()
