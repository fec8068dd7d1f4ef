// A matrix M as the product of two thin factors, M ~ P Qᵀ: the steps that PowerSGD and ACP-SGD are
// made of. A field is a matrix (rows, columns) of rank r = min(rows, columns, compression.rank);
// P (rows, r) and Q (columns, r) are stored column after column, in which order the library's
// products with so few columns are up to five times faster. A message is the P or the Q of all
// matrices of a unit, one after the other, in f32, f16 or bf16. While the other factor is fixed it
// is linear in M: what is all-reduced is the message of the sum, and no larger for more workers.
// Buckets close at raw bytes (distributed/exchange/cut.h), so there are as many of them as in a
// dense run, which is ACP-SGD's rule for its fusion buffers.
#pragma once

#include <string>
#include <vector>

#include "compression/compressor.h"
#include "compression/feedback_options.h"
#include "core/autograd.h"

namespace wisp {

/// The factors of a unit's matrices.
enum class Factor { p, q };

class LowRank {
 public:
  /// Binds compression.rank, values, min_rate, start_after, feedback and residual. `method` is for
  /// messages.
  LowRank(const std::string& method, Config& config, const CompressorSetup& setup);

  /// Why this field is better left dense; empty if it is not. `exchanges`: how many times P and Q
  /// travel in a step.
  std::string refusal(const Field& field, double exchanges) const;
  /// Which matrices have no more numbers than are sent instead; empty if none.
  std::string remark(const UnitSpec& spec, double exchanges) const;
  Clipping clipping() const { return feedback() ? Clipping::local_only : Clipping::better_local; }
  bool started(const StepInfo& info) const { return info.applied >= start_after_; }

  /// The residual, if there is feedback; then P and Q of each field, equal on all ranks.
  std::vector<StateSpec> state(const UnitSpec& spec) const;
  static int64_t scratch_bytes(const UnitSpec& spec);
  Message message(const UnitSpec& spec, Factor factor) const;

  // The steps. A unit whose gradient is not finite has M = E, and sends zeros.

  /// M <- E + G, in the place of the residual; without feedback M is the gradient.
  void take(Context& context, const Unit& unit, const StepInfo& info) const;
  /// Zero, so that orthonormalise() draws it.
  void forget(Context& context, const Unit& unit, Factor factor) const;
  /// The columns become orthonormal; those that are zero or dependent are drawn (orthonormal.h).
  void orthonormalise(Context& context, const Unit& unit, const StepInfo& info,
                      Factor factor) const;
  /// P <- M Q or Q <- Mᵀ P.
  void multiply(Context& context, const Unit& unit, Factor factor) const;
  /// Writes the factor to the wire and leaves in its place the negative of what travels.
  void send(Context& context, const Unit& unit, const StepInfo& info, Factor factor,
            const Outlet& outlet) const;
  /// E <- M + P Qᵀ: after send(), what this worker did not send.
  void keep_unsent(Context& context, const Unit& unit) const;
  /// The factor is what came.
  void receive(Context& context, const Unit& unit, Factor factor, const Payload& payload) const;
  /// G <- P Qᵀ.
  void approximate(Context& context, const Unit& unit) const;
  /// E <- M - G / workers: what the workers together did not send, a share each.
  void keep_difference(Context& context, const Unit& unit, const StepInfo& info) const;
  /// Compressor::release(): G <- G + E, E <- 0.
  void release(Context& context, const Unit& unit, const StepInfo& info) const;

 private:
  struct Matrix;

  bool feedback() const { return feedback_.kind == Feedback::ef; }
  int64_t rank_of(const Field& field) const;
  int64_t length(const Field& field, Factor factor) const;
  double numbers_sent(const Field& field, double exchanges) const;
  int64_t bytes(const UnitSpec& spec, Factor factor) const;
  template <class Visit>
  void each_matrix(const Unit& unit, const Visit& visit) const;
  static void product(Context& context, const Matrix& matrix, const GradSlot& into);

  std::string method_;
  int64_t rank_ = 4;  // ACP-SGD's for images; PowerSGD needed 2 for images, 4 for language
  double min_rate_ = 2.0;
  int64_t start_after_ = 0;
  DType values_ = DType::f32;
  FeedbackOptions feedback_;
};

}  // namespace wisp
