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
  ProtobufWriter event;
  event.f64(kEventTime, time);
  event.varint(kEventStep, step);
  return event;
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
  ProtobufWriter version = event_of(0, time);
  version.bytes(kEventVersion, "brain.Event:2");
  file_.write(record_of(version));
  ProtobufWriter log;
  log.varint(kLogStatus, kStatusStart);
  ProtobufWriter start = event_of(first_step, time);
  start.message(kEventLog, log);
  file_.write(record_of(start));
}

void EventFile::scalars(int64_t step, double time, std::span<const Scalar> values) {
  ProtobufWriter summary;
  for (const auto& [tag, number] : values) {
    if (!std::isfinite(number)) continue;
    ProtobufWriter value;
    value.bytes(kValueTag, tag);
    value.f32(kValueSimple, static_cast<float>(number));
    summary.message(kSummaryValue, value);
  }
  ProtobufWriter event = event_of(step, time);
  event.message(kEventSummary, summary);
  file_.write(record_of(event));
}

}  // namespace wisp
