#include "apps/report/page/html_page.h"

#include <fmt/format.h>

namespace wisp {
namespace {

constexpr const char* kStyle = R"css(
:root {
  color-scheme: light dark;
  --page: #ffffff; --ink: #1c2024; --soft: #5d6670; --line: #dfe3e8; --panel: #f5f7f9;
  --s0: #0072b2; --s1: #d55e00; --s2: #009e73; --s3: #cc79a7; --s4: #e69f00; --s5: #56b4e9;
  --s6: #8c5a2b; --s7: #6b6f76;
  --forward: #8fb8d4; --backward: #3b78a3; --update: #7fb89a; --encode: #e0a030; --wire: #c8553d;
  --decode: #8f6bb3; --wait: #cfd4da; --loader: #9a8f78;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171a; --ink: #e6e9ec; --soft: #9aa4ae; --line: #30363c; --panel: #1d2125;
    --s0: #4ba3dd; --s1: #f0803c; --s2: #2cc295; --s3: #dd95bd; --s4: #efb73e; --s5: #8accf2;
    --s6: #c08a55; --s7: #a5abb3;
    --forward: #5f8fb0; --backward: #3a7cab; --update: #4f9470; --encode: #d59a35; --wire: #d2654d;
    --decode: #9b7cc0; --wait: #454c53; --loader: #8d836d;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 1180px; padding: 32px 24px 64px; background: var(--page);
  color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial,
  sans-serif; font-variant-numeric: tabular-nums;
}
h1 { font-size: 27px; line-height: 1.2; margin: 0 0 4px; letter-spacing: -0.01em; }
h2 { font-size: 19px; margin: 44px 0 6px; }
h3 { font-size: 15px; margin: 22px 0 6px; }
p { margin: 0 0 12px; max-width: 76ch; }
.soft, figcaption span { color: var(--soft); }
code, pre { font: 13px/1.5 ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace; }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { padding: 6px 12px 6px 0; text-align: right; white-space: nowrap; vertical-align: top; }
th { color: var(--soft); font-weight: 500; border-bottom: 1px solid var(--line); }
td { border-bottom: 1px solid var(--line); }
th:first-child, td:first-child, .text { text-align: left; }
td.text { white-space: normal; min-width: 180px; }
td:last-child, th:last-child { padding-right: 0; }
tr.group th { border-bottom: 0; padding-bottom: 0; }
.chip {
  display: inline-block; width: 18px; height: 0; margin-right: 8px; vertical-align: 4px;
  border-top: 3px solid var(--colour);
}
.chip.dashed { border-top-style: dashed; }
.run { display: inline-block; max-width: 26em; overflow-wrap: break-word; white-space: normal; }
td .run { min-width: 7em; }
.s0 { --colour: var(--s0); } .s1 { --colour: var(--s1); } .s2 { --colour: var(--s2); }
.s3 { --colour: var(--s3); } .s4 { --colour: var(--s4); } .s5 { --colour: var(--s5); }
.s6 { --colour: var(--s6); } .s7 { --colour: var(--s7); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 22px; margin: 10px 0 12px; padding: 0; list-style: none; }
.curves > input { position: absolute; opacity: 0; pointer-events: none; }
.curves > label {
  display: inline-block; padding: 4px 14px; margin-right: 6px; border: 1px solid var(--line);
  border-radius: 999px; cursor: pointer; font-size: 14px;
}
.curves > input:checked + label { background: var(--ink); border-color: var(--ink); color: var(--page); }
.curves > input:focus-visible + label { outline: 2px solid var(--s0); outline-offset: 2px; }
.over { display: none; grid-template-columns: repeat(auto-fit, minmax(min(100%, 320px), 1fr)); gap: 20px 28px; margin-top: 16px; }
#x-steps:checked ~ .over.steps, #x-seconds:checked ~ .over.seconds, #x-bytes:checked ~ .over.bytes { display: grid; }
figure { margin: 0; }
figcaption { font-weight: 600; margin-bottom: 2px; }
figcaption span { font-weight: 400; margin-left: 4px; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { fill: var(--soft); font-size: 12px; }
.lanes text { font-size: 11px; }
.lanes { min-width: 760px; }
svg .end { text-anchor: end; } svg .mid { text-anchor: middle; }
svg .label { fill: var(--ink); }
.grid { stroke: var(--line); } .tick { stroke: var(--line); } .axis-line { stroke: var(--soft); }
.curve path { fill: none; stroke: var(--colour); stroke-width: 1.6; stroke-linejoin: round; }
.curve circle { fill: var(--colour); }
.curve:hover path { stroke-width: 3; }
.dashed path { stroke-dasharray: 5 3; }
.lane { fill: var(--panel); }
.k-forward { fill: var(--forward); background: var(--forward); }
.k-backward { fill: var(--backward); background: var(--backward); }
.k-update { fill: var(--update); background: var(--update); }
.k-compute { fill: var(--backward); background: var(--backward); }
.k-encode { fill: var(--encode); background: var(--encode); }
.k-wire { fill: var(--wire); background: var(--wire); }
.k-decode { fill: var(--decode); background: var(--decode); }
.k-wait { fill: var(--wait); background: var(--wait); }
.k-loader { fill: var(--loader); background: var(--loader); }
.swatch { display: inline-block; width: 11px; height: 11px; margin-right: 6px; border-radius: 2px; }
.bars { display: grid; grid-template-columns: minmax(90px, 190px) 64px 1fr 76px; gap: 3px 12px; align-items: center; font-size: 14px; }
.bars .run { grid-row: span 2; }
.bars .first { margin-top: 10px; }
.bars .ms { text-align: right; }
.bars svg { height: 15px; }
.line { margin: 2px 0 8px; }
@media (max-width: 640px) {
  body { padding: 20px 14px 40px; }
  .bars { grid-template-columns: 56px 1fr 66px; }
  .bars .run { grid-column: 1 / -1; grid-row: auto; margin-top: 10px; }
  .bars .first { margin-top: 0; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 12px; }
  h2 { break-after: avoid; } figure, .bars, tr { break-inside: avoid; }
  .curves > label { display: none; } .curves > input:checked + label { display: inline-block; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
)css";

}  // namespace

std::string html_page(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
      title, kStyle, body);
}

std::string html_row(const std::vector<std::string>& cells, const char* tag) {
  std::string html = "<tr>";
  for (const std::string& cell : cells) html += fmt::format("<{0}>{1}</{0}>", tag, cell);
  return html + "</tr>\n";
}

std::string html_table(const std::string& rows) {
  return "<div class=\"wide\"><table>\n" + rows + "</table></div>\n";
}

}  // namespace wisp
