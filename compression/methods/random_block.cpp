// Random-block sparsification: one block of consecutive elements of each field is sent, and the
// rest stays in the residual. With start s, uniform in [0, d), and B elements, at step t:
//   a <- e + g                                   (error feedback; without it a = g)
//   send a_i for i = s, s + 1, …, s + B - 1 (mod d);   e <- a without them
//   every worker: g_i <- sum over workers of what was sent, 0 outside
// compression.block selects the length of a block: "ratio": B = kept_count(ratio, d); "rank": B =
// min(d, r (rows + columns)), the numbers of rank-r PowerSGD. The only work is copying. Source:
// Foroutan & Jaggi 2020, "Sparse communication for training deep networks". Only its abstract was
// available, so this is a reconstruction. The algorithm is that of the code of Vogels et al. 2019
// (PowerSGD; UniformRandomSparseBlockReducer, RandomSparseBlockReducer), from the same group: per
// tensor, wrap-around, the same starts everywhere, residual, momentum and decay after the mean, 1-D
// tensors compressed too (with "rank" they are sent whole). Ours: ceil instead of floor in B;
// starts drawn by field and step, not by one generator. Sharing, feedback, the place of momentum
// and the scope are options, because it is unknown which of them are the paper's three parameters.
#include "compression/methods/methods.h"
#include "compression/slices.h"
#include "compression/sparse/drawn_code.h"
#include "compression/sparse/select.h"
#include "core/loops/parallel_rows.h"

namespace wisp {
namespace {

template <class Value>
struct SendBlock {
  Source source;
  int64_t offset;
  float most, scale;
  Value* out;
  WISP_HD void operator()(int64_t i) const {
    const Value value = to_wire<Value>(within(most, source.take(offset + i)));
    out[i] = value;
    source.sent(offset + i, scale * static_cast<float>(value));
  }
};

/// Sends a block with a residual and no masking; short enough to be vectorised.
template <class Value>
struct SendBlockOfSum {
  const float* gradient;
  float* residual;
  float gain, most;
  Value* out;
  WISP_HD void operator()(int64_t i) const {
    const float a = gain * residual[i] + gradient[i];
    const Value value = to_wire<Value>(within(most, a));
    assign(out + i, value);
    const float part = static_cast<float>(value);
    residual[i] = a == part ? 0.0f : a - part;
  }
};

template <class Value>
struct ReceiveBlock {
  const Value* in;
  float scale, weight;
  bool add;
  float* into;
  WISP_HD void operator()(int64_t i) const {
    const float part = weight * (scale * static_cast<float>(in[i]));
    into[i] = add ? into[i] + part : part;
  }
};

/// A piece of a field's block in the arena.
struct BlockRow : RangeRow {
  int64_t at;    // index of its first value
  double scale;  // factor of decoded values

  /// Index of the value of an item's first element.
  WISP_HD int64_t value(int64_t item) const { return at + from(item) - begin; }
};

template <class Value>
struct SendDrawnBlocks {
  struct Shared {};
  Source source;
  bool of_sum;
  float most;
  Value* out;
  RowTable<BlockRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const BlockRow& row = table.row_of(item);
    const int64_t from = row.from(item);
    Value* to = out + row.value(item);
    if (of_sum) {
      team.each(row.count(item), SendBlockOfSum<Value>{source.gradient + from, source.kept + from,
                                                       source.gain, most, to});
    } else {
      team.each(row.count(item),
                SendBlock<Value>{source, from, most, static_cast<float>(row.scale), to});
    }
  }
};

template <class Value>
struct ReceiveBlocks {
  struct Shared {};
  const Value* in;
  float weight;
  bool add;
  float* into;
  RowTable<BlockRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const BlockRow& row = table.row_of(item);
    team.each(row.count(item),
              ReceiveBlock<Value>{in + row.value(item), static_cast<float>(row.scale), weight, add,
                                  into + row.from(item)});
  }
};

class RandomBlock final : public DrawnCode {
 public:
  explicit RandomBlock(const RandomBlockOptions& options)
      : DrawnCode(options.drawn), rank_(options.rank) {}

