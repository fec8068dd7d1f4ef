#include <cmath>

#include "core/loops/parallel_teams.h"
#include "core/ops.h"
#include "core/ops/gradient.h"
#include "core/ops/loss.h"
#include "core/ops/packed_rows.h"

namespace wisp {
namespace {

/// The sequences of a batch.
struct Sequences {
  PackedRows rows;
  const int32_t* labels;  // (count, width)
  int64_t count, width, classes;

  WISP_HD int64_t states() const { return 2 * width + 3; }
  WISP_HD const int32_t* transcript(int64_t n) const { return labels + n * width; }

  /// The number of frames of sequence n. Lengths fall with n.
  WISP_HD int64_t length(int64_t n) const {
    int64_t length = 0, none = rows.positions;
    while (length < none) {
      const int64_t middle = (length + none) / 2;
      if (rows.has(middle, n)) {
        length = middle + 1;
      } else {
        none = middle;
      }
    }
    return length;
  }
  /// The number of labels of sequence n, or -1 if one of them is out of range.
  WISP_HD int64_t label_count(int64_t n) const {
    const int32_t* label = transcript(n);
    int64_t k = 0;
    for (; k < width && label[k] != -1; ++k)
      if (label[k] < 1 || label[k] >= classes) return -1;
    return k;
  }
  /// Whether sequence n has fewer frames than its labels need, with a blank between equal ones.
  WISP_HD bool too_short(int64_t n, int64_t label_count) const {
    int64_t needed = label_count;
    for (int64_t k = 1; k < label_count; ++k) needed += transcript(n)[k] == transcript(n)[k - 1];
    return length(n) < needed;
  }
};

template <class T>
WISP_HD T impossible() {
  return static_cast<T>(-HUGE_VALF);
}

/// The number that log_sum() subtracts from its terms: the largest term, or a finite number if that
/// is impossible.
template <class T>
WISP_HD T finite(T largest) {
  return largest < T(-3e38f) ? T(-3e38f) : largest;
}

/// log(exp(a) + exp(b)); the second overload has three terms.
template <class T>
WISP_HD inline T log_sum(T a, T b) {
  const T shift = finite(b > a ? b : a);
  return shift + logarithm(exponential(a - shift) + exponential(b - shift));
}
template <class T>
WISP_HD inline T log_sum(T a, T b, T c) {
  const T first = b > a ? b : a;
  const T shift = finite(c > first ? c : first);
  return shift +
         logarithm(exponential(a - shift) + exponential(b - shift) + exponential(c - shift));
}

/// A number for each state of a frame: the blanks (before each label and after the last), then the
/// labels. After each of the two groups an impossible state is added. label[-1] and label[labels]
/// may therefore be read, and loops need no checks at their ends.
template <class T>
struct States {
  T* blank;
  T* label;
  int64_t labels;

  WISP_HD States(T* numbers, int64_t label_count)
      : blank(numbers), label(numbers + label_count + 2), labels(label_count) {}
  WISP_HD int64_t count() const { return 2 * labels + 3; }
  WISP_HD void bound() const { blank[labels + 1] = label[labels] = impossible<T>(); }
  /// Makes all states impossible except one blank.
  WISP_HD void begin_at(const Team& team, int64_t one) const {
    team.each(count(), [this](int64_t s) { blank[s] = impossible<T>(); });
    team.once([&] { blank[one] = 0; });
  }
  WISP_HD T largest(const Team& team) const {
    return team.reduce_lanes(0, count(), Largest<T>{blank});
  }
};

/// Log probabilities of a frame's classes, minus `norm`.
template <class T>
struct Frame {
  const T* logits;
  T norm;
  WISP_HD T operator[](int64_t c) const { return logits[c] - norm; }
};

/// Computes log Σ exp(logit) of a row. An item is a row.
template <class T>
struct LogExpSum {
  struct Shared {};
  const T* logits;
  int64_t classes;
  T* log_exp_sum;
  WISP_HD void operator()(const Team& team, int64_t row, Shared&) const {
    const T* x = logits + row * classes;
    const T largest = team.reduce_lanes(0, classes, Largest<T>{x});
    const T sum = team.reduce_lanes(0, classes, ExpSum<T>{{x, largest}});
    team.once([&] { log_exp_sum[row] = largest + logarithm(sum); });
  }
};

/// The data of the forward and backward pass.
template <class T>
struct Lattice {
  Sequences sequences;
  const T* logits;
  const T* log_exp_sum;  // one per row
  T* alpha;  // (rows, states): log probability of the frames so far and the state, up to a constant
             // of the frame; then the posterior
  T* skip;   // (count, width + 1): 0 if the blank before a label may be skipped, else impossible
  int64_t* aligned;  // (count): number of labels; 0: none or too many; -1: one is out of range
  T* scratch;        // (count, 2, states)

