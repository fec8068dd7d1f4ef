// A compressor is what a policy chooses for a unit of gradients: it owns state and speaks in
// rounds, each encode -> message -> decode. It knows no workers and opens no connection; the
// synchronizer fuses, overlaps, counts and plans for every method alike. One object serves one
// worker's comm thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compression/complaint.h"
#include "core/base/registry.h"
#include "core/context.h"
#include "core/io/config.h"
#include "core/io/saved_state.h"
#include "core/train/update_rule.h"

namespace wisp {

enum class Collective { none, all_reduce, all_gather, all_to_all, broadcast, pair, neighbours };
enum class ReduceOp { sum, max };

/// A contiguous range of the arenas.
struct Slice {
  int64_t offset = 0, numel = 0;
};

/// What k, threshold, norm or scale are taken over: one segment (scope = layer), or the
/// concatenation of several (scope = bucket, model), padding excluded. Positions of a field count
/// through its slices.
struct Field {
  std::vector<Slice> slices;
  int64_t numel = 0;
  uint64_t key = 0;   // for random numbers: from the first segment's name
  bool decay = true;  // weight decay applies
  int64_t rows = 1;   // of the matrix (rows, numel / rows): one segment's first dimension, its
                      // others flattened; 1 for a vector and for several segments
};

struct StepInfo {
  int64_t step = 0;     // batches seen
  int64_t applied = 0;  // updates made: parity, warm-up and re-estimation run on it
  double epoch = 0.0;   // with fraction
  int rank = 0, workers = 1;
  double lr = 0.0, ratio = 1.0;
  double last_lr = 0.0;  // of the update before; 0 if there was none
  uint64_t seed = 0;
};

/// What a round puts on the wire for one unit. Equal on all ranks, but for to / from.
struct Message {
  Collective kind = Collective::none;
  DType dtype = DType::u8;
  ReduceOp op = ReduceOp::sum;
  int64_t bytes = 0;       // per destination; the capacity if variable
  bool variable = false;   // the bytes in use differ by rank and step: Outlet::used says how many
  int root = 0;            // broadcast
  int to = -1, from = -1;  // pair; -1: idle in this round

  bool operator==(const Message&) const = default;
};

/// Memory to encode into, 16-byte aligned.
struct Outlet {
  std::byte* data = nullptr;
  int64_t capacity = 0;
  int64_t* used = nullptr;  // device word, for variable messages only
};

struct Payload {
  int from = 0;
  const std::byte* data = nullptr;
  int64_t bytes = 0;
  int64_t* complaint = nullptr;  // device word, for what decode's kernels find wrong

  Complaints complaints() const { return {complaint, from}; }
};

/// What a unit is made of, before memory exists.
struct UnitSpec {
  std::span<const Field> fields;
  int64_t numel = 0;  // of all fields
};

/// One piece of a compressor's state. Per-element state is a named arena in the index space of the
/// weights. The rest has a shape and belongs to one field or to the unit; it is keyed by the first
/// segment, and that of one segment goes on in any cut of the model.
struct StateSpec {
  std::string name;
  bool per_element = true;
  DType dtype = DType::f32;
  Shape shape;     // if not per_element
  int field = -1;  // of the unit, which has this state; -1: the unit has it
  Sharing sharing = Sharing::per_rank;
  OnResize on_resize = OnResize::redistribute_sum;
};

/// A unit's state: arenas or tensors in the order of Compressor::state().
struct State {
  std::vector<Tensor> tensors;
};

/// What encode and decode work on. `gradient` … `square` are whole arenas, f32: a field's slices
/// index them.
struct Unit {
  UnitSpec spec;
  Tensor gradient;  // local mean-loss gradient / workers in; the result out
  Tensor weight;
  Tensor momentum;  // defined if traits().momentum is Home::compressor
  Tensor square;    // defined if traits().squares
  State* state = nullptr;
  std::byte* scratch = nullptr;  // scratch_bytes(), 64-byte aligned, the unit's own from encode(0)
                                 // to the last decode
  bool finite = true;  // false: not so, or above 2^96 in norm; contribute zero, keep own state
};

/// Who applies momentum or weight decay to a segment. Exactly one does.
enum class Home { optimizer, compressor };
enum class Scope { layer, bucket, model };

/// Where gradients are to be clipped: each worker's own before encode, or what was decoded.
enum class Clipping {
  anywhere,      // what is decoded is the mean but for rounding
  better_local,  // it is the mean and noise, for which it would be clipped
  local_only     // something is kept for later (a residual, a momentum), which would not get back
                 // what is cut off; or what is left is not a gradient
};

struct Traits {
  Home momentum = Home::optimizer;
  Home decay = Home::optimizer;
  UpdateRule result = UpdateRule::gradient;  // what the last decode leaves in Unit::gradient
  std::vector<Scope> scopes = {Scope::layer, Scope::bucket, Scope::model};
  bool dense_1d = true;  // by default, segments of rank 1 stay dense
  bool squares = false;  // wants the sum of squared micro-batch gradients
  Clipping clipping = Clipping::local_only;
  bool sparse = false;  // sends a share of the elements: StepInfo::ratio and its warm-up apply
  bool drawn = false;   // and they are drawn at random, not the largest
  bool represents_zero = true;  // false: what decodes is not 0 in rows where nothing was (a sign,
                                // a cut spectrum)
};

class Compressor {
 public:
  virtual ~Compressor() = default;

