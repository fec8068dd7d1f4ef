#include "apps/inference/predictions_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/io/checkpoint.h"
#include "data/images/synthetic.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tensors.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

TEST(Predictions, AreThoseThatEvaluationCounts) {
  const TempDir dir;
  const Overrides run = {"workers=3", "train.batch=24"};  // the last batches of 40 are not full
  tiny_train(dir / "run", run);
  const AskModel predict_all = [&](const Prepared& prepared, Inference& model) {
    write_predictions(dir / "predictions", prepared, model);
  };
  const Evaluation evaluation = evaluate_run(dir / "run", {}, "last", predict_all).test;
  const CheckpointReader file(dir / "predictions");
  const Tensor input({40, 3, 32, 32}, DType::f32), labels({40}, DType::i32),
      logits({40, 10}, DType::f32);
  file.read("input", input);
  file.read("labels", labels);
  file.read("logits", logits);
  int correct = 0;
  for (int64_t i = 0; i < 40; ++i) {
    EXPECT_EQ(labels.data<int32_t>()[i], i % 10) << "in the order of the drawn images";
    const float* row = logits.data<float>() + 10 * i;
    correct += std::max_element(row, row + 10) - row == labels.data<int32_t>()[i];
  }
  EXPECT_EQ(correct, std::lround(evaluation.metrics[0] * 40));
  const ImageSet drawn = draw_synthetic({.test_count = 40}, Split::test);
  const uint8_t* pixel = drawn.images.data<uint8_t>();
  // row 1, column 2, channels 0 and 2 of the first image
  const int64_t at = (1 * 32 + 2) * 3;
  EXPECT_FLOAT_EQ(input.data<float>()[34], (static_cast<float>(pixel[at]) - 127.5f) / 75.0f);
  EXPECT_FLOAT_EQ(input.data<float>()[2 * 1024 + 34],
                  (static_cast<float>(pixel[at + 2]) - 127.5f) / 75.0f);
}

TEST(Predictions, OfSpeechAreRefusedBeforeAnythingIsRead) {
  const Facts images{.inputs = {{.name = "input", .sample = {32, 32, 3}}}};
  const Facts speech{.inputs = {{.name = "spectrogram", .sample = {0, 161}, .padded = true}}};
  check_predictions(images, "--predictions");
  EXPECT_EQ(error_of([&] { check_predictions(speech, "--predictions"); }),
            "--predictions: needs samples of one length, but those of the run (spectrogram) vary; "
            "for speech, use --alignment");
}

}  // namespace
}  // namespace wisp
