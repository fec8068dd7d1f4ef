#include "distributed/averaging/probe.h"

#include <cmath>
#include <type_traits>

#include "compression/slices.h"
#include "core/loops/parallel_rows.h"
#include "distributed/loops.h"

namespace wisp {
namespace {

struct CountAges {
  const float* result;
  int32_t* age;
  WISP_HD void operator()(int64_t i) const { age[i] = result[i] != 0.0f ? 0 : age[i] + 1; }
};

/// Sums of squares of the unsent part and of the gradient.
struct Waiting {
  struct Value {
    double waiting, gradient;
  };
  const float* residual;  // may be null
  const float* tracked;   // may be null
  const float* target;
  const float* gradient;
  WISP_HD Value identity() const { return {0.0, 0.0}; }
  WISP_HD Value map(int64_t i) const {
    const float waits = residual ? residual[i] : target[i] - tracked[i];
    const auto e = static_cast<double>(waits);
    const auto g = static_cast<double>(gradient[i]);
    return {e * e, g * g};
  }
  WISP_HD Value combine(Value a, Value b) const {
    return {a.waiting + b.waiting, a.gradient + b.gradient};
  }
};

struct Compare {
  struct Value {
    double decoded, mean, product, age;
  };
  const float* decoded;
  const float* mean;
  const int32_t* age;
  WISP_HD Value identity() const { return {0.0, 0.0, 0.0, 0.0}; }
  WISP_HD Value map(int64_t i) const {
    const auto d = static_cast<double>(decoded[i]);
    const auto m = static_cast<double>(mean[i]);
    return {d * d, m * m, d * m, static_cast<double>(age[i])};
  }
  WISP_HD Value combine(Value a, Value b) const {
    return {a.decoded + b.decoded, a.mean + b.mean, a.product + b.product, a.age + b.age};
  }
};

}  // namespace

Probe::Probe(Communicator& communicator, Context& context, FlatParameters& parameters,
             UnitExchange& units, int64_t every)
    : communicator_(communicator),
      context_(context),
      parameters_(parameters),
      units_(units),
      every_(units.cut().units.empty() ? 0 : every) {
  if (!enabled()) return;
  gradient_ = context.zeros(parameters.grad().shape(), DType::f32);
  age_ = context.zeros(parameters.grad().shape(), DType::i32);
  int64_t slices = 0;
  for (const CutUnit& unit : units.cut().units)
    for (const Field& field : unit.fields) slices += std::ssize(field.slices);
  sums_ = DeviceWords(context, {slices, 4}, DType::f64);
  for (size_t i = 0; i < units.cut().units.size(); ++i) {
    const Unit& unit = units.memory().unit(static_cast<int>(i));
    const std::vector<StateSpec> specs =
        units.compressor_of(units.cut().units[i]).state(unit.spec, communicator.size());
    Kept kept;
    for (size_t s = 0; s < specs.size(); ++s) {
      if (specs[s].name == "residual") kept.residual = unit.state->tensors[s];
      if (specs[s].name == "tracked") kept.tracked = unit.state->tensors[s];
    }
    if (kept.tracked.defined() && unit.momentum.defined()) kept.target = unit.momentum;
    kept_.push_back(kept);
  }
}

/// visit(unit, slice) for each slice of the compressed units.
template <class Visit>
void Probe::each_slice(const Visit& visit) const {
  const std::vector<CutUnit>& units = units_.cut().units;
  for (size_t i = 0; i < units.size(); ++i) {
    if (!units_.step_plan().rounds()[i].compressed) continue;
    for (const Field& field : units[i].fields)
      for (const Slice& slice : field.slices) visit(i, slice);
  }
}

void Probe::keep(int index) {
  const Unit& unit = units_.memory().unit(index);
  auto* kept = gradient_.data<float>();
  if (unit.finite) {
    parallel_for_ranges(context_.stream, ranges_of(unit.spec),
                        CopyInto{unit.gradient.data<float>(), kept});
  } else {
    parallel_for_ranges(context_.stream, ranges_of(unit.spec), ZeroAll<float>{kept});
  }
}

void Probe::count_ages() {
  if (!enabled()) return;
  each_slice([&](size_t, const Slice& slice) {
    parallel_for(context_.stream, slice.numel,
                 CountAges{parameters_.grad().data<float>() + slice.offset,
                           age_.data<int32_t>() + slice.offset});
  });
}

/// Sums the kernel kernel_of(unit, slice) over each slice; then calls visit(unit, slice, sum).
template <class KernelOf, class Visit>
void Probe::each_sum(Courier& courier, const KernelOf& kernel_of, const Visit& visit) const {
  using Value = typename std::invoke_result_t<KernelOf, size_t, const Slice&>::Value;
  const int64_t row = sums_.device().shape()[1] * size_of(DType::f64);
  std::byte* into = sums_.device().raw();
  each_slice([&](size_t unit, const Slice& slice) {
    parallel_reduce(context_.stream, slice.numel, kernel_of(unit, slice),
                    reinterpret_cast<Value*>(into));
    into += row;
  });
  sums_.fetch(context_.stream);
  courier.settle();
  const std::byte* from = sums_.host().raw();
  each_slice([&](size_t unit, const Slice& slice) {
    visit(unit, slice, *reinterpret_cast<const Value*>(from));
    from += row;
  });
}

void Probe::add_waiting(Courier& courier, std::span<double> squares) const {
  const auto keeps = [&](size_t unit) {
    return kept_[unit].residual.defined() || kept_[unit].tracked.defined();
  };
  each_sum(
      courier,
      [&](size_t unit, const Slice& slice) {
        const Kept& kept = kept_[unit];
        const auto at = [&](const Tensor& arena) {
          return arena.defined() ? arena.data<float>() + slice.offset : nullptr;
        };
        const float* gradient = at(gradient_);
        const float* target = kept.target.defined() ? at(kept.target) : gradient;
        return Waiting{keeps(unit) ? at(kept.residual) : gradient, at(kept.tracked), target,
                       gradient};
      },
      [&](size_t unit, const Slice&, const Waiting::Value& sums) {
        if (!keeps(unit)) return;
        squares[0] += sums.waiting;
        squares[1] += sums.gradient;
      });
}

Health Probe::compare(Courier& courier) const {
  Compare::Value total{};
  double aged = 0.0, ages = 0.0;
  each_sum(
      courier,
      [&](size_t, const Slice& slice) {
        return Compare{parameters_.grad().data<float>() + slice.offset,
                       gradient_.data<float>() + slice.offset, age_.data<int32_t>() + slice.offset};
      },
      [&](size_t unit, const Slice& slice, const Compare::Value& sums) {
        total = Compare{}.combine(total, sums);
        if (kept_[unit].tracked.defined()) return;
        ages += sums.age;
        aged += static_cast<double>(slice.numel);
      });
  return {.staleness = ages / aged,
          .cosine = total.product / std::sqrt(total.decoded * total.mean)};
}

std::optional<Health> Probe::measure(Courier& courier) {
  std::vector<Bytes> slices;
  each_slice([&](size_t, const Slice& slice) {
    const Tensor part = gradient_.slice(slice.offset, {slice.numel});
    slices.push_back({part.raw(), part.bytes()});
  });
  if (slices.empty()) return {};
  const auto sum = [&](std::span<const Bytes> data, DType dtype) {
    const PendingPtr pending = communicator_.all_reduce(data, dtype, ReduceOp::sum);
    courier.await(*pending);
    pending->wait();
  };
  double squares[2] = {0.0, 0.0};
  add_waiting(courier, squares);
  const Bytes words{reinterpret_cast<std::byte*>(squares), sizeof squares};
  sum({&words, 1}, DType::f64);
  sum(slices, DType::f32);
  Health health = compare(courier);
  health.residual = std::sqrt(squares[0] / squares[1]);
  return health;
}

}  // namespace wisp
