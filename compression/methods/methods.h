// The compression methods with their options, for programs without a configuration. A maker throws
// Error for an option out of range. `places` gives the file and line of the option's key for that
// message; a program leaves it out. A `least_ratio` must be the least ratio of all steps; gossip
// checks its codes by it. A code becomes a method through with_feedback():
//   with_feedback("topk", make_topk(), {.kind = Feedback::ef})
// Makers are pure; any thread.
#pragma once

#include "compression/error_feedback.h"
#include "compression/low_rank/low_rank.h"
#include "compression/method_options.h"
#include "compression/quantize/scaled_integers.h"
#include "compression/sparse/drawn_code.h"

namespace wisp {

// ---------------------------------------- codes published with error feedback (Feedback::ef)

struct TopkOptions {
  bool sampled = false;      // 0.8 k to k elements, by a sampled threshold; false: exactly k
  double least_ratio = 1.0;  // least ratio of all steps
  WireFormat values = WireFormat::f32;
  Indices indices = Indices::shortest;
};
std::unique_ptr<Code> make_topk(const TopkOptions& options = {});

struct ThresholdOptions {
  double threshold = 1e-3;   // smallest magnitude of gradient / workers that is sent
  double least_ratio = 1.0;  // least ratio of all steps
  WireFormat values = WireFormat::f32;
  Indices indices = Indices::shortest;
};
std::unique_ptr<Code> make_threshold(const ThresholdOptions& options = {},
                                     const Config& places = {});

std::unique_ptr<Code> make_random_k(const DrawnOptions& options = {});

struct RandomBlockOptions {
  DrawnOptions drawn;
  int64_t rank = 0;  // as many elements as PowerSGD sends at this rank; 0: the step's ratio
};
std::unique_ptr<Code> make_random_block(const RandomBlockOptions& options = {});

struct BlockTopkOptions {
  DType values = DType::f32;
  bool shared = true;    // all ranks send the same blocks, and values are summed on the wire
  bool squares = false;  // the L2 norm scores a block; false: L1
  int64_t block_size = 256;
  double least_ratio = 1.0;  // least ratio of all steps
};
std::unique_ptr<Code> make_block_topk(const BlockTopkOptions& options = {},
                                      const Config& places = {});

struct FftOptions {
  double theta = 0.85;       // share of a field's frequencies that is dropped
  double theta_decay = 1.0;  // factor of theta from epoch to epoch
  int bits = 10;             // bits of a range float
  int mantissa = -1;         // its mantissa bits; -1: as many as leave 64 octaves
};
std::unique_ptr<Code> make_fft(FftOptions options = {}, const Config& places = {});

std::unique_ptr<Code> make_ef_signsgd();

// ---------------------------------------- codes published without feedback

struct QsgdOptions {
  int levels = 7;       // levels beside 0, at most 127
  int64_t group = 512;  // elements that share a norm, a multiple of 64; 0: the whole field
  bool l2 = false;      // L2 norm of a group; false: maximum
  bool elias = false;   // nonzero levels in variable bits; false: all levels in the same bits
};
std::unique_ptr<Code> make_qsgd(const QsgdOptions& options = {}, const Config& places = {});

struct TerngradOptions {
  ScaledIntegerOptions integers;
  double clip = 2.5;  // clipping bound of gradients in standard deviations; 0: none
};
std::unique_ptr<Code> make_terngrad(const TerngradOptions& options = {}, const Config& places = {});

std::unique_ptr<Code> make_int8(const ScaledIntegerOptions& options = {});
std::unique_ptr<Code> make_int4(const ScaledIntegerOptions& options = {});
/// `bits` of a number: 9, or 8 with a smaller range of exponents.
std::unique_ptr<Code> make_natural(int bits = 9, const Config& places = {});
/// 32-bit numbers.
std::unique_ptr<Code> make_exact();
std::unique_ptr<Code> make_fp16();
std::unique_ptr<Code> make_bf16();

// ---------------------------------------- methods with state of their own

struct DgcOptions {
  LocalMomentum local;   // as the optimizer's
  bool masking = true;   // clear the momentum of elements that were sent
  bool sampled = false;  // 0.8 k to k elements, by a sampled threshold; false: exactly k
  WireFormat values = WireFormat::f32;
  Indices indices = Indices::shortest;
};
std::unique_ptr<Compressor> make_dgc(const DgcOptions& options = {});

/// `sampled` as in TopkOptions.
std::unique_ptr<Compressor> make_gtopk(bool sampled = false);

struct OktopkOptions {
  int64_t start_after = 512;  // dense updates before the first compressed one
  // Factors of thresholds, 1 or more: of a worker's and of the sums' after a step in which too few
  // or too many elements passed, and of a worker's within a step while too many pass.
  double local_factor = 1.012, global_factor = 1.008, step_factor = 1.03;
};
std::unique_ptr<Compressor> make_oktopk(const OktopkOptions& options = {},
                                        const Config& places = {});

struct VarianceOptions {
  double alpha = 1.0;         // an element is sent if r^2 > alpha v
  double zeta = 0.999;        // decay of v in each step of waiting
  bool keep_rounding = true;  // keep the rounding error of powers of two in the residual
};
std::unique_ptr<Compressor> make_variance(const VarianceOptions& options = {},
                                          const Config& places = {});

struct PowerSgdOptions {
  LowRankOptions matrices;
  bool warm_start = true;  // begin with the last step's Q; false: with a random one
  int64_t iterations = 1;  // steps of subspace iteration, two all-reduces each
  bool local = false;      // deduct from the residual what this worker sent; false: an equal share
                           // of the result
};
std::unique_ptr<Compressor> make_powersgd(const PowerSgdOptions& options = {},
                                          const Config& places = {});
std::unique_ptr<Compressor> make_acpsgd(const LowRankOptions& options = {},
                                        const Config& places = {});

std::unique_ptr<Compressor> make_signsgd();
/// `local`: as the optimizer's, without Nesterov.
std::unique_ptr<Compressor> make_signum(const LocalMomentum& local, const Config& places = {});

struct OneBitOptions {
  bool feedback = true;     // keep the unsent part in two residuals
  int64_t start_after = 0;  // dense updates before the first compressed one
};
std::unique_ptr<Compressor> make_onebit(const OneBitOptions& options = {},
                                        const Config& places = {});

struct OneBitAdamOptions {
  double beta1 = 0.9, beta2 = 0.999;  // as AdamW's
  int64_t freeze_step = 100'000;      // dense updates before the second moment is frozen
};
std::unique_ptr<Compressor> make_onebit_adam(const OneBitAdamOptions& options = {},
                                             const Config& places = {});

}  // namespace wisp
