#include "core/io/event_file.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/error_of.h"
#include "tests/support/event_reader.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

TEST(EventFile, HasTheVersionAndTheStartThenScalarsByStep) {
  const TempDir dir;
  {
    EventFile file(dir / "events", 40, 1000.5);
    const Scalar first[] = {{"train/loss", 2.25}, {"ms/wire", 0.125}};
    file.scalars(41, 1001.0, first);
    const Scalar second[] = {{"train/loss", 2.0}};
    file.scalars(300, 1002.0, second);
  }
  const std::vector<ReadEvent> events = read_events(read_text(dir / "events"));
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_EQ(events[0].time, 1000.5);
  EXPECT_TRUE(events[1].start);
  EXPECT_EQ(events[1].step, 40);
  EXPECT_EQ(events[2].step, 41);
  EXPECT_EQ(events[2].time, 1001.0);
  EXPECT_EQ(events[2].scalars, (std::vector<std::pair<std::string, float>>{{"train/loss", 2.25f},
                                                                           {"ms/wire", 0.125f}}));
  EXPECT_EQ(events[3].step, 300);
}

TEST(EventFile, LeavesOutWhatIsNotFinite) {
  const TempDir dir;
  {
    EventFile file(dir / "events", 0, 0.0);
    const Scalar values[] = {{"a", std::numeric_limits<double>::quiet_NaN()},
                             {"b", std::numeric_limits<double>::infinity()},
                             {"c", 1.0}};
    file.scalars(1, 0.0, values);
  }
  const std::vector<ReadEvent> events = read_events(read_text(dir / "events"));
  EXPECT_EQ(events.at(2).scalars, (std::vector<std::pair<std::string, float>>{{"c", 1.0f}}));
}

/// The frame of the file's first record, as TensorFlow's writer makes it. Only the eight bytes of
/// the time vary.
TEST(EventFile, FramesARecordAsTensorFlowDoes) {
  const TempDir dir;
  { EventFile file(dir / "events", 0, 0.0); }
  const std::string text = read_text(dir / "events");
  ASSERT_GE(text.size(), 12u);
  EXPECT_EQ(little_endian(text, 0, 8), 26u);  // 9 bytes of time, 2 of step, 15 of version
  EXPECT_EQ(records_of(text).size(), 2u);
  std::string damaged = text;
  damaged[14] ^= 1;
  EXPECT_EQ(error_of([&] { records_of(damaged); }), "event file: wrong checksum");
}

}  // namespace
}  // namespace wisp
