// Times the ops at both ends of a language model (700 rows, 650 features, 10,000 words) and the
// loss of a speech model (8 sequences of 200 frames, 29 classes, 40 labels). Prints the least time
// of each over the repetitions, forward and backward, and the memory beside inputs and weights.
// Usage: ops_bench [repetitions]
#include <fmt/core.h>
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/ops.h"
#include "tests/support/leaves.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

constexpr int64_t kRows = 700, kFeatures = 650, kWords = 10'000;

/// An op whose gradient costs nothing. It stores the time of its backward call in `reached`.
Variable mark(const char* name, const Tensor& value, const Variable& x, double& reached) {
  return record(name, value, {x}, [&reached](const Tensor&, Inputs& in) {
    in.slot(0).into.clear();
    reached = now_us();
  });
}

struct Case {
  std::string name;
  Shape x;
  std::vector<Shape> weights;
  std::function<Variable(const Variable& x, const std::vector<Variable>& weights)> call;
};

struct Times {
  double forward_ms = 1e9, backward_ms = 1e9;
  int64_t bytes = 0;  // peak
};

Times times_of(const Case& op, DType dtype, int repetitions) {
  TestContext worker({.compute = dtype, .library = Library::fastest});
  Context& context = worker.context;
  Leaves leaves;
  const Variable source = leaves.make(context, Tensor({1}, dtype));
  const Tensor x = random_tensor(op.x, 1, dtype);
  std::vector<Variable> weights;
  for (const Shape& shape : op.weights)
    weights.push_back(leaves.make(context, random_tensor(shape, 2, wide_of(dtype))));
  context.samples = sample_ids(kRows);
  Times times;
  for (int repetition = 0; repetition <= repetitions; ++repetition) {
    double begun = 0, ended = 0, end = 0;
    Tensor value = context.empty(op.x, dtype);
    std::memcpy(value.raw(), x.raw(), static_cast<size_t>(x.bytes()));
    Variable given = mark("given", value, source, ended);
    value = {};
    begun = now_us();
    Variable y = op.call(given, weights);
    const double forward = now_us() - begun;
    given = {};
    const Variable loss = mark("loss", context.zeros({}, wide_of(dtype)), y, begun);
    y = {};
    backward(loss);
    end = op.name == "embedding" ? now_us() : ended;
    if (repetition == 0) continue;
    times.forward_ms = std::min(times.forward_ms, forward * 1e-3);
    times.backward_ms = std::min(times.backward_ms, (end - begun) * 1e-3);
  }
  times.bytes = worker.pool.stats().peak_used_bytes - worker.backend->workspace_bytes();
  return times;
}

std::vector<Case> cases() {
  Tensor labels({kRows}, DType::i32);
  const Philox random(1, 0, 0);
  for (int64_t i = 0; i < kRows; ++i)
    labels.data<int32_t>()[i] =
        static_cast<int32_t>(random.below(static_cast<uint64_t>(i), kWords));
  Tensor transcripts({8, 40}, DType::i32);
  for (int64_t i = 0; i < transcripts.numel(); ++i)
    transcripts.data<int32_t>()[i] = 1 + labels.data<int32_t>()[i] % 28;
  return {
      {"cross_entropy",
       {kRows, kWords},
       {},
       [labels](const auto& x, const auto&) { return cross_entropy(widen(x), labels); }},
      {"cross_entropy smoothed",
       {kRows, kWords},
       {},
       [labels](const auto& x, const auto&) { return cross_entropy(widen(x), labels, 0.1); }},
      {"ctc_loss",
       {200 * 8, 29},
       {},
       [transcripts](const auto& x, const auto&) {
         return ctc_loss(widen(x), std::vector<int64_t>(200, 8), transcripts);
       }},
      {"linear",
       {kRows, kFeatures},
       {{kWords, kFeatures}},
       [](const auto& x, const auto& w) { return linear(x, w[0], {}); }},
      {"linear with bias",
       {kRows, kFeatures},
       {{kWords, kFeatures}, {kWords}},
       [](const auto& x, const auto& w) { return linear(x, w[0], w[1]); }},
      {"wide linear with bias",
       {kRows, kFeatures},
       {{kWords, kFeatures}, {kWords}},
       [](const auto& x, const auto& w) { return linear(x, w[0], w[1], {.wide = true}); }},
      {"embedding",
       {1},
       {{kWords, kFeatures}},
       [labels](const auto&, const auto& w) { return embedding(w[0], labels); }},
      {"tanh", {kRows, 4 * kFeatures}, {}, [](const auto& x, const auto&) { return tanh(x); }},
      {"dropout",
       {kRows, kFeatures},
       {},
       [](const auto& x, const auto&) { return dropout(x, 0.5, 1); }},
  };
}

}  // namespace
}  // namespace wisp

int main(int argc, char** argv) try {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 10;
  if (repetitions < 1) {
    std::fprintf(stderr, "usage: ops_bench [repetitions]\n");
    return 2;
  }
  for (const wisp::DType dtype : {wisp::DType::f32, wisp::DType::bf16}) {
    if (!wisp::missing_for(dtype).empty()) continue;
    for (const int threads : {1, 2}) {
      omp_set_num_threads(threads);
      for (const wisp::Case& op : wisp::cases()) {
        const wisp::Times times = wisp::times_of(op, dtype, repetitions);
        fmt::print("{} threads {} {:24} forward {:8.3f} backward {:8.3f} ms, {:6.1f} MB\n",
                   wisp::name_of(dtype), threads, op.name, times.forward_ms, times.backward_ms,
                   static_cast<double>(times.bytes) / 1e6);
      }
    }
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "ops_bench: %s\n", error.what());
  return 1;
}
