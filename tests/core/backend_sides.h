// Results of a backend beside those of the reference backend in f64, for tests of one backend after
// the other.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/copy.h"
#include "core/random.h"
#include "tests/support/devices.h"
#include "tests/support/kernels_over.h"

namespace wisp {

// f32 has a relative rounding error of 6e-8. Squared and summed over a few thousand terms, that
// leaves 1e-12. A wrong tap, border or scale gives 1e-2 and more.
constexpr double kNmse = 1e-7;
// bf16 has a relative rounding error of 4e-3, or 3e-6 squared on average. The subtractions of a
// batch norm magnify it.
constexpr double kNmseBf16 = 1e-4;

inline double at(const Tensor& t, int64_t i) {
  return dispatch_activation(t.dtype(), "at", [&](auto zero) {
    return static_cast<double>(wide(t.data<decltype(zero)>()[i]));
  });
}

inline void set(const Tensor& t, int64_t i, double value) {
  dispatch_activation(t.dtype(), "set", [&](auto zero) {
    using T = decltype(zero);
    store(t.data<T>() + i, static_cast<Wide<T>>(value));
  });
}

/// Uniform in (offset - 1, offset + 1), in steps that f32 (bf16, if `coarse`) holds exactly.
inline Tensor random(Shape shape, DType dtype, uint64_t id, double offset = 0.0,
                     bool coarse = false) {
  Tensor t(shape, dtype);
  const Philox philox(1, 0, id);
  for (int64_t i = 0; i < t.numel(); ++i) {
    float value = 2.0f * philox.uniform(static_cast<uint64_t>(i)) - 1.0f;
    value += static_cast<float>(offset);
    set(t, i, static_cast<double>(coarse ? wide(BFloat16(value)) : value));
  }
  return t;
}

inline double nmse(const Tensor& actual, const Tensor& expected) {
  double error = 0.0;
  double norm = 0.0;
  for (int64_t i = 0; i < expected.numel(); ++i) {
    const double apart = at(actual, i) - at(expected, i);
    error += apart * apart;
    norm += at(expected, i) * at(expected, i);
  }
  return error / norm;
}

/// A backend and the type of the activations it is tested with. In comparisons with bf16, both
/// sides draw numbers that bf16 holds exactly, so they see the same ones.
struct Side {
  explicit Side(Library library)
      : Side(library, library == Library::reference ? DType::f64 : DType::f32, false) {}
  Side(Library library, DType activations, bool coarse_numbers, Device device = {})
      : pool(device),
        stream(Stream::on(device)),
        dtype(activations),
        coarse(coarse_numbers),
        backend(make_backend_of(library, pool, stream)) {}

  Tensor activation(Shape shape, uint64_t id, double offset = 0.0) {
    return placed(random(shape, dtype, id, offset, coarse), first_element);
  }
  Tensor parameter(Shape shape, uint64_t id, double offset = 0.0) {
    return placed(random(shape, wide_of(dtype), id, offset, coarse));
  }
  Tensor zeros(Shape shape, DType type) { return placed(Tensor(shape, type)); }

  MemoryPool pool;
  Stream stream;
  DType dtype;
  bool coarse;
  int64_t first_element = 0;  // the place of activations in their memory, which is aligned
  std::unique_ptr<Backend> backend;

 private:
  Tensor placed(const Tensor& host, int64_t at = 0) {
    if (!stream.device().is_cuda() && at == 0) return host;
    const Tensor memory({at + host.numel()}, host.dtype(), pool, stream.id());
    const Tensor there = memory.slice(at, host.shape());
    copy_now(stream, host, there);
    return there;
  }
};

/// Whether this machine has a device, and the libraries for its backends.
inline bool has_device() {
  try {
    cuda::check_device(first_device());
    return std::string(device_kind()) == "emulated" || missing_for_cuda().empty();
  } catch (const Error&) {
    return false;
  }
}

template <class Results>
void expect_agreement(Side actual_side, const Results& results, double tolerance) {
  SCOPED_TRACE(concat(actual_side.backend->name(), " ", name_of(actual_side.dtype)));
  Side reference(Library::reference, DType::f64, actual_side.coarse);
  const std::vector<Tensor> actual = results(actual_side);
  const std::vector<Tensor> expected = results(reference);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_LE(nmse(fetch(actual_side.stream, actual[i]), expected[i]), tolerance) << "result " << i;
}

/// What a device's library has for the results of a test.
enum class Offer {
  all,           // an algorithm for each
  perhaps_none,  // maybe none that gives the same bits each time
};

/// expect_agreement() on a device in f32 or bf16, or the error that names the lacking algorithm, if
/// the offer allows it.
template <class Results>
void expect_agreement_on_device(DType dtype, const Results& results, double tolerance,
                                Offer offer) {
  try {
    expect_agreement(Side(Library::fastest, dtype, dtype == DType::bf16, first_device()), results,
                     tolerance);
  } catch (const Error& error) {
    const std::string what = error.what();
    const bool named = what.find("cuDNN has no algorithm") != std::string::npos &&
                       what.find("that gives the same bits each time") != std::string::npos;
    EXPECT_TRUE(offer == Offer::perhaps_none && named) << what;
  }
}

/// Compares `results(side)`, a list of tensors, with the reference in f64: on the fastest backend
/// in f32 and bf16, on the reference in bf16, and on a device if there is one.
template <class Results>
void expect_agreement(const Results& results, Offer offer = Offer::all) {
  expect_agreement(Side(Library::fastest), results, kNmse);
  expect_agreement(Side(Library::reference, DType::bf16, true), results, kNmseBf16);
  if (missing_for(DType::bf16).empty())
    expect_agreement(Side(Library::fastest, DType::bf16, true), results, kNmseBf16);
  if (!has_device()) return;
  expect_agreement_on_device(DType::f32, results, kNmse, offer);
  if (std::string(device_kind()) == "emulated") return;  // its library is the CPU's
  expect_agreement(Side(Library::fastest, DType::f64, false, first_device()), results, kNmse);
  expect_agreement_on_device(DType::bf16, results, kNmseBf16, offer);
}

/// expect_agreement(), and the same for our own kernels in f32, f64 and bf16.
template <class Results>
void expect_all_agree(const Results& results) {
  expect_agreement(results);
  expect_agreement(Side(Library::kernels), results, kNmse);
  expect_agreement(Side(Library::kernels, DType::f64, false), results, kNmse);
  expect_agreement(Side(Library::kernels, DType::bf16, true), results, kNmseBf16);
}

}  // namespace wisp
