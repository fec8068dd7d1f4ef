// Tests of oneDNN's calls where OpenMP gives smaller teams than it was told. Barriers of the
// library would wait for the missing threads for ever, and its products would lack their part.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "core/backend.h"
#include "core/base/omp_threads.h"
#include "core/convolutions.h"
#include "core/products.h"
#include "tests/support/tensors.h"

namespace wisp {
namespace {

using BackendResults = std::vector<std::vector<double>>;

/// A backend's product and passes of a convolution for which the library has Winograd's algorithm.
BackendResults results_of(Backend& backend, const Stream& stream) {
  const auto drawn = [](Shape shape, uint64_t seed) {
    return random_tensor(shape, seed, DType::f32);
  };
  const Tensor c({160, 200}, DType::f32), y({8, 16, 16, 32}, DType::f32);
  const Tensor dx(y.shape(), DType::f32), dw({32, 3, 3, 32}, DType::f32);
  backend.products().gemm(stream, {.m = 160, .n = 200, .k = 256}, drawn({160, 256}, 1),
                          drawn({256, 200}, 2), {c});
  const ConvSpec spec{.batch = 8,
                      .height = 16,
                      .width = 16,
                      .in_channels = 32,
                      .out_channels = 32,
                      .kernel = 3,
                      .pad = 1};
  const Tensor x = drawn(y.shape(), 3), w = drawn(dw.shape(), 4);
  Convolutions& convolutions = backend.convolutions();
  convolutions.convolve(stream, ConvPass::forward, spec, x, w, {y});
  convolutions.convolve(stream, ConvPass::dx, spec, y, w, {dx});
  convolutions.convolve(stream, ConvPass::dw, spec, x, y, {dw});
  return {values(c), values(y), values(dx), values(dw)};
}

/// The same of a new backend in a new thread, after `prepare`.
BackendResults results_after(const std::function<void()>& prepare) {
  BackendResults results;
  std::thread([&] {
    prepare();
    MemoryPool pool;
    const Stream stream = Stream::immediate();
    results = results_of(*make_backend(pool, stream), stream);
  }).join();
  return results;
}

TEST(OnednnBackend, ComputesTheSameWhereTeamsAreRuledOut) {
  const int threads = std::min(2, omp_get_thread_limit());
  const BackendResults expected = results_after([&] { omp_set_num_threads(threads); });
  const BackendResults found = results_after([&] {
    omp_set_num_threads(threads);
    omp_set_max_active_levels(0);
  });
  EXPECT_EQ(found, expected);
}

TEST(OnednnBackend, ComputesTheSameBeyondTheLimitOfThreads) {
  const int limit = omp_get_thread_limit();
  if (limit >= kMostThreads) GTEST_SKIP() << "OMP_THREAD_LIMIT is not set";
  const BackendResults expected = results_after([&] { omp_set_num_threads(limit); });
  EXPECT_EQ(results_after([&] { omp_set_num_threads(limit + 3); }), expected);
}

/// One backend is called outside of a region, within one, and outside again.
TEST(OnednnBackend, ComputesWithOneThreadWithinAParallelRegion) {
  const BackendResults of_one = results_after([] { omp_set_num_threads(1); });
  std::thread([&] {
    const int threads = std::min(2, omp_get_thread_limit());
    omp_set_num_threads(threads);
    MemoryPool pool;
    const Stream stream = Stream::immediate();
    const std::unique_ptr<Backend> backend = make_backend(pool, stream);
    const BackendResults before = results_of(*backend, stream);
    BackendResults within;
    int set_within = 0;
#pragma omp parallel num_threads(threads)
    {
#pragma omp master
      {
        omp_set_num_threads(threads);
        within = results_of(*backend, stream);
        set_within = omp_get_max_threads();
      }
    }
    EXPECT_EQ(within, of_one);
    EXPECT_EQ(set_within, threads) << "the caller's setting returns";
    EXPECT_EQ(results_of(*backend, stream), before);
  }).join();
}

}  // namespace
}  // namespace wisp
