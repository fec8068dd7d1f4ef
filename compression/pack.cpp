#include "compression/pack.h"

#include <string>

#include "core/norm.h"

namespace wisp {
namespace pack {
namespace {

int64_t padded(int64_t bytes) { return (bytes + 7) / 8 * 8; }

int64_t most_entries(int64_t numel, double ratio) {
  const int64_t k = kept_count(ratio, numel);
  return k + (numel - k) / kEscape;
}

int64_t most_entries(const UnitSpec& spec, double ratio) {
  int64_t entries = 0;
  for (const Field& field : spec.fields) entries += most_entries(field.numel, ratio);
  return entries;
}

// ---------------------------------------------------------------- encode

struct Begin {
  int64_t* entries;
  WISP_HD void operator()() const { *entries = 0; }
};

/// How many entries a chunk of positions becomes: one each, and the escapes before it.
struct CountEntries {
  const uint32_t* positions;
  int64_t k;
  int64_t* chunk;
  WISP_HD void operator()(int64_t c) const {
    const int64_t from = c * kChunk;
    const int64_t to = from + kChunk < k ? from + kChunk : k;
    int64_t next = from > 0 ? static_cast<int64_t>(positions[from - 1]) + 1 : 0;
    int64_t entries = 0;
    for (int64_t j = from; j < to; ++j) {
      entries += 1 + (positions[j] - next) / kEscape;
      next = static_cast<int64_t>(positions[j]) + 1;
    }
    chunk[c] = entries;
  }
};

struct ScanEntries {
  int64_t* chunk;
  int64_t chunks;
  int64_t* entries;
  uint32_t* count;
  WISP_HD void operator()() const {
    const int64_t before = *entries;
    int64_t total = before;
    for (int64_t c = 0; c < chunks; ++c) {
      const int64_t here = chunk[c];
      chunk[c] = total;
      total += here;
    }
    *entries = total;
    if (count) *count = static_cast<uint32_t>(total - before);
  }
};

struct Finish {
  const int64_t* entries;
  int64_t fields, entry_bytes;
  int64_t* used;
  WISP_HD void operator()() const { *used = 4 * (fields - 1) + *entries * entry_bytes; }
};

// ---------------------------------------------------------------- decode

/// The parts of a unit's scratch while a payload is decoded.
struct DecodeScratch {
  int64_t* first;   // [fields + 1] first entry of each field
  int64_t* chunks;  // [fields] chunks of entries of each field
  int64_t* chunk;   // position before the first entry of each chunk of the field under way

