// The interface of a compression method. A policy chooses a compressor for each unit of gradients.
// A compressor owns state and works in rounds: encode, exchange of a message, decode. It knows no
// other workers and opens no connection; the synchronizer fuses, overlaps, counts and plans for all
// methods alike. One object serves the comm thread of one worker.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compression/complaint.h"
#include "compression/message.h"
#include "core/base/registry.h"
#include "core/context.h"
#include "core/io/config.h"
#include "core/io/saved_state.h"
#include "core/random.h"
#include "core/train/update_rule.h"

namespace wisp {

/// A contiguous range of the arenas.
struct Slice {
  int64_t offset = 0, numel = 0;
};

/// A vector for which k, threshold, norm or scale are computed: one segment (scope = layer), or the
/// concatenation of several (scope = bucket, model), without padding. A field position counts
/// elements through the slices in order.
struct Field {
  std::vector<Slice> slices;
  int64_t numel = 0;
  uint64_t key = 0;   // key of random numbers, from the first segment's name
  bool decay = true;  // weight decay applies
  int64_t rows = 1;   // rows of the matrix (rows, numel / rows): the first dimension of a single
                      // segment; the other dimensions are flattened; 1 for a vector and for several
                      // segments
};

/// A step, as a compressor sees it. All fields except `rank` are equal on all ranks. A sum over
/// workers has `summands` payloads, as each worker's gradient is encoded by itself.
struct StepInfo {
  int64_t step = 0;         // steps before this one
  int64_t applied = 0;      // updates made; a skipped step makes none
  double epoch = 0.0;       // epochs done, with fraction
  int rank = 0, ranks = 1;  // this one among the ranks that exchange and decode; their number
  int summands = 1;         // gradients that are summed; each is its worker's share of the mean
  double lr = 0.0, ratio = 1.0;  // ratio: share of the elements that sparse methods send
  double last_lr = 0.0;          // learning rate of the last update; 0 if there was none
  uint64_t seed = 0;

  /// A field's random numbers, the same on all ranks.
  Philox random(const Field& field) const {
    return Philox(seed, static_cast<uint64_t>(step), field.key);
  }
};

/// Memory that encode writes to, 16-byte aligned.
struct Outlet {
  std::byte* data = nullptr;
  int64_t capacity = 0;
  int64_t* used = nullptr;  // device word; only for variable messages

  /// Throws Error if it has no room for a unit's `bytes`. `method` is for the message.
  void expect(const char* method, int64_t bytes) const {
    WISP_CHECK(capacity >= bytes, method, ": the unit needs ", bytes, " bytes, the outlet has ",
               capacity);
  }
};

/// The encoded bytes of one unit in one round, from one rank, as decode gets them.
struct Payload {
  int from = 0;  // rank; -1: the payloads of all ranks, reduced
  const std::byte* data = nullptr;
  int64_t bytes = 0;
  int64_t* complaint = nullptr;  // device word for defects that decode's kernels find

  Complaints complaints() const { return {complaint, from}; }
  /// Throws Error if it does not have the `expected` bytes. `method` is for the message.
  void expect(const char* method, int64_t expected) const {
    WISP_CHECK(bytes == expected, method, ": the payload of rank ", from, " has ", bytes,
               " bytes, expected ", expected);
  }
};

/// The contents of a unit, known before its memory exists.
struct UnitSpec {
  std::span<const Field> fields;
  int64_t numel = 0;  // elements of all fields
};

/// Declaration of one piece of a compressor's state. Per-element state is a named arena with the
/// same indices as the weights. Other state has a shape, belongs to one field or to the unit, and
/// is keyed by the first segment. State of a field with a single segment stays valid in any other
/// cut of the model.
struct StateSpec {
  std::string name;
  bool per_element = true;
  DType dtype = DType::f32;
  Shape shape;     // for state that is not per element
  int field = -1;  // index of the owning field in the unit; -1: the unit owns the state
  Sharing sharing = Sharing::per_rank;
  OnResize on_resize = OnResize::redistribute_sum;
  ValueCheck check = check_bounded;  // of values that a checkpoint holds
};

/// A unit's state: arenas or tensors in the order of Compressor::state().
struct State {
  std::vector<Tensor> tensors;
};

/// The operands of encode and decode. The tensors from `gradient` to `square` are whole f32 arenas,
/// indexed by the slices of the fields.
struct Unit {
  UnitSpec spec;
  Tensor gradient;  // input: this worker's share of the mean gradient; output: the result
  Tensor weight;
  Tensor momentum;  // defined if traits().momentum is Home::compressor
  Tensor square;    // defined if traits().squares
  State* state = nullptr;
  std::byte* scratch = nullptr;  // scratch_bytes() bytes, 64-byte aligned, private to the unit from
                                 // encode(0) to the last decode
  bool finite = true;  // false if the gradient is not finite or its norm exceeds 2^96: the
                       // compressor then contributes zeros and keeps its state
};

/// The owner of momentum or weight decay of a segment; there is exactly one.
enum class Home { optimizer, compressor };
/// The segments that form a field: each one by itself, those of a unit, or the whole model.
enum class Scope { layer, bucket, model };

/// The gradients that may be clipped: each worker's own before encode, or the decoded mean.
enum class Clipping {
  anywhere,      // decode gives the mean, up to rounding; either may be clipped
  better_local,  // decode gives the mean plus noise, and clipping would react to the noise
  local_only     // the compressor keeps a residual or momentum, which would lose the part that is
                 // clipped off, or the result is not a gradient
};

/// Properties of a method, the same in all steps. Planner and configuration read them.
struct Traits {
  Home momentum = Home::optimizer;
  Home decay = Home::optimizer;
  UpdateRule result = UpdateRule::gradient;  // kind of result after the last decode
  std::vector<Scope> scopes = {Scope::layer, Scope::bucket, Scope::model};
  bool dense_1d = true;  // segments of rank 1 stay dense by default
  bool squares = false;  // needs the sum of squared micro-batch gradients
  Clipping clipping = Clipping::local_only;
  bool sparse = false;  // sends a share of the elements; StepInfo::ratio and its warm-up apply
  bool drawn = false;   // the sent elements are drawn at random; the largest are not preferred
  bool represents_zero = true;  // false: rows of zeros do not decode to zeros (a sign, a cut
                                // spectrum)
};

class Compressor {
 public:
  virtual ~Compressor() = default;

