#include "core/io/trace.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

TEST(Clock, NeverGoesBack) {
  double before = now_us();
  EXPECT_GE(before, 0.0);
  for (int i = 0; i < 1000; ++i) {
    const double now = now_us();
    ASSERT_GE(now, before);
    before = now;
  }
}

TEST(Trace, KeepsOnlyTheStepsAskedFor) {
  Trace trace(0, {.first_step = 10, .steps = 2});
  EXPECT_FALSE(trace.records(9));
  EXPECT_TRUE(trace.records(10));
  EXPECT_TRUE(trace.records(11));
  EXPECT_FALSE(trace.records(12));
  for (int step = 0; step < 20; ++step) trace.span(Lane::wire, "bucket", 0.0, 1.0, step);
  EXPECT_EQ(trace.spans(Lane::wire).size(), 2u);
  EXPECT_EQ(trace.spans(Lane::encode).size(), 0u);
  EXPECT_FALSE(Trace(0, {}).records(0));
}

TEST(Trace, LanesAreWrittenByDifferentThreadsAtOnce) {
  Trace trace(0, {.first_step = 0, .steps = 1});
  const auto fill = [&](Lane lane) {
    for (int i = 0; i < 1000; ++i) trace.span(lane, "x", i, i + 1, 0);
  };
  std::thread comm(fill, Lane::encode);
  fill(Lane::compute);
  comm.join();
  EXPECT_EQ(trace.spans(Lane::compute).size(), 1000u);
  EXPECT_EQ(trace.spans(Lane::encode).size(), 1000u);
}

TEST(Trace, FileHasLanesAndCompleteEvents) {
  const TempDir dir;
  Trace first(0, {.first_step = 0, .steps = 1}), second(3, {.first_step = 0, .steps = 1});
  first.span(Lane::compute, "backward", 1.5, 4.0, 0);
  second.span(Lane::wire, "bucket \"1\"", 2.0, 5.25, 0, 4096);
  write_trace(dir / "trace.json", std::vector{first.events(0.0), second.events(10.0)},
              "the \"wire\"");
  const auto file = nlohmann::json::parse(read_text(dir / "trace.json"));
  EXPECT_EQ(file["otherData"]["remark"], "the \"wire\"");
  std::vector<nlohmann::json> spans;
  std::vector<std::string> lanes;
  for (const auto& event : file["traceEvents"]) {
    if (event["ph"] == "X") spans.push_back(event);
    if (event["name"] == "thread_name" && event["pid"] == 4) lanes.push_back(event["args"]["name"]);
  }
  EXPECT_EQ(lanes, (std::vector<std::string>{"compute", "encode", "wait", "wire", "decode"}));
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0], nlohmann::json::parse(R"({"ph":"X","name":"backward","pid":1,"tid":1,
      "ts":1.5,"dur":2.5,"args":{"step":0}})"));
  EXPECT_EQ(spans[1], nlohmann::json::parse(R"({"ph":"X","name":"bucket \"1\"","pid":4,"tid":19,
      "ts":12.0,"dur":3.25,"args":{"step":0,"bytes":4096}})"));
}

TEST(Trace, NoWorkersIsStillAFile) {
  const TempDir dir;
  write_trace(dir / "trace.json", {});
  EXPECT_TRUE(nlohmann::json::parse(read_text(dir / "trace.json"))["traceEvents"].empty());
}

TEST(Trace, AFullDiskIsAnError) {
  EXPECT_EQ(error_of([] { write_trace("/dev/full", {}); }),
            "/dev/full: cannot be written: No space left on device");
}

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

TEST(EarlierSpans, OfAStrangerNeitherHangNorCrash) {
  const TempDir dir;
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { read_earlier_spans(dir / "pipe", 9, 1); }),
            dir / "pipe: it is no file, but a pipe");
  const std::string begin = R"({"traceEvents":[{"ph":"X","pid":1,"args":{"step":0},"ts":)";
  for (const std::string& end : {std::string(300'000, '['), std::string(R"(1e308,"dur":1e308}]})"),
                                 std::string(R"("0","dur":1}]})")})
    EXPECT_EQ(read_earlier_spans(dir.write("trace.json", begin + end), 9, 1).events, "");
}

TEST(EarlierSpans, AreNoneOfAnythingElse) {
  const TempDir dir;
  EXPECT_EQ(read_earlier_spans(dir / "none", 9, 1).events, "");
  for (const char* text : {"", "{", "[]", R"({"traceEvents":[{}]})", R"({"traceEvents":7})"})
    EXPECT_EQ(read_earlier_spans(dir.write("trace.json", text), 9, 1).events, "") << text;
}

}  // namespace
}  // namespace wisp
