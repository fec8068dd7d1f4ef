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

/// Adds the segment's slice to a field of several segments.
void extend(Field& field, const Segment& segment, bool decays) {
  if (field.slices.empty()) {
    field = field_of(segment);
    return;
  }
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

class Cutter {
 public:
  Cutter(std::span<const Segment> segments, int64_t element_bytes, std::span<const int> method_of,
         std::span<const CutMethod> methods, BucketOptions options, Device device)
      : segments_(segments),
        element_bytes_(element_bytes),
        method_of_(method_of),
        methods_(methods) {
    int64_t raw = 0;
    for (const Segment& segment : segments) raw += segment.numel * element_bytes;
    const int64_t least = device.is_cuda() ? kMinBucketBytesOfGpu : kMinBucketBytes;
    bucket_bytes_ = options.bucket_bytes >= 0
                        ? options.bucket_bytes
                        : std::clamp(raw / kBucketsWanted, least, kMaxBucketBytes);
    encode_bytes_ = options.encode_bytes >= 0 ? options.encode_bytes
                    : device.is_cuda()        ? bucket_bytes_
                                              : std::min(kMaxEncodeBytes, bucket_bytes_ / 2);
    open_unit_.assign(methods.size(), -1);
    model_unit_.assign(methods.size(), -1);
  }

  Cut run() {
    for (const Segment& segment : segments_) {
      if (cut_.buckets.empty() || cut_.buckets.back().raw_bytes >= bucket_bytes_) open_bucket();
      cut_.buckets.back().raw_bytes += segment.numel * element_bytes_;
      const int method = method_of_[static_cast<size_t>(segment.id)];
      if (method == kDense) {
        cut_.buckets.back().dense.push_back(segment.id);
      } else {
        add(unit_for(method), segment);
      }
    }
    for (const int unit : model_unit_) {
      if (unit < 0) continue;
      cut_.units[static_cast<size_t>(unit)].bucket = static_cast<int>(cut_.buckets.size()) - 1;
      cut_.buckets.back().units.push_back(unit);
    }
    cut_.bucket_bytes = bucket_bytes_;
    cut_.hash = hash();
    return std::move(cut_);
  }

 private:
  void open_bucket() {
    cut_.buckets.emplace_back();
    std::fill(open_unit_.begin(), open_unit_.end(), -1);
  }

  /// The unit that the next segment of `method` joins.
  CutUnit& unit_for(int method) {
    const auto m = static_cast<size_t>(method);
    const Scope scope = methods_[m].scope;
    int& open = scope == Scope::model ? model_unit_[m] : open_unit_[m];
    const bool full = open >= 0 && scope == Scope::layer &&
                      cut_.units[static_cast<size_t>(open)].numel * element_bytes_ >= encode_bytes_;
    if (open < 0 || full) {
      open = static_cast<int>(cut_.units.size());
      cut_.units.push_back({method, {}, {}, 0, static_cast<int>(cut_.buckets.size()) - 1});
      if (scope != Scope::model) cut_.buckets.back().units.push_back(open);
    }
    return cut_.units[static_cast<size_t>(open)];
  }

  void add(CutUnit& unit, const Segment& segment) {
    unit.segments.push_back(segment.id);
    unit.numel += segment.numel;
    const CutMethod& method = methods_[static_cast<size_t>(unit.method)];
    if (method.scope == Scope::layer) {
      unit.fields.push_back(field_of(segment));
    } else {
      if (unit.fields.empty()) unit.fields.emplace_back();
      extend(unit.fields.front(), segment, method.decays);
    }
  }

  uint64_t hash() const {
    uint64_t value = hash_text("plan");
    for (const Segment& segment : segments_) {
      value = hash_text(segment.name + segment.shape.str(), value);
      value = hash_number(static_cast<uint64_t>(method_of_[static_cast<size_t>(segment.id)] + 1),
                          value);
    }
    for (const CutUnit& unit : cut_.units) {
      value = hash_number(static_cast<uint64_t>(unit.bucket), value);
      for (const int id : unit.segments) value = hash_number(static_cast<uint64_t>(id), value);
    }
    for (const Bucket& bucket : cut_.buckets)
      value = hash_number(static_cast<uint64_t>(bucket.raw_bytes), value);
    return value;
  }

  std::span<const Segment> segments_;
  int64_t element_bytes_;
  std::span<const int> method_of_;
  std::span<const CutMethod> methods_;
  int64_t bucket_bytes_ = 0;
  int64_t encode_bytes_ = 0;
  std::vector<int> open_unit_;   // by method: the unit that still takes segments of this bucket
  std::vector<int> model_unit_;  // indexed by method: the one unit of Scope::model
  Cut cut_;
};

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
  return Cutter(segments, element_bytes, method_of, methods, options, device).run();
}

}  // namespace wisp
