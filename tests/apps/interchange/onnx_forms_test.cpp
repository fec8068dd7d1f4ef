#include "apps/interchange/onnx_forms.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <regex>
#include <set>

#include "core/ops.h"
#include "tests/support/error_of.h"
#include "tests/support/onnx_rig.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

/// A function that applies ops to x (N, 6) f32, ids (N) i32 and a table (8, 6).
using Ops = std::function<Variable(const Variable& x, const Tensor& ids, const Variable& table)>;

class OpsModel final : public Model {
 public:
  explicit OpsModel(Ops ops)
      : ops_(std::move(ops)), table_(parameter("table", {8, 6}, {Init::Kind::uniform, 1.0})) {}
  Step forward(Context& context, const Batch& batch, const Carry&) override {
    const Variable x(context, batch.inputs[0]);
    return {.loss = {}, .output = ops_(x, batch.inputs[1], table_.variable)};
  }

 private:
  Ops ops_;
  Parameter& table_;
};

const Facts kFacts{
    .inputs = {{.name = "x", .sample = {6}}, {.name = "ids", .sample = {}, .dtype = DType::i32}}};

/// Expects equal results of model and graph for several batch sizes. Returns the graph's nodes.
std::string same_in_graph(const Ops& ops) {
  OnnxRig<OpsModel> rig(kFacts, ops);
  const OnnxFile file(rig.exported());
  for (const int64_t samples : {1, 2, 3, 5}) {
    const Tensor x = random_tensor({samples, 6}, 7, DType::f32);
    const Tensor ids({samples}, DType::i32);
    for (int64_t i = 0; i < samples; ++i) ids.data<int32_t>()[i] = static_cast<int32_t>(7 - i);
    const Step step = rig.forward({x, ids}, {}, samples);
    const OnnxArrays found = evaluate(file, {{"x", OnnxArray::of(x)}, {"ids", OnnxArray::of(ids)}});
    expect_near(found.at("logits"), OnnxArray::of(step.output.value()), concat(samples));
  }
  return file.str();
}

std::string refusal_of(const Ops& ops) {
  return error_of([&] { OnnxRig<OpsModel>(kFacts, ops).exported(); });
}

/// The names of the ops that core/ops/ records.
std::set<std::string> recorded_ops() {
  std::set<std::string> names;
  const std::regex call("(?:record|activation<\\w+>)\\(\\s*\"(\\w+)\"");
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(WISP_SOURCE) + "/core/ops")) {
    const std::string text = read_text(file.path().string());
    for (std::sregex_iterator it(text.begin(), text.end(), call), end; it != end; ++it)
      names.insert((*it)[1]);
  }
  return names;
}

TEST(OnnxForms, EveryOpOfEvaluationHasOne) {
  const std::string refusal = refusal_of([](const Variable& x, const Tensor&, const Variable&) {
    return record("twist", x.value(), {x}, {});
  });
  const std::string begin = "onnx: there is no form for the op twist; there is one for ";
  ASSERT_EQ(refusal.substr(0, begin.size()), begin);
  std::set<std::string> known;
  const std::regex word("\\w+");
  for (std::sregex_iterator it(refusal.begin() + std::ssize(begin), refusal.end(), word), end;
       it != end; ++it)
    known.insert(it->str());

  std::set<std::string> expected = recorded_ops();
  EXPECT_GE(expected.size(), 17u);
  // losses; dropout is the identity in evaluation; widen does nothing in the weights' type
  for (const char* absent : {"cross_entropy", "ctc_loss", "dropout", "widen"})
    EXPECT_EQ(expected.erase(absent), 1u) << absent;
  EXPECT_EQ(known, expected);
}

TEST(OnnxForms, RowsThatAreAllAreNoNode) {
  EXPECT_EQ(same_in_graph([](const Variable& x, const Tensor&, const Variable&) {
              return tanh(rows(join_rows({x}), 0, x.shape()[0]));
            }),
            "Tanh(x) -> Tanh_0\n"
            "Identity(Tanh_0) -> logits\n");
}