  virtual Traits traits() const = 0;
  /// Reason to leave this field dense, in words; empty if there is none. Pure; called before units
  /// are planned.
  virtual std::string refusal(const Field&) const { return {}; }
  /// Whether a unit is compressed yet. Until then it is dense, as if it had no method. Pure; once
  /// true, it stays true.
  virtual bool started(const StepInfo&) const { return true; }
  /// State of a unit, in the order of State::tensors. Made once, zeroed, and saved in checkpoints.
  virtual std::vector<StateSpec> state(const UnitSpec&, int workers) const = 0;
  /// For state with OnResize::owner: the arena ranges that `rank` owns. Each element has one owner.
  virtual std::vector<Slice> owned(const UnitSpec&, int /*rank*/, int /*ranks*/) const {
    return {};
  }
  /// Bytes of Unit::scratch in this step; none by default.
  virtual int64_t scratch_bytes(const UnitSpec&, const StepInfo&) const { return 0; }
  /// Number of rounds of encode, exchange and decode in this step; one round by default.
  virtual int rounds(const UnitSpec&, const StepInfo&) const { return 1; }
  /// Number of updates after which rounds and messages repeat, at a constant ratio.
  virtual int64_t period() const { return 1; }
  /// The message of a round. Pure, as the planner calls it too. Only pair messages depend on the
  /// rank; over all rounds, no rank sends more than rank 0.
  virtual Message message(const UnitSpec&, const StepInfo&, int round) const = 0;
  /// Encodes into one outlet, into `ranks` outlets for all_to_all, or into none if the rank is
  /// idle.
  virtual void encode(Context&, Unit&, const StepInfo&, int round, std::span<const Outlet>) = 0;
  /// Payloads come in rank order; a reduced message is one payload with from = -1. The last round
  /// leaves the result in unit.gradient. Throws Error if a payload has an impossible size. Kernels
  /// report any other defect through Payload::complaint.
  virtual void decode(Context&, Unit&, const StepInfo&, int round, std::span<const Payload>) = 0;
  /// Remark for the user about this method on this unit; empty if there is none.
  virtual std::string remark(const UnitSpec&) const { return {}; }
  /// Called when the unit changes from dense to compressed steps. The optimizer's momentum (a mean
  /// over workers) becomes the compressor's (a share of 1 / summands).
  virtual void engage(Context&, Unit&, const StepInfo&) {}
  /// Called when the unit becomes dense again, in the first step after the number of workers
  /// changed. The compressor's momentum, the same share on all ranks, becomes the optimizer's. The
  /// residual of this worker is added to its gradient, with the effect that it would have had.
  virtual void release(Context&, Unit&, const StepInfo&) {}
};

/// Facts about the run that a method needs beside its own options.
struct CompressorSetup {
  int workers = 1;        // workers of the run
  double momentum = 0.0;  // momentum of the optimizer; beta1 with AdamW
  bool nesterov = false;
  double weight_decay = 0.0;
  bool alone = false;     // gossip: a payload is decoded alone, without an agreement before
  bool feedback = false;  // the unsent part is kept and sent later; if not, a code that has the
                          // choice is unbiased
  double beta2 = 0.0;     // decay of AdamW's second moment; 0 with another optimizer
};

/// Methods by name. The factory binds and checks the keys "compression.…" of its method. A factory
/// that returns null ("none") leaves its segments dense.
using CompressorRegistry = Registry<Compressor, Config&, const CompressorSetup&>;
using CompressorRegistration = Registration<Compressor, Config&, const CompressorSetup&>;

}  // namespace wisp