  virtual Traits traits() const = 0;
  /// Why this field is better left dense, in words; empty if it is not. Pure; asked before units
  /// are planned.
  virtual std::string refusal(const Field&) const { return {}; }
  /// Whether a unit is compressed yet; until then it is dense, as if it had no method. Pure, and
  /// true ever after.
  virtual bool started(const StepInfo&) const { return true; }
  virtual std::vector<StateSpec> state(const UnitSpec&, int workers) const = 0;
  /// The arena's ranges of which `rank` has the state that is OnResize::owner: one rank each.
  virtual std::vector<Slice> owned(const UnitSpec&, int /*rank*/, int /*workers*/) const {
    return {};
  }
  virtual int64_t scratch_bytes(const UnitSpec&, const StepInfo&) const = 0;
  virtual int rounds(const UnitSpec&, const StepInfo&) const = 0;
  /// Updates after which rounds and messages are the same again, at one ratio.
  virtual int64_t period() const { return 1; }
  /// Pure: planner, guards, buckets and accounting read it. Depends on the rank for pairs alone, in
  /// which no rank sends more than rank 0 does over all rounds.
  virtual Message message(const UnitSpec&, const StepInfo&, int round) const = 0;
  /// One outlet; `workers` of them for all_to_all; none if the rank is idle.
  virtual void encode(Context&, Unit&, const StepInfo&, int round, std::span<const Outlet>) = 0;
  /// Payloads in rank order; one (from = -1) if the message was reduced. The last round leaves the
  /// result in unit.gradient. Throws Error for a payload of bytes that it cannot have; what else is
  /// wrong with one, its kernels say (Payload::complaint).
  virtual void decode(Context&, Unit&, const StepInfo&, int round, std::span<const Payload>) = 0;
  /// What a user should know of this method on such a unit; empty: nothing.
  virtual std::string remark(const UnitSpec&) const { return {}; }
  /// The unit goes from dense steps to compressed ones: the optimizer's momentum (a mean over
  /// workers) becomes the compressor's own (a share of 1 / workers).
  virtual void engage(Context&, Unit&, const StepInfo&) {}
  /// The reverse, in the first step of another number of workers, when the unit is dense again. The
  /// compressor's momentum, the same share on all ranks, becomes the optimizer's. What this worker
  /// kept joins its gradient, so that it has the effect that it would have had.
  virtual void release(Context&, Unit&, const StepInfo&) {}
};

/// What a method must know of the run beside its own options.
struct CompressorSetup {
  int workers = 1;
  double momentum = 0.0;  // of the optimizer; with AdamW beta1
  bool nesterov = false;
  double weight_decay = 0.0;
  bool alone =
      false;  // each payload is decoded by itself, by ranks that agreed on nothing (gossip)
  bool feedback = false;  // what a code leaves out is kept and sent later; if not, a code that can
                          // choose has the right mean
  double beta2 = 0.0;     // memory of AdamW's second moment; 0 with another optimizer
};

/// Methods by name. The factory binds the keys "compression.…" of its method and checks them. A
/// factory that gives null ("none") leaves its segments dense.
using CompressorRegistry = Registry<Compressor, Config&, const CompressorSetup&>;
using CompressorRegistration = Registration<Compressor, Config&, const CompressorSetup&>;

}  // namespace wisp
