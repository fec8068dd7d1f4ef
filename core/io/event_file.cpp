#include "core/io/event_file.h"

#include <bit>
#include <cmath>

#include "core/base/number.h"
#include "core/io/checksum.h"
#include "core/io/protobuf.h"

namespace wisp {
namespace {

// Field numbers of tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto.
constexpr int kEventTime = 1, kEventStep = 2, kEventVersion = 3, kEventSummary = 5, kEventLog = 7;
constexpr int kSummaryValue = 1, kValueTag = 1, kValueSimple = 2;
constexpr int kLogStatus = 1, kStatusStart = 1;

ProtobufWriter event_of(int64_t step, double time) {
  return ProtobufWriter().f64(kEventTime, time).varint(kEventStep, step);
}

/// The masked checksum of a TFRecord. Masking avoids a weak checksum of data that contains
/// checksums.
std::string masked_checksum(std::string_view data) {
  return bytes_of(std::rotr(crc32c(data.data(), data.size()), 15) + 0xa282ead8u);
}

/// An event framed as a TFRecord.
std::string record_of(const ProtobufWriter& event) {
  const std::string& data = event.text();
  const std::string length = bytes_of(uint64_t{data.size()});
  return length + masked_checksum(length) + data + masked_checksum(data);
}

}  // namespace

EventFile::EventFile(const std::string& path, int64_t first_step, double time)
    : file_(path, OutputFile::Mode::replace) {
  const auto started = ProtobufWriter().varint(kLogStatus, kStatusStart);
  file_.write(record_of(event_of(0, time).bytes(kEventVersion, "brain.Event:2")));
  file_.write(record_of(event_of(first_step, time).message(kEventLog, started)));
}

void EventFile::scalars(int64_t step, double time, std::span<const Scalar> values) {
  ProtobufWriter summary;
  for (const auto& [tag, number] : values) {
    if (!std::isfinite(number)) continue;
    const auto value = static_cast<float>(number);
    summary.message(kSummaryValue, ProtobufWriter().bytes(kValueTag, tag).f32(kValueSimple, value));
  }
  file_.write(record_of(event_of(step, time).message(kEventSummary, summary)));
}

}  // namespace wisp