  static int64_t bytes(const UnitSpec& spec, double ratio) {
    const auto fields = static_cast<int64_t>(spec.fields.size());
    return 8 * (2 * fields + 1 + chunks_of(most_entries(spec, ratio)));
  }
  DecodeScratch(std::byte* memory, int64_t fields)
      : first(reinterpret_cast<int64_t*>(memory)),
        chunks(first + fields + 1),
        chunk(chunks + fields) {}
};

/// Where each field's entries begin; counts beyond the payload are cut.
struct Split {
  const uint32_t* counts;
  int64_t fields, entries;
  DecodeScratch scratch;
  WISP_HD void operator()() const {
    int64_t at = 0;
    for (int64_t f = 0; f < fields; ++f) {
      const int64_t left = entries - at;
      const int64_t stated = f + 1 < fields ? static_cast<int64_t>(counts[f]) : left;
      const int64_t here = stated < left ? stated : left;
      scratch.first[f] = at;
      scratch.chunks[f] = (here + kChunk - 1) / kChunk;
      at += here;
    }
    scratch.first[fields] = at;
  }
};

/// How many positions a chunk of a field's entries is long.
struct Length {
  const uint16_t* runs;
  const int64_t* first;  // of the field; first[1] is the next one's
  int64_t* chunk;
  WISP_HD void operator()(int64_t c) const {
    const int64_t from = first[0] + c * kChunk;
    const int64_t to = from + kChunk < first[1] ? from + kChunk : first[1];
    int64_t length = 0;
    for (int64_t entry = from; entry < to; ++entry) length += runs[entry] + 1;
    chunk[c] = length;
  }
};

struct ScanLengths {
  int64_t* chunk;
  const int64_t* chunks;
  WISP_HD void operator()() const {
    int64_t total = 0;
    for (int64_t c = 0; c < *chunks; ++c) {
      const int64_t here = chunk[c];
      chunk[c] = total;
      total += here;
    }
  }
};

/// Adds a chunk's entries that lie in one slice.
template <class Value>
struct AddEntries {
  const Value* values;
  const uint16_t* runs;
  const int64_t* first;
  const int64_t* chunk;
  float weight;
  int64_t begin, end;  // field positions of the slice
  float* into;         // the slice
  WISP_HD void operator()(int64_t c) const {
    const int64_t from = first[0] + c * kChunk;
    const int64_t to = from + kChunk < first[1] ? from + kChunk : first[1];
    int64_t position = chunk[c] - 1;
    for (int64_t entry = from; entry < to && position < end; ++entry) {
      position += runs[entry] + 1;
      if (begin <= position && position < end)
        into[position - begin] += weight * static_cast<float>(values[entry]);
    }
  }
};

template <class Value>
void add_field(const Stream& stream, const Field& field, const std::byte* values, int64_t entries,
               const DecodeScratch& scratch, int64_t f, float weight, float* into) {
  const Value* value = reinterpret_cast<const Value*>(values);
  const uint16_t* runs = reinterpret_cast<const uint16_t*>(value + entries);
  const int64_t* first = scratch.first + f;
  const int64_t* chunks = scratch.chunks + f;
  const int64_t most = chunks_of(entries);
  parallel_for_counted(stream, chunks, most, Length{runs, first, scratch.chunk});
  run_once(stream, ScanLengths{scratch.chunk, chunks});
  int64_t begin = 0;
  for (const Slice& slice : field.slices) {
    const int64_t end = begin + slice.numel;
    parallel_for_counted(stream, chunks, most,
                         AddEntries<Value>{value, runs, first, scratch.chunk, weight, begin, end,
                                           into + slice.offset});
    begin = end;
  }
}

/// What is wrong with the counts and runs of a payload in host memory; empty if nothing is.
std::string complaint(const UnitSpec& spec, const uint32_t* counts, const uint16_t* runs,
                      int64_t entries) {
  const size_t fields = spec.fields.size();
  int64_t at = 0;
  for (size_t f = 0; f < fields; ++f) {
    const int64_t here = f + 1 < fields ? static_cast<int64_t>(counts[f]) : entries - at;
    if (here > entries - at)
      return concat("field ", f, " states ", here, " entries, ", entries - at, " are left");
    int64_t length = 0;
    for (int64_t entry = at; entry < at + here; ++entry) length += runs[entry] + 1;
    if (length > spec.fields[f].numel)
      return concat("field ", f, "'s runs reach position ", length - 1, ", it has ",
                    spec.fields[f].numel, " elements");
    at += here;
  }
  return {};
}

/// Throws, in stream order, for a payload that is not well-formed. CPU streams only.
void check_on_host(const Stream& stream, const UnitSpec& spec, const Payload& payload,
                   const std::byte* values, int64_t value_bytes, int64_t entries) {
  stream.submit([=] {
    const std::string wrong =
        complaint(spec, reinterpret_cast<const uint32_t*>(payload.data),
                  reinterpret_cast<const uint16_t*>(values + value_bytes * entries), entries);
    WISP_CHECK(wrong.empty(), "sparse payload of rank ", payload.from, ": ", wrong);
  });
}

}  // namespace

int64_t EncodeScratch::bytes(const UnitSpec& spec, double ratio) {
  int64_t selected = 0, chunks = 0, select = 0;
  for (const Field& field : spec.fields) {
    const int64_t k = kept_count(ratio, field.numel);
    selected += k;
    chunks += chunks_of(k);
    select = std::max(select, select_topk_bytes(field, k));
  }
  return 8 * (1 + chunks) + padded(4 * selected) + select;
}

EncodeScratch::EncodeScratch(std::byte* memory, const UnitSpec& spec, double ratio) {
  int64_t selected = 0, chunks = 0;
  for (const Field& field : spec.fields) {
    const int64_t k = kept_count(ratio, field.numel);
    selected += k;
    chunks += chunks_of(k);
  }
  entries = reinterpret_cast<int64_t*>(memory);
  chunk = entries + 1;
  positions = reinterpret_cast<uint32_t*>(chunk + chunks);
  select = memory + 8 * (1 + chunks) + padded(4 * selected);
}

void begin(const Stream& stream, const EncodeScratch& scratch) {
  run_once(stream, Begin{scratch.entries});
}

void number_entries(const Stream& stream, const uint32_t* positions, int64_t k, int64_t* chunk,
                    int64_t* entries, uint32_t* count) {
  parallel_for(stream, chunks_of(k), CountEntries{positions, k, chunk});
  run_once(stream, ScanEntries{chunk, chunks_of(k), entries, count});
}

void finish(const Stream& stream, const EncodeScratch& scratch, int64_t fields, int64_t entry_bytes,
            int64_t* used) {
  run_once(stream, Finish{scratch.entries, fields, entry_bytes, used});
}

}  // namespace pack

using namespace pack;

SparseWire::SparseWire(Config& config) {
  std::string values = "f32";
  config.bind("compression.values", values, "how sparse methods send values: f32 or f16");
  WISP_CHECK(values == "f32" || values == "f16", config.where("compression.values"),
             ": compression.values is '", values, "', expected f32 or f16");
  values_ = values == "f32" ? DType::f32 : DType::f16;
}

int64_t SparseWire::capacity(const UnitSpec& spec, double ratio) const {
  const auto fields = static_cast<int64_t>(spec.fields.size());
  return 4 * (fields - 1) + entry_bytes() * most_entries(spec, ratio);
}

int64_t SparseWire::scratch_bytes(const UnitSpec& spec, double ratio) const {
  return std::max(EncodeScratch::bytes(spec, ratio), DecodeScratch::bytes(spec, ratio));
}

void SparseWire::decode(const Stream& stream, const UnitSpec& spec, double ratio,
                        const Payload& payload, float weight, bool add, const Tensor& into,
                        std::byte* memory) const {
  const auto fields = static_cast<int64_t>(spec.fields.size());
  const int64_t least = 4 * (fields - 1);
  const int64_t entries = (payload.bytes - least) / entry_bytes();
  WISP_CHECK(least <= payload.bytes && payload.bytes <= capacity(spec, ratio) &&
                 least + entries * entry_bytes() == payload.bytes,
             "sparse payload of rank ", payload.from, " has ", payload.bytes, " bytes, expected ",
             least, " + ", entry_bytes(), " per entry, at most ", capacity(spec, ratio));
  const std::byte* values = payload.data + least;
  if (!stream.device().is_cuda())
    check_on_host(stream, spec, payload, values, size_of(values_), entries);
  if (!add) {
    for (const Field& field : spec.fields) {
      for (const Slice& slice : field.slices)
        fill_zero(stream, into.slice(slice.offset, {slice.numel}));
    }
  }
  float* arena = into.data<float>();
  const DecodeScratch scratch(memory, fields);
  run_once(stream,
           Split{reinterpret_cast<const uint32_t*>(payload.data), fields, entries, scratch});
  for (int64_t f = 0; f < fields; ++f) {
    const Field& field = spec.fields[static_cast<size_t>(f)];
    if (values_ == DType::f16) {
      add_field<Half>(stream, field, values, entries, scratch, f, weight, arena);
    } else {
      add_field<float>(stream, field, values, entries, scratch, f, weight, arena);
    }
  }
}

}  // namespace wisp
