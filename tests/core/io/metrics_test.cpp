#include "core/io/metrics.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <limits>

#include "core/io/input_file.h"
#include "core/io/output_file.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

TEST(Metrics, RowsKeepTheirOrderAndNumbersAreExact) {
  EXPECT_EQ(to_json({{"step", 3}, {"loss", 0.1}, {"name", "a\"b"}, {"done", true}}),
            R"({"step":3,"loss":0.1,"name":"a\"b","done":true})");
  EXPECT_EQ(to_json({{"big", int64_t{1} << 60}, {"third", 1.0 / 3.0}}),
            R"({"big":1152921504606846976,"third":0.3333333333333333})");
  EXPECT_EQ(to_json({}), "{}");
}

TEST(Metrics, WhatIsNotFiniteIsNull) {
  EXPECT_EQ(to_json({{"loss", std::numeric_limits<double>::quiet_NaN()},
                     {"norm", std::numeric_limits<double>::infinity()}}),
            R"({"loss":null,"norm":null})");
}

TEST(Metrics, ANameIsGivenOnce) {
  EXPECT_EQ(error_of([] { to_json({{"a", 1}, {"a", 2}}); }), "metrics: a is given twice in a row");
}

TEST(Metrics, LinesAreThereAtOnceAndAppended) {
  const TempDir dir;
  const std::string path = dir / "metrics.jsonl";
  OutputFile first(path, OutputFile::Mode::replace);
  first.write(to_json({{"step", 1}}) + "\n");
  EXPECT_EQ(read_text(path), "{\"step\":1}\n");
  OutputFile(path, OutputFile::Mode::append).write(to_json({{"step", 2}}) + "\n");
  EXPECT_EQ(read_text(path), "{\"step\":1}\n{\"step\":2}\n");
}

TEST(Metrics, AFullDiskIsAnError) {
  OutputFile file("/dev/full", OutputFile::Mode::append);
  EXPECT_EQ(error_of([&] {
              file.write(to_json({{"step", 1}}) + "\n");
            }),
            "/dev/full: cannot be written: No space left on device");
}

TEST(Metrics, RowsAreKeptByTypeAndStep) {
  const TempDir dir;
  const std::string path =
      dir.write("metrics.jsonl",
                "{\"type\":\"step\",\"step\":1}\n{\"type\":\"step\",\"step\":2}\n"
                "{\"type\":\"epoch\",\"step\":2}\n{\"type\":\"step\",\"step\":3}\n");
  keep_metrics(path, [](const std::string& type, int64_t step) {
    return step < 2 || (step == 2 && type != "epoch");
  });
  const std::string kept = "{\"type\":\"step\",\"step\":1}\n{\"type\":\"step\",\"step\":2}\n";
  EXPECT_EQ(read_text(path), kept);
  const auto all = [](const std::string&, int64_t) { return true; };
  dir.write("metrics.jsonl", kept + "{\"type\":\"st");  // a process was killed here
  keep_metrics(path, all);
  EXPECT_EQ(read_text(path), kept);
  dir.write("metrics.jsonl", kept + "{\"type\":7,\"step\":\"x\"}\n");
  keep_metrics(path, all);
  EXPECT_EQ(read_text(path), kept);
  dir.write("metrics.jsonl", kept + "{\"type\":\"step\",\"step\":1e99}\n");
  keep_metrics(path, all);
  EXPECT_EQ(read_text(path), kept);
  dir.write("metrics.jsonl", kept + "{\"type\":" + std::string(100'000, '[') + "\n");
  keep_metrics(path, all);
  EXPECT_EQ(read_text(path), kept);
  keep_metrics(dir / "absent", all);
  EXPECT_FALSE(std::filesystem::exists(dir / "absent"));
}

TEST(Metrics, OfAStrangerAreNotWaitedForAndHaveABound) {
  const TempDir dir;
  const auto all = [](const std::string&, int64_t) { return true; };
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { keep_metrics(dir / "pipe", all); }),
            dir / "pipe: it is no file, but a pipe");
  std::filesystem::create_symlink("/dev/zero", dir / "device");
  EXPECT_EQ(error_of([&] { keep_metrics(dir / "device", all); }),
            dir / "device: it is no file, but a device");
  const std::string path = dir.write("long", "");
  std::filesystem::resize_file(path, InputLines::kMostLineBytes + 1);
  EXPECT_EQ(error_of([&] { keep_metrics(path, all); }),
            path + ":1: a line of more than 16777216 bytes, expected shorter ones");
}

}  // namespace
}  // namespace wisp
