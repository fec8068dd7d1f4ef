// The sparse wire of top-k and DGC: the k largest values of each field, and the runs of zeros
// between them in 16 bits. A unit's payload is
//   u32 entries[fields - 1]    entries of each field but the last
//   value values[entries]      f32 or f16, field after field, ascending positions
//   u16 runs[entries]          zeros before each entry, counted from the field's entry before
// A gap of 65536 or more is cut by entries of run 65535 and value 0, each 65536 positions long. A
// field's k values leave numel - k zeros, so it needs at most (numel - k) / 65536 such escapes:
// bytes = (value + 2) · Σ(k + escapes) + 4 · (fields - 1).
// Source: Lin et al. 2018, section 4 (16-bit run lengths); the escape is ours.
#pragma once

#include "compression/select.h"
#include "compression/wire_value.h"

namespace wisp {

/// Sizes of a unit's payload.
class SparseWire {
 public:
  /// `values` is f32 or f16.
  explicit SparseWire(DType values) : values_(values) {}
  /// Binds compression.values.
  explicit SparseWire(Config& config);

  DType values() const { return values_; }
  int64_t entry_bytes() const { return size_of(values_) + 2; }
  /// The most bytes a payload can have.
  int64_t capacity(const UnitSpec& spec, double ratio) const;
  /// Scratch of encode and decode; 8-byte aligned.
  int64_t scratch_bytes(const UnitSpec& spec, double ratio) const;

  /// Selects and packs the kept_count(ratio) largest values of each field. `source_of(field)` gives
  /// the field's Source: take(i) is called once per element, sent(i, value) for what travels.
  template <class SourceOf>
  void encode(const Stream& stream, const UnitSpec& spec, const StepInfo& info,
              const SourceOf& source_of, const Outlet& outlet, std::byte* scratch) const;

  /// Writes weight · payload into the unit's slices of the arena `into`, zeros elsewhere; or adds
  /// it. A malformed payload never reads or writes out of bounds: it throws Error on the CPU and
  /// adds nothing beyond its own field on CUDA.
  void decode(const Stream& stream, const UnitSpec& spec, double ratio, const Payload& payload,
              float weight, bool add, const Tensor& into, std::byte* scratch) const;

 private:
  DType values_;
};

namespace pack {

constexpr int64_t kChunk = 256;       // entries a kernel call walks in order
constexpr int64_t kEscape = 1 << 16;  // positions that an escape is long

inline int64_t chunks_of(int64_t count) { return (count + kChunk - 1) / kChunk; }

/// The parts of a unit's scratch while it is encoded: lists of all fields, one after the other.
struct EncodeScratch {
  int64_t* entries;     // of the unit so far
  int64_t* chunk;       // first entry of each chunk of positions
  uint32_t* positions;  // selected, ascending per field
  std::byte* select;

  static int64_t bytes(const UnitSpec& spec, double ratio);
  EncodeScratch(std::byte* memory, const UnitSpec& spec, double ratio);
};

void begin(const Stream& stream, const EncodeScratch& scratch);
/// Numbers the entries of a field's `k` positions; `count` gets their number (null: nobody asks).
void number_entries(const Stream& stream, const uint32_t* positions, int64_t k, int64_t* chunk,
                    int64_t* entries, uint32_t* count);
void finish(const Stream& stream, const EncodeScratch& scratch, int64_t fields, int64_t entry_bytes,
            int64_t* used);

/// Writes the entries of a chunk of a field's positions that lie in one slice.
template <class Source, class Value>
struct WriteEntries {
  Source source;
  const uint32_t* positions;
  int64_t k;
  const int64_t* chunk;    // first entry of each chunk
  const int64_t* entries;  // of the unit
  std::byte* values;
  int64_t begin, end, shift;  // field positions of the slice; arena index - field position
  WISP_HD void operator()(int64_t c) const {
    const int64_t from = c * kChunk;
    const int64_t to = from + kChunk < k ? from + kChunk : k;
    if (positions[to - 1] < begin || end <= positions[from]) return;
    Value* value = reinterpret_cast<Value*>(values);
    uint16_t* run = reinterpret_cast<uint16_t*>(value + *entries);
    int64_t entry = chunk[c];
    int64_t next = from > 0 ? static_cast<int64_t>(positions[from - 1]) + 1 : 0;
    for (int64_t j = from; j < to; ++j) {
      const int64_t position = positions[j];
      const bool here = begin <= position && position < end;
      int64_t gap = position - next;
      for (; gap >= kEscape; gap -= kEscape, ++entry) {
        if (!here) continue;
        value[entry] = Value(0.0f);
        run[entry] = static_cast<uint16_t>(kEscape - 1);
      }
      if (here) {
        value[entry] = to_wire<Value>(source.held(position + shift));
        run[entry] = static_cast<uint16_t>(gap);
        source.sent(position + shift, static_cast<float>(value[entry]));
      }
      ++entry;
      next = position + 1;
    }
  }
};

template <class Value, class Source>
void write_field(const Stream& stream, const Field& field, const Source& source,
                 const uint32_t* positions, int64_t k, const int64_t* chunk, const int64_t* entries,
                 std::byte* values) {
  int64_t begin = 0;
  for (const Slice& slice : field.slices) {
    const int64_t end = begin + slice.numel;
    parallel_for(stream, chunks_of(k),
                 WriteEntries<Source, Value>{source, positions, k, chunk, entries, values, begin,
                                             end, slice.offset - begin});
    begin = end;
  }
}

}  // namespace pack

template <class SourceOf>
void SparseWire::encode(const Stream& stream, const UnitSpec& spec, const StepInfo& info,
                        const SourceOf& source_of, const Outlet& outlet, std::byte* memory) const {
  using namespace pack;
  WISP_CHECK(outlet.capacity >= capacity(spec, info.ratio), "sparse wire: the unit may need ",
             capacity(spec, info.ratio), " bytes, the outlet has ", outlet.capacity);
  const EncodeScratch scratch(memory, spec, info.ratio);
  const auto fields = static_cast<int64_t>(spec.fields.size());
  auto* counts = reinterpret_cast<uint32_t*>(outlet.data);
  std::byte* values = outlet.data + 4 * (fields - 1);

  pack::begin(stream, scratch);
  uint32_t* positions = scratch.positions;
  int64_t* chunk = scratch.chunk;
  for (int64_t f = 0; f < fields; ++f) {
    const Field& field = spec.fields[static_cast<size_t>(f)];
    const int64_t k = kept_count(info.ratio, field.numel);
    const Philox random(info.seed, static_cast<uint64_t>(info.step), field.key);
    select_topk(stream, field, source_of(field), k, random, positions, scratch.select);
    number_entries(stream, positions, k, chunk, scratch.entries,
                   f + 1 < fields ? counts + f : nullptr);
    positions += k;
    chunk += chunks_of(k);
  }
  finish(stream, scratch, fields, entry_bytes(), outlet.used);

  positions = scratch.positions;
  chunk = scratch.chunk;
  for (const Field& field : spec.fields) {
    const int64_t k = kept_count(info.ratio, field.numel);
    const auto source = source_of(field);
    if (values_ == DType::f16) {
      write_field<Half>(stream, field, source, positions, k, chunk, scratch.entries, values);
    } else {
      write_field<float>(stream, field, source, positions, k, chunk, scratch.entries, values);
    }
    positions += k;
    chunk += chunks_of(k);
  }
}

}  // namespace wisp
