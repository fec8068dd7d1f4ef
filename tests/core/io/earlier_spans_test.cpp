#include "core/io/earlier_spans.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/io/trace.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

TEST(EarlierSpans, AreThoseOfStepsBefore) {
  const TempDir dir;
  const std::string path = dir / "trace.json";
  Trace first(0, {.first_step = 0, .steps = 4}), second(1, {.first_step = 0, .steps = 4});
  for (int step = 0; step < 4; ++step) {
    first.span(Lane::wire, "bucket 0", step, step + 0.5, step, 8);
    second.span(Lane::compute, "forward", step, step + 0.75, step);
  }
  write_trace(path, std::vector{first.events(0.0), second.events(0.0)});
  const EarlierSpans earlier = read_earlier_spans(path, 2, 2);
  EXPECT_EQ(
      earlier.events,
      R"({"ph":"X","name":"bucket 0","pid":1,"tid":4,"ts":0.0,"dur":0.5,"args":{"step":0,"bytes":8}},
{"ph":"X","name":"bucket 0","pid":1,"tid":4,"ts":1.0,"dur":0.5,"args":{"step":1,"bytes":8}},
{"ph":"X","name":"forward","pid":2,"tid":6,"ts":0.0,"dur":0.75,"args":{"step":0}},
{"ph":"X","name":"forward","pid":2,"tid":6,"ts":1.0,"dur":0.75,"args":{"step":1}},
)");
  EXPECT_EQ(earlier.end_us, 1.75);
  EXPECT_EQ(read_earlier_spans(path, 0, 2).events, "");
  const std::string named = read_earlier_spans(path, 1, 1).events;
  EXPECT_NE(named.find(R"("name":"worker 1")"), std::string::npos) << named;
  EXPECT_EQ(named.find(R"("name":"worker 0")"), std::string::npos) << named;
}

TEST(EarlierSpans, AreNoneOfAnythingElse) {
  const TempDir dir;
  EXPECT_EQ(read_earlier_spans(dir / "none", 9, 1).events, "");
  for (const char* text : {"", "{", "[]", R"({"traceEvents":[{}]})", R"({"traceEvents":7})"})
    EXPECT_EQ(read_earlier_spans(dir.write("trace.json", text), 9, 1).events, "") << text;
}

}  // namespace
}  // namespace wisp
