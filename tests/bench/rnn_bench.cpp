// Times recurrent layers in turn with oneDNN's own LSTM primitives. Prints the least time of each
// pass over the repetitions, and the speed of its products relative to one large product. Usage:
// rnn_bench [repetitions]
#include <fmt/core.h>
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/base/clock.h"
#include "core/products.h"
#include "tests/bench/library_lstm.h"
#include "tests/support/tensors.h"

namespace wisp {
namespace {

/// A recurrent layer with all its tensors.
struct Recurrent {
  RnnSpec spec;
  std::vector<RnnWeights> weights;
  std::vector<RnnGradients> gradients;
  RnnState before, after;
  Tensor x, y, dy, dx, saved;

  Recurrent(Backend& backend, DType dtype, RnnSpec layer) : spec(std::move(layer)) {
    const int64_t gates = spec.gates() * spec.hidden;
    const Shape state{spec.directions, spec.sequences(), spec.hidden};
    const Shape outputs{spec.total_rows(), spec.directions * spec.hidden};
    for (Tensor* in : {&x, &dx}) *in = random_tensor({spec.total_rows(), spec.inputs}, 1, dtype);
    for (Tensor* out : {&y, &dy}) *out = random_tensor(outputs, 2, dtype);
    before = {random_tensor(state, 3, dtype), random_tensor(state, 3, dtype)};
    after = {random_tensor(state, 3, dtype), random_tensor(state, 3, dtype)};
    if (spec.cell != RnnCell::lstm) before.c = after.c = {};
    for (int64_t d = 0; d < spec.directions; ++d) {
      const auto parameter = [&](Shape shape) { return random_tensor(shape, 4, wide_of(dtype)); };
      weights.push_back({parameter({gates, spec.inputs}), parameter({gates, spec.hidden}),
                         parameter({gates}), parameter({gates})});
      gradients.push_back({{parameter({gates, spec.inputs})},
                           {parameter({gates, spec.hidden})},
                           {parameter({gates})},
                           {parameter({gates})}});
    }
    saved = Tensor({backend.recurrent().rnn_saved_bytes(spec, dtype)}, DType::u8);
  }

  std::string name() const {
    const char* const cells[] = {"tanh", "lstm", "gru"};
    return fmt::format("{} {}->{} x{}, {} rows, {} positions", cells[static_cast<int>(spec.cell)],
                       spec.inputs, spec.hidden, spec.directions, spec.sequences(),
                       spec.rows.size());
  }
  /// Operations of the products in the forward pass. dx and dw have as many each.
  double operations() const {
    return 2.0 * static_cast<double>(spec.directions * spec.total_rows() * spec.gates() *
                                     spec.hidden * (spec.inputs + spec.hidden));
  }
};

std::vector<RnnSpec> recurrent_layers() {
  std::vector<RnnSpec> layers;
  for (const int64_t hidden : {200, 650, 1500})
    layers.push_back({RnnCell::lstm, hidden, hidden, 1, std::vector<int64_t>(35, 20)});
  for (const int64_t rows : {4, 8})
    layers.push_back({RnnCell::gru, 1024, 512, 2, std::vector<int64_t>(200, rows)});
  return layers;
}

/// The least milliseconds of the calls of each name.
class Least {
 public:
  void time(const std::string& what, const std::function<void()>& call) {
    const double begun = now_us();
    call();
    const double ms = 1e-3 * (now_us() - begun);
    const auto [place, first] = ms_.emplace(what, ms);
    if (!first) place->second = std::min(place->second, ms);
  }
  double operator[](const std::string& what) const { return ms_.at(what); }

 private:
  std::map<std::string, double> ms_;
};

void report(DType dtype, int threads, int repetitions) {
  omp_set_num_threads(threads);
  MemoryPool pool;
  const Stream stream = Stream::immediate();
  const std::unique_ptr<Backend> backend = make_backend(pool, stream);
  constexpr int64_t kLarge = 2048;
  const Tensor a = random_tensor({kLarge, kLarge}, 5, dtype);
  const Tensor b = random_tensor({kLarge, kLarge}, 6, dtype);
  const GradSlot c{Tensor({kLarge, kLarge}, wide_of(dtype))};
  for (const RnnSpec& spec : recurrent_layers()) {
    Recurrent l(*backend, dtype, spec);
    std::unique_ptr<LibraryLstm> library;
    if (spec.cell == RnnCell::lstm) library = std::make_unique<LibraryLstm>(spec, dtype);
    Least least;
    for (int repetition = 0; repetition < repetitions; ++repetition) {
      least.time("product", [&] {
        backend->products().gemm(stream, {kLarge, kLarge, kLarge, false, true}, a, b, c);
      });
      least.time("forward", [&] {
        backend->recurrent().rnn(stream, l.spec, l.x, l.weights, l.before, l.y, l.after, l.saved);
      });
      GradSlot dx{l.dx};
      least.time("dx", [&] {
        backend->recurrent().rnn_dx(stream, l.spec, l.y, l.dy, l.weights, l.before, l.saved, dx);
      });
      least.time("dw", [&] {
        backend->recurrent().rnn_dw(stream, l.spec, l.x, l.y, l.before, l.saved, l.gradients);
      });
      if (!library) continue;
      least.time("library forward", [&] { library->forward(); });
      least.time("library backward", [&] { library->backward(); });
    }
    const double peak = 2.0 * kLarge * kLarge * kLarge / least["product"];
    fmt::print("{} {}, threads {}, {}, ms:", backend->name(), name_of(dtype), threads, l.name());
    double sum = 0;
    for (const char* pass : {"forward", "dx", "dw"}) {
      sum += least[pass];
      fmt::print("  {} {:.2f} ({:.0f}%)", pass, least[pass],
                 100 * l.operations() / least[pass] / peak);
    }
    fmt::print("  all {:.2f} ({:.0f}% of {:.0f} GFLOP/s)", sum,
               100 * 3 * l.operations() / sum / peak, peak / 1e6);
    if (library) {
      const double forward = least["library forward"], backward = least["library backward"];
      fmt::print("  library's primitives: forward {:.2f}  backward {:.2f}  all {:.2f}", forward,
                 backward, forward + backward);
    }
    fmt::print("\n");
  }
}

}  // namespace
}  // namespace wisp

int main(int argc, char** argv) try {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 10;
  if (repetitions < 1) {
    std::fprintf(stderr, "usage: rnn_bench [repetitions]\n");
    return 2;
  }
  for (const wisp::DType dtype : {wisp::DType::f32, wisp::DType::bf16}) {
    if (!wisp::missing_for(dtype).empty()) continue;
    for (const int threads : {1, 2}) wisp::report(dtype, threads, repetitions);
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "rnn_bench: %s\n", error.what());
  return 1;
}
