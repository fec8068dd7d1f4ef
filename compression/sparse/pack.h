// The sparse wire: lists of positions and values as bytes. A unit's payload is, all little-endian,
//   u32 entries[...]    entries of each field; with 16-bit runs, of each but the last, which
//                       follows from the payload's size
//   values              field after field, ascending positions: f32, f16 or bf16; or natural: a
//                       byte of exponent each, then a bit of sign each, lowest bit first
//   indices             the positions (sparse_index.h), aligned to their words; zeros between
// Source: Lin et al. 2018, section 4 (f32 and 16-bit runs: 6 bytes an entry).
#pragma once

#include "compression/sparse/sparse_index.h"

namespace wisp {

/// Packs and reads lists. A value; any thread.
class SparseWire {
 public:
  constexpr SparseWire(WireFormat values, Indices indices) : values_(values), indices_(indices) {}

  /// The most bytes of a payload. Throws Error if a position does not fit into 32 bits.
  int64_t capacity(const UnitSpec& spec, const Room& room) const;
  /// Bytes of scratch for pack, and for unpack until the last use of its list; 8-byte aligned.
  int64_t scratch_bytes(const UnitSpec& spec, const Room& room) const;
  /// Bytes of scratch for encode.
  int64_t encode_bytes(const UnitSpec& spec, const Room& room, Selection::Kind kind) const;

  /// Selects entries of each field, at most room's share, and packs them. An entry that the format
  /// would round to zero is not sent. `source_of(field)` gives the field's Source: take(i) is
  /// called once per element, sent(i, value) for each sent element.
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

  /// Writes `list`, and the number of used bytes to outlet.used. The format must represent its
  /// values.
  void pack(const Stream& stream, const UnitSpec& spec, const Room& room, const SparseList& list,
            const Outlet& outlet, std::byte* scratch) const;

  /// The payload's list, in scratch. Escapes of 16-bit runs are entries of value 0. A malformed
  /// payload gives some list within the fields.
  SparseList unpack(const Stream& stream, const UnitSpec& spec, const Room& room,
                    const Payload& payload, std::byte* scratch) const;

  /// Writes weight · the sum of the payloads, in their order, into the unit's slices of the arena
  /// `into`, with zeros elsewhere; `add` adds it.
  void decode(const Stream& stream, const UnitSpec& spec, const Room& room,
              std::span<const Payload> payloads, float weight, bool add, const Tensor& into,
              std::byte* scratch) const;

 private:
  /// Scratch of encode.
  struct Encoding {
    SparseList list;
    std::byte* work;  // scratch of the selection, then of pack

    Encoding(Cursor& cursor, const SparseWire& wire, const UnitSpec& spec, const Room& room,
             Selection::Kind kind);
  };

  const IndexFormat& index(const UnitSpec& spec, const Room& room) const;
  /// Writes the rows of the fields for read()'s kernels to scratch.
  void put_rows(const Stream& stream, const UnitSpec& spec, const Room& room,
                std::byte* scratch) const;
  /// Reads the payload's list; adds weight · list to the arena `into` unless that is null.
  SparseList read(const Stream& stream, const UnitSpec& spec, const Room& room,
                  const Payload& payload, float weight, float* into, std::byte* scratch) const;

  WireFormat values_;
  Indices indices_;
};

}  // namespace wisp
