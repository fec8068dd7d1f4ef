// Random-block sparsification: of each field one block of consecutive elements travels, the rest
// stays in the residual. With start s, uniform in [0, d), and B elements, at step t
//   a <- e + g                                   (error feedback; without it a = g)
//   send a_i for i = s, s + 1, …, s + B - 1 (mod d);   e <- a without them
//   every worker: g_i <- sum over workers of what was sent, 0 outside
// compression.block says how long a block is: "ratio": B = kept_count(ratio, d); "rank": B =
// min(d, r (rows + columns)), the numbers of rank-r PowerSGD. Copying is all the work there is.
// Source: Foroutan & Jaggi 2020, "Sparse communication for training deep networks"; only its
// abstract was at hand, so this is a reconstruction. The algorithm is that of the code of Vogels et
// al. 2019 (PowerSGD; UniformRandomSparseBlockReducer, RandomSparseBlockReducer), from the same
// group: per tensor, wrap-around, the same starts everywhere, residual, momentum and decay after
// the mean, 1-D tensors compressed too (with "rank" they travel whole). Ours: that sharing,
// feedback, the place of momentum and the scope are options, as which of them are the paper's three
// parameters is not known; ceil in the place of floor in B; starts drawn by field and step, not by
// one generator.
#include "compression/error_feedback.h"
#include "compression/sparse/cyclic_run.h"
#include "compression/sparse/drawn_code.h"
#include "compression/sparse/select.h"
#include "core/loops/parallel.h"
#include "core/train/norm.h"

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

/// The same with a residual and no masking: short enough to be vectorised.
template <class Value>
struct SendBlockOfSum {
  const float* gradient;
  float* residual;
  float gain, most;
  Value* out;
  WISP_HD void operator()(int64_t i) const {
    const float a = gain * residual[i] + gradient[i];
    const Value value = to_wire<Value>(within(most, a));
    store(out + i, value);
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

class RandomBlock final : public DrawnCode {
 public:
  /// rank 0: blocks by ratio.
  RandomBlock(const DrawnOptions& options, int64_t rank) : DrawnCode(options), rank_(rank) {}

  Traits traits() const override {
    Traits traits = DrawnCode::traits();
    if (rank_ > 0) traits.scopes = {Scope::layer};  // rows and columns are a layer's
    return traits;
  }

 protected:
  int64_t kept(const Field& field, double ratio) const override {
    if (rank_ == 0) return kept_count(ratio, field.numel);
    return std::min(field.numel, rank_ * (field.rows + field.numel / field.rows));
  }
  void encode_field(const Stream& stream, const Draw& draw, const Source& source,
                    std::byte* values) const override {
    const int64_t start = draw.start();
    if (source.accumulates()) {
      each_rest(draw, start, [&](int64_t offset, int64_t, int64_t numel) {
        parallel_for(stream, numel, TakeAll{source, offset});
      });
    }
    with_wire_type(draw.values, [&](auto type) {
      using Value = decltype(type);
      const float most = largest_summand<Value>(draw.summands);
      each_piece(draw.field, start, draw.kept, [&](int64_t offset, int64_t at, int64_t numel) {
        Value* out = reinterpret_cast<Value*>(values) + at;
        if (source.accumulates() && !source.masked) {
          parallel_for(stream, numel,
                       SendBlockOfSum<Value>{source.gradient + offset, source.kept + offset,
                                             source.gain, most, out});
        } else {
          parallel_for(stream, numel, SendBlock<Value>{source, offset, most, draw.scale, out});
        }
      });
    });
  }
  void decode_field(const Stream& stream, const Draw& draw, const std::byte* values, float weight,
                    bool add, const Tensor& into) const override {
    const int64_t start = draw.start();
    if (!add) {
      each_rest(draw, start, [&](int64_t offset, int64_t, int64_t numel) {
        fill_zero(stream, into.slice(offset, {numel}));
      });
    }
    with_wire_type(draw.values, [&](auto type) {
      using Value = decltype(type);
      each_piece(draw.field, start, draw.kept, [&](int64_t offset, int64_t at, int64_t numel) {
        const Value* in = reinterpret_cast<const Value*>(values) + at;
        parallel_for(stream, numel,
                     ReceiveBlock<Value>{in, draw.scale, weight, add, into.data<float>() + offset});
      });
    });
  }

 private:
  /// What is not in the block.
  template <class Visit>
  static void each_rest(const Draw& draw, int64_t start, const Visit& visit) {
    const int64_t end = (start + draw.kept) % draw.field.numel;
    each_piece(draw.field, end, draw.field.numel - draw.kept, visit);
  }

  int64_t rank_;
};

const CodeRegistration registration(
    "random_block", "one block of consecutive elements, drawn by a seed (Foroutan & Jaggi 2020)",
    [](Config& config, const CompressorSetup& setup) -> std::unique_ptr<Code> {
      const DrawnOptions options = bind_drawn(config, setup);
      std::string block = "ratio";
      config.bind("compression.block", block,
                  "elements of a block: ratio (of the field's), or rank (as many as PowerSGD of "
                  "compression.rank sends)");
      WISP_CHECK(block == "ratio" || block == "rank", config.where("compression.block"),
                 ": compression.block is '", block, "', expected ratio or rank");
      WISP_CHECK(block == "ratio" || !config.given("compression.ratio"),
                 config.where("compression.ratio"),
                 ": compression.ratio means nothing to compression.block = \"rank\"; set "
                 "compression.rank");
      int64_t rank = 4;
      config.bind("compression.rank", rank, "of low-rank matrices");
      WISP_CHECK(rank > 0, config.where("compression.rank"), ": compression.rank is ", rank,
                 ", expected more than 0");
      return std::make_unique<RandomBlock>(options, block == "rank" ? rank : 0);
    },
    Feedback::ef);

}  // namespace
}  // namespace wisp
