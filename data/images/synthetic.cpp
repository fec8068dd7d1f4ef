#include "data/images/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/base/error.h"
#include "core/random.h"
#include "data/images/image_source.h"

namespace wisp {
namespace {

constexpr int64_t kSceneSide = 32;  // unit of a scene's numbers: an image of 32 pixels
constexpr int64_t kChannels = 3;
constexpr int kClasses = 10;
constexpr uint64_t kNoiseIndex = 1 << 16;  // after the draws of the scene

// Signed distances of a point (u, v), in units of the shape's radius; negative inside.
float disk(float u, float v) { return std::sqrt(u * u + v * v) - 0.9f; }
float ring(float u, float v) { return std::abs(disk(u, v) + 0.25f) - 0.22f; }
float box(float u, float v, float half_u, float half_v) {
  return std::max(std::abs(u) - half_u, std::abs(v) - half_v);
}
float square(float u, float v) { return box(u, v, 0.72f, 0.72f); }
float bar(float u, float v) { return box(u, v, 0.95f, 0.3f); }
float frame(float u, float v) { return std::abs(box(u, v, 0.6f, 0.6f)) - 0.18f; }
float triangle(float u, float v) {
  return std::max(-v, 0.8660254f * std::abs(u) + 0.5f * v) - 0.5f;
}
float cross(float u, float v) { return std::min(box(u, v, 0.95f, 0.28f), box(u, v, 0.28f, 0.95f)); }
float pair(float u, float v) { return disk(std::abs(u) - 0.52f, v) + 0.5f; }
// Distance to the nearest line between stripes of width 0.4, negative on every second stripe.
float stripe(float u) { return std::abs(u - 0.8f * std::floor(u / 0.8f + 0.5f)) - 0.2f; }
float striped_disk(float u, float v) { return std::max(disk(u, v), stripe(u)); }
float checked_disk(float u, float v) {
  const float checker = std::max(std::min(stripe(u), stripe(v)), -std::max(stripe(u), stripe(v)));
  return std::max(disk(u, v), checker);
}

/// The shapes of the classes.
constexpr std::array<float (*)(float u, float v), kClasses> kDistances = {
    disk, ring, square, frame, triangle, cross, bar, pair, striped_disk, checked_disk};

using Colour = std::array<float, kChannels>;

struct Scene {
  float x, y, radius;  // pixels of an image with side kSceneSide
  float cosine, sine;
  Colour shape, ground;
  float noise;  // largest deviation of a pixel
};

float contrast(const Colour& a, const Colour& b) {
  return std::abs(a[0] - b[0]) + std::abs(a[1] - b[1]) + std::abs(a[2] - b[2]);
}

Scene draw_scene(const Philox& philox) {
  uint64_t draws = 0;
  const auto between = [&](float low, float high) {
    return low + (high - low) * philox.uniform(draws++);
  };
  const auto colour = [&] { return Colour{between(0, 255), between(0, 255), between(0, 255)}; };
  Scene scene;
  scene.x = between(11, 21);
  scene.y = between(11, 21);
  scene.radius = between(7, 13);
  const float angle = between(0, 2 * std::numbers::pi_v<float>);
  scene.cosine = std::cos(angle);
  scene.sine = std::sin(angle);
  scene.noise = between(10, 60);
  do {  // one distribution for both, so a pixel's mean says nothing about the class
    scene.shape = colour();
    scene.ground = colour();
  } while (contrast(scene.shape, scene.ground) < 120);
  return scene;
}

void paint(int kind, const Scene& scene, const Philox& philox, int64_t side, uint8_t* pixels) {
  const auto distance = kDistances[static_cast<size_t>(kind)];
  const float pixel = static_cast<float>(kSceneSide) / static_cast<float>(side);
  for (int64_t p = 0; p < side * side; ++p) {
    const float dx = (static_cast<float>(p % side) + 0.5f) * pixel - scene.x;
    const float dy = (static_cast<float>(p / side) + 0.5f) * pixel - scene.y;
    const float u = (scene.cosine * dx + scene.sine * dy) / scene.radius;
    const float v = (scene.cosine * dy - scene.sine * dx) / scene.radius;
    const float cover = std::clamp(0.5f - distance(u, v) * scene.radius / pixel, 0.0f, 1.0f);
    const Philox::Block noise = philox.block(kNoiseIndex + static_cast<uint64_t>(p));
    for (size_t c = 0; c < kChannels; ++c) {
      const float clean = scene.ground[c] + cover * (scene.shape[c] - scene.ground[c]);
      const float deviation = static_cast<float>(noise.word[c] >> 8) * 0x1p-23f - 1.0f;
      const float value = std::clamp(clean + scene.noise * deviation, 0.0f, 255.0f);
      pixels[p * kChannels + static_cast<int64_t>(c)] = static_cast<uint8_t>(value + 0.5f);
    }
  }
}

class Synthetic final : public ImageSource {
 public:
  explicit Synthetic(Config& config) : ImageSource(config) {
    config.bind("data.train_count", options_.train_count, "number of training images to draw");
    config.bind("data.test_count", options_.test_count, "number of test images to draw");
    config.bind_least("data.side", options_.side, 8, "height and width of an image, 8 or more");
    config.bind("data.seed", options_.seed, "seed of the images");
  }

 private:
  Shape sample() const override { return {options_.side, options_.side, kChannels}; }
  Normalization normalization() const override {
    return {{127.5, 127.5, 127.5}, {75.0, 75.0, 75.0}};
  }
  int classes() const override { return kClasses; }
  ImageSet load(Split split) const override { return draw_synthetic(options_, split); }

  SyntheticOptions options_;
};

const DataRegistration registration("synthetic",
                                    "generated images of shapes and textures in 10 classes",
                                    make_source<Synthetic>);

}  // namespace

ImageSet draw_synthetic(const SyntheticOptions& options, Split split) {
  const int64_t count = split == Split::train ? options.train_count : options.test_count;
  WISP_CHECK(count > 0, "synthetic: ", count, " ", name_of(split), " images, expected at least 1");
  const int64_t side = options.side;
  ImageSet set{.name = concat("synthetic ", name_of(split)),
               .images = Tensor({count, side, side, kChannels}, DType::u8),
               .labels = Tensor({count}, DType::i32),
               .classes = kClasses};
  for (int64_t i = 0; i < count; ++i) {
    const Philox philox(static_cast<uint64_t>(options.seed), split == Split::train ? 0 : 1,
                        static_cast<uint64_t>(i));
    const int kind = static_cast<int>(i % kClasses);
    set.labels.data<int32_t>()[i] = kind;
    paint(kind, draw_scene(philox), philox, side,
          set.images.data<uint8_t>() + i * side * side * kChannels);
  }
  set.check();
  return set;
}

}  // namespace wisp