TEST(OnnxForms, RowsOfAStackedBatchAreCutWhateverItsSize) {
  EXPECT_EQ(same_in_graph([](const Variable& x, const Tensor&, const Variable&) {
              const int64_t n = x.shape()[0];
              const Variable stacked = join_rows({x, relu(x), tanh(x)});
              const Variable last = rows(stacked, 2 * n, 3 * n);
              return add(last, rows(stacked, 0, n));
            }),
            "Relu(x) -> Relu_0\n"
            "Tanh(x) -> Tanh_1\n"
            "Concat(x, Relu_0, Tanh_1) -> Concat_2\n"
            "Reshape(Concat_2, integers_0) -> Reshape_3\n"
            "Slice(Reshape_3, integers_1, integers_2, integers_3) -> Slice_4\n"
            "Reshape(Slice_4, integers_4) -> Reshape_5\n"
            "Reshape(Concat_2, integers_5) -> Reshape_6\n"
            "Slice(Reshape_6, integers_6, integers_7, integers_8) -> Slice_7\n"
            "Reshape(Slice_7, integers_9) -> Reshape_8\n"
            "Add(Reshape_5, Reshape_8) -> Add_9\n"
            "Identity(Add_9) -> logits\n");
}

TEST(OnnxForms, ImagesAreStackedAndCutToo) {
  same_in_graph([](const Variable& x, const Tensor&, const Variable&) {
    const int64_t n = x.shape()[0];
    const Variable images = reshape(x, {n, 1, 2, 3});
    return reshape(rows(join_rows({relu(images), images}), n, 2 * n), {n, 3, 2});
  });
}

TEST(OnnxForms, RowsOfAWeightAreCut) {
  EXPECT_EQ(same_in_graph([](const Variable& x, const Tensor&, const Variable& table) {
              return linear(x, rows(table, 2, 5), {});
            }),
            "Slice(table, integers_1, integers_2, integers_3) -> Slice_0\n"
            "Gemm(x, Slice_0) -> Gemm_1\n"
            "Identity(Gemm_1) -> logits\n");
}

TEST(OnnxForms, ColumnsAreCutAndJoined) {
  EXPECT_EQ(same_in_graph([](const Variable& x, const Tensor&, const Variable& table) {
              const Variable weight = columns(join_columns({table, table}), 1, 11);
              const Variable wide = join_columns({columns(x, 2, 6), x});
              return sigmoid(join_columns({linear(wide, weight, {})}));
            }),
            "Concat(table, table) -> Concat_0\n"
            "Slice(Concat_0, integers_1, integers_2, integers_3) -> Slice_1\n"
            "Slice(x, integers_4, integers_5, integers_6) -> Slice_2\n"
            "Concat(Slice_2, x) -> Concat_3\n"
            "Gemm(Concat_3, Slice_1) -> Gemm_4\n"
            "Sigmoid(Gemm_4) -> Sigmoid_5\n"
            "Identity(Sigmoid_5) -> logits\n");
  same_in_graph([](const Variable& x, const Tensor&, const Variable&) {
    const int64_t n = x.shape()[0];
    const Variable images = reshape(x, {n, 1, 2, 3});
    return reshape(join_columns({images, columns(images, 1, 2)}), {n, 8});
  });
}

TEST(OnnxForms, AConvolutionHasNumbersForEachAxisAndABias) {
  EXPECT_EQ(same_in_graph([](const Variable& x, const Tensor&, const Variable& table) {
              const int64_t n = x.shape()[0];
              const Variable bias = reshape(rows(reshape(table, {6, 8}), 0, 1), {8});
              return reshape(conv2d(reshape(x, {n, 3, 2, 1}), reshape(table, {8, 2, 3, 1}),
                                    {.stride = {2, 1}, .pad = {0, 3}, .dilation = {1, 2}}, bias),
                             {n, 32});
            }),
            "Reshape(table, integers_1) -> Reshape_0\n"
            "Slice(Reshape_0, integers_2, integers_3, integers_4) -> Slice_1\n"
            "Reshape(Slice_1, integers_5) -> Reshape_2\n"
            "Reshape(Reshape_0, integers_6) -> Reshape_3\n"
            "Reshape(Reshape_3, integers_7) -> Reshape_4\n"
            "Transpose(Reshape_4) -> Transpose_5\n"
            "Reshape(x, integers_8) -> Reshape_6\n"
            "Transpose(Reshape_6) -> Transpose_7\n"
            "Conv(Transpose_7, Transpose_5, Reshape_2) -> Conv_8\n"
            "Transpose(Conv_8) -> Transpose_9\n"
            "Reshape(Transpose_9, integers_9) -> Reshape_10\n"
            "Identity(Reshape_10) -> logits\n");
  same_in_graph([](const Variable& x, const Tensor&, const Variable& table) {
    const int64_t n = x.shape()[0];
    const Variable y = conv2d(reshape(x, {n, 3, 1, 2}), reshape(table, {8, 3, 2, 1}),
                              {.pad = {1, 2}, .dilation = {2, 1}, .groups = 2});
    return reshape(y, {n, 32});
  });
}

