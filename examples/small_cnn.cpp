// A model of your own: two convolutions, each followed by the layer of prelu.h.
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "models/model.h"
#include "prelu.h"

namespace wisp::examples {

class SmallCnn final : public Model {
 public:
  SmallCnn(int channels, const Facts& facts)
      : conv1_(static_cast<int>(facts.image("small_cnn")[2]), channels, 3, {.pad = 1}),
        conv2_(channels, 2 * channels, 3, {.pad = 1}),
        classifier_(2 * channels, facts.classes) {
    child("conv1", conv1_);
    child("prelu1", prelu1_);
    child("conv2", conv2_);
    child("prelu2", prelu2_);
    child("classifier", classifier_);
  }

  Step forward(Context& context, const Batch& batch, const Carry&) override {
    const Variable images(context, batch.inputs[0]);  // (N, H, W, C)
    const Variable inner = max_pool2d(prelu1_(conv1_(images)), 2);
    const Variable features = global_avg_pool(prelu2_(conv2_(inner)));
    const Variable logits = classifier_(widen(features));  // computed in f32
    return {cross_entropy(logits, batch.targets), logits};
  }

 private:
  Conv2d conv1_;
  PRelu prelu1_;
  Conv2d conv2_;
  PRelu prelu2_;
  Linear classifier_;
};

std::unique_ptr<Model> make(Config& config, const Facts& facts) {
  int channels = 16;
  config.bind("model.channels", channels, "channels of the first convolution");
  return std::make_unique<SmallCnn>(channels, facts);
}

const ModelRegistration registration("small_cnn", "two convolutions with PReLU", make);

}  // namespace wisp::examples
