// A model of one's own: two convolutions, with the layer of prelu.h behind each.
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "models/model.h"
#include "prelu.h"

namespace wisp::examples {

class SmallCnn final : public Model {
 public:
  SmallCnn(int channels, const ModelSetup& setup)
      : conv1_(static_cast<int>(setup.input[2]), channels, 3, {.pad = 1}),
        conv2_(channels, 2 * channels, 3, {.pad = 1}),
        classifier_(2 * channels, setup.classes) {
    child("conv1", conv1_);
    child("prelu1", prelu1_);
    child("conv2", conv2_);
    child("prelu2", prelu2_);
    child("classifier", classifier_);
  }

  Step forward(Context& context, const Batch& batch) override {
    const Variable images(context, batch.input);  // (N, H, W, C)
    const Variable inner = max_pool2d(prelu1_(conv1_(images)), 2);
    const Variable features = global_avg_pool(prelu2_(conv2_(inner)));
    const Variable logits = classifier_(widen(features));  // in f32
    return {cross_entropy(logits, batch.labels), logits};
  }

 private:
  Conv2d conv1_;
  PRelu prelu1_;
  Conv2d conv2_;
  PRelu prelu2_;
  Linear classifier_;
};

std::unique_ptr<Model> make(Config& config, const ModelSetup& setup) {
  int channels = 16;
  config.bind("model.channels", channels, "channels of the first convolution");
  WISP_CHECK(setup.input.rank() == 3, "small_cnn: the data's samples have shape ", setup.input,
             ", expected images (H, W, C)");
  return std::make_unique<SmallCnn>(channels, setup);
}

const Registration<Model, Config&, const ModelSetup&> registration("small_cnn",
                                                                   "two convolutions with PReLU",
                                                                   make);

}  // namespace wisp::examples
