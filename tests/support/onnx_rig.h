// A model in f32 beside the graph to which it is exported. One thread.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "apps/interchange/onnx_export.h"
#include "tests/support/onnx_evaluator.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {

template <class M>
struct OnnxRig {
  template <class... Options>
  explicit OnnxRig(Facts ends, Options&&... options)
      : facts(std::move(ends)),
        model(std::forward<Options>(options)...),
        parameters(worker.context, model.parameters(), model.buffers()) {
    for (const Segment& segment : parameters.all_segments()) {  // biases too
      const Tensor drawn = random_tensor(segment.shape, 100 + segment.id, DType::f32);
      std::copy_n(drawn.data<float>(), drawn.numel(),
                  FlatParameters::view(parameters.weight(), segment).template data<float>());
    }
  }

  std::string exported() { return onnx_model(worker.context, model, parameters, facts); }

  /// The model's own output, for the given number of targets.
  Step forward(const std::vector<Tensor>& inputs, const Carry& before, int64_t targets) {
    return forward({.inputs = inputs,
                    .targets = Tensor({targets}, DType::i32),
                    .samples = Tensor({targets}, DType::i64),
                    .count = targets},
                   before);
  }
  Step forward(const Batch& batch, const Carry& before) {
    worker.context.training = false;
    worker.context.recording = false;
    return model.forward(worker.context, batch, before);
  }

  Facts facts;
  TestContext worker{{.compute = DType::f32}};
  M model;
  FlatParameters parameters;
};

/// Tolerance for f32 against f64, in sums of few products of numbers about 1.
constexpr double kOnnxTolerance = 1e-5;

inline void expect_near(const OnnxArray& found, const OnnxArray& expected,
                        const std::string& what) {
  ASSERT_EQ(found.dims, expected.dims) << what;
  for (size_t i = 0; i < found.values.size(); ++i)
    ASSERT_NEAR(found.values[i], expected.values[i], kOnnxTolerance) << what << ", element " << i;
}

}  // namespace wisp
