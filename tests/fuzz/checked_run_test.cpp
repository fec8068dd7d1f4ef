#include "tests/fuzz/checked_run.h"

#include <gtest/gtest.h>

#include "tests/fuzz/fuzz_target.h"

namespace wisp {

void fuzz(std::string_view input) {
  static std::vector<int*> kept;
  kept.reserve(8);
  if (input == "throw") throw Finding("no such luck");
  if (input == "leak") kept.push_back(new int);
  if (input == "large") kept.push_back(new int[1000]);
}

int64_t fuzz_memory(int64_t) { return 1000; }

namespace {

TEST(CheckedRun, FindsWhatItWatchesFor) {
  checked_run("a good one");
  EXPECT_DEATH(checked_run("throw"), "finding: no such luck");
  EXPECT_DEATH(checked_run("leak"), "finding: a leak of");
  EXPECT_DEATH(checked_run("large"), "finding: memory beyond its bound: 4000 bytes asked for");
}

}  // namespace
}  // namespace wisp
