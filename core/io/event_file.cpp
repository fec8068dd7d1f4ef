#include "core/io/event_file.h"

#include <cmath>

#include "core/io/checksum.h"

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

template <class T>
void append(std::string& text, T value) {
  for (size_t byte = 0; byte < sizeof(T); ++byte)
    text += static_cast<char>((value >> (8 * byte)) & 0xffu);  // little-endian
}

/// Appends the masked checksum of a TFRecord. Masking avoids a weak checksum of data that contains
/// checksums.
void append_masked_checksum(std::string& text, std::string_view data) {
  const uint32_t crc = crc32c(data.data(), data.size());
  append<uint32_t>(text, ((crc >> 15) | (crc << 17)) + 0xa282ead8u);
}

}  // namespace

EventFile::EventFile(const std::string& path, int64_t first_step, double time)
    : file_(path, OutputFile::Mode::replace) {
  ProtobufWriter version = event_of(0, time);
  version.bytes(kEventVersion, "brain.Event:2");
  write(version);
  ProtobufWriter log;
  log.varint(kLogStatus, kStatusStart);
  ProtobufWriter start = event_of(first_step, time);
  start.message(kEventLog, log);
  write(start);
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
  write(event);
}

void EventFile::write(const ProtobufWriter& event) {
  const std::string& data = event.text();
  std::string record;
  append<uint64_t>(record, data.size());
  append_masked_checksum(record, std::string(record));
  record += data;
  append_masked_checksum(record, data);
  file_.write(record);
}

}  // namespace wisp
