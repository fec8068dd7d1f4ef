#include "apps/report/page/page.h"

#include <gtest/gtest.h>

#include <cmath>

#include "apps/report/page/html_text.h"
#include "apps/report/page/lane_chart.h"
#include "tests/support/command.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

RunRecord run_of(const std::string& name, int64_t rows) {
  RunRecord run;
  run.path = "runs/" + name;
  run.name = name;
  run.version = "0.1.0 (abc)";
  run.config = {{"seed", "1"}, {"compression.method", '"' + name + '"'}};
  for (int64_t step = 1; step <= rows; ++step) {
    StepRow row;
    row.step = step;
    row.seconds = 0.1 * static_cast<double>(step);
    row.bytes_sent_total = 1234.0 * static_cast<double>(step);
    row.loss = 2.0 + std::sin(static_cast<double>(step));
    row.metric = 0.5;
    run.metrics.steps.push_back(row);
  }
  run.summary = Summary{.scores = {{"test_accuracy", 0.0}}};
  run.summary->numerics = "library, CPU";
  run.summary->times = {.loader_ms = 1.0, .compute_ms = 20.0, .wait_ms = 30.0, .wire_ms = 40.0};
  for (int worker = 0; worker < 4; ++worker) {
    for (int span = 0; span < 100; ++span) {
      const double begin = 100.0 * span;
      run.spans.push_back({worker, "wire", "bucket 1", begin, begin + 90.0, 20 + span / 20, 999});
    }
  }
  return run;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(HtmlText, EscapesMarkupAndWhatIsNotUtf8) {
  EXPECT_EQ(html_text("<a href='x'>&\"</a>"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;");
  EXPECT_EQ(html_text("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(html_text("a\xff\xc3"), "a??");
  EXPECT_EQ(html_text("\xe0\x80\x80"), "???") << "an overlong form";
  EXPECT_FALSE(html_keeps("\xe0\x80\x80"));
  EXPECT_EQ(html_text(std::string("a\0b\n", 4)), "a?b?");
  EXPECT_EQ(html_text("a\u009bb\x7f\u202e\u2066"), "a?b???") << "controls, and turned directions";
  EXPECT_FALSE(html_keeps("\u202e"));
}

TEST(ReportPage, ShowsEveryRunInEverySection) {
  const std::string page = report_page({run_of("dense", 3), run_of("dgc", 3)});
  for (const char* part :
       {"Curves", "Bytes", "Time of a step", "Time lanes", "What differs", "Make them again",
        "bottleneck: wire", "0.1.0 (abc)", "<td>library, CPU</td>",
        "wisp train runs/dgc/config.toml --out runs/dgc-again"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_EQ(count(page, "<svg class=\"lanes\""), 2u);
  EXPECT_EQ(page.find("<code>seed</code>"), std::string::npos) << "does not differ";
  EXPECT_NE(page.find("<code>compression.method</code>"), std::string::npos);
  EXPECT_EQ(count(page, "<figure"), 9u) << "three charts over three axes";
}

TEST(ReportPage, ShowsValidationIfSomeRunHasIt) {
  RunRecord run = run_of("held", 3);
  run.facts.has_validation = true;
  run.metrics.epochs = {{.step = 3, .validation_metric = 0.5, .test_metric = 0.25}};
  run.summary->scores.emplace_back("validation_accuracy", 0.1234);
  const std::string page = report_page({run_of("dense", 3), run});
  EXPECT_NE(page.find("<th>test accuracy</th><th>validation accuracy</th>"), std::string::npos);
  EXPECT_NE(page.find("<td>12.34 %</td>"), std::string::npos);
  EXPECT_NE(page.find("<td>0.00 %</td><td>-</td>"), std::string::npos) << "the run without";
  EXPECT_EQ(count(page, "% of the validation split"), 3u);
  EXPECT_EQ(count(page, "<figure"), 12u) << "four charts over three axes";
  EXPECT_EQ(report_page({run_of("dense", 3)}).find("alidation"), std::string::npos);
}

/// A run with a word error rate and one with a perplexity share no axis.
TEST(ReportPage, RunsOfSeveralMetricsShareNoAxis) {
  RunRecord reads = run_of("reads", 3), hears = run_of("hears", 3), sees = run_of("sees", 3);
  reads.facts.metrics = {{.name = "perplexity", .lower_is_better = true}};
  reads.facts.facts.work = "words";
  reads.summary->scores = {{"test_perplexity", 91.25}};
  hears.facts.metrics = {{.name = "wer", .percent = true, .lower_is_better = true}};
  hears.summary->scores = {{"test_wer", 0.91}};
  hears.facts.has_validation = true;
  reads.metrics.epochs = {{.step = 3, .test_metric = 91.25}};
  hears.metrics.epochs = {{.step = 3, .test_metric = 0.91}};
  sees.metrics.epochs = {{.step = 3, .test_metric = 0.5}};
  const std::string page = report_page({reads, hears, sees, run_of("sees too", 3)});
  EXPECT_NE(page.find("<th>test metric</th>"), std::string::npos);
  EXPECT_NE(page.find("<th>work/s</th>"), std::string::npos);
  EXPECT_NE(page.find("<td>91.25 perplexity</td>"), std::string::npos);
  EXPECT_NE(page.find("<td>91.00 % wer</td>"), std::string::npos);
  EXPECT_NE(page.find("<td>0 words/s</td>"), std::string::npos);
  EXPECT_NE(page.find("<td>0.00 % accuracy</td><td>-</td>"), std::string::npos) << "no validation";
  EXPECT_EQ(count(page, "<figure"), 24u) << "loss, test and training of three, one's validation";
  const auto chart = [&](const std::string& title) {
    const size_t at = page.find("<figcaption>" + title + " ");
    return at == page.npos ? "" : page.substr(at, page.find("</figure>", at) - at);
  };
  EXPECT_NE(chart("Test perplexity").find("reads: 91.25 at"), std::string::npos);
  EXPECT_EQ(count(chart("Test perplexity"), "at the end"), 1u);
  EXPECT_NE(chart("Test wer").find("hears: 91 at"), std::string::npos);
  EXPECT_EQ(count(chart("Test wer"), "at the end"), 1u);
  EXPECT_EQ(count(chart("Training accuracy"), "at the end"), 2u);
  EXPECT_EQ(count(chart("Training loss"), "at the end"), 4u);
}

TEST(ReportPage, CommandsStandOnLinesOfTheirOwn) {
  RunRecord other = run_of("b c", 3);
  other.path = "runs/b\nc";
  const std::string page = report_page({run_of("a", 3), other});
  EXPECT_NE(page.find("<pre class=\"line\">wisp train runs/a/config.toml --out runs/a-again\n"
                      "wisp train $&#39;runs/b\\012c/config.toml&#39; --out "
                      "$&#39;runs/b\\012c-again&#39;\n</pre>"),
            std::string::npos);
}

TEST(ShellWord, IsReadBackAsTheText) {
  const TempDir dir;
  for (const std::string text :
       {"runs/a", "", "it's 5 $HOME", "a\nb", "\\ '\x01", "gr\xc3\xbc\xc3\x9f", "\xff'1"}) {
    const std::string script = dir.write("word.sh", "printf '%s.' " + shell_word(text));
    EXPECT_EQ(run_command("bash " + script).output, text + ".");
    EXPECT_TRUE(html_keeps(shell_word(text)));
  }
  EXPECT_EQ(shell_word("runs/a"), "runs/a");
}

TEST(ReportPage, NeedsNothingFromElsewhere) {
  const std::string page = report_page({run_of("dense", 3)});
  for (const char* part : {"<script", "<link", "http:", "https:", "url(", "@import", "src="})
    EXPECT_EQ(page.find(part), std::string::npos) << part;
}

TEST(ReportPage, TakesNoTextOfARunForMarkup) {
  const std::string evil = "<script>alert(1)</script>'\"";
  RunRecord run = run_of(evil, 3);
  run.version = run.date = run.summary->numerics = evil;
  run.config[0].second = evil;
  for (TracedSpan& span : run.spans) span.name = span.lane = evil;
  const std::string page = report_page({run, run_of("other", 3)});
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("alert(1)</"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
}

TEST(ReportPage, OfManyLongRunsStaysSmall) {
  std::vector<RunRecord> runs;
  for (int r = 0; r < 8; ++r) runs.push_back(run_of("run " + std::to_string(r), 5000));
  const std::string page = report_page(runs);
  EXPECT_LT(page.size(), 2'000'000u);
  EXPECT_NE(page.find("a curve shows the lowest and the highest in each of 250 spans"),
            std::string::npos);
}

TEST(ReportPage, ShowsARunThatHasNotEnded) {
  RunRecord run = run_of("young", 0);
  run.summary.reset();
  run.spans.clear();
  const std::string page = report_page({run});
  EXPECT_NE(page.find("not finished"), std::string::npos);
  EXPECT_NE(page.find("nothing recorded"), std::string::npos);
  EXPECT_EQ(page.find("nan"), std::string::npos);
}

TEST(LaneChart, ShowsTheMiddleStepsAndEightWorkers) {
  std::vector<TracedSpan> spans;
  for (int worker = 0; worker < 10; ++worker) {
    for (int64_t step = 10; step < 15; ++step) {
      const double begin = static_cast<double>(step) * 1000.0;
      spans.push_back({worker, "compute", "forward", begin, begin + 500.0, step, 0});
    }
  }
  const std::string svg = lane_chart(spans);
  EXPECT_EQ(count(svg, "class=\"k-forward\""), 16u);
  EXPECT_NE(svg.find("steps 12 and 13"), std::string::npos);
  EXPECT_EQ(lane_chart({}), "");
}

}  // namespace
}  // namespace wisp
