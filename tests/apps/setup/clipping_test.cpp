// Tests of the gradient that a run clips, and of the remarks on clipping.
#include <gtest/gtest.h>

#include "apps/setup/prepared.h"
#include "core/base/error.h"
#include "tests/support/error_of.h"
#include "tests/support/tiny_text_run.h"

namespace wisp {
namespace {

/// A run's remarks on clipping.
std::vector<std::string> remarks_on_clipping(const Config& config) {
  std::vector<std::string> found;
  const Prepared run(config);
  for (const std::string& remark : run.exchange().remarks)
    if (remark.find("clip") != std::string::npos) found.push_back(remark);
  return found;
}

/// The remarks on clipping of a run with four workers.
std::vector<std::string> remarks_on_clipping(const Overrides& overrides) {
  return remarks_on_clipping(tiny_config(Overrides{"workers=4", "clip.norm=0.5"} + overrides));
}

/// The first remark on clipping; empty if there is none.
std::string clipping(const Overrides& overrides) {
  const std::vector<std::string> remarks = remarks_on_clipping(overrides);
  return remarks.empty() ? "" : remarks.front();
}

std::string refusal(const Overrides& overrides) {
  return error_of([&] { clipping(overrides); });
}

TEST(Clipping, IsOfTheMeanIfThatIsWhatIsDecoded) {
  for (const char* method : {"none", "fp16", "bf16"}) {
    EXPECT_EQ(clipping({concat("compression.method=", method)}),
              "clip.norm = 0.5 bounds the mean gradient");
  }
  EXPECT_EQ(clipping({"clip.local_factor=1"}),
            "clip.norm = 0.5 bounds the mean gradient; clip.local_factor has no effect on it");
  EXPECT_EQ(clipping({"compression.method=qsgd", "clip.where=mean"}),
            "clip.norm = 0.5 bounds the mean gradient");
  EXPECT_EQ(clipping({"clip.norm=0"}), "");
}

TEST(Clipping, IsOfEachWorkersOwnGradientBesideALossyMethod) {
  const std::string own =
      "each worker's own gradient is clipped, at 1 (2 x clip.norm), before it is compressed; no "
      "residual keeps the clipped part";
  for (const char* method : {"topk", "qsgd", "powersgd"})
    EXPECT_EQ(clipping({concat("compression.method=", method)}), own);
  EXPECT_EQ(clipping({"compression.method=topk", "clip.scope=layer"}), own);
  EXPECT_EQ(clipping({"compression.method=none", "clip.where=local", "clip.scope=layer"}), own);
  EXPECT_EQ(clipping({"compression.method=topk", "clip.scope=layer", "clip.local_factor=1"}),
            "each worker's own gradient is clipped, at 0.5 (1 x clip.norm), before it is "
            "compressed; no residual keeps the clipped part");
  EXPECT_EQ(clipping({"compression.method=local_sgd"}),
            "each worker's own gradient is clipped, at 0.5 (1 x clip.norm)");
}

/// PowerSGD's recipe bounds each worker's gradient. Dense runs still clip the mean.
TEST(Clipping, OfPowerSgdsLanguageModelIsAtItsOwnBound) {
  const TempDir dir;
  const auto remark = [&](const std::string& method) {
    const Overrides small{"data.name=text", "data.path=" + dir.write("text", tiny_lines(40)),
                          "model.units=8", "compression.method=" + method};
    return remarks_on_clipping(Config::load(WISP_CONFIGS "/wikitext2_powersgd.toml", small))
        .front();
  };
  EXPECT_EQ(remark("powersgd"),
            "each worker's own gradient is clipped, at 0.4 (1 x clip.norm), before it is "
            "compressed; no residual keeps the clipped part");
  EXPECT_EQ(remark("none"),
            "clip.norm = 0.4 bounds the mean gradient; clip.local_factor has no effect on it");
}

/// The remark has the price of the whole norm and cheaper settings. Only methods without residuals
/// can clip the mean.
TEST(Clipping, SaysThatNothingIsEncodedBesideBackward) {
  const std::string waits =
      "clip.scope = \"model\" needs the norm of a worker's whole gradient, so nothing is encoded "
      "or sent before backward ends; clip.scope = \"layer\" overlaps backward";
  for (const char* method : {"topk", "dgc", "powersgd"})
    EXPECT_EQ(remarks_on_clipping({concat("compression.method=", method)}).at(1), waits);
  EXPECT_EQ(remarks_on_clipping({"compression.method=qsgd"}).at(1),
            waits + ", and so does clip.where = \"mean\"");
  EXPECT_EQ(remarks_on_clipping({"compression.method=none", "clip.where=local"}).at(1),
            waits + ", and so does clip.where = \"mean\"");
  const Overrides overlap[] = {{"compression.method=topk", "clip.scope=layer"},
                               {"compression.method=topk", "compression.overlap=false"},
                               {"compression.method=none"},
                               {"compression.method=local_sgd"}};
  for (const Overrides& overrides : overlap)
    EXPECT_EQ(remarks_on_clipping(overrides).size(), 1u) << overrides.front();
}

TEST(Clipping, OfAMeanIsRefusedWhereMassWouldBeLost) {
  for (const char* method : {"topk", "dgc", "powersgd", "signsgd"}) {
    EXPECT_EQ(refusal({concat("compression.method=", method), "clip.where=mean"}),
              concat("command line: clip.where is mean, but method ", method,
                     " has a residual or momentum that would lose the clipped part, or returns no "
                     "gradient; use clip.where = \"auto\" or \"local\""));
  }
  EXPECT_EQ(refusal({"compression.method=choco", "clip.where=mean"}),
            "command line: clip.where is mean, but with method choco no mean gradient exists: each "
            "worker clips its own");
  EXPECT_EQ(refusal({"clip.where=sideways"}),
            "command line: clip.where is 'sideways', expected auto, local or mean");
  EXPECT_EQ(refusal({"clip.local_factor=-1"}),
            "command line: clip.local_factor is -1, expected 0 or more");
}

}  // namespace
}  // namespace wisp
