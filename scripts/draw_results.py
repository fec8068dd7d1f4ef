#!/usr/bin/env python3
"""Draws test accuracy over bytes sent, with a point for each method, from the runs of 10 epochs in docs/results.csv.

    draw_results.py [--csv docs/results.csv] [--svg docs/accuracy_over_bytes.svg] [--check]

Rows compare if they have the same program (commit), config and numerics (CPU, instruction set, libraries), and a dense row is
among them. The script draws the comparable set with the most methods and prints the names of the rows that it leaves out. The rows
r10-METHOD-sSEED of one METHOD become a point with their mean and sample standard deviation. A METHOD without such rows is drawn
from its single run m10-METHOD. A line shows the bytes of the method none. A row of these names whose metric is not the accuracy is
an error. --check writes nothing, and fails if the picture differs from the one that the rows give. Standard library only.
"""
import argparse
import collections
import csv
import html
import math
import os
import re
import statistics

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Colours of the sections of docs/compression.md that describe methods.
COLOURS = {"Sparse": "#c8553d", "Low rank": "#2f7d4f", "Signs": "#8f6bb3", "Quantized": "#3b6a8a", "Frequency": "#b07a1e",
           "Variance": "#8a5a44", "Workers with weights of their own": "#d0649a"}
OTHER, INK, FAINT = "#555555", "#222222", "#e6e6e6"
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 960, 638, 62, 16, 52, 110
LOWEST = 74  # percent; points below it are drawn on the lower edge, with their accuracy
FONT, LETTER = 12, 6.7  # height of a label, and an upper bound of the mean letter width in common fonts

Point = collections.namedtuple("Point", "name bytes accuracy deviation seeds")


def read_rows(path):
    """The runs of 10 epochs, as {(config, commit, numerics): {(m10 or r10, method): rows}}."""
    sets = collections.defaultdict(lambda: collections.defaultdict(list))
    with open(path, encoding="utf-8", newline="") as file:
        table = csv.DictReader(file)
        if "numerics" not in table.fieldnames:
            raise SystemExit(f"{path}: it has the columns of an older program, which scripts/convert_results.sh converts")
        for row in table:
            if None in row or None in row.values():
                raise SystemExit(f"{path}: the row {row['name']} has not {len(table.fieldnames)} fields; "
                                 "scripts/convert_results.sh converts rows of older programs")
            name = re.fullmatch(r"(r10)-(.+)-s\d+|(m10)-(.+)", row["name"])
            if name and "train.epochs=10" in row["overrides"].split() and float(row["bytes_sent"]) > 0:
                if row["metric"] != "accuracy" or row["score"] == "null":
                    raise SystemExit(f"{path}: the row {row['name']} has a {row['metric']} of {row['score']}; the picture is of "
                                     "accuracies")
                origin = row["config"], row["commit"], row["numerics"]
                sets[origin][name[1] or name[3], name[2] or name[4]].append(row)
    return sets


def comparable(path):
    """The largest set of rows that compare, as (commit, numerics, {(m10 or r10, method): rows}), and the names of all others."""
    sets = read_rows(path)
    with_dense = [origin for origin, rows in sets.items() if {("m10", "none"), ("r10", "none")} & rows.keys()]
    if not with_dense:
        raise SystemExit(f"{path}: no run of 10 epochs, r10-METHOD-sSEED or m10-METHOD, has a dense one (METHOD none) of the same "
                         "config, commit and numerics beside it")
    largest = max(with_dense, key=lambda origin: len({method for _, method in sets[origin]}))
    others = [row["name"] for origin, rows in sets.items() if origin != largest for same in rows.values() for row in same]
    return largest[1], largest[2], sets[largest], others


def points_of(path, rows):
    """A Point for each method, sorted by falling bytes."""
    points = []
    for (kind, name), same in rows.items():
        if kind == "m10" and ("r10", name) in rows:
            continue
        options = {" ".join(word for word in row["overrides"].split() if not word.startswith("seed=")) for row in same}
        if len(options) > 1:
            raise SystemExit(f"{path}: the rows {kind}-{name} differ in more than the seed: {sorted(options)}")
        accuracies = [100 * float(row["score"]) for row in same]
        points.append(Point(name, statistics.fmean(float(row["bytes_sent"]) for row in same), statistics.fmean(accuracies),
                            statistics.stdev(accuracies) if len(same) > 1 else 0.0, len(same)))
    return sorted(points, key=lambda p: (-p.bytes, p.name))


