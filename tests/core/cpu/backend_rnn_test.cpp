// Tests of recurrent layers: the fastest backend and our kernels against the reference.
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>

#include "core/backend.h"
#include "core/random.h"
#include "tests/support/kernels_over.h"
#include "tests/support/tensors.h"

namespace wisp {
namespace {

// f32 has a relative rounding error of 6e-8, and a sequence repeats it a few times. Squared, that
// leaves 1e-13. A wrong gate, row or scale gives 1e-2 and more.
constexpr double kNmse = 1e-10;
// bf16 rounds by 2e-3 on average, or 4e-6 squared. It also rounds gates and their gradients, which
// the reference does not, and gradients are smaller than the terms that they sum.
constexpr double kNmseBf16 = 2e-4;

struct Case {
  RnnSpec spec;
  bool with_state = true;
};

std::string name_of(const Case& c) {
  const char* const cells[] = {"tanh", "lstm", "gru"};
  return concat(cells[static_cast<int>(c.spec.cell)], " ", c.spec.inputs, " -> ", c.spec.hidden,
                ", directions ", c.spec.directions, ", sequences ", c.spec.sequences(),
                ", positions ", c.spec.rows.size(), c.with_state ? ", state" : "");
}

/// All cells and directions, over sequences of equal and of different lengths, in sizes around the
/// kernels' 16 columns and 24 rows.
std::vector<Case> cases() {
  const std::vector<std::vector<int64_t>> rows = {
      {1, 1, 1}, {3, 3}, {20, 20, 13, 13, 1}, {33, 25, 24, 2}, {50, 49, 1}};
  const std::vector<std::pair<int64_t, int64_t>> sizes = {{7, 1}, {1, 5}, {40, 17}, {9, 33}};
  std::vector<Case> all;
  for (const RnnCell cell : {RnnCell::tanh, RnnCell::lstm, RnnCell::gru})
    for (const int64_t directions : {1, 2})
      for (const auto& [inputs, hidden] : sizes)
        for (size_t i = 0; i < 2; ++i)
          all.push_back({{cell, inputs, hidden, directions, rows[all.size() % rows.size()]},
                         all.size() % 3 != 0});
  return all;
}

struct Asked {
  DType dtype = DType::f32;
  bool accumulate = false;
  bool dx = true;
  bool dw = true;
};

struct Results {
  Tensor y, h, c, dx;
  std::vector<Tensor> dw;
};

/// A recurrent layer on one backend, with inputs and weights that bf16 holds exactly.
class Layer {
 public:
  Layer(const Case& layer, DType dtype, Library library)
      : s(layer.spec), dtype_(dtype), backend_(make_backend_of(library, pool_, stream_)) {
    const int64_t gates = s.gates() * s.hidden;
    x_ = activation({s.total_rows(), s.inputs}, 1);
    dy_ = activation({s.total_rows(), s.directions * s.hidden}, 2);
    if (layer.with_state) {
      before_.h = state(3);
      if (s.cell == RnnCell::lstm) before_.c = state(4);
    }
    for (int64_t d = 0; d < s.directions; ++d) {
      const auto id = static_cast<uint64_t>(10 + 10 * d);
      const double scale = 1 / std::sqrt(static_cast<double>(s.hidden));
      weights_.push_back({parameter({gates, s.inputs}, id, scale),
                          parameter({gates, s.hidden}, id + 1, scale),
                          parameter({gates}, id + 2, scale), parameter({gates}, id + 3, scale)});
    }
  }

  Results run(const Asked& asked) {
    Results r = forward(Tensor({backend_->recurrent().rnn_saved_bytes(s, dtype_)}, DType::u8));
    r.dx = activation({s.total_rows(), s.inputs}, 5);
    const GradSlot dx = asked.dx ? GradSlot{r.dx, asked.accumulate} : GradSlot{};
    backend_->recurrent().rnn_dx(stream_, s, r.y, dy_, weights_, before_, saved_, dx);
    std::vector<RnnGradients> into;
    for (int64_t d = 0; d < s.directions; ++d) {
      const RnnWeights& w = weights_[static_cast<size_t>(d)];
      std::vector<GradSlot> slots;
      for (const Tensor* weight : {&w.input, &w.recurrent, &w.input_bias, &w.recurrent_bias}) {
        r.dw.push_back(parameter(weight->shape(), 6, 1.0));
        slots.push_back(asked.dw ? GradSlot{r.dw.back(), asked.accumulate} : GradSlot{});
      }
      into.push_back({slots[0], slots[1], slots[2], slots[3]});
    }
    backend_->recurrent().rnn_dw(stream_, s, x_, r.y, before_, saved_, into);
    return r;
  }

  Results forward(Tensor saved) {
    Results r;
    r.y = Tensor({s.total_rows(), s.directions * s.hidden}, dtype_);
    RnnState after{state(7), s.cell == RnnCell::lstm ? state(8) : Tensor()};
    saved_ = std::move(saved);
    backend_->recurrent().rnn(stream_, s, x_, weights_, before_, r.y, after, saved_);
    r.h = after.h;
    r.c = after.c;
    return r;
  }