  Traits traits() const override {
    Traits traits = DrawnCode::traits();
    if (rank_ > 0) traits.scopes = {Scope::layer};  // only a layer has rows and columns
    return traits;
  }

 protected:
  int64_t kept(const Field& field, double ratio) const override {
    if (rank_ == 0) return kept_count(ratio, field.numel);
    return std::min(field.numel, rank_ * (field.rows + field.numel / field.rows));
  }
  void encode_drawn(const Stream& stream, const Draws& draws, const Source& source,
                    std::byte* values) const override {
    if (source.accumulates()) for_rest(stream, draws, TakeAll{source});
    with_wire_type(draws.values(), [&]<class Value>(Value) {
      const float most = largest_summand<Value>(draws.summands());
      over_blocks(stream, draws,
                  SendDrawnBlocks<Value>{source, source.accumulates() && !source.masked, most,
                                         reinterpret_cast<Value*>(values)});
    });
  }
  void decode_drawn(const Stream& stream, const Draws& draws, const std::byte* values, float weight,
                    bool add, const Tensor& into) const override {
    if (!add) for_rest(stream, draws, ZeroAll<float>{into.data<float>()});
    with_wire_type(draws.values(), [&]<class Value>(Value) {
      over_blocks(stream, draws,
                  ReceiveBlocks<Value>{reinterpret_cast<const Value*>(values), weight, add,
                                       into.data<float>()});
    });
  }

 private:
  template <class Kernel>
  static void over_blocks(const Stream& stream, const Draws& draws, const Kernel& kernel) {
    parallel_rows(stream, kernel, RangeRow::kChunk, [&](const auto& put) {
      draws.each([&](const Draw& draw, int64_t first) {
        each_piece(draw.field, draw.start(), draw.kept,
                   [&](int64_t offset, int64_t at, int64_t numel) {
                     const RangeRow piece{offset, offset + numel};
                     put({piece, first + at, draw.scale}, piece.chunks());
                   });
      });
    });
  }
  /// Runs kernel(i) for the elements outside the blocks.
  template <class Kernel>
  static void for_rest(const Stream& stream, const Draws& draws, const Kernel& kernel) {
    parallel_for_ranges(
        stream,
        [&](const auto& put) {
          draws.each([&](const Draw& draw, int64_t) {
            const int64_t end = (draw.start() + draw.kept) % draw.field.numel;
            each_piece(
                draw.field, end, draw.field.numel - draw.kept,
                [&](int64_t offset, int64_t, int64_t numel) { put(offset, offset + numel); });
          });
        },
        kernel);
  }

  int64_t rank_;
};

const CodeRegistration random_block_registration(
    "random_block",
    "one block of consecutive elements, drawn by a seed (after the abstract of Foroutan & Jaggi "
    "2020)",
    [](Config& config, const CompressorSetup& setup) -> std::unique_ptr<Code> {
      RandomBlockOptions options{bind_drawn(config, setup)};
      bool by_rank = false;
      config.bind_choice("compression.block", by_rank, {{"ratio", false}, {"rank", true}},
                         "size of a block: ratio (that share of the field), or rank (as many "
                         "elements as PowerSGD sends at compression.rank)");
      WISP_CHECK(!by_rank || !config.given("compression.ratio"), config.where("compression.ratio"),
                 ": compression.ratio means nothing to compression.block = \"rank\"; set "
                 "compression.rank");
      int64_t rank = 4;
      config.bind("compression.rank", rank, "rank of low-rank matrices");
      config.expect(rank > 0, "compression.rank", rank, "more than 0");
      if (by_rank) options.rank = rank;
      return make_random_block(options);
    },
    Feedback::ef);

}  // namespace

std::unique_ptr<Code> make_random_block(const RandomBlockOptions& options) {
  WISP_CHECK(options.rank >= 0, "random_block: rank is ", options.rank, ", expected 0 or more");
  return std::make_unique<RandomBlock>(options);
}

}  // namespace wisp