  WISP_HD States<T> states(int64_t row, int64_t n) const {
    return {alpha + row * sequences.states(), aligned[n]};
  }
  WISP_HD States<T> scratch_states(int64_t n, int64_t i) const {
    return {scratch + (2 * n + i) * sequences.states(), aligned[n]};
  }
  WISP_HD Frame<T> frame(int64_t row, T shift) const {
    return {logits + row * sequences.classes, log_exp_sum[row] + shift};
  }
};

/// Computes alpha and the loss of a sequence; an item is a sequence. Each frame's alphas are
/// relative to the largest of the frame before, so rounding errors do not grow with the number of
/// frames.
template <class T>
struct Forward {
  struct Shared {};
  Lattice<T> lattice;
  T* loss;
  WISP_HD void operator()(const Team& team, int64_t n, Shared&) const {
    const Sequences& sequences = lattice.sequences;
    const int64_t labels = sequences.label_count(n);
    const int64_t aligned = sequences.too_short(n, labels) ? 0 : labels;
    team.once([&] {
      lattice.aligned[n] = aligned;
      if (aligned <= 0) loss[n] = labels < 0 ? not_a_number<T>() : T(0);
    });
    if (aligned <= 0) return;
    const int32_t* label = sequences.transcript(n);
    T* skip = lattice.skip + n * (sequences.width + 1);
    team.each(labels + 1, [&](int64_t k) {
      const bool inner = 0 < k && k < labels;
      skip[k] = inner && label[k] != label[k - 1] ? T(0) : impossible<T>();
    });

    States<T> before = lattice.scratch_states(n, 0);
    before.begin_at(team, 0);
    double shifts = 0.0;
    T shift = 0;
    const int64_t length = sequences.length(n);
    for (int64_t t = 0; t < length; ++t) {
      const int64_t row = sequences.rows.row(t, n);
      const States<T> now = lattice.states(row, n);
      const Frame<T> frame = lattice.frame(row, shift);
      const T blank = frame[0];
      team.each(labels + 1, [&](int64_t k) {
        now.blank[k] = log_sum(before.blank[k], before.label[k - 1]) + blank;
      });
      team.each(labels, [&](int64_t k) {
        now.label[k] = log_sum(before.label[k], before.blank[k], before.label[k - 1] + skip[k]) +
                       frame[label[k]];
      });
      team.once([&] { now.bound(); });
      shifts += static_cast<double>(shift);
      shift = now.largest(team);
      before = now;
    }
    team.once([&] {
      const T end = log_sum(before.blank[labels], before.label[labels - 1]);
      loss[n] = static_cast<T>(-(shifts + static_cast<double>(end)));
    });
  }
};

/// Replaces alpha by the posterior of each state, whose sum is 1 in each frame; an item is a
/// sequence. beta, the log probability of the later frames, is computed frame by frame and is
/// relative like alpha.
template <class T>
struct Posterior {
  struct Shared {};
  Lattice<T> lattice;
  WISP_HD void operator()(const Team& team, int64_t n, Shared&) const {
    const int64_t labels = lattice.aligned[n];
    if (labels <= 0) return;
    const Sequences& sequences = lattice.sequences;
    const int32_t* label = sequences.transcript(n);
    const T* skip = lattice.skip + n * (sequences.width + 1);
    const States<T> beta = lattice.scratch_states(n, 0);
    const States<T> after = lattice.scratch_states(n, 1);  // beta plus the later frame
    const int64_t states = beta.count();
    after.begin_at(team, labels);
    team.once([&] { beta.bound(); });
    for (int64_t t = sequences.length(n) - 1; t >= 0; --t) {
      team.each(labels + 1,
                [&](int64_t k) { beta.blank[k] = log_sum(after.blank[k], after.label[k]); });
      team.each(labels, [&](int64_t k) {
        beta.label[k] =
            log_sum(after.label[k], after.blank[k + 1], after.label[k + 1] + skip[k + 1]);
      });
      const int64_t row = sequences.rows.row(t, n);
      T* both = lattice.states(row, n).blank;
      team.each(states, [&](int64_t s) { both[s] += beta.blank[s]; });
      const T largest = team.reduce_lanes(0, states, Largest<T>{both});
      const T sum = team.reduce_lanes(0, states, ExpSum<T>{{both, largest}});
      team.each(states, [&](int64_t s) { both[s] = exponential(both[s] - largest) / sum; });
      const Frame<T> frame = lattice.frame(row, beta.largest(team));
      const T blank = frame[0];
      team.each(labels + 1, [&](int64_t k) { after.blank[k] = beta.blank[k] + blank; });
      team.each(labels, [&](int64_t k) { after.label[k] = beta.label[k] + frame[label[k]]; });
    }
  }
};

/// Computes (softmax - posterior) / N · dy; an item is a frame of a sequence. `dx` may be the
/// logits' memory.
template <class T>
struct CtcGradient {
  struct Shared {};
  Lattice<T> lattice;
  const T* dy;
  T* dx;
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const Sequences& sequences = lattice.sequences;
    const int64_t t = item / sequences.count, n = item % sequences.count;
    if (!sequences.rows.has(t, n)) return;
    const int64_t row = sequences.rows.row(t, n);
    const int64_t labels = lattice.aligned[n];
    const T* x = lattice.logits + row * sequences.classes;
    T* gradient = dx + row * sequences.classes;
    const T scale = labels < 0 ? not_a_number<T>() : *dy / static_cast<T>(sequences.count);
    const T log_exp_sum = lattice.log_exp_sum[row];
    team.each(sequences.classes, [&](int64_t c) {
      const T value = exponential(x[c] - log_exp_sum) * scale;
      gradient[c] = labels == 0 ? T(0) : value;
    });
    if (labels <= 0) return;
    const States<T> posterior = lattice.states(row, n);
    const int32_t* label = sequences.transcript(n);
    team.once([&] {  // labels may occur more than once
      T blank = gradient[0];
      for (int64_t k = 0; k <= labels; ++k) blank -= posterior.blank[k] * scale;
      gradient[0] = blank;
      for (int64_t k = 0; k < labels; ++k) gradient[label[k]] -= posterior.label[k] * scale;
    });
  }
};

struct CountTooShort {
  Sequences sequences;
  double* sums;
  WISP_HD void operator()() const {
    for (int64_t n = 0; n < sequences.count; ++n) {
      const int64_t labels = sequences.label_count(n);
      sums[0] += sequences.too_short(n, labels);
      sums[1] += labels != 0;
    }
  }
};

/// The sequences of a batch. `first_row` and `labels` must outlive the result.
Sequences sequences_of(const Tensor& first_row, const Tensor& labels, int64_t classes) {
  return {{first_row.data<int64_t>(), first_row.numel() - 1},
          labels.data<int32_t>(),
          labels.shape()[0],
          labels.shape()[1],
          classes};
}

/// The memory of a Lattice.
struct LatticeMemory {
  Tensor logits, labels, first_row, log_exp_sum, alpha, skip, aligned;

