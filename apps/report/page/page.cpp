#include "apps/report/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "apps/report/figure_text.h"
#include "apps/report/page/html_page.h"
#include "apps/report/page/html_text.h"
#include "apps/report/page/lane_chart.h"
#include "apps/report/page/line_chart.h"
#include "apps/report/report.h"

namespace wisp {
namespace {

using Runs = std::vector<RunRecord>;
using Cells = std::vector<std::string>;  // HTML

std::string run_cell(const Runs& runs, size_t index) {
  return fmt::format(R"(<span class="run s{}"><span class="chip{}"></span>{}</span>)",
                     index % kRunColours, index >= kRunColours ? " dashed" : "",
                     html_text(runs[index].name));
}

/// Runs with the same metric, which may share a chart.
struct Compared {
  Metric metric;
  std::vector<size_t> runs;  // indices of runs
};

/// Groups in order of first appearance.
std::vector<Compared> compared(const Runs& runs) {
  std::vector<Compared> groups;
  for (size_t r = 0; r < runs.size(); ++r) {
    const Metric& metric = runs[r].facts.metric();
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Compared& other) {
      return other.metric.name == metric.name && other.metric.percent == metric.percent;
    });
    if (group == groups.end()) group = groups.insert(group, {metric, {}});
    group->runs.push_back(r);
  }
  return groups;
}

// ------------------------------------------------------------------------------------ figures

std::string figures(const Runs& runs) {
  const bool validates = any_validates(runs);
  const Heading metric = metric_heading(runs), speed = speed_heading(runs);
  const std::string metric_text = html_text(metric.text);
  Cells head{"run",         "test " + metric_text, "steps", "training time", html_text(speed.text),
             "sent in all", "less than dense"};
  if (validates) head.insert(head.begin() + 2, "validation " + metric_text);
  std::string rows = html_row(head, "th");
  for (size_t r = 0; r < runs.size(); ++r) {
    const RunRecord& run = runs[r];
    const auto& summary = run.summary;
    const StepRow last = run.metrics.steps.empty() ? StepRow{} : run.metrics.steps.back();
    const double sent = std::isfinite(last.bytes_sent_total) ? last.bytes_sent_total : 0.0;
    const auto score = [&](const char* split) { return html_text(score_text(run, split, metric)); };
    Cells cells{
        run_cell(runs, r),
        summary || !run.diverged.empty() ? score("test") : "not finished",
        fmt::format("{}", last.step),
        seconds_text(last.seconds),
        summary ? html_text(speed.figure(fmt::format("{:.0f}", summary->work_per_s), run)) : "-",
        bytes_text(sent),
        summary ? reduction_text(summary->reduction_sent, summary->bytes_sent) : "-"};
    if (validates) cells.insert(cells.begin() + 2, score("validation"));
    rows += html_row(cells);
  }
  return html_table(rows);
}

// ------------------------------------------------------------------------------------- curves

/// An x axis of the charts.
struct Over {
  const char* name;
  const char* label;
  bool log;
  double (*of_step)(const StepRow&);
  double (*of_epoch)(const EpochRow&);
};

constexpr Over kOvers[] = {
    {"steps", "steps", false, [](const StepRow& r) { return static_cast<double>(r.step); },
     [](const EpochRow& r) { return static_cast<double>(r.step); }},
    {"seconds", "seconds of training", false, [](const StepRow& r) { return r.seconds; },
     [](const EpochRow& r) { return r.seconds; }},
    {"bytes", "bytes sent by a worker (logarithmic)", true,
     [](const StepRow& r) { return r.bytes_sent_total; },
     [](const EpochRow& r) { return r.bytes_sent_total; }}};

/// Curves of the runs with these indices.
template <class Row, class X, class Y>
std::vector<Curve> curves_of(const Runs& runs, const std::vector<size_t>& numbers,
                             std::vector<Row> Metrics::*rows, const X& x, const Y& y) {
  std::vector<Curve> curves;
  for (const size_t r : numbers) {
    Curve curve{runs[r].name, static_cast<int>(r), {}};
    for (const Row& row : runs[r].metrics.*rows) curve.points.emplace_back(x(row), y(row));
    curves.push_back(std::move(curve));
  }
  return curves;
}

/// Charts of the metric in training, on the test set and on the validation split.
std::string metric_charts(const Runs& runs, const Compared& group, const Over& over) {
  const Metric& metric = group.metric;
  const double scale = metric.scale();
  const auto chart_of = [&](const char* split, const char* of_what, bool dots) {
    return LineChart{fmt::format("{} {}", split, metric.name),
                     over.label,
                     fmt::format("{}of the {}", metric.percent ? "% " : "", of_what),
                     over.log,
                     dots,
                     {}};
  };
  const auto evaluated = [&](const char* split, const char* of_what, double EpochRow::*value) {
    LineChart chart = chart_of(split, of_what, true);
    chart.curves = curves_of(runs, group.runs, &Metrics::epochs, over.of_epoch,
                             [=](const EpochRow& r) { return scale * r.*value; });
    return to_svg(chart);
  };
  LineChart train = chart_of("Training", "samples", false);
  train.curves = curves_of(runs, group.runs, &Metrics::steps, over.of_step,
                           [=](const StepRow& r) { return scale * r.metric; });
  const bool validates = std::any_of(group.runs.begin(), group.runs.end(),
                                     [&](size_t r) { return runs[r].facts.has_validation; });
  std::string charts = evaluated("Test", "test set", &EpochRow::test_metric);
  if (validates)
    charts += evaluated("Validation", "validation split", &EpochRow::validation_metric);
  return charts + to_svg(train);
}

