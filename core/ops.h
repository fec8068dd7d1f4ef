// The functions that build the graph. Each takes its context from its first input; images are (N,
// H, W, C). Activations are f32, f64 or bf16, parameters and statistics have the wide_of() that, in
// which an op computes. Shapes that do not fit throw Error with both shapes.
#pragma once

#include <vector>

#include "core/autograd.h"
#include "core/batch.h"
#include "core/rnn.h"
#include "core/tensor/axes.h"

namespace wisp {

struct ConvOptions {
  Axes stride = 1, pad = 0, dilation = 1;  // of both axes, or {of the rows, of the columns}
  int64_t groups = 1;
};

/// x (N, H, W, I), weight (O, kH, kW, I / groups), bias (O) or undefined -> (N, H', W', O); H' = (H
/// + 2 pad - dilation (kH - 1) - 1) / stride + 1, W' likewise.
Variable conv2d(const Variable& x, const Variable& weight, ConvOptions options = {},
                const Variable& bias = {});

struct BatchNormState {
  Tensor running_mean, running_var;  // (C); moved in training mode
  double momentum = 0.1;             // weight of the new batch
  double epsilon = 1e-5;
};
struct BatchNormFusion {
  bool relu = false;
  const Variable* residual = nullptr;  // added before the ReLU; x's shape
};

/// Normalises x (..., C) over all but the last extent, then scales by gamma (C) and shifts by beta
/// (C); with `fusion`, adds a residual and applies ReLU in the same pass. Batch statistics if the
/// context trains (at least 2 rows), running ones otherwise. Source: Ioffe & Szegedy 2015.
Variable batch_norm(const Variable& x, const Variable& gamma, const Variable& beta,
                    BatchNormState& state, BatchNormFusion fusion = {});

/// max(x, 0); the gradient at 0 is 0.
Variable relu(const Variable& x);
/// min(max(x, 0), bound); the gradient at both ends is 0. PyTorch's hardtanh(0, bound).
Variable clipped_relu(const Variable& x, double bound);
/// a + b, equal shapes.
Variable add(const Variable& a, const Variable& b);

struct PoolOptions {
  int64_t stride = 0;  // 0: the kernel
  int64_t pad = 0;     // less than the kernel
};
/// Largest value of each kernel x kernel window; (N, H, W, C) -> (N, H', W', C). Padding never
/// wins; of equal values the first in row-major order gets the gradient.
Variable max_pool2d(const Variable& x, int64_t kernel, PoolOptions options = {});
/// Mean of each window, zeros in the padding counted.
Variable avg_pool2d(const Variable& x, int64_t kernel, PoolOptions options = {});
/// (N, H, W, C) -> (N, C): mean over all positions.
Variable global_avg_pool(const Variable& x);

struct LinearOptions {
  bool wide = false;  // the result has the wide type: factors in bf16, sums and gradient in f32
};
/// x (N, I), weight (O, I), bias (O) or undefined -> (N, O) = x · weightᵀ + bias.
Variable linear(const Variable& x, const Variable& weight, const Variable& bias,
                LinearOptions options = {});

/// Rows of a table (V, H), of the wide type, looked up by ids (N) i32 -> (N, H) in the compute
/// type; zeros for an id that is out of [0, V). Gradients of equal ids add up in their order.
Variable embedding(const Variable& table, const Tensor& ids);

Variable tanh(const Variable& x);
/// 1 / (1 + exp(-x)).
Variable sigmoid(const Variable& x);

/// What is learned of one direction of a recurrent layer, of the shapes of RnnWeights.
struct RnnParameters {
  Variable input, recurrent, input_bias, recurrent_bias;
};
struct RnnResult {
  Variable y;
  RnnState after;  // behind each sequence's last position; of the second direction, its first
};
/// A recurrent layer, see RnnSpec: x (Σ rows, I) -> y (Σ rows, directions · H). `before` may be
/// undefined: zero. No gradient flows through the states.
RnnResult rnn(RnnCell cell, const Variable& x, const std::vector<int64_t>& rows,
              const std::vector<RnnParameters>& directions, const RnnState& before = {});

/// Images (N, H, W, C) whose columns are positions of sequences: those that the sequences have, one
/// after another, (Σ rows, H, C); `rows` as in RnnSpec, of at most W positions and N sequences.
Variable pack_frames(const Variable& x, const std::vector<int64_t>& rows);
/// Back, (Σ rows, H, C) -> (N, H, positions, C): zeros behind a sequence's end.
Variable unpack_frames(const Variable& x, const std::vector<int64_t>& rows, int64_t positions);

/// Rows [begin, end) of the first extent; they share x's memory.
Variable rows(const Variable& x, int64_t begin, int64_t end);
/// The rows of all parts, one after another; equal shapes but for the first extent.
Variable join_rows(const std::vector<Variable>& parts);
/// Elements [begin, end) of the last extent, in memory of their own.
Variable columns(const Variable& x, int64_t begin, int64_t end);
/// The parts side by side; equal shapes but for the last extent.
Variable join_columns(const std::vector<Variable>& parts);

/// The same elements in another shape.
Variable reshape(const Variable& x, Shape shape);

/// The last two extents swapped, (..., A, B) -> (..., B, A).
Variable swap_last(const Variable& x);

/// bf16 as f32, anything else as it is: what a model puts before the layer whose output its loss
/// reads.
Variable widen(const Variable& x);

/// The parameter-free shortcut of CIFAR ResNets: every `stride`-th row and column, channels padded
/// with zeros on both sides to `channels`. (N, H, W, C) -> (N, ceil(H / stride), ceil(W / stride),
/// channels). Source: He et al. 2016, section 4.2, option A.
Variable pad_channels(const Variable& x, int64_t channels, int64_t stride);

/// Zeroes each element with `probability` and scales the rest by 1 / (1 - probability); the
/// identity if the context does not train. The choice is keyed by (seed, step, layer, the row's
/// key, position in the row), so it does not depend on how rows are spread over workers. `keys`
/// (K) i64: row r has key r % K; K is x's first extent, or divides it, so that a window's positions
/// share their column's choice (locked, or variational, dropout). Sources: Srivastava et al. 2014;
/// Gal & Ghahramani 2016.
Variable dropout(const Variable& x, double probability, uint64_t layer, const Tensor& keys);
/// The same with the context's samples as keys.
Variable dropout(const Variable& x, double probability, uint64_t layer);

/// Mean over the batch of -log softmax(logits)[label], in nats. logits (N, C) f32 or f64, labels
/// (N) i32 in [-1, C). With label smoothing s the target is (1 - s) on the label plus s / C
/// everywhere. A label of -1 is ignored: its row's loss is 0, and counts in the mean. Any other
/// label out of range gives NaN: data sets check labels, a kernel cannot throw. Log-sum-exp with
/// the row's maximum removed. Without labels the result is undefined, too. Source: Szegedy et al.
/// 2016, section 7.
Variable cross_entropy(const Variable& logits, const Tensor& labels, double label_smoothing = 0.0);

/// Mean over N sequences of -log p(labels | frames), in nats (connectionist temporal
/// classification). p sums over the paths, a class for each frame, that give the labels once equal
/// neighbours are merged and blanks, class 0, left out. logits (Σ rows, C) f32 or f64, `rows` as in
/// RnnSpec; labels (N, L) i32 in [1, C), -1 behind a sequence's last. A sequence without labels (a
/// damaged sample), or with more than its frames can hold, of which equal neighbours need a blank
/// between them, has loss 0 and no gradient, and counts in the mean. Any other label out of range
/// gives NaN, as in cross_entropy. Without labels the result is undefined, too. In log space, each
/// frame relative to its likeliest state; keeps (Σ rows, 2 L + 3) for its gradient. Source: Graves
/// et al. 2006, sections 3 and 4 (here: the backward variable leaves out its own frame).
Variable ctc_loss(const Variable& logits, const std::vector<int64_t>& rows, const Tensor& labels);

/// Of the sequences of ctc_loss: adds to sums[0] how many have more labels than their frames can
/// hold, to sums[1] how many have labels. `sums` is (2) f64. No gradient.
void count_too_short(const Variable& logits, const std::vector<int64_t>& rows, const Tensor& labels,
                     const Tensor& sums);

/// How many rows of logits (N, C) have their largest value (the first, if equal) at labels (N) i32.
/// Adds to sums[0] the number correct, to sums[1] N without the labels that are -1; `sums` is (2)
/// f64. No gradient.
void count_correct(const Variable& logits, const Tensor& labels, const Tensor& sums);

/// How far what ctc_loss's `logits` say is from `labels`, of its shapes: of each frame the
/// likeliest class (the first, if equal), equal neighbours merged, blanks left out. Adds to `sums`,
/// (3, 2) f64, the fewest insertions, deletions and substitutions of words and how many words the
/// labels have; the same of labels, a `space` between words is one; how many of the frames are
/// blank, and how many there are. Sequences without labels count nothing. No gradient.
void count_edits(const Variable& logits, const std::vector<int64_t>& rows, const Tensor& labels,
                 int32_t space, const Tensor& sums);

/// Of the mean over a batch's targets, one element, where those that are ignored count: adds to
/// sums[0] the sum, to sums[1] the targets without those. A mean that is not finite adds nothing in
/// training, where its step is skipped; in an evaluation the sum is then not finite. `sums` is (2)
/// f64. No gradient.
void add_mean(const Variable& mean, const Batch& batch, const Tensor& sums);

}  // namespace wisp
