// Times the low-rank methods on the matrices of ResNet-50, each a unit of one worker, beside the
// library's products alone: the same gemm calls on memory of the same size. Prints the least time
// of the repetitions, and the share of the products' speed that a method keeps. Each repetition
// draws new gradients. Usage: low_rank_bench [rank [threads [repetitions]]]
#include <omp.h>

#include <cstdio>
#include <cstdlib>

#include "core/base/clock.h"
#include "core/loops/parallel.h"
#include "tests/support/resnet50_matrices.h"
#include "tests/support/unit_rig.h"

namespace wisp {

struct DrawNormal {
  Philox random;
  float* out;
  WISP_HD void operator()(int64_t i) const {
    out[i] = random.nearly_normal(static_cast<uint64_t>(i));
  }
};

namespace {

class Bench {
 public:
  explicit Bench(int64_t rank) : rank_(rank), fields_(matrix_fields(resnet50_matrices(), 0)) {
    for (const Field& field : fields_) numel_ += field.numel;
    gradient_ = Tensor({numel_}, DType::f32);
    for (const Field& field : fields_) {
      const int64_t r = std::min({rank, field.rows, field.numel / field.rows});
      p_.emplace_back(Shape{r, field.rows}, DType::f32);
      q_.emplace_back(Shape{r, field.numel / field.rows}, DType::f32);
    }
  }

  double flops_of_a_product() const {
    double flops = 0.0;
    for (size_t f = 0; f < fields_.size(); ++f)
      flops += 2.0 * static_cast<double>(p_[f].shape()[0] * fields_[f].numel);
    return flops;
  }

  /// Milliseconds of one product of a low-rank step, by number: M Q, Mᵀ P, P Qᵀ, M + P Qᵀ.
  double products(int which) {
    const double begin = now_us();
    for (size_t f = 0; f < fields_.size(); ++f) {
      const Field& field = fields_[f];
      const int64_t r = p_[f].shape()[0], columns = field.numel / field.rows;
      const Tensor m = gradient_.slice(field.slices[0].offset, {field.rows, columns});
      Backend& backend = *test_.backend;
      if (which == 0) {
        const GemmSpec spec{.m = r, .n = field.rows, .k = columns, .transpose_b = true};
        backend.products().gemm(test_.stream, spec, q_[f], m, {p_[f], false});
      } else if (which == 1) {
        backend.products().gemm(test_.stream, {.m = r, .n = columns, .k = field.rows}, p_[f], m,
                                {q_[f], false});
      } else {
        const GemmSpec spec{.m = field.rows, .n = columns, .k = r, .transpose_a = true};
        backend.products().gemm(test_.stream, spec, p_[f], q_[f], {m, which == 3});
      }
    }
    return (now_us() - begin) * 1e-3;
  }

  void draw(const Tensor& into) {
    parallel_for(test_.stream, into.numel(),
                 DrawNormal{Philox(1, ++drawn_, 0), into.data<float>()});
  }

  /// A compressor with its state, unit and payload of each matrix.
  struct Method {
    std::unique_ptr<Compressor> compressor;
    Tensor gradient, residual, scratch;
    std::vector<State> states;
    std::vector<Unit> units;
    std::vector<Tensor> out;
  };
  Method make(const std::string& name, const std::string& toml) {
    Method method;
    method.compressor = make_method(name, concat("[compression]\nrank = ", rank_, "\n", toml));
    method.gradient = Tensor({numel_}, DType::f32);
    method.residual = Tensor({numel_}, DType::f32);
    method.scratch = Tensor({method.compressor->scratch_bytes({}, {})}, DType::u8);
    for (const Field& field : fields_) {
      Unit& unit = method.units.emplace_back();
      unit.spec = {{&field, 1}, field.numel};
      unit.gradient = method.gradient;
      unit.scratch = method.scratch.raw();
      std::vector<Tensor>& state = method.states.emplace_back().tensors;
      for (const StateSpec& spec : method.compressor->state(unit.spec, 1))
        state.push_back(spec.per_element ? method.residual : Tensor(spec.shape, spec.dtype));
      method.out.push_back(Tensor({field.numel}, DType::f32));
    }
    return method;
  }