def read_sections(path):
    """For each method, the section of docs/compression.md that describes it."""
    sections, section = {}, ""
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("## "):
                section = line[3:].strip()
            elif line.startswith("### `"):
                sections.update(dict.fromkeys(re.findall(r"`([^`]+)`", line.split(":")[0]), section))
    return sections


def size(count):
    return f"{count / 1e6:.3g} MB" if count >= 1e6 else f"{count / 1e3:.3g} kB"


class Axes:
    """Axes that map bytes and percent to the picture's units."""

    def __init__(self, points):
        sent = [p.bytes for p in points]
        self.low, self.high = math.log10(min(sent)) - 0.12, math.log10(max(sent)) + 0.12
        self.top = math.ceil(max(p.accuracy + p.deviation for p in points) + 0.5)
        self.bottom = max(LOWEST, math.floor(min(p.accuracy - p.deviation for p in points)) - 1)

    def x(self, count):
        return LEFT + (math.log10(count) - self.low) / (self.high - self.low) * (WIDTH - LEFT - RIGHT)

    def y(self, percent):
        share = (max(percent, self.bottom) - self.bottom) / (self.top - self.bottom)
        return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)

    def ticks(self):
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        return [d * 10**p for p in powers for d in (1, 2, 5) if self.low <= math.log10(d * 10**p) <= self.high]