  template <class T>
  Lattice<T> with(const Tensor& scratch) const {
    return {sequences_of(first_row, labels, logits.shape()[1]),
            logits.data<T>(),
            log_exp_sum.data<T>(),
            alpha.data<T>(),
            skip.data<T>(),
            aligned.data<int64_t>(),
            scratch.data<T>()};
  }
  int64_t states() const { return alpha.shape()[1]; }
  Tensor scratch(Context& context) const {
    return context.empty({labels.shape()[0], 2, states()}, logits.dtype());
  }
};

}  // namespace

Variable ctc_loss(const Variable& logits, const std::vector<int64_t>& rows, const Tensor& labels) {
  if (!labels.defined()) return {};
  Context& context = logits.context();
  const Tensor& x = logits.value();
  check_sequences("ctc_loss", x, rows, labels);
  const DType type = x.dtype();
  const int64_t count = labels.shape()[0], width = labels.shape()[1], classes = x.shape()[1];
  const LatticeMemory memory{x,
                             labels,
                             first_rows(context, rows),
                             context.empty({x.shape()[0]}, type),
                             context.empty({x.shape()[0], 2 * width + 3}, type),
                             context.empty({count, width + 1}, type),
                             context.empty({count}, DType::i64)};
  const int64_t frames = std::ssize(rows);
  const int64_t per_sequence = frames * memory.states();
  const Tensor losses = context.empty({count}, type);
  const Tensor loss = context.empty({}, type);
  const Tensor scratch = memory.scratch(context);
  dispatch_float(type, "ctc_loss", [&]<class T>(T) {
    parallel_teams(context.stream, x.shape()[0],
                   LogExpSum<T>{x.data<T>(), classes, memory.log_exp_sum.data<T>()}, classes);
    parallel_teams(context.stream, count, Forward<T>{memory.with<T>(scratch), losses.data<T>()},
                   per_sequence);
    parallel_reduce(context.stream, count, Mean<T>{losses.data<T>(), static_cast<T>(count)},
                    loss.data<T>());
  });
  return record("ctc_loss", loss, {logits},
                [&context, memory, frames, per_sequence](const Tensor& dy, Inputs& in) {
                  const Tensor& spent = memory.logits;
                  const GradSlot slot = in.slot(0, spent);
                  const Tensor dx =
                      slot.accumulate ? context.empty(spent.shape(), spent.dtype()) : slot.into;
                  const Tensor betas = memory.scratch(context);
                  dispatch_float(spent.dtype(), "ctc_loss", [&]<class T>(T) {
                    const Lattice<T> lattice = memory.with<T>(betas);
                    const int64_t sequences = lattice.sequences.count;
                    parallel_teams(context.stream, sequences, Posterior<T>{lattice}, per_sequence);
                    parallel_teams(context.stream, frames * sequences,
                                   CtcGradient<T>{lattice, dy.data<T>(), dx.data<T>()},
                                   lattice.sequences.classes + lattice.sequences.states());
                  });
                  if (slot.accumulate) deposit(context.stream, dx, slot);
                });
}

void count_too_short(const Variable& logits, const std::vector<int64_t>& rows, const Tensor& labels,
                     const Tensor& sums) {
  check_sequences("count_too_short", logits.value(), rows, labels);
  check_sums("count_too_short", sums, {2});
  Context& context = logits.context();
  const Tensor first_row = first_rows(context, rows);
  run_once(context.stream,
           CountTooShort{sequences_of(first_row, labels, logits.shape()[1]), sums.data<double>()});
}

}  // namespace wisp
