#include "core/base/edit_distance.h"
#include "core/loops/parallel.h"
#include "core/ops.h"
#include "core/ops/loss.h"
#include "core/ops/packed_rows.h"

namespace wisp {
namespace {

/// A text in labels, and the index at which each of its words begins.
struct Text {
  int32_t* label;
  int32_t* word;
  int64_t labels = 0, words = 0;

  /// Appends a label. A space counts once between words, and not at the ends.
  WISP_HD void add(int32_t next, int32_t space) {
    if (next != space || (labels > 0 && label[labels - 1] != space)) label[labels++] = next;
  }
  /// Finds the words, which are separated by spaces.
  WISP_HD void find_words(int32_t space) {
    if (labels > 0 && label[labels - 1] == space) --labels;
    for (int64_t i = 0; i < labels; ++i)
      if (label[i] != space && (i == 0 || label[i - 1] == space))
        word[words++] = static_cast<int32_t>(i);
  }
  /// The index after a word's last label.
  WISP_HD int64_t end(int64_t i, int32_t space) const {
    int64_t at = word[i];
    while (at < labels && label[at] != space) ++at;
    return at;
  }
};

struct SameLabels {
  Text a, b;
  WISP_HD bool operator()(int64_t i, int64_t j) const { return a.label[i] == b.label[j]; }
};

struct SameWords {
  Text a, b;
  int32_t space;
  WISP_HD bool operator()(int64_t i, int64_t j) const {
    const int64_t length = a.end(i, space) - a.word[i];
    if (b.end(j, space) - b.word[j] != length) return false;
    for (int64_t k = 0; k < length; ++k)
      if (a.label[a.word[i] + k] != b.label[b.word[j] + k]) return false;
    return true;
  }
};

struct Counts {
  enum { kWordEdits, kWords, kLabelEdits, kLabels, kBlanks, kFrames, kNumbers };
  int64_t number[kNumbers];
};

/// Compares the best path of a sequence with its labels. The best path is the likeliest class of
/// each frame, with equal neighbours merged and blanks left out. An index is a sequence.
template <class T>
struct CountEdits {
  PackedRows rows;
  const T* logits;
  int64_t classes;
  const int32_t* labels;  // (N, width)
  int64_t width;
  int32_t space;
  int32_t* scratch;  // (N, 2 positions + 3 width + 1)
  Counts* counts;    // (N)

  WISP_HD void operator()(int64_t n) const {
    counts[n] = {};
    int32_t* memory = scratch + n * (2 * rows.positions + 3 * width + 1);
    Text said{memory, memory + width};
    Text heard{said.word + width, said.word + width + rows.positions};
    int32_t* row = heard.word + rows.positions;
    for (int64_t i = 0; i < width && labels[n * width + i] != -1; ++i)
      said.add(labels[n * width + i], space);
    if (said.labels == 0) return;
    int32_t before = 0;
    int64_t blanks = 0, t = 0;
    for (; rows.has(t, n); ++t) {
      const int32_t best = likeliest(logits + rows.row(t, n) * classes);
      blanks += best == 0;
      if (best != 0 && best != before) heard.add(best, space);
      before = best;
    }
    said.find_words(space);
    heard.find_words(space);
    int64_t* number = counts[n].number;
    number[Counts::kWordEdits] =
        edit_distance(heard.words, said.words, SameWords{heard, said, space}, row);
    number[Counts::kWords] = said.words;
    number[Counts::kLabelEdits] =
        edit_distance(heard.labels, said.labels, SameLabels{heard, said}, row);
    number[Counts::kLabels] = said.labels;
    number[Counts::kBlanks] = blanks;
    number[Counts::kFrames] = t;
  }
  WISP_HD int32_t likeliest(const T* x) const {
    int32_t best = 0;
    for (int32_t c = 1; c < classes; ++c) best = x[c] > x[best] ? c : best;
    return best;
  }
};

struct AddEditCounts {
  const Counts* counts;
  int64_t sequences;
  double* sums;
  WISP_HD void operator()() const {
    for (int64_t n = 0; n < sequences; ++n)
      for (int64_t k = 0; k < Counts::kNumbers; ++k)
        sums[k] += static_cast<double>(counts[n].number[k]);
  }
};

}  // namespace

void count_edits(const Variable& logits, const std::vector<int64_t>& rows, const Tensor& labels,
                 int32_t space, const Tensor& sums) {
  check_sequences("count_edits", logits.value(), rows, labels);
  check_sums("count_edits", sums, {3, 2});
  Context& context = logits.context();
  const int64_t sequences = rows.front(), classes = logits.shape()[1];
  const int64_t positions = std::ssize(rows), width = labels.shape()[1];
  const Tensor first = first_rows(context, rows);
  const Tensor scratch = context.empty({sequences, 2 * positions + 3 * width + 1}, DType::i32);
  const Tensor counted = context.empty({sequences, Counts::kNumbers}, DType::i64);
  auto* counts = reinterpret_cast<Counts*>(counted.raw());
  dispatch_float(logits.value().dtype(), "count_edits", [&]<class T>(T) {
    parallel_for(context.stream, sequences,
                 CountEdits<T>{{first.data<int64_t>(), positions},
                               logits.value().data<T>(),
                               classes,
                               labels.data<int32_t>(),
                               width,
                               space,
                               scratch.data<int32_t>(),
                               counts},
                 positions * width);
  });
  run_once(context.stream, AddEditCounts{counts, sequences, sums.data<double>()});
}

}  // namespace wisp