std::string charts_over(const Runs& runs, const Over& over) {
  std::vector<size_t> all(runs.size());
  std::iota(all.begin(), all.end(), size_t{0});
  LineChart loss{"Training loss", over.label, "nats", over.log, false, {}};
  loss.curves =
      curves_of(runs, all, &Metrics::steps, over.of_step, [](const auto& r) { return r.loss; });
  std::string charts = to_svg(loss);
  for (const Compared& group : compared(runs)) charts += metric_charts(runs, group, over);
  return fmt::format("<div class=\"over {}\">\n{}</div>\n", over.name, charts);
}

std::string curves(const Runs& runs) {
  std::string html = "<h2>Curves</h2>\n<section class=\"curves\">\n<ul class=\"legend\">";
  for (size_t r = 0; r < runs.size(); ++r) html += "<li>" + run_cell(runs, r) + "</li>";
  html += "</ul>\n";
  for (const Over& over : kOvers) {
    html += fmt::format(
        R"(<input type="radio" name="x" id="x-{0}"{1}><label for="x-{0}">over {0}</label>)",
        over.name, &over == kOvers ? " checked" : "");
  }
  for (const Over& over : kOvers) html += charts_over(runs, over);
  if (runs.size() > 1)
    html += "<p class=\"soft\">Where curves are equal, their colours take turns.</p>\n";
  const bool thin = std::any_of(runs.begin(), runs.end(), [](const RunRecord& run) {
    return run.metrics.steps.size() > kMostPoints;
  });
  if (thin)
    html += fmt::format(
        "<p class=\"soft\">Of more than {0} rows a curve shows the lowest and the highest in each "
        "of {1} spans.</p>\n",
        kMostPoints, kMostPoints / 2);
  return html + "</section>\n";
}

// -------------------------------------------------------------------------------------- bytes

std::string bytes(const Runs& runs) {
  std::string html =
      "<h2>Bytes</h2>\n<p class=\"soft\">Of each worker: the mean over workers and steps, and that "
      "times the steps of the run. <b>Raw</b> are the gradients as they are, <b>encoded</b> what a "
      "worker offers to the wire, <b>sent</b> and <b>received</b> what the collectives move, and "
      "<b>dense</b> what an all-reduce of the raw gradients would send.</p>\n";
  std::string rows = html_row(
      {"run", "", "raw", "encoded", "sent", "received", "dense", "encoded / raw", "sent / dense"},
      "th");
  for (size_t r = 0; r < runs.size(); ++r) {
    const auto& s = runs[r].summary;
    if (!s) continue;
    const double dense = s->reduction_sent * s->bytes_sent;
    const auto cells = [&](const std::string& name, const char* what, double times) {
      Cells found{name, what};
      for (const double part :
           {s->bytes_raw, s->bytes_encoded, s->bytes_sent, s->bytes_received, dense})
        found.push_back(bytes_text(part * times));
      return found;
    };
    Cells step = cells(run_cell(runs, r), "a step", 1.0);
    const auto share = [](double bytes, double reduction) {
      return bytes > 0.0 ? fmt::format("1 / {:.1f}", reduction) : "-";
    };
    step.push_back(share(s->bytes_encoded, s->reduction_encoded));
    step.push_back(share(s->bytes_sent, s->reduction_sent));
    Cells total = cells("", "in all", static_cast<double>(s->steps));
    total.insert(total.end(), {"", ""});
    rows += html_row(step) + html_row(total);
  }
  return html + html_table(rows);
}

// --------------------------------------------------------------------------------------- time

using Parts = std::vector<std::pair<const char*, double>>;

std::string bar(const Parts& parts, double longest) {
  std::string svg = R"(<svg viewBox="0 0 1000 15" preserveAspectRatio="none">)";
  double left = 0.0;
  for (const auto& [name, ms] : parts) {
    const double width = 1000.0 * ms / longest;
    svg += fmt::format(
        R"(<rect class="k-{0}" x="{1:.2f}" width="{2:.2f}" height="15"><title>{0}: {3:.2f} ms</title></rect>)",
        name, left, width, ms);
    left += width;
  }
  return svg + "</svg>";
}

std::string swatches(std::initializer_list<std::pair<const char*, const char*>> kinds) {
  std::string html = "<ul class=\"legend\">";
  for (const auto& [kind, meaning] : kinds)
    html += fmt::format(R"(<li><span class="swatch k-{}"></span>{}</li>)", kind, meaning);
  return html + "</ul>\n";
}