def overlap(a, b):
    """The area that two boxes (left, top, right, bottom) share."""
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def places(x, y, width):
    """Boxes for a label around a point, each with its cost, which grows with the distance."""
    for ring, distance in enumerate((9, 20, 34, 50, 70)):
        for turn, (dx, dy) in enumerate([(1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (1, 1), (-1, -1), (-1, 1), (1, -2), (1, 2),
                                         (-1, -2), (-1, 2)]):
            reach = distance / math.hypot(dx, dy) if dx and dy else distance
            cx, cy = x + dx * reach + (dx > 0) * width / 2 - (dx < 0) * width / 2, y + dy * reach
            yield 40 * ring + turn, (cx - width / 2, cy - FONT / 2, cx + width / 2, cy + FONT / 2)


def place_labels(anchors, texts, obstacles):
    """A box for each text near its anchor, with few overlaps. Each box in turn moves to its best place, given the others,
    until none moves."""
    frame = (LEFT + 2, TOP + 2, WIDTH - RIGHT - 2, HEIGHT - BOTTOM - 2)
    choices = []
    for (x, y), text in zip(anchors, texts):
        own = []
        for cost, box in places(x, y, LETTER * len(text)):
            area = (box[2] - box[0]) * (box[3] - box[1])
            cost += 20 * (area - overlap(box, frame)) + sum(5 * overlap(box, o) for o in obstacles)
            own.append((cost, box))
        choices.append(own)
    boxes = [own[0][1] for own in choices]
    for _ in range(50):
        before = list(boxes)
        for i, own in enumerate(choices):
            others = boxes[:i] + boxes[i + 1:]
            boxes[i] = min(own, key=lambda c: c[0] + sum(10 * overlap(c[1], o) for o in others))[1]
        if boxes == before:
            break
    return boxes


def draw(points, sections, origin):
    axes = Axes(points)
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
           f'font-size="{FONT}" fill="{INK}">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="22" font-size="15">Test accuracy over bytes sent: ResNet-20 on CIFAR-10, 4 workers, 10 epochs</text>']

    def text(x, y, words, more=""):
        svg.append(f'<text x="{x:.1f}" y="{y:.1f}"{more}>{words}</text>')

    def line(x1, y1, x2, y2, more):
        svg.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {more}/>')

    for tick in axes.ticks():
        line(axes.x(tick), TOP, axes.x(tick), bottom, f'stroke="{FAINT}"')
        text(axes.x(tick), bottom + 17, size(tick), ' text-anchor="middle"')
    for percent in range(axes.bottom, axes.top + 1, 2):
        line(LEFT, axes.y(percent), right, axes.y(percent), f'stroke="{FAINT}"')
        text(LEFT - 8, axes.y(percent) + 4, f"{percent} %", ' text-anchor="end"')
    text((LEFT + right) / 2, bottom + 36, "bytes sent a step and worker (log scale)", ' text-anchor="middle"')
    text(LEFT, TOP - 10, "test accuracy")

    obstacles = []
    dense = [p for p in points if p.name == "none"]
    for p in dense:
        y = axes.y(p.accuracy)
        if p.deviation:
            low, high = axes.y(p.accuracy - p.deviation), axes.y(p.accuracy + p.deviation)
            svg.append(f'<rect x="{LEFT}" y="{high:.1f}" width="{right - LEFT}" height="{low - high:.1f}" fill="{INK}" '
                       'fill-opacity="0.1"/>')
        line(LEFT, y, right, y, f'stroke="{INK}" stroke-dasharray="4 3"')
        words = f"dense: {p.accuracy:.2f} %, {size(p.bytes)}"
        text(LEFT + 8, y - 6, words)
        obstacles += [(LEFT, y - 18, LEFT + 8 + LETTER * len(words), y - 4), (LEFT, y - 1, right, y + 1)]

    anchors = [(axes.x(p.bytes), axes.y(p.accuracy)) for p in points]
    labels = []
    for p, (x, y) in zip(points, anchors):
        below = p.accuracy < axes.bottom
        labels.append("" if p.name == "none" else f"{p.name}: {p.accuracy:.1f} %" if below else p.name)
        colour = COLOURS.get(sections.get(p.name.split("-")[0]), INK if p.name == "none" else OTHER)
        spread = f" ± {p.deviation:.2f}" if p.seeds > 1 else ""
        title = f"<title>{p.name}: {p.accuracy:.2f}{spread} %, {size(p.bytes)}</title>"
        look = f'fill="{colour if p.seeds > 1 else "white"}" stroke="{colour}" stroke-width="2"'
        if below:
            svg.append(f'<path d="M{x - 5:.1f} {y - 9:.1f}h10l-5 8z" {look}>{title}</path>')
        else:
            low, high = axes.y(p.accuracy - p.deviation), axes.y(p.accuracy + p.deviation)
            if p.deviation:
                line(x, low, x, high, f'stroke="{colour}" stroke-width="1.5"')
            svg.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" {look}>{title}</circle>')
            obstacles.append((x - 2, high, x + 2, low))
        obstacles.append((x - 6, y - 10 if below else y - 6, x + 6, y + 6))

    named = [i for i, label in enumerate(labels) if label]
    boxes = place_labels([anchors[i] for i in named], [labels[i] for i in named], obstacles)
    for i, box in zip(named, boxes):
        x, y = anchors[i]
        nearest = min(max(x, box[0]), box[2]), min(max(y, box[1]), box[3])
        if math.hypot(nearest[0] - x, nearest[1] - y) > 14 and y < bottom:
            line(x, y, *nearest, f'stroke="{OTHER}" stroke-width="0.7"')
        side = (box[0] > x) - (box[2] < x)  # a text narrower than its box is aligned to the point
        anchor = {1: "start", 0: "middle", -1: "end"}[side]
        text({1: box[0], 0: (box[0] + box[2]) / 2, -1: box[2]}[side], box[3] - 2, labels[i], f' text-anchor="{anchor}"')

    x = LEFT
    used = {sections.get(p.name.split("-")[0]) for p in points}
    for section, colour in COLOURS.items():
        if section in used:
            svg.append(f'<circle cx="{x + 5:.1f}" cy="{bottom + 57}" r="4" fill="{colour}"/>')
            text(x + 14, bottom + 61, section.lower())
            x += 32 + LETTER * len(section)
    several = sorted({p.seeds for p in points} - {1})
    notes = []
    if several:
        notes.append(f"filled: mean of {' or '.join(map(str, several))} seeds ± standard deviation")
    if len(several) < len({p.seeds for p in points}):
        notes.append("hollow: a single run")
    if any(p.accuracy < axes.bottom for p in points):
        notes.append("triangles: below the axis")
    text(LEFT, bottom + 82, "; ".join(notes))
    text(LEFT, bottom + 100, origin, ' font-size="10"')
    svg.append("</svg>")
    return "\n".join(svg) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--csv", default=os.path.join(ROOT, "docs/results.csv"))
    p.add_argument("--svg", default=os.path.join(ROOT, "docs/accuracy_over_bytes.svg"))
    p.add_argument("--check", action="store_true")
    a = p.parse_args()
    commit, numerics, rows, others = comparable(a.csv)
    sections = read_sections(os.path.join(ROOT, "docs/compression.md"))
    picture = draw(points_of(a.csv, rows), sections, f"program {commit}, computed with: {html.escape(numerics)}")
    if not a.check:
        if others:
            print("draw_results: left out, as they do not compare:", " ".join(others))
        with open(a.svg, "w", encoding="utf-8") as file:
            file.write(picture)
        return
    with open(a.svg, encoding="utf-8") as file:
        if file.read() != picture:
            raise SystemExit(f"{a.svg} is not what {a.csv} gives: scripts/draw_results.py draws it")


if __name__ == "__main__":
    main()
