#!/usr/bin/env python3
"""Records the word errors of runs by speaker, and compares two ways of training.

    speaker_errors.py add NAME < EVAL.json        adds the output of "wisp eval RUN --speakers --json" as the run NAME
    speaker_errors.py compare A B                 compares the runs A-sSEED with the runs B-sSEED
    --csv docs/speaker_errors.csv

compare prints the word error rate of each way of training over all its seeds, and their difference with two 95 % intervals.
Welch's t interval takes the test speakers as given and covers other seeds. The bootstrap interval holds 95 % of the differences
when seeds and speakers are both drawn with replacement, 10,000 times (Bisani and Ney 2004, who draw speakers). Both ways have the
same drawn speakers. Each way draws its own seeds, as the errors of equal seeds are not paired. With few seeds the bootstrap
spreads too little, so the wider interval counts. If a way has one seed, compare draws speakers only; the printed line says that
this tells nothing about other seeds. Standard library only.
"""
import argparse
import collections
import csv
import json
import math
import os
import random
import re
import statistics
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLUMNS = ["name", "way", "speaker", "utterances", "words", "word_edits", "characters", "character_edits"]
DRAWS, SEED = 10_000, 1


def add(path, name):
    """Appends the errors of each speaker in an evaluation."""
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
    """Errors of the best path: a {speaker: word edits} for each seed, and the {speaker: words} that all seeds share."""
    seeds, words = collections.defaultdict(dict), {}
    for row in read(path):
        if row["way"] == "best path" and re.fullmatch(re.escape(prefix) + r"-s\d+", row["name"]):
            seeds[row["name"]][row["speaker"]] = int(row["word_edits"])
            if words.setdefault(row["speaker"], int(row["words"])) != int(row["words"]):
                raise SystemExit(f"{path}: {row['name']} has another number of words of {row['speaker']} than other seeds")
    if not seeds:
        raise SystemExit(f"{path}: no run {prefix}-sSEED")
    for name, edits in seeds.items():
        if edits.keys() != words.keys():
            raise SystemExit(f"{path}: {name} has not the same speakers as other seeds")
    return list(seeds.values()), words


def rate(seeds, words, speakers):
    """Percentage of wrong words over the given seeds and speakers, which may repeat."""
    return 100 * sum(edits[s] for edits in seeds for s in speakers) / (len(seeds) * sum(words[s] for s in speakers))


def t_quantile(share, freedom):
    """The quantile of Student's t distribution at `share`, by Simpson's rule over the density and bisection."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)

    def below(t, pieces=2000):
        density = [scale * (1 + (t * i / pieces) ** 2 / freedom) ** (-(freedom + 1) / 2) for i in range(pieces + 1)]
        return 0.5 + t / pieces / 3 * (density[0] + density[-1] + 4 * sum(density[1:-1:2]) + 2 * sum(density[2:-1:2]))

    low, high = 0.0, 1000.0  # the largest quantile needed, 0.975 at one degree of freedom, is 12.7
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < share else (low, middle)
    return low


def welch(a, b):
    """The 95 % interval of mean(b) - mean(a) for unequal variances, and its degrees of freedom."""
    spread_a, spread_b = statistics.variance(a) / len(a), statistics.variance(b) / len(b)
    difference, spread = statistics.fmean(b) - statistics.fmean(a), spread_a + spread_b
    if spread == 0:
        raise SystemExit("speaker_errors: all seeds of a way have the same errors: they tell no spread")
    freedom = spread**2 / (spread_a**2 / (len(a) - 1) + spread_b**2 / (len(b) - 1))
    reach = t_quantile(0.975, freedom) * math.sqrt(spread)
    return difference - reach, difference + reach, freedom


def drawn(of_a, of_b, words):
    """The interval that holds 95 % of the differences when speakers and each way's seeds are drawn with replacement."""
    speakers, draw, differences = sorted(words), random.Random(SEED), []
    for _ in range(DRAWS):
        heard = draw.choices(speakers, k=len(speakers))
        rates = [rate(draw.choices(seeds, k=len(seeds)), words, heard) for seeds in (of_a, of_b)]
        differences.append(rates[1] - rates[0])
    differences.sort()
    return differences[DRAWS * 25 // 1000], differences[DRAWS * 975 // 1000 - 1]


def compare(path, a, b):
    (of_a, words), (of_b, words_b) = errors(path, a), errors(path, b)
    if words != words_b:
        raise SystemExit(f"{path}: {a} and {b} have not the same speakers and words")
    for name, seeds in ((a, of_a), (b, of_b)):
        each = ", ".join(f"{rate([edits], words, words):.2f}" for edits in seeds)
        print(f"{name}: {rate(seeds, words, words):.2f} % of the words wrong, {len(words)} speakers, "
              f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''} ({each})")
    print(f"difference {rate(of_b, words, words) - rate(of_a, words, words):+.2f} points")
    low, high = drawn(of_a, of_b, words)
    if min(len(of_a), len(of_b)) < 2:
        print(f"{low:+.2f} to {high:+.2f}: 95 % of the draws of speakers, by these models; a way with one seed tells nothing of others")
        return
    by_seeds = welch(*([rate([edits], words, words) for edits in seeds] for seeds in (of_a, of_b)))
    print(f"{by_seeds[0]:+.2f} to {by_seeds[1]:+.2f}: 95 % by the seeds (Welch, {by_seeds[2]:.2f} degrees of freedom)")
    print(f"{low:+.2f} to {high:+.2f}: 95 % of the draws of seeds and speakers")


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