  /// Milliseconds of one step: it encodes, and decodes the worker's own payloads.
  double step(Method& method, int64_t step) {
    draw(method.gradient);
    StepInfo info;
    info.step = info.applied = step;
    const double begin = now_us();
    for (int round = 0; round < method.compressor->rounds({}, info); ++round) {
      for (size_t i = 0; i < fields_.size(); ++i) {
        const Outlet outlet{method.out[i].raw(), method.out[i].bytes(), nullptr};
        method.units[i].state = &method.states[i];
        method.compressor->encode(test_.context, method.units[i], info, round, {&outlet, 1});
      }
      for (size_t i = 0; i < fields_.size(); ++i) {
        const Message message = method.compressor->message(method.units[i].spec, info, round);
        const Payload payload{-1, method.out[i].raw(), message.bytes};
        method.compressor->decode(test_.context, method.units[i], info, round, {&payload, 1});
      }
    }
    return (now_us() - begin) * 1e-3;
  }
  Tensor& gradient() { return gradient_; }

 private:
  TestContext test_{{.compute = DType::f32, .library = Library::fastest}};
  int64_t rank_;
  std::vector<Field> fields_;
  int64_t numel_ = 0;
  Tensor gradient_;
  std::vector<Tensor> p_, q_;
  uint64_t drawn_ = 0;
};

/// The least result of `measure`.
template <class Measure>
double least(int repetitions, const Measure& measure) {
  double best = 1e9;
  for (int i = 0; i < repetitions; ++i) best = std::min(best, measure(i));
  return best;
}

void run(int64_t rank, int threads, int repetitions) {
  omp_set_num_threads(threads);
  Bench bench(rank);
  const double flops = bench.flops_of_a_product();
  double product[4];
  const char* names[] = {"M Q", "Mᵀ P", "P Qᵀ", "M + P Qᵀ"};
  std::printf("rank %lld, %d threads, ResNet-50: %.2f GFlop a product\n",
              static_cast<long long>(rank), threads, flops * 1e-9);
  for (int which = 0; which < 4; ++which) {
    product[which] = least(repetitions, [&](int) {
      bench.draw(bench.gradient());
      return bench.products(which);
    });
    std::printf("  gemm %-10s %8.2f ms %7.1f GFlop/s\n", names[which], product[which],
                flops * 1e-6 / product[which]);
  }
  const auto report = [&](const std::string& name, double ms, double alone) {
    std::printf("  %-21s %8.2f ms, its products alone %8.2f ms: %.2f of their speed\n",
                name.c_str(), ms, alone, alone / ms);
  };
  for (const std::string form : {"aggregated", "local"}) {
    Bench::Method method = bench.make("powersgd", "residual_form = \"" + form + "\"");
    const double ms = least(repetitions, [&](int i) { return bench.step(method, i); });
    report("powersgd " + form, ms,
           product[0] + product[1] + product[2] + (form == "local" ? product[3] : 0.0));
  }
  for (const int parity : {0, 1}) {
    Bench::Method method = bench.make("acpsgd", "");
    bench.step(method, 0);
    const double ms = least(repetitions, [&](int i) { return bench.step(method, 2 * i + parity); });
    report(parity == 0 ? "acpsgd P" : "acpsgd Q", ms, product[parity] + product[2] + product[3]);
  }
}

}  // namespace
}  // namespace wisp

int main(int argc, char** argv) {
  wisp::run(argc > 1 ? std::atoi(argv[1]) : 4, argc > 2 ? std::atoi(argv[2]) : 1,
            argc > 3 ? std::atoi(argv[3]) : 9);
}
