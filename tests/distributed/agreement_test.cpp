#include "distributed/agreement.h"

#include <gtest/gtest.h>

#include "tests/support/ranks.h"

namespace wisp {
namespace {

using Values = std::vector<NamedValue>;

/// The error text of each of four ranks if rank 1 has `other` and the rest have `common`.
std::vector<std::string> heard(const Values& common, const Values& other) {
  ThreadGroup group(4, {}, 30.0);
  return run_ranks(group, [&](Communicator& communicator) {
    check_agreement(communicator, communicator.rank() == 1 ? other : common);
  });
}

TEST(Agreement, EveryRankHearsWhichRanksHaveWhat) {
  const Values common = {{"seed", "1"}, {"optimizer.lr", "0.05"}, {"data.name", "\"ptb\""}};
  const Values other = {{"seed", "1"}, {"optimizer.lr", "0.5"}, {"data.name", "\"text\""}};
  EXPECT_EQ(heard(common, other),
            of_all(4,
                   "rank 0: the ranks of this run differ in"
                   "\n  optimizer.lr: ranks 0, 2-3 have 0.05, rank 1 has 0.5"
                   "\n  data.name: ranks 0, 2-3 have \"ptb\", rank 1 has \"text\""
                   "\nthey would train apart: give all of them the same"));
}

TEST(Agreement, SaysNothingWhereThereIsOne) {
  const Values common = {{"seed", "1"}, {"model.init", ""}};
  EXPECT_EQ(heard(common, common), of_all(4, ""));
  EXPECT_EQ(heard({}, {}), of_all(4, ""));
}

TEST(Agreement, ANameThatARankDoesNotHaveIsADifference) {
  const std::vector<Values> ranks = {{{"a", "1"}}, {}, {{"a", "1"}}, {{"a", ""}, {"b", "2"}}};
  EXPECT_EQ(disagreement(ranks),
            "\n  a: ranks 0, 2 have 1, rank 1 has none, rank 3 has "
            "\n  b: ranks 0-2 have none, rank 3 has 2");
}

// The joined texts are equal, but the names and values differ.
TEST(Agreement, NamesAndValuesDoNotRunTogether) {
  EXPECT_NE(heard({{"ab", "c"}}, {{"a", "bc"}}), of_all(4, ""));
  EXPECT_NE(heard({{"a", "b"}, {"c", "d"}}, {{"a", "b"}}), of_all(4, ""));
}

TEST(Agreement, OfLongValuesItSaysWhatDiffers) {
  const std::string same(100, '.');
  const std::vector<Values> ranks = {{{"a", same + "1" + same}}, {{"a", same + "2" + same}}};
  EXPECT_EQ(disagreement(ranks),
            concat("\n  a: rank 0 has ...", same.substr(0, 24), "1", same.substr(0, 23),
                   "..., rank 1 has ...", same.substr(0, 24), "2", same.substr(0, 23), "..."));
}

TEST(Agreement, AnErrorStaysSmallHoweverMuchDiffers) {
  Values common, other;
  for (int i = 0; i < 200; ++i) {
    common.push_back({concat("compression.a_long_name_of_a_key_", i), std::string(5000, 'a')});
    other.push_back({common.back().name, std::string(5000, 'a') + "b"});
  }
  const std::vector<std::string> texts = heard(common, other);
  EXPECT_EQ(texts, of_all(4, texts.front()));
  EXPECT_LT(texts.front().size(), 1000u) << "an MPI communicator's causes are cut there";
  EXPECT_NE(texts.front().find("aaab\n  compression.a_long_name_of_a_key_1: "), std::string::npos)
      << texts.front();
  EXPECT_NE(texts.front().find("\n  and 196 more\n"), std::string::npos) << texts.front();
}

}  // namespace
}  // namespace wisp
