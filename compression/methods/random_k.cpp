// Random-k: k drawn elements of each field are sent, and the rest stays in the residual:
//   a <- e + g                        (error feedback; without it a = g, decoded times d / k)
//   draw k of the d positions;  send a there;  e <- a without them
//   every worker: g <- sum over workers of what was sent, 0 elsewhere
// Source: Stich et al. 2018, algorithm 1 with rand_k. Shared seeds, so that values are sent without
// indices, and compressed 1-D tensors: the code of Vogels et al. 2019 (PowerSGD's authors). Scaling
// without feedback: GRACE. The draw of the positions is ours. The field, rotated by a uniform o in
// [0, d), is cut into k strata of floor(d / k) or one more elements, and each stratum gives one
// element, uniformly:
//   position_j = (begin_j + U_j + o) mod d,  U_j uniform in [0, length_j)
// This gives k distinct positions, ascending up to one wrap, in O(k) and in any order of j. A
// random permutation (keyed, cycle-walking) would read memory at random. Because of o, every
// element is in a stratum of length l with probability (strata of length l) l / d, and is then
// drawn with 1 / l. So it is sent with probability k / d exactly, up to the generators' bias, below
// l / 2^32 of that. Mean and variance are those of k out of d without replacement. Only the joint
// distribution differs (never two elements of one stratum), on which they do not depend.
#include "compression/methods/methods.h"
#include "compression/slices.h"
#include "compression/sparse/drawn_code.h"
#include "compression/sparse/sparse_list.h"
#include "core/loops/parallel_rows.h"

namespace wisp {
namespace {

/// The strata of the rotated field. The first `longer` strata have length + 1 elements.
struct Strata {
  Dither dither;
  int64_t length, longer;

  Strata() = default;
  Strata(const Dither& drawing, int64_t numel, int64_t k)
      : dither(drawing), length(numel / k), longer(numel % k) {}
  int64_t stratum_of(int64_t x) const {
    const int64_t border = longer * (length + 1);
    return x < border ? x / (length + 1) : longer + (x - border) / length;
  }
  WISP_HD int64_t drawn(int64_t j) const {
    const int64_t begin = j * length + (j < longer ? j : longer);
    const auto here = static_cast<uint64_t>(length + (j < longer ? 1 : 0));
    return begin + static_cast<int64_t>(dither.bits(j) * here >> 32);
  }
};

/// The strata that touch a piece of a rotated field; the piece begins at arena element `offset`.
struct Piece : RangeRow {
  Strata strata;
  int64_t first, last;  // first and last rotated position of the piece
  int64_t offset;
  int64_t at;    // index of the value of the field's first stratum
  double scale;  // factor of decoded values

  /// Arena element of a stratum; -1 if it lies in another piece.
  WISP_HD int64_t element(int64_t stratum) const {
    const int64_t x = strata.drawn(stratum);
    return first <= x && x <= last ? offset + (x - first) : -1;
  }
};

template <class Value>
struct SendDrawn {
  struct Shared {};
  Source source;
  float most;
  Value* out;
  RowTable<Piece> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const Piece piece = table.row_of(item);
    const int64_t from = piece.from(item);
    const auto scale = static_cast<float>(piece.scale);
    team.each(piece.count(item), [&](int64_t i) {
      const int64_t element = piece.element(from + i);
      if (element < 0) return;
      const Value value = to_wire<Value>(within(most, source.held(element)));
      out[piece.at + from + i] = value;
      source.sent(element, scale * static_cast<float>(value));
    });
  }
};

template <class Value>
struct AddDrawn {
  struct Shared {};
  const Value* in;
  float weight;
  float* into;
  RowTable<Piece> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const Piece piece = table.row_of(item);
    const int64_t from = piece.from(item);
    const auto scale = static_cast<float>(piece.scale);
    team.each(piece.count(item), [&](int64_t i) {
      const int64_t element = piece.element(from + i);
      if (element < 0) return;
      into[element] += weight * (scale * static_cast<float>(in[piece.at + from + i]));
    });
  }
};

class RandomK final : public DrawnCode {
 public:
  using DrawnCode::DrawnCode;

 protected:
  int64_t kept(const Field& field, double ratio) const override {
    return kept_count(ratio, field.numel);
  }
  void encode_drawn(const Stream& stream, const Draws& draws, const Source& source,
                    std::byte* values) const override {
    if (source.accumulates()) parallel_for_ranges(stream, ranges_of(draws.spec), TakeAll{source});
    with_wire_type(draws.values(), [&]<class Value>(Value) {
      auto* out = reinterpret_cast<Value*>(values);
      const float most = largest_summand<Value>(draws.summands());
      over_pieces(stream, draws, SendDrawn<Value>{source, most, out});
    });
  }
  void decode_drawn(const Stream& stream, const Draws& draws, const std::byte* values, float weight,
                    bool add, const Tensor& into) const override {
    if (!add) clear_fields(stream, draws.spec, into);
    with_wire_type(draws.values(), [&]<class Value>(Value) {
      const auto* in = reinterpret_cast<const Value*>(values);
      over_pieces(stream, draws, AddDrawn<Value>{in, weight, into.data<float>()});
    });
  }

 private:
  /// If a stratum lies in two pieces, both visit it, and one of them has its element.
  template <class Kernel>
  static void over_pieces(const Stream& stream, const Draws& draws, const Kernel& kernel) {
    parallel_rows(stream, kernel, RangeRow::kChunk, [&](const auto& put) {
      draws.each([&](const Draw& draw, int64_t at) {
        const int64_t d = draw.field.numel;
        const Strata strata(draw.dither, d, draw.kept);
        each_piece(draw.field, draw.start(), d, [&](int64_t offset, int64_t x, int64_t numel) {
          const int64_t last = x + numel - 1;
          const RangeRow touched{strata.stratum_of(x), strata.stratum_of(last) + 1};
          put({touched, strata, x, last, offset, at, draw.scale}, touched.chunks());
        });
      });
    });
  }
};

const CodeRegistration random_k_registration(
    "random_k", "k elements drawn by a seed, with error feedback (Stich et al. 2018)",
    [](Config& config, const CompressorSetup& setup) -> std::unique_ptr<Code> {
      return make_random_k(bind_drawn(config, setup));
    },
    Feedback::ef);

}  // namespace

std::unique_ptr<Code> make_random_k(const DrawnOptions& options) {
  return std::make_unique<RandomK>(options);
}

}  // namespace wisp