TEST(OnnxForms, AdaptiveMeansAreTwoProductsAndRowsOfChannelsAFlatten) {
  EXPECT_EQ(same_in_graph([](const Variable& x, const Tensor&, const Variable&) {
              const Variable images = reshape(x, {x.shape()[0], 3, 1, 2});
              return flatten(adaptive_avg_pool(images, {2, 4}));
            }),
            "Reshape(x, integers_0) -> Reshape_0\n"
            "Transpose(Reshape_0) -> Transpose_1\n"
            "MatMul(matrix_1, Transpose_1) -> MatMul_2\n"
            "MatMul(MatMul_2, matrix_2) -> MatMul_3\n"
            "Flatten(MatMul_3) -> Flatten_4\n"
            "Identity(Flatten_4) -> logits\n");
}

TEST(OnnxForms, AClippedReluIsAClip) {
  EXPECT_EQ(same_in_graph([](const Variable& x, const Tensor&, const Variable&) {
              return clipped_relu(x, 0.5);
            }),
            "Clip(x, scalar_0, scalar_1) -> Clip_0\n"
            "Identity(Clip_0) -> logits\n");
}

TEST(OnnxForms, FramesOfOneLengthArePackedAndUnpacked) {
  EXPECT_EQ(same_in_graph([](const Variable& x, const Tensor&, const Variable&) {
              const int64_t n = x.shape()[0];
              const Variable frames = pack_frames(reshape(x, {n, 1, 2, 3}), {n, n});
              const Variable images = unpack_frames(tanh(frames), {n, n}, 2);
              return reshape(images, {n, 6});
            }),
            "Reshape(x, integers_0) -> Reshape_0\n"
            "Transpose(Reshape_0) -> Transpose_1\n"
            "Transpose(Transpose_1) -> Transpose_2\n"
            "Reshape(Transpose_2, integers_1) -> Reshape_3\n"
            "Tanh(Reshape_3) -> Tanh_4\n"
            "Reshape(Tanh_4, integers_2) -> Reshape_5\n"
            "Transpose(Reshape_5) -> Transpose_6\n"
            "Transpose(Transpose_6) -> Transpose_7\n"
            "Reshape(Transpose_7, integers_3) -> Reshape_8\n"
            "Identity(Reshape_8) -> logits\n");
  same_in_graph([](const Variable& x, const Tensor&, const Variable&) {
    const int64_t n = x.shape()[0];
    return pack_frames(reshape(x, {n, 2, 3, 1}), {n, n, n});
  });
  same_in_graph([](const Variable& x, const Tensor&, const Variable&) {
    const int64_t n = x.shape()[0];
    return reshape(unpack_frames(reshape(x, {2 * n, 3, 1}), {n, n}, 2), {n, 3, 2});
  });
}

TEST(OnnxForms, TheLastTwoExtentsAreSwappedAtAnyRank) {
  EXPECT_EQ(same_in_graph([](const Variable& x, const Tensor&, const Variable& table) {
              return linear(x, swap_last(reshape(table, {6, 8})), {});
            }),
            "Reshape(table, integers_1) -> Reshape_0\n"
            "Transpose(Reshape_0) -> Transpose_1\n"
            "Gemm(x, Transpose_1) -> Gemm_2\n"
            "Identity(Gemm_2) -> logits\n");
  same_in_graph([](const Variable& x, const Tensor&, const Variable&) {
    return swap_last(reshape(x, {x.shape()[0], 2, 3}));
  });
  same_in_graph([](const Variable& x, const Tensor&, const Variable&) {
    const int64_t n = x.shape()[0];
    return reshape(swap_last(reshape(x, {n, 1, 2, 3})), {n, 3, 2});
  });
}

TEST(OnnxForms, FramesOfSeveralLengthsAreRefused) {
  EXPECT_EQ(
      refusal_of([](const Variable& x, const Tensor&, const Variable&) {
        const int64_t n = x.shape()[0];
        return pack_frames(reshape(x, {n, 1, 2, 3}), {n, 1});
      }),
      "onnx: pack_frames of 3 frames in images (2, 1, 2, 3), expected sequences of full length");
  EXPECT_EQ(
      refusal_of([](const Variable& x, const Tensor&, const Variable&) {
        const int64_t n = x.shape()[0];
        return unpack_frames(reshape(x, {3 * n, 1, 2}), {2 * n, n}, 2);
      }),
      "onnx: unpack_frames of 6 frames in images (4, 1, 2, 2), expected sequences of full length");
}

