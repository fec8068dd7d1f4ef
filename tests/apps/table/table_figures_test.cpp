#include "apps/table/table_figures.h"

#include <gtest/gtest.h>

#include <cmath>

#include "apps/table/table_plot.h"
#include "apps/table/table_text.h"

namespace wisp {
namespace {

const TableFile kTable{.name = "t",
                       .title = "Two & three",
                       .source = "A. Author 2020, table 1",
                       .dense = "none",
                       .seeds = {1, 2, 3},
                       .scales = {},
                       .rows = {{.name = "none", .published = 93.75},
                                {.name = "topk", .published = 92.75, .spread = 0.1},
                                {.name = "wild", .remark = "It diverges."},
                                {.name = "later"}}};
const TableScale kScale{.name = "small", .config = "", .changes = "Ten epochs.", .target = 80.0};

TableResult result(size_t row, int64_t seed, double accuracy, double bytes = 1000.0,
                   const std::string& version = "0.1 (abc)") {
  TableResult made{.row = row, .seed = seed};
  made.run.version = version;
  Summary summary;
  summary.scores = {{"test_accuracy", accuracy}};
  summary.bytes_sent = bytes;
  summary.reduction_sent = 4000.0 / bytes;
  summary.times.compute_ms = 90.0;
  made.run.summary = summary;
  made.run.metrics.epochs = {{.step = 100, .test_metric = 0.5}, {.step = 200, .test_metric = 0.8}};
  return made;
}

TEST(Estimate, HasStudentsInterval) {
  const Estimate three = estimate({1.0, 2.0, 3.0});
  EXPECT_EQ(three.mean, 2.0);
  EXPECT_NEAR(three.half, 4.303 / std::sqrt(3.0), 1e-3);  // deviation 1
  EXPECT_TRUE(std::isnan(estimate({1.0}).half));
  // 30 values, half of them 0 and half 2: deviation sqrt(30 / 29), quantile 2.0452
  std::vector<double> many;
  for (int i = 0; i < 30; ++i) many.push_back(i % 2 * 2.0);
  EXPECT_NEAR(estimate(many).half, 2.0452 / std::sqrt(29.0), 1e-3);
}

TEST(TableFigures, PairSeedsOfOneProgram) {
  const std::vector<TableResult> results = {
      result(0, 1, 0.90),        result(0, 2, 0.91), result(0, 3, 0.92, 1000.0, "0.1 (new)"),
      result(1, 1, 0.89, 100.0), result(1, 2, 0.91), result(1, 3, 0.10)};
  const std::vector<RowFigures> figures = figures_of(kTable, kScale, results);
  ASSERT_TRUE(figures[1].change);
  EXPECT_EQ(figures[1].change->values, 2u) << "seed 3 of dense is another program's";
  EXPECT_NEAR(figures[1].change->mean, -0.5, 1e-9);
  EXPECT_FALSE(figures[0].change) << "dense is not compared with itself";
  EXPECT_NEAR(figures[0].score->mean, 91.0, 1e-9);
  EXPECT_NEAR(figures[0].deviation, 1.0, 1e-9);
  EXPECT_EQ(figures[3].runs, 0u);
}

TEST(TableText, OfOneWorkerHasNoReduction) {
  TableResult alone = result(0, 1, 0.9, 0.0);
  alone.run.summary->reduction_sent = 1.0;
  const TableText text = text_of(kTable, kScale, std::vector<TableResult>{alone});
  EXPECT_EQ(text.headings.at(5), "less than dense");
  EXPECT_EQ(text.rows.at(0).at(5), "-");
}

TEST(TableFigures, ADivergedRunIsNoScore) {
  TableResult failed = result(2, 1, 0.0);
  failed.run.summary.reset();
  failed.run.diverged = "step 7: the loss was not finite in 5 steps in a row";
  const std::vector<TableResult> results = {result(0, 1, 0.9), failed, result(2, 2, std::nan(""))};
  const RowFigures wild = figures_of(kTable, kScale, results)[2];
  EXPECT_EQ(wild.runs, 2u);
  EXPECT_EQ(wild.diverged, 2u);
  EXPECT_FALSE(wild.score);
  EXPECT_FALSE(wild.change);
  EXPECT_TRUE(std::isinf(wild.hours_to_target[0]));
}

TEST(TableFigures, ARunWhoseLossIsNotFiniteIsNoScoreWhateverItsAccuracyIs) {
  TableResult lost = result(1, 2, 0.99, 1.0);
  lost.run.diverged = lost.run.summary->diverged = "the loss of the last 3 steps was not finite";
  const std::vector<TableResult> results = {result(0, 1, 0.9), result(0, 2, 0.9), result(1, 1, 0.8),
                                            lost};
  const RowFigures row = figures_of(kTable, kScale, results)[1];
  EXPECT_EQ(row.diverged, 1u);
  EXPECT_NEAR(row.score->mean, 80.0, 1e-9);
  EXPECT_EQ(row.change->values, 1u);
  EXPECT_EQ(row.bytes_sent, 1000.0);
  EXPECT_TRUE(std::isinf(row.hours_to_target[0]));
}

TEST(TableFigures, ModelALinkBesideCompute) {
  RunRecord run;
  EXPECT_TRUE(std::isnan(modelled_step_ms(run, 0.1))) << "no summary";
  Summary& summary = run.summary.emplace();
  summary.times.compute_ms = 90.0;
  summary.times.encode_ms = 5.0;
  summary.times.decode_ms = 1.0;
  summary.bytes_sent = 1.25e6;  // 100 ms at 0.1 Gbit/s
  summary.bytes_received = 1.0e6;
  EXPECT_NEAR(modelled_step_ms(run, 0.1), 30.0 + 5.0 + 100.0 + 1.0, 1e-9);
  EXPECT_NEAR(modelled_step_ms(run, 10.0), 90.0, 1e-9) << "hidden by compute";
  for (const double compute_ms : {60.0, 900.0, 60.0})
    run.metrics.steps.push_back({.times = {.compute_ms = compute_ms, .encode_ms = 2.0}});
  EXPECT_NEAR(modelled_step_ms(run, 0.1), 20.0 + 2.0 + 100.0, 1e-9) << "medians of steps";
}

TEST(TableFigures, TimeToTheTargetCountsSteps) {
  const std::vector<TableResult> results = {result(0, 1, 0.9, 1.25e6)};
  const RowFigures dense = figures_of(kTable, kScale, results)[0];
  EXPECT_NEAR(dense.hours_to_target[0], 200 * (30.0 + 100.0) / 3.6e6, 1e-12);
  TableScale higher = kScale;
  higher.target = 81.0;
  EXPECT_TRUE(std::isinf(figures_of(kTable, higher, results)[0].hours_to_target[0]));
  higher.target.reset();
  EXPECT_TRUE(std::isnan(figures_of(kTable, higher, results)[0].hours_to_target[0]));
}

std::vector<TableResult> two_seeds() {
  return {result(0, 1, 0.90), result(0, 2, 0.91), result(1, 1, 0.89, 100.0),
          result(1, 2, 0.91, 100.0)};
}

/// A run whose test set has ten targets of anna and ten of ben.
TableResult spoken(size_t row, int64_t seed, double anna, double ben) {
  TableResult made = result(row, seed, (anna + ben) / 20.0);
  made.run.summary->test_units = {{"anna", anna, 10.0}, {"ben", ben, 10.0}};
  return made;
}

/// The runs of two seeds. ben alone makes the difference, and the same one for both seeds.
std::vector<TableResult> by_speakers() {
  return {spoken(0, 1, 1, 2), spoken(0, 2, 3, 1), spoken(1, 1, 1, 6), spoken(1, 2, 3, 5)};
}

TEST(TableFigures, AFewSpeakersWidenTheInterval) {
  const RowFigures row = figures_of(kTable, kScale, by_speakers())[1];
  EXPECT_TRUE(row.change->by_units);
  EXPECT_NEAR(row.change->mean, 20.0, 1e-9);
  EXPECT_NEAR(row.change->half, 20.0, 1e-9) << "a quarter of the draws have ben twice, or never";
}

TEST(TableFigures, SeedsThatDifferMoreThanSpeakersDecide) {
  const RowFigures row =
      figures_of(kTable, kScale,
                 std::vector<TableResult>{spoken(0, 1, 1, 1), spoken(0, 2, 1, 1),
                                          spoken(1, 1, 2, 2), spoken(1, 2, 4, 4)})[1];
  EXPECT_TRUE(row.change->by_units);
  EXPECT_NEAR(row.change->mean, 20.0, 1e-9);
  EXPECT_NEAR(row.change->half, 12.706 * 10.0, 1e-9) << "draws alone reach 10 from the mean";
}

TEST(TableFigures, SpeakersAloneGiveNoInterval) {
  std::vector<TableResult> results = by_speakers();
  std::erase_if(results, [](const TableResult& run) { return run.seed == 2; });
  const RowFigures row = figures_of(kTable, kScale, results)[1];
  EXPECT_EQ(row.change->values, 1u);
  EXPECT_TRUE(std::isnan(row.change->half));
  EXPECT_FALSE(row.change->by_units);
}

TEST(TableFigures, SpeakersCountWhereAllPairedRunsHaveThem) {
  const auto half_with = [](size_t changed, const std::vector<TestUnit>& units) {
    std::vector<TableResult> results = by_speakers();
    results[changed].run.summary->test_units = units;
    const RowFigures row = figures_of(kTable, kScale, results)[1];
    EXPECT_NE(row.change->by_units, row.change->half < 1e-6);
    return row.change->half;
  };
  EXPECT_NEAR(half_with(3, {{"anna", 3, 10}, {"ben", 5, 10}}), 20.0, 1e-9) << "as it was";
  for (size_t run = 0; run < 4; ++run) EXPECT_NEAR(half_with(run, {}), 0.0, 1e-9) << run;
  EXPECT_NEAR(half_with(3, {{"anna", 3, 11}, {"ben", 5, 9}}), 0.0, 1e-9) << "other divisors";
  EXPECT_NEAR(half_with(3, {{"anna", 3, 10}, {"carl", 5, 10}}), 0.0, 1e-9) << "another speaker";
  EXPECT_NEAR(half_with(3, {{"anna", 3, 10}, {"ben", 6, 10}}), 0.0, 1e-9) << "not the score";
  std::vector<TableResult> empty = by_speakers();
  for (TableResult& run : empty) run.run.summary->test_units.push_back({"carl", 0, 0});
  EXPECT_FALSE(figures_of(kTable, kScale, empty)[1].change->by_units) << "draws may have no words";
}

TEST(TableText, SaysWhetherSpeakersWereDrawn) {
  const std::string drawn = "draws of pairs and test speakers";
  const std::string with = to_markdown(text_of(kTable, kScale, by_speakers()));
  EXPECT_NE(with.find(drawn), std::string::npos) << with;
  EXPECT_NE(with.find("| +20.00 ± 20.00 "), std::string::npos) << with;
  EXPECT_EQ(to_markdown(text_of(kTable, kScale, two_seeds())).find(drawn), std::string::npos);
}

TEST(TableFigures, PairsNeedTheSameMachine) {
  std::vector<TableResult> results = two_seeds();
  results[3].run.summary->numerics = "another CPU";
  const std::vector<RowFigures> figures = figures_of(kTable, kScale, results);
  EXPECT_EQ(figures[1].change->values, 1u);
  EXPECT_TRUE(std::isnan(figures[1].hours_to_target[0])) << "times of two machines";
  EXPECT_FALSE(std::isnan(figures[0].hours_to_target[0]));
}

TEST(TableFigures, TheTargetIsTheValidationSplitsIfThereIsOne) {
  std::vector<TableResult> results = {result(0, 1, 0.9)};
  results[0].run.facts.has_validation = true;
  results[0].run.metrics.epochs = {
      {.step = 100, .validation_metric = 0.85, .test_metric = std::nan("")},
      {.step = 200, .validation_metric = 0.9, .test_metric = 0.9}};
  EXPECT_NEAR(figures_of(kTable, kScale, results)[0].hours_to_target[2], 100 * 90.0 / 3.6e6, 1e-12);
}

TEST(TableText, HasPublishedAndOwnFigures) {
  const std::string text = to_markdown(text_of(kTable, kScale, two_seeds()));
  EXPECT_NE(text.find("| none  | 93.75 "), std::string::npos) << text;
  EXPECT_NE(text.find("| topk  | 92.75 ± 0.10 (-1.00) | 90.00 ± 1.41, 2 of 3 seeds |"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("| -0.50 ± 6.35 "), std::string::npos) << text;  // 12.706 x 0.7071 / sqrt 2
  EXPECT_NE(text.find("| later | -                    | not run "), std::string::npos) << text;
  EXPECT_NE(text.find("\nPublished: A. Author 2020, table 1. Scale: small. Ten epochs.\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\nwild: It diverges.\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nProgram 0.1 (abc), computed with: not recorded.\n"), std::string::npos)
      << text;
}

TEST(TableText, ColumnsAreAligned) {
  const std::string text = to_markdown(text_of(kTable, kScale, two_seeds()));
  const std::string head = text.substr(0, text.find('\n'));
  const std::string rule =
      text.substr(head.size() + 1, text.find('\n', head.size() + 1) - head.size() - 1);
  EXPECT_EQ(head.size(), rule.size());
}

TEST(TablePlot, DrawsRowsThatCompare) {
  const std::string plot = plot_of(kTable, kScale, two_seeds());
  EXPECT_NE(plot.find(">topk</text>"), std::string::npos);
  EXPECT_NE(plot.find("none: 90.50, 1.0 kB"), std::string::npos) << plot;
  EXPECT_EQ(plot.find(">later</text>"), std::string::npos);
  EXPECT_NE(plot.find("Two &amp; three"), std::string::npos);
  std::vector<TableResult> strangers = two_seeds();
  for (TableResult& other : strangers) other.run.version += concat(" ", other.row);
  EXPECT_EQ(plot_of(kTable, kScale, strangers), "");
  EXPECT_EQ(plot_of(kTable, kScale, {}), "");
}

TEST(TablePlot, WideIntervalsEndAtTheFrame) {
  std::vector<TableResult> results = two_seeds();
  for (TableResult& run : results)
    if (run.row == 1) run.run.summary->scores = {{"test_accuracy", run.seed == 1 ? 0.80 : 0.99}};
  const std::string plot = plot_of(kTable, kScale, results);
  // the scores span a point and more; the interval of the two changes some hundred
  EXPECT_EQ(plot.find(R"(y1="-)"), std::string::npos) << plot;
  EXPECT_NE(plot.find(R"(y1="400.0" y2="56.0" stroke="#3b6a8a")"), std::string::npos) << plot;
}

TEST(TableText, HoldsPictureTableAndRemarksAsAPage) {
  const std::vector<TableResult> results = two_seeds();
  const std::string page =
      to_html(text_of(kTable, kScale, results), plot_of(kTable, kScale, results));
  for (const char* part : {"<svg ", "<th>published</th>", "<td>topk</td>", "wild: It diverges."})
    EXPECT_NE(page.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace wisp
