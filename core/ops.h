// Differentiable operations, which build the graph of core/autograd.h. An op runs in the context of
// its first input, in that context's thread. Images are (N, H, W, C). Activations are f32, f64 or
// bf16. Ops compute in wide_of() that type, which parameters and statistics have. Shapes that do
// not fit throw Error with both shapes.
#pragma once

#include <vector>

#include "core/autograd.h"
#include "core/batch.h"
#include "core/rnn.h"
#include "core/tensor/axes.h"

namespace wisp {

struct ConvOptions {
  Axes stride = 1, pad = 0, dilation = 1;  // both axes, or {rows, columns}
  int64_t groups = 1;
};

/// Convolution of x (N, H, W, I) with weight (O, kH, kW, I / groups) -> (N, H', W', O). `bias` is
/// (O) or undefined. H' = (H + 2 pad - dilation (kH - 1) - 1) / stride + 1, and W' follows from W.
Variable conv2d(const Variable& x, const Variable& weight, ConvOptions options = {},
                const Variable& bias = {});

struct BatchNormState {
  Tensor running_mean, running_var;  // (C), updated in training mode
  double momentum = 0.1;             // weight of the new batch's statistics
  double epsilon = 1e-5;
};
struct BatchNormFusion {
  bool relu = false;
  const Variable* residual = nullptr;  // tensor of x's shape, added before the ReLU
};

/// Normalises x (..., C) over all extents except the last, scales by gamma (C) and shifts by beta
/// (C). `fusion` adds a residual and applies ReLU in the same pass. A context that trains uses
/// batch statistics, which need at least 2 rows; otherwise the running statistics are used. Source:
/// Ioffe & Szegedy 2015.
Variable batch_norm(const Variable& x, const Variable& gamma, const Variable& beta,
                    BatchNormState& state, BatchNormFusion fusion = {});

/// max(x, 0); the gradient at 0 is 0.
Variable relu(const Variable& x);
/// min(max(x, 0), bound), PyTorch's hardtanh(0, bound); the gradient at both ends is 0.
Variable clipped_relu(const Variable& x, double bound);
/// a + b; the shapes must be equal.
Variable add(const Variable& a, const Variable& b);

struct PoolOptions {
  int64_t stride = 0;  // 0: the kernel's size
  int64_t pad = 0;     // less than the kernel's size
};
/// Maximum of each kernel x kernel window: (N, H, W, C) -> (N, H', W', C). Padding never wins. The
/// first of equal values in row-major order gets the gradient.
Variable max_pool2d(const Variable& x, int64_t kernel, PoolOptions options = {});
/// Mean of each kernel x kernel window; the padding counts as zeros.
Variable avg_pool2d(const Variable& x, int64_t kernel, PoolOptions options = {});
/// Mean over all positions: (N, H, W, C) -> (N, C).
Variable global_avg_pool(const Variable& x);
/// Means of as many windows as `size` says: (N, H, W, C) -> (N, size.h, size.w, C). Of H rows,
/// window i has those from floor(i H / size.h) to ceil((i + 1) H / size.h), and likewise for
/// columns. Windows may overlap. An input that has the size already is returned as it is. The same
/// as PyTorch's AdaptiveAvgPool2d.
Variable adaptive_avg_pool(const Variable& x, Axes size);

struct LinearOptions {
  bool wide = false;  // the result has the wide type: bf16 factors, f32 sums and gradient
};
/// x (N, I) · weightᵀ (I, O) + bias -> (N, O). `weight` is stored as (O, I); `bias` is (O) or
/// undefined.
Variable linear(const Variable& x, const Variable& weight, const Variable& bias,
                LinearOptions options = {});

/// Looks up rows of a table (V, H), which has the wide type, by ids (N) i32 -> (N, H) in the
/// compute type. An id outside [0, V) gives zeros. Gradients of equal ids are added in the order of
/// the ids.
Variable embedding(const Variable& table, const Tensor& ids);

Variable tanh(const Variable& x);
/// 1 / (1 + exp(-x)).
Variable sigmoid(const Variable& x);

/// Parameters of one direction of a recurrent layer, with the shapes of RnnWeights.
struct RnnParameters {
  Variable input, recurrent, input_bias, recurrent_bias;
};
struct RnnResult {
  Variable y;
  RnnState after;  // state after each sequence's last position; second direction: after its first
};
/// A recurrent layer as RnnSpec describes it: x (Σ rows, I) -> y (Σ rows, directions · H). An
/// undefined `before` is a zero state. No gradient flows through the states.
RnnResult rnn(RnnCell cell, const Variable& x, const std::vector<int64_t>& rows,
              const std::vector<RnnParameters>& directions, const RnnState& before = {});

/// Packs the columns of images (N, H, W, C), which are positions of sequences, one position after
/// another -> (Σ rows, H, C). `rows`, as in RnnSpec, has at most W positions and N sequences.
/// Columns behind a sequence's end are left out.
Variable pack_frames(const Variable& x, const std::vector<int64_t>& rows);
/// The inverse of pack_frames: (Σ rows, H, C) -> (N, H, positions, C), with zeros behind a
/// sequence's end.
Variable unpack_frames(const Variable& x, const std::vector<int64_t>& rows, int64_t positions);

/// Rows [begin, end) of the first extent. The result shares x's memory.
Variable rows(const Variable& x, int64_t begin, int64_t end);
/// Concatenates the parts along the first extent; all other extents must be equal.
Variable join_rows(const std::vector<Variable>& parts);
/// Elements [begin, end) of the last extent, copied into new memory.
Variable columns(const Variable& x, int64_t begin, int64_t end);
/// Concatenates the parts along the last extent; all other extents must be equal.
Variable join_columns(const std::vector<Variable>& parts);

/// The same elements in another shape.
Variable reshape(const Variable& x, Shape shape);
/// The elements of each image as a row, channel by channel: (N, H, W, C) -> (N, C H W). A linear
/// layer behind it has the weight of other programs' files, where images are channels first.
Variable flatten(const Variable& x);

/// Swaps the last two extents: (..., A, B) -> (..., B, A).
Variable swap_last(const Variable& x);

/// Converts bf16 to f32 and leaves every other type unchanged. A model applies it before the layer
/// whose output its loss reads.
Variable widen(const Variable& x);

/// The parameter-free shortcut of CIFAR ResNets. It takes every `stride`-th row and column and pads
/// the channels with zeros on both sides: (N, H, W, C) -> (N, ceil(H / stride), ceil(W / stride),
/// channels). Source: He et al. 2016, section 4.2, option A.
Variable pad_channels(const Variable& x, int64_t channels, int64_t stride);

/// Zeroes each element with `probability` and scales the rest by 1 / (1 - probability). The op is
/// the identity if the context does not train. The random choice depends on (seed, step, layer, the
/// row's key, position in the row), so it is the same however rows are spread over workers. `keys`
/// is (K) i64, and row r has key r % K. K is x's first extent or divides it; in the second case all
/// positions of a window share one choice per column (locked, or variational, dropout). Sources:
/// Srivastava et al. 2014; Gal & Ghahramani 2016.
Variable dropout(const Variable& x, double probability, uint64_t layer, const Tensor& keys);
/// dropout() with the context's samples as keys.
Variable dropout(const Variable& x, double probability, uint64_t layer);

/// Mean over the batch of -log softmax(logits)[label], in nats. logits are (N, C) f32 or f64,
/// labels (N) i32 in [-1, C). With label smoothing s the target is (1 - s) on the label plus s / C
/// everywhere. A row with label -1 has loss 0, and the mean still counts it. Any other label out of
/// range gives NaN, because a kernel cannot throw; data sets check labels. The log-sum-exp
/// subtracts the row's maximum. Undefined `labels` give an undefined result. Source: Szegedy et al.
/// 2016, section 7.
///
/// With the `shares` of mixup_shares(), (N) f32, a row's own label has its share of the target, and
/// the neighbour's label has the rest. Either label out of range gives NaN.
Variable cross_entropy(const Variable& logits, const Tensor& labels, double label_smoothing = 0.0,
                       const Tensor& shares = {});

/// Draws how much of each row its own sample gets in mixup, (N) f32 in [0.5, 1]. Rows 2j and 2j + 1
/// are neighbours and have one share, the larger of λ and 1 - λ with λ ~ Beta(alpha, alpha).
/// Exchanging λ for 1 - λ would only swap the two rows. The share is 1 in a last row without a
/// neighbour, and in pairs with a label of -1. labels are (N) i32. The draw depends on (seed, step,
/// the first row's key in the context's samples). Throws Error unless 0 < alpha <= 1. Source: Zhang
/// et al. 2018, "mixup: beyond empirical risk minimization", section 2; their programs draw one λ
/// for a batch, and partners at random.
Tensor mixup_shares(const Context& context, const Tensor& labels, double alpha);

/// Mixup: each row's share of its own sample, and the rest of its neighbour. x is (N, …). No
/// gradient.
Tensor mix_neighbours(const Context& context, const Tensor& x, const Tensor& shares);

/// Mean over N sequences of -log p(labels | frames), in nats (connectionist temporal
/// classification). A path has one class for each frame. p sums over the paths that give the labels
/// after equal neighbours are merged and blanks (class 0) are removed. logits are (Σ rows, C) f32
/// or f64, with `rows` as in RnnSpec. labels are (N, L) i32 in [1, C), with -1 behind a sequence's
/// last label.
///
/// A sequence has loss 0 and no gradient if it has no labels (a damaged sample) or more labels than
/// its frames can hold; equal neighbouring labels need a blank between them. The mean still counts
/// it. Any other label out of range gives NaN, as in cross_entropy. Undefined `labels` give an
/// undefined result.
///
/// The computation is in log space, each frame relative to its likeliest state. The op keeps (Σ
/// rows, 2 L + 3) numbers for its gradient. Source: Graves et al. 2006, sections 3 and 4; here the
/// backward variable leaves out its own frame.
Variable ctc_loss(const Variable& logits, const std::vector<int64_t>& rows, const Tensor& labels);

/// Counts the sequences of ctc_loss. Adds to sums[0] the number with more labels than their frames
/// can hold, and to sums[1] the number with labels. `sums` is (2) f64. No gradient.
void count_too_short(const Variable& logits, const std::vector<int64_t>& rows, const Tensor& labels,
                     const Tensor& sums);

/// Counts the rows of logits (N, C) in which the class of labels (N) i32 is among the `most`
/// largest (the first, if equal). A NaN is larger than any number, but a label whose own logit is
/// NaN counts as wrong. Adds the number of correct rows to sums[0], and the number of labels other
/// than -1 to sums[1]. `sums` is (2) f64. No gradient.
void count_correct(const Variable& logits, const Tensor& labels, const Tensor& sums,
                   int64_t most = 1);
/// count_correct() by class. `sums` is (C, 2) f64; row c counts the rows with label c. No gradient.
void count_correct_by_class(const Variable& logits, const Tensor& labels, const Tensor& sums);

/// Compares the greedy transcription of ctc_loss's `logits` with `labels`, of the shapes in
/// ctc_loss. The transcription takes each frame's likeliest class (the first, if equal), merges
/// equal neighbours and removes blanks. Words are separated by `space`, and any run of spaces
/// between words counts as one label. `sums` is (3, 2) f64. Its first row gets the word edits (the
/// fewest insertions, deletions and substitutions) and the number of words in the labels. The
/// second row gets the label edits and the number of labels. The third row gets the number of blank
/// frames and the number of frames. Sequences without labels add nothing. No gradient.
void count_edits(const Variable& logits, const std::vector<int64_t>& rows, const Tensor& labels,
                 int32_t space, const Tensor& sums);

/// Adds a loss to a running mean over targets. `mean` is one element, the mean over the batch's
/// targets with the ignored ones included. Adds the sum over the targets to sums[0], and the number
/// of targets that are not ignored to sums[1]. In training, a mean that is not finite adds nothing,
/// because its step is skipped; in an evaluation it makes the sum not finite. `sums` is (2) f64. No
/// gradient.
void add_mean(const Variable& mean, const Batch& batch, const Tensor& sums);

}  // namespace wisp