 private:
  Tensor draw(Shape shape, DType dtype, uint64_t id, double scale) const {
    std::vector<double> numbers(static_cast<size_t>(shape.numel()));
    const Philox philox(1, 0, id);
    for (size_t i = 0; i < numbers.size(); ++i) {
      const double number = scale * (2.0 * static_cast<double>(philox.uniform(i)) - 1.0);
      numbers[i] = static_cast<double>(wide(BFloat16(static_cast<float>(number))));
    }
    return tensor(shape, numbers, dtype);
  }
  Tensor activation(Shape shape, uint64_t id) const { return draw(shape, dtype_, id, 1.0); }
  Tensor parameter(Shape shape, uint64_t id, double scale) const {
    return draw(shape, wide_of(dtype_), id, scale);
  }
  Tensor state(uint64_t id) const {
    return activation({s.directions, s.sequences(), s.hidden}, id);
  }

  const RnnSpec s;
  DType dtype_;
  MemoryPool pool_;
  Stream stream_ = Stream::immediate();
  std::unique_ptr<Backend> backend_;
  Tensor x_, dy_, saved_;
  RnnState before_;
  std::vector<RnnWeights> weights_;
};

/// Each element sums `terms` terms, and may be smaller than the rounding of its terms.
void expect_near(const Tensor& actual, const Tensor& expected, double nmse, int64_t terms,
                 const char* what) {
  if (!expected.defined()) return;
  const std::vector<double> a = values(actual), e = values(expected);
  constexpr double kSquaredTerm = 0.04;
  double error = 0, norm = 0;
  for (size_t i = 0; i < e.size(); ++i) {
    error += (a[i] - e[i]) * (a[i] - e[i]);
    norm += e[i] * e[i] + kSquaredTerm * static_cast<double>(terms);
  }
  EXPECT_LE(error, nmse * norm) << what;
}

void expect_near(const Case& c, const Results& actual, const Results& expected, double nmse) {
  expect_near(actual.y, expected.y, nmse, 0, "y");
  expect_near(actual.h, expected.h, nmse, 0, "h");
  expect_near(actual.c, expected.c, nmse, 0, "c");
  expect_near(actual.dx, expected.dx, nmse, 0, "dx");
  const char* const weight[] = {"input", "recurrent", "input bias", "recurrent bias"};
  for (size_t i = 0; i < expected.dw.size(); ++i)
    expect_near(actual.dw[i], expected.dw[i], nmse, c.spec.total_rows(), weight[i % 4]);
}

void expect_same(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.defined(), b.defined());
  if (!a.defined()) return;
  EXPECT_EQ(values(a), values(b));
}

void expect_equal(const Results& a, const Results& b) {
  expect_same(a.y, b.y);
  expect_same(a.h, b.h);
  expect_same(a.c, b.c);
  expect_same(a.dx, b.dx);
  for (size_t i = 0; i < a.dw.size(); ++i) expect_same(a.dw[i], b.dw[i]);
}

struct Tried {
  Library library;
  DType dtype;
};

std::vector<Tried> tried() {
  std::vector<Tried> all{{Library::kernels, DType::f32},
                         {Library::kernels, DType::bf16},
                         {Library::fastest, DType::f32}};
  if (missing_for(DType::bf16).empty()) all.push_back({Library::fastest, DType::bf16});
  return all;
}

std::string name_of(const Tried& t) {
  return concat(t.library == Library::kernels ? "kernels " : "fastest ", name_of(t.dtype));
}

TEST(BackendRnn, AgreesWithTheReference) {
  for (const auto& [library, dtype] : tried()) {
    for (const Case& c : cases()) {
      for (const bool accumulate : {false, true}) {
        SCOPED_TRACE(
            concat(name_of(c), " ", name_of(Tried{library, dtype}), accumulate ? ", added" : ""));
        const Asked asked{.dtype = dtype, .accumulate = accumulate};
        const bool coarse = dtype == DType::bf16;
        expect_near(c, Layer(c, dtype, library).run(asked),
                    Layer(c, coarse ? dtype : DType::f64, Library::reference).run(asked),
                    coarse ? kNmseBf16 : kNmse);
      }
    }
  }
}

TEST(BackendRnn, ComputesTheSameWhateverIsKeptOrWanted) {
  for (const auto& [library, dtype] : tried()) {
    for (const Case& c : cases()) {
      SCOPED_TRACE(concat(name_of(c), " ", name_of(Tried{library, dtype})));
      const Results all = Layer(c, dtype, library).run({});
      const Results unsaved = Layer(c, dtype, library).forward(Tensor());
      expect_same(unsaved.y, all.y);
      expect_same(unsaved.h, all.h);
      expect_same(unsaved.c, all.c);
      const Results no_dx = Layer(c, dtype, library).run({.dx = false});
      expect_same(no_dx.dw[1], all.dw[1]);
      const Results no_dw = Layer(c, dtype, library).run({.dw = false});
      expect_same(no_dw.dx, all.dx);
    }
  }
}

TEST(BackendRnn, BitsDependNeitherOnTheRunNorOnThreads) {
  const int threads = omp_get_max_threads();
  for (const auto& [library, dtype] : tried()) {
    for (const RnnCell cell : {RnnCell::tanh, RnnCell::lstm, RnnCell::gru}) {
      const int64_t hidden = library == Library::kernels ? 30 : 150;  // products in plain loops
      const Case c{{cell, 100, hidden, 2, {30, 30, 27, 2}}, true};
      SCOPED_TRACE(concat(name_of(c), " ", name_of(Tried{library, dtype})));
      omp_set_num_threads(1);
      const Results one = Layer(c, dtype, library).run({});
      for (const int many : {2, 2, 3}) {
        omp_set_num_threads(many);
        expect_equal(Layer(c, dtype, library).run({}), one);
      }
      omp_set_num_threads(threads);
    }
  }
}

}  // namespace
}  // namespace wisp
