// A matrix M as the product of two thin factors, M ~ P Qᵀ: the steps of PowerSGD and ACP-SGD. A
// field is a matrix (rows, columns) of rank r = min(rows, columns, compression.rank). P (rows, r)
// and Q (columns, r) are stored column by column: products with so few columns are up to five times
// faster in this order. A message holds the P or the Q of all matrices of a unit, one after the
// other, in f32, f16 or bf16. While the other factor is fixed, the message is linear in M. So an
// all-reduce gives the message of the sum, and its size does not grow with the number of workers.
// Buckets close by raw bytes (distributed/exchange/cut.h), so there are as many as in a dense run;
// ACP-SGD's rule for fusion buffers is the same.
#pragma once

#include <string>
#include <vector>

#include "compression/compressor.h"
#include "compression/feedback_options.h"
#include "core/autograd.h"

namespace wisp {

/// The factors of a matrix.
enum class Factor { p, q };

struct LowRankOptions {
  int64_t rank = 4;           // ACP-SGD's for images; PowerSGD needed 2 for images, 4 for language
  double min_rate = 2.0;      // a matrix is compressed above this ratio of elements to numbers sent
  int64_t start_after = 0;    // dense updates before the first compressed one
  DType values = DType::f32;  // f32, f16 or bf16
  FeedbackOptions feedback{.kind = Feedback::ef};  // or none

  /// Binds compression.rank, values, min_rate, start_after, feedback and residual.
  static LowRankOptions bind(Config& config, const CompressorSetup& setup);
};

/// The base of PowerSGD and ACP-SGD: everything but the rounds and the order of their steps.
class LowRank : public Compressor {
 public:
  /// `method` is for messages. `exchanges`: how many times a step sends both P and Q. Throws Error
  /// for an option out of range, with the place of its key in `places`.
  LowRank(const char* method, double exchanges, const LowRankOptions& options,
          const Config& places);

  Traits traits() const override {
    return {.scopes = {Scope::layer},
            .clipping = feedback() ? Clipping::local_only : Clipping::better_local};
  }
  std::string refusal(const Field& field) const override;
  /// Names the matrices that have no more numbers than their factors send.
  std::string remark(const UnitSpec& spec) const override;
  bool started(const StepInfo& info) const override { return info.applied >= options_.start_after; }
  /// The residual, if there is feedback; then P and Q of each field, equal on all ranks.
  std::vector<StateSpec> state(const UnitSpec& spec, int workers) const override;
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo& info) const override;
  /// G <- G + E, E <- 0.
  void release(Context& context, Unit& unit, const StepInfo& info) override;

 protected:
  Message message_of(const UnitSpec& spec, Factor factor) const;

  // The steps. If the gradient of a unit is not finite, M = E and the unit sends zeros.

  /// M <- E + G, stored in the residual; without feedback, M is the gradient.
  void take(Context& context, const Unit& unit, const StepInfo& info) const;
  /// Sets the factor to zero, so that orthonormalise() draws it at random.
  void forget(Context& context, const Unit& unit, Factor factor) const;
  /// Makes the columns orthonormal. Zero or dependent columns are drawn at random (orthonormal.h).
  void orthonormalise(Context& context, const Unit& unit, const StepInfo& info,
                      Factor factor) const;
  /// P <- M Q or Q <- Mᵀ P.
  void multiply(Context& context, const Unit& unit, Factor factor) const;
  /// Writes the factor to the wire and replaces it by the negative of the rounded values that are
  /// sent.
  void send(Context& context, const Unit& unit, const StepInfo& info, Factor factor,
            const Outlet& outlet) const;
  /// E <- M + P Qᵀ. After send(), E is the part that this worker did not send.
  void keep_unsent(Context& context, const Unit& unit) const;
  /// Sets the factor to the received payload.
  void receive(Context& context, const Unit& unit, Factor factor, const Payload& payload) const;
  /// G <- P Qᵀ.
  void approximate(Context& context, const Unit& unit) const;
  /// E <- M - G / summands: an equal share of the part that all workers together did not send.
  void keep_difference(Context& context, const Unit& unit, const StepInfo& info) const;

 private:
  struct Matrix;

  bool feedback() const { return options_.feedback.kind == Feedback::ef; }
  int64_t rank_of(const Field& field) const;
  int64_t length(const Field& field, Factor factor) const;
  double numbers_sent(const Field& field) const;
  int64_t bytes(const UnitSpec& spec, Factor factor) const;
  template <class Visit>
  void each_matrix(const Unit& unit, const Visit& visit) const;
  static void product(Context& context, const Matrix& matrix, const GradSlot& into);

  const char* method_;
  double exchanges_;
  LowRankOptions options_;
};

}  // namespace wisp
