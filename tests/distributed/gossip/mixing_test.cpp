#include "distributed/gossip/mixing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

/// Source: Koloskova et al. 2020, section 5, which rounds to two digits.
TEST(Mixing, HasThePublishedSpectralGaps) {
  EXPECT_NEAR(Mixing("ring", 4).spectral_gap(), 0.67, 0.005);
  EXPECT_NEAR(Mixing("ring", 16).spectral_gap(), 0.05, 0.005);
  EXPECT_NEAR(Mixing("ring", 36).spectral_gap(), 0.01, 0.005);
  EXPECT_NEAR(Mixing("torus", 4).spectral_gap(), 0.67, 0.005);
  EXPECT_NEAR(Mixing("torus", 16).spectral_gap(), 0.4, 0.005);
  EXPECT_NEAR(Mixing("torus", 36).spectral_gap(), 0.2, 0.005);
}

TEST(Mixing, HasTheEigenvaluesOfARing) {
  for (const int n : {5, 12, 33}) {  // a circulant matrix has (1 + 2 cos(2 pi k / n)) / 3
    const Mixing ring("ring", n);
    double second = 0.0, least = 1.0;
    for (int k = 1; k < n; ++k) {
      const double value = (1.0 + 2.0 * std::cos(2.0 * std::numbers::pi * k / n)) / 3.0;
      second = std::max(second, std::abs(value));
      least = std::min(least, value);
    }
    EXPECT_NEAR(ring.spectral_gap(), 1.0 - second, 1e-12) << n;
    EXPECT_NEAR(ring.distance_from_identity(), 1.0 - least, 1e-12) << n;
  }
}

TEST(Mixing, IsSymmetricAndDoublyStochastic) {
  for (const std::string graph : {"ring", "torus", "complete", "0-1, 1-2, 2-3, 3-4, 4-5, 1-4"}) {
    const Mixing mixing(graph, 6);
    for (int i = 0; i < 6; ++i) {
      double sum = 0.0;
      for (int j = 0; j < 6; ++j) {
        EXPECT_EQ(mixing.weight(i, j), mixing.weight(j, i)) << graph;
        EXPECT_GE(mixing.weight(i, j), 0.0) << graph;
        sum += mixing.weight(i, j);
      }
      EXPECT_NEAR(sum, 1.0, 1e-15) << graph;
    }
    EXPECT_GT(mixing.spectral_gap(), 0.0) << graph;
  }
}

TEST(Mixing, KnowsTheCommonGraphs) {
  EXPECT_EQ(Mixing("ring", 5).neighbours(0), (std::vector<int>{1, 4}));
  EXPECT_EQ(Mixing("ring", 2).neighbours(0), std::vector<int>{1});
  EXPECT_EQ(Mixing("ring", 1).neighbours(0), std::vector<int>{});
  EXPECT_EQ(Mixing("complete", 4).neighbours(2), (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(Mixing("torus", 12).neighbours(0), (std::vector<int>{1, 3, 4, 8}));  // 3 x 4
  EXPECT_EQ(Mixing("torus", 5).neighbours(0), Mixing("ring", 5).neighbours(0));  // 1 x 5
  EXPECT_EQ(Mixing("complete", 4).weight(0, 3), 0.25);
  EXPECT_NEAR(Mixing("complete", 7).spectral_gap(), 1.0, 1e-12);
  EXPECT_EQ(Mixing("ring", 1).spectral_gap(), 1.0);
}

TEST(Mixing, WeighsAnEdgeByItsBusierEnd) {
  const Mixing star("0-1 0-2 0-3", 4);
  EXPECT_EQ(star.weight(0, 1), 0.25);
  EXPECT_EQ(star.weight(1, 1), 0.75);
  EXPECT_EQ(star.weight(0, 0), 0.25);
  EXPECT_EQ(star.weight(1, 2), 0.0);
}

TEST(Mixing, ReadsEdgesFromAFile) {
  const TempDir dir;
  const std::string path = dir.write("graph.txt", "# a path\n0-1\n1 2  # its end\n");
  EXPECT_EQ(Mixing(path, 3).hash(), Mixing("0-1, 1-2", 3).hash());
  EXPECT_NE(Mixing(path, 3).hash(), Mixing("ring", 3).hash());
}

TEST(Mixing, SaysWhatIsWrongWithAGraph) {
  const auto error = [](const std::string& graph, int workers) {
    return error_of([&] { Mixing(graph, workers); });
  };
  EXPECT_NE(error("rings", 3).find("'rings' is no rank; expected ring, torus"), std::string::npos);
  EXPECT_NE(error("0-1, 1-3", 3).find("edge 1-3 names a rank that is none of the 3 workers"),
            std::string::npos);
  EXPECT_NE(error("0-1, 1-1", 3).find("edge 1-1 joins a rank with itself"), std::string::npos);
  EXPECT_NE(error("0-1, 1-2, 1-0", 3).find("edge 1-0 is given twice"), std::string::npos);
  EXPECT_NE(error("0-1, 2-3", 4).find("no path leads from rank 0 to rank 2"), std::string::npos);
  EXPECT_NE(error("0-1, 2", 3).find("has one end only, 2"), std::string::npos);
  EXPECT_NE(error("", 2).find("has no edges"), std::string::npos);
  EXPECT_NE(error("/", 2).find("is a directory"), std::string::npos);
  EXPECT_EQ(error("/dev/zero", 2), "gossip.graph = \"/dev/zero\": it is no file, but a device");
  std::string longer = "0-1";  // than the name of a file may be
  for (int i = 2; i < 2000; ++i) longer += concat(", 0-", i);
  EXPECT_NE(error(longer, 2).find("edge 0-2 names a rank"), std::string::npos);
}

/// With rho = beta = delta = 1 the step is 1 / (16 + 1 + 4 + 2 - 8).
TEST(Mixing, KnowsTheStepOfTheTheory) {
  EXPECT_NEAR(choco_theory_step(Mixing("complete", 8), 1.0), 1.0 / 15.0, 1e-12);
  EXPECT_LT(choco_theory_step(Mixing("ring", 16), 0.01), 1e-5);
}

}  // namespace
}  // namespace wisp