std::string step_times(const Runs& runs) {
  std::string html =
      "<h2>Time of a step</h2>\n<p class=\"soft\">Milliseconds, mean over workers and steps. The "
      "compute thread's parts follow each other and are the step. The comm thread works beside it; "
      "what of that compute does not hide is in the wait.</p>\n" +
      swatches({{"loader", "loader"},
                {"compute", "compute"},
                {"wait", "wait for the exchange"},
                {"encode", "encode"},
                {"wire", "wire"},
                {"decode", "decode"}}) +
      "<div class=\"bars\">\n";
  const auto comm_ms = [](const StepTimes& t) { return t.encode_ms + t.wire_ms + t.decode_ms; };
  double longest = 1e-9;
  for (const RunRecord& run : runs) {
    if (!run.summary) continue;
    const StepTimes& t = run.summary->times;
    longest = std::max({longest, t.step_ms(), comm_ms(t)});
  }
  std::string lines;
  for (size_t r = 0; r < runs.size(); ++r) {
    if (!runs[r].summary) continue;
    const StepTimes& t = runs[r].summary->times;
    const Parts compute{{"loader", t.loader_ms}, {"compute", t.compute_ms}, {"wait", t.wait_ms}};
    const Parts comm{{"encode", t.encode_ms}, {"wire", t.wire_ms}, {"decode", t.decode_ms}};
    html += fmt::format(
        "<div class=\"run\">{}</div><div class=\"soft first\">compute</div><div class=\"first\">{}"
        "</div><div class=\"ms first\">{:.1f} ms</div><div class=\"soft\">comm</div><div>{}</div>"
        "<div class=\"ms soft\">{:.1f} ms</div>\n",
        run_cell(runs, r), bar(compute, longest), t.step_ms(), bar(comm, longest), comm_ms(t));
    lines += fmt::format("<tr><td>{}</td><td class=\"text\">{}</td></tr>\n", run_cell(runs, r),
                         html_text(bottleneck_line(t)));
  }
  return html + "</div>\n<h3>What would help</h3>\n" + html_table(lines);
}

std::string lanes(const Runs& runs) {
  std::string html;
  for (size_t r = 0; r < runs.size(); ++r) {
    const std::string chart = lane_chart(runs[r].spans);
    if (!chart.empty()) html += "<h3>" + run_cell(runs, r) + "</h3>\n" + chart;
  }
  if (html.empty()) return "";
  return "<h2>Time lanes</h2>\n<p class=\"soft\">Two of the steps in each run's trace.json, up to "
         "eight workers. Each run has a scale of its own.</p>\n" +
         swatches({{"forward", "forward"},
                   {"backward", "backward"},
                   {"update", "update"},
                   {"wait", "wait"},
                   {"loader", "loader"},
                   {"encode", "encode"},
                   {"wire", "wire"},
                   {"decode", "decode"}}) +
         html;
}

// ------------------------------------------------------------------------------ configurations

std::string differences(const Runs& runs) {
  if (runs.size() < 2) return "";
  std::string html = "<h2>What differs</h2>\n";
  const auto rows = config_differences(runs);
  if (rows.empty()) return html + "<p>The configurations are equal.</p>\n";
  Cells head{"key"};
  for (size_t r = 0; r < runs.size(); ++r) head.push_back(run_cell(runs, r));
  std::string text = html_row(head, "th");
  for (const ConfigDifference& difference : rows) {
    Cells cells{"<code>" + html_text(difference.key) + "</code>"};
    for (const auto& value : difference.values)
      cells.push_back(value ? "<code>" + html_text(*value) + "</code>"
                            : "<span class=\"soft\">-</span>");
    text += html_row(cells);
  }
  return html +
         "<p class=\"soft\">Keys of the resolved configurations; all others are equal. A dash: "
         "no key of that run.</p>\n" +
         html_table(text);
}

std::string provenance(const Runs& runs) {
  std::string html =
      "<h2>Make them again</h2>\n<p class=\"soft\">A run's directory holds its resolved "
      "configuration; with it the same program, built alike, makes the same bits on the same "
      "kind of CPU with the same libraries.</p>\n";
  std::string rows = html_row({"run", "wisp", "computed with", "last written"}, "th");
  std::string commands;
  for (size_t r = 0; r < runs.size(); ++r) {
    rows += html_row({run_cell(runs, r), html_text(runs[r].version), html_text(runs[r].numerics()),
                      html_text(runs[r].date)});
    commands +=
        html_text(fmt::format("wisp train {} --out {}", shell_word(runs[r].path + "/config.toml"),
                              shell_word(runs[r].path + "-again"))) +
        "\n";
  }
  return html + html_table(rows) + "<pre class=\"line\">" + commands + "</pre>\n";
}

}  // namespace

std::string report_page(const std::vector<RunRecord>& runs) {
  const std::string title =
      runs.size() == 1 ? html_text(runs[0].name) : fmt::format("{} runs", runs.size());
  return html_page("Wisp: " + title,
                   "<h1>" + title +
                       "</h1>\n<p class=\"soft\">Training with Wisp, compared by accuracy, time "
                       "and bytes.</p>\n" +
                       figures(runs) + curves(runs) + bytes(runs) + step_times(runs) + lanes(runs) +
                       differences(runs) + provenance(runs));
}

}  // namespace wisp
