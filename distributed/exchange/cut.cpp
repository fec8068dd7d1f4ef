#include "distributed/exchange/cut.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/hash.h"

namespace wisp {
namespace {

constexpr int64_t kMinBucketBytes = 64 << 10;
constexpr int64_t kMinBucketBytesOfGpu = 1 << 20;
constexpr int64_t kMaxBucketBytes = 25'000'000;
constexpr int64_t kMaxEncodeBytes = 1 << 20;
constexpr int64_t kBucketsWanted = 8;

/// Replaces -1 by the sizes for gradients of `raw_bytes`.
BucketOptions decided(BucketOptions options, int64_t raw_bytes, bool on_gpu) {
  const int64_t least = on_gpu ? kMinBucketBytesOfGpu : kMinBucketBytes;
  if (options.bucket_bytes < 0)
    options.bucket_bytes = std::clamp(raw_bytes / kBucketsWanted, least, kMaxBucketBytes);
  if (options.encode_bytes < 0)
    options.encode_bytes =
        on_gpu ? options.bucket_bytes : std::min(kMaxEncodeBytes, options.bucket_bytes / 2);
  return options;
}

/// Adds the segment's slice to a field of several segments.
void extend(Field& field, const Segment& segment, bool decays) {
  WISP_CHECK(!decays || field.decay == segment.decay, "parameter ", segment.name,
             segment.decay
                 ? " has weight decay and would be compressed together with others that have none"
                 : " has no weight decay and would be compressed together with others that have it",
             ", but the method applies the decay to all of them or none; give it a rule of its own "
             "in compression.policy, or use compression.scope = \"layer\"");
  field.rows = 1;
  field.slices.push_back({segment.offset, segment.numel});
  field.numel += segment.numel;
}

void add(CutUnit& unit, const Segment& segment, const CutMethod& method) {
  unit.segments.push_back(segment.id);
  unit.numel += segment.numel;
  WISP_CHECK(unit.numel <= kMostUnitElements, "parameter ", segment.name, " of ", segment.numel,
             " elements: a method encodes at most ", kMostUnitElements, " elements at once, ",
             segment.numel > kMostUnitElements
                 ? "so send it dense, by a rule of compression.policy"
                 : concat("with the parameters before it these would be ", unit.numel,
                          "; use a smaller compression.encode_bytes or bucket_bytes, or "
                          "compression.scope = \"layer\""));
  if (method.scope == Scope::layer || unit.fields.empty()) {
    unit.fields.push_back(field_of(segment));
  } else {
    extend(unit.fields.front(), segment, method.decays);
  }
}

uint64_t hash_of(const Cut& cut, std::span<const Segment> segments,
                 std::span<const int> method_of) {
  uint64_t value = hash_text("plan");
  for (const Segment& segment : segments) {
    value = hash_text(segment.name + segment.shape.str(), value);
    value =
        hash_number(static_cast<uint64_t>(method_of[static_cast<size_t>(segment.id)] + 1), value);
  }
  for (const CutUnit& unit : cut.units) {
    value = hash_number(static_cast<uint64_t>(unit.bucket), value);
    for (const int id : unit.segments) value = hash_number(static_cast<uint64_t>(id), value);
  }
  for (const Bucket& bucket : cut.buckets)
    value = hash_number(static_cast<uint64_t>(bucket.raw_bytes), value);
  return value;
}

}  // namespace

Field field_of(const Segment& segment) {
  return {.slices = {{segment.offset, segment.numel}},
          .numel = segment.numel,
          .key = hash_text(segment.name),
          .decay = segment.decay,
          .rows = segment.shape.rank() > 1 ? segment.shape[0] : 1};
}

Cut make_cut(std::span<const Segment> segments, int64_t element_bytes,
             std::span<const int> method_of, std::span<const CutMethod> methods,
             BucketOptions options, Device device) {
  WISP_CHECK(!segments.empty(), "make_cut: the model has no parameters");
  WISP_CHECK(method_of.size() == segments.size(), "make_cut: ", method_of.size(), " methods for ",
             segments.size(), " segments");
  int64_t raw_bytes = 0;
  for (const Segment& segment : segments) raw_bytes += segment.numel * element_bytes;
  const auto [bucket_bytes, encode_bytes] = decided(options, raw_bytes, device.is_cuda());
  Cut cut{.bucket_bytes = bucket_bytes};
  std::vector<int> open(methods.size(), -1);  // by method: the unit that the next segment may join
  for (const Segment& segment : segments) {
    if (cut.buckets.empty() || cut.buckets.back().raw_bytes >= bucket_bytes) {
      cut.buckets.emplace_back();
      for (size_t m = 0; m < open.size(); ++m)
        if (methods[m].scope != Scope::model) open[m] = -1;
    }
    Bucket& bucket = cut.buckets.back();
    bucket.raw_bytes += segment.numel * element_bytes;
    const int method = method_of[static_cast<size_t>(segment.id)];
    if (method == kDense) {
      bucket.dense.push_back(segment.id);
      continue;
    }
    const Scope scope = methods[static_cast<size_t>(method)].scope;
    int& unit = open[static_cast<size_t>(method)];
    const bool full = unit >= 0 && scope == Scope::layer &&
                      cut.units[static_cast<size_t>(unit)].numel * element_bytes >= encode_bytes;
    if (unit < 0 || full) {
      unit = static_cast<int>(cut.units.size());
      cut.units.push_back({.method = method, .bucket = static_cast<int>(cut.buckets.size()) - 1});
      if (scope != Scope::model) bucket.units.push_back(unit);
    }
    add(cut.units[static_cast<size_t>(unit)], segment, methods[static_cast<size_t>(method)]);
  }
  for (size_t m = 0; m < open.size(); ++m) {  // units of the model travel with the last bucket
    if (methods[m].scope != Scope::model || open[m] < 0) continue;
    cut.units[static_cast<size_t>(open[m])].bucket = static_cast<int>(cut.buckets.size()) - 1;
    cut.buckets.back().units.push_back(open[m]);
  }
  cut.hash = hash_of(cut, segments, method_of);
  return cut;
}

}  // namespace wisp