TEST(OnnxForms, AnEmbeddingGathersRows) {
  EXPECT_EQ(same_in_graph([](const Variable& x, const Tensor& ids, const Variable& table) {
              return add(x, embedding(table, ids));
            }),
            "Gather(table, ids) -> Gather_0\n"
            "Add(x, Gather_0) -> Add_1\n"
            "Identity(Add_1) -> logits\n");
}

TEST(OnnxForms, AReshapeFindsTheBatchWhereverItIs) {
  same_in_graph([](const Variable& x, const Tensor&, const Variable& table) {
    const int64_t n = x.shape()[0];
    const Variable wide = reshape(reshape(x, {3 * n, 2}), {1, n, 2, 3});
    return linear(reshape(tanh(wide), {n, 6}), reshape(table, {8, 6}), {});
  });
}

TEST(OnnxForms, AValueInTheSamePlaceIsTheSameValue) {
  same_in_graph([](const Variable& x, const Tensor&, const Variable& table) {
    const Variable y = tanh(x);
    Context& context = x.context();
    const Variable detached(context, y.value().reshape({y.shape()[0] * 2, 3}));
    return linear(reshape(detached, y.shape()), Variable(context, table.value()), {});
  });
}

TEST(OnnxForms, WhatDoesNotGrowWithTheBatchIsRefused) {
  EXPECT_EQ(refusal_of([](const Variable& x, const Tensor&, const Variable&) {
              return tanh(rows(x, 1, 2));
            }),
            "onnx: rows [1, 2) of (2, 6), expected multiples of the batch");
  EXPECT_EQ(refusal_of([](const Variable& x, const Tensor&, const Variable& table) {
              return tanh(rows(table, 0, x.shape()[0]));
            }),
            "onnx: rows [0, 2) of (8, 6), expected the same for each batch");
  EXPECT_EQ(refusal_of([](const Variable& x, const Tensor&, const Variable& table) {
              return tanh(join_rows({x, table}));
            }),
            "onnx: extent 0 of a tensor (10, 6) is 10 in a batch and 11 in one 1.5 times as large, "
            "expected the same or 1.5 times as much");
  EXPECT_EQ(refusal_of([](const Variable& x, const Tensor&, const Variable&) {
              return x.shape()[0] % 2 ? tanh(x) : relu(x);
            }),
            "onnx: the model computes something else in a larger batch, expected the same ops");
  EXPECT_EQ(refusal_of([](const Variable& x, const Tensor&, const Variable&) {
              return reshape(linear(x, x, {}), {x.shape()[0], 1, x.shape()[0]});
            }),
            "onnx: a reshape of Gemm_0 to a shape with the batch in two extents, expected it in "
            "one");
}

TEST(OnnxForms, RowsThatGrowWithTheBatchTooAreRefused) {
  const std::string why = refusal_of([](const Variable& x, const Tensor& ids, const Variable&) {
    const Variable square = linear(x, x, {});  // (N, N)
    return rows(join_rows({square, square}), 0, ids.numel());
  });
  EXPECT_NE(why.find("expected one extent that grows with the batch"), std::string::npos) << why;
}

TEST(OnnxForms, AnAttributeThatGrowsWithTheBatchIsRefused) {
  EXPECT_EQ(refusal_of([](const Variable& x, const Tensor&, const Variable&) {
              const Variable image = reshape(x, {x.shape()[0], 6, 1, 1});
              return avg_pool2d(image, 1, {.stride = x.shape()[0]});
            }),
            "onnx: the stride of avg_pool2d grows with the batch, expected the same for each");
}

TEST(OnnxForms, AnInputThatNobodyMadeIsRefused) {
  EXPECT_EQ(refusal_of([](const Variable& x, const Tensor&, const Variable&) {
              return add(x, Variable(x.context(), full(x.shape(), 1.0, DType::f32)));
            }),
            "onnx: input 1 of add, (2, 6), is neither an op's result nor a parameter, a buffer, a "
            "state or an input of the model");
}

}  // namespace
}  // namespace wisp
