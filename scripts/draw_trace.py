#!/usr/bin/env python3
"""Draws one step of a run's trace.json as SVG and counts the encodings and collectives that ended before backward.

    draw_trace.py RUN/trace.json OUT.svg [--worker 0] [--step N]

Lanes: compute (forward, backward, update), encode, wire, decode, wait. Standard library only.
"""
import argparse
import json

LANES = ["compute", "encode", "wire", "decode", "wait"]
COLOURS = {"forward": "#7aa6c2", "backward": "#3b6a8a", "update": "#a3c4a8", "encode": "#e0a458", "wire": "#c8553d",
           "decode": "#8f6bb3", "wait": "#c9c9c9"}
WIDTH, LEFT, TOP, ROW, BAR = 960, 78, 34, 34, 22


def spans_of(events, worker, step):
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    found = []
    for e in events:
        if e.get("ph") != "X" or e["pid"] != worker + 1 or e["args"].get("step") != step:
            continue
        found.append((names[(e["pid"], e["tid"])], e["name"], e["ts"], e["ts"] + e["dur"]))
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("trace")
    p.add_argument("out")
    p.add_argument("--worker", type=int, default=0)
    p.add_argument("--step", type=int)
    a = p.parse_args()
    with open(a.trace, encoding="utf-8") as file:
        trace = json.load(file)
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    steps = sorted({e["args"]["step"] for e in events if e.get("ph") == "X" and "step" in e.get("args", {})})
    step = a.step if a.step is not None else steps[len(steps) // 2]
    spans = spans_of(events, a.worker, step)
    if not spans:
        raise SystemExit(f"{a.trace} has no spans of worker {a.worker} in step {step}; it holds steps {steps}")

    backward_end = max(end for lane, name, _, end in spans if name == "backward")
    counts = {}
    for lane in ("encode", "wire"):
        ends = [end for span_lane, _, _, end in spans if span_lane == lane]
        counts[lane] = (sum(end <= backward_end for end in ends), len(ends))
    begin = min(s[2] for s in spans)
    end = max(s[3] for s in spans)
    x = lambda t: LEFT + (t - begin) / (end - begin) * (WIDTH - LEFT - 16)

    height = TOP + ROW * len(LANES) + 40
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
           f'<text x="{LEFT}" y="20">worker {a.worker}, step {step}: {(end - begin) / 1000:.1f} ms</text>']
    for row, lane in enumerate(LANES):
        y = TOP + row * ROW
        svg.append(f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{lane}</text>')
        svg.append(f'<rect x="{LEFT}" y="{y}" width="{WIDTH - LEFT - 16}" height="{BAR}" fill="#f4f4f4"/>')
        for _, name, b, e in (s for s in spans if s[0] == lane):
            colour = COLOURS.get(name, COLOURS.get(lane))
            w = max(x(e) - x(b), 1.5)
            svg.append(f'<rect x="{x(b):.1f}" y="{y}" width="{w:.1f}" height="{BAR}" fill="{colour}"><title>{name}: '
                       f'{(e - b) / 1000:.2f} ms</title></rect>')
            if lane == "compute" and w > 60:
                svg.append(f'<text x="{x(b) + 6:.1f}" y="{y + 15}" fill="white">{name}</text>')
    bottom = TOP + ROW * len(LANES)
    svg.append(f'<line x1="{x(backward_end):.1f}" x2="{x(backward_end):.1f}" y1="{TOP - 6}" y2="{bottom}" stroke="#222" '
               'stroke-dasharray="4 3"/>')
    svg.append(f'<text x="{x(backward_end) - 6:.1f}" y="{bottom + 14}" text-anchor="end">backward ends</text>')
    svg.append("</svg>")
    with open(a.out, "w", encoding="utf-8") as file:
        file.write("\n".join(svg) + "\n")
    print(f"worker {a.worker}, step {step}: before backward ended, {counts['encode'][0]} of {counts['encode'][1]} encodings and "
          f"{counts['wire'][0]} of {counts['wire'][1]} collectives had ended")


if __name__ == "__main__":
    main()
