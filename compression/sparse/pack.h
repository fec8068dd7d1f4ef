// The sparse wire: lists of positions and values as bytes. A unit's payload is
//   u32 entries[...]    of each field; with 16-bit runs of each but the last, which the payload's
//                       size tells
//   values              field after field, ascending positions: f32, f16 or bf16; or natural: a
//                       byte of exponent each, then a bit of sign each, lowest bit first
//   indices             as sparse_index.h says, aligned to its words; zeros between
// all little-endian. Source: Lin et al. 2018, section 4 (f32 and 16-bit runs: 6 bytes an entry).
#pragma once

#include "compression/sparse/sparse_index.h"

namespace wisp {

/// Packs and reads lists. A value; any thread.
class SparseWire {
 public:
  constexpr SparseWire(WireFormat values, Indices indices) : values_(values), indices_(indices) {}
  /// Binds compression.values and compression.indices.
  explicit SparseWire(Config& config)
      : values_(bind_values(config)), indices_(bind_indices(config)) {}

  /// The most bytes a payload can have.
  int64_t capacity(const UnitSpec& spec, const Room& room) const;
  /// Scratch of pack, and of unpack up to the last use of its list; 8-byte aligned.
  int64_t scratch_bytes(const UnitSpec& spec, const Room& room) const;
  /// Scratch of encode.
  int64_t encode_bytes(const UnitSpec& spec, const Room& room, Selection::Kind kind) const;

  /// Selects what of each field travels, at most room's share, and packs it; what the format would
  /// round to zero does not. `source_of(field)` gives the field's Source: take(i) is called once
  /// per element, sent(i, value) for what travels.
  template <class SourceOf>
  void encode(const Stream& stream, const UnitSpec& spec, const StepInfo& info,
              const Selection& selection, const SourceOf& source_of, const Outlet& outlet,
              std::byte* scratch) const {
    const Room room{info.ratio};
    const auto parts = lay_out<Encoding>(scratch, *this, spec, room, selection.kind);
    Selection not_zero = selection;
    not_zero.least = least_magnitude(values_);
    const auto fields =
        select_list(stream, spec, room, info, not_zero, source_of, parts.list, parts.work);
    take_values(stream, fields, values_, parts.list);
    pack(stream, spec, room, parts.list, outlet, parts.work);
  }

  /// Writes `list`, whose values the format can hold, and the bytes in use to outlet.used.
  void pack(const Stream& stream, const UnitSpec& spec, const Room& room, const SparseList& list,
            const Outlet& outlet, std::byte* scratch) const;

  /// The payload's list, in scratch; escapes of 16-bit runs are entries of value 0. Of a malformed
  /// payload it is some list within the fields.
  SparseList unpack(const Stream& stream, const UnitSpec& spec, const Room& room,
                    const Payload& payload, std::byte* scratch) const;

  /// Writes weight · the sum of the payloads, in their order, into the unit's slices of the arena
  /// `into`, zeros elsewhere; or adds it.
  void decode(const Stream& stream, const UnitSpec& spec, const Room& room,
              std::span<const Payload> payloads, float weight, bool add, const Tensor& into,
              std::byte* scratch) const;

 private:
  /// The parts of encode's scratch.
  struct Encoding {
    SparseList list;
    std::byte* work;  // of the selection, then of pack

    Encoding(Cursor& cursor, const SparseWire& wire, const UnitSpec& spec, const Room& room,
             Selection::Kind kind);
  };

  const IndexFormat& index(const UnitSpec& spec, const Room& room) const;
  /// What read's kernels know of the fields, in scratch.
  void put_rows(const Stream& stream, const UnitSpec& spec, const Room& room,
                std::byte* scratch) const;
  /// The payload's list; adds weight times that to the arena `into`, if that is not null.
  SparseList read(const Stream& stream, const UnitSpec& spec, const Room& room,
                  const Payload& payload, float weight, float* into, std::byte* scratch) const;

  WireFormat values_;
  Indices indices_;
};

}  // namespace wisp
