#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "core/io/input_file.h"
#include "data/data_source.h"
#include "data/images/holdout.h"
#include "data/images/photo_examples.h"
#include "data/images/photo_layout.h"

namespace wisp {
namespace {

constexpr int64_t kTestShare = 10;  // a tenth is held out where there is no test folder

/// Means and deviations of ImageNet's channels, as torchvision has them, in [0, 255].
Normalization imagenet_normalization() {
  return {{0.485 * 255, 0.456 * 255, 0.406 * 255}, {0.229 * 255, 0.224 * 255, 0.225 * 255}};
}

std::shared_ptr<const PhotoSet> subset(const std::shared_ptr<const PhotoSet>& photos,
                                       std::vector<int64_t> numbers) {
  return std::make_shared<PhotoSubset>(photos, std::move(numbers));
}

class PhotoSource final : public DataSource {
 public:
  explicit PhotoSource(Config& config) {
    config.bind("data.path", path_,
                "folder with a folder of photos for each class, with train and val of these, or "
                "with shards");
    config.bind("data.size", options_.size, "height and width of a model's images, in pixels");
    config.bind("data.side", options_.side,
                "shorter side of a photo in evaluation, before its centre of data.size is cut out");
    config.bind("data.filter", filter_, "filter of scaling, antialiased: bilinear or bicubic");
    config.bind("data.shrink_first", options_.shrink_first,
                "let libjpeg make large JPEGs 2, 4 or 8 times smaller: faster, with slightly other "
                "pixels");
    config.bind("data.augment", augment_,
                "random resized crop (Szegedy et al. 2015) and random flip in training");
    config.bind("data.crop_area", options_.crop.least_area,
                "least share of a photo's area in a random crop, in (0, 1]");
    config.bind("data.brightness", options_.jitter.brightness,
                "strength of random brightness in training, as contrast and saturation; 0: none");
    config.bind("data.contrast", options_.jitter.contrast, "strength of random contrast");
    config.bind("data.saturation", options_.jitter.saturation, "strength of random saturation");
    config.bind("data.rand_augment", options_.changes.changes,
                "number of RandAugment's changes of a photo in training (2 in the paper); 0: none");
    config.bind("data.magnitude", options_.changes.magnitude,
                "magnitude of RandAugment's changes, 0 to 30");
    config.bind("data.lighting", options_.lighting,
                "strength of AlexNet's lighting noise in training (0.1 in the paper); 0: none");
    config.bind("data.validation", validation_,
                "number of training samples held out for validation; they decide the best "
                "checkpoint and the plateau, and the test set is evaluated only at the end; 0: "
                "none, the last checkpoint is the best");
    config.bind("data.block", block_,
                "photos of shards that lie together and are read together in training, in a nearly "
                "random order; 0: a random order");
    config.bind("data.max_bad", max_bad_,
                "number of damaged photos of a split that are gone past; more end the run");
    naming(config.where("data.filter"), [&] { options_.filter = filter_named(filter_); });
    const auto at_least = [&](const char* key, int64_t value, int64_t bound) {
      WISP_CHECK(value >= bound, config.where(key), ": ", key, " is ", value,
                 ", expected at least ", bound);
    };
    at_least("data.size", options_.size, 1);
    at_least("data.side", options_.side, options_.size);
    at_least("data.validation", validation_, 0);
    at_least("data.block", block_, 0);
    at_least("data.max_bad", max_bad_, 0);
  }

  Facts facts() const override {
    const std::vector<std::string> classes = classes_of(find_layout(path_).train);
    return {.inputs = {{.name = "input",
                        .sample = {options_.size, options_.size, 3},
                        .normalization = imagenet_normalization(),
                        .photo = {options_.side, filter_}}},
            .classes = std::ssize(classes),
            .names = classes};
  }

  Splits open(DType compute) const override {
    const PhotoLayout layout = find_layout(path_);
    const std::vector<std::string> classes = classes_of(layout.train);
    Splits splits;
    const auto find = [&](const std::string& folder, const std::string& list) {
      PhotosAndNotices found = find_photos(folder, list, classes);
      splits.notices.insert(splits.notices.end(), found.notices.begin(), found.notices.end());
      return found.photos;
    };
    std::shared_ptr<const PhotoSet> train = find(layout.train, ""), test;
    if (layout.test.empty()) {
      const int64_t count = std::max<int64_t>(train->count() / kTestShare, 1);
      const HeldOutNumbers parts = hold_out(train->count(), count, layout.train);
      test = subset(train, parts.validation);
      train = subset(train, parts.train);
      splits.notices.push_back(concat(layout.train, ": no folder val beside train; ", count,
                                      " photos are held out as the test set"));
    } else {
      test = find(layout.test, layout.list);
    }
    const auto examples = [&](std::shared_ptr<const PhotoSet> photos, bool training) {
      const std::string name = photos->folder();
      return std::make_unique<PhotoExamples>(
          name, std::move(photos), options_, imagenet_normalization(), compute,
          PhotoUse{.training = training, .most_bad = max_bad_, .block = block_});
    };
    if (validation_ > 0) {
      WISP_CHECK(validation_ < train->count(), layout.train, ": data.validation is ", validation_,
                 " of ", train->count(), " training samples, expected fewer");
      const HeldOutNumbers parts = hold_out(train->count(), validation_, layout.train);
      splits.validation = examples(subset(train, parts.validation), false);
      train = subset(train, parts.train);
    }
    splits.train = examples(train, augment_);
    splits.test = examples(test, false);
    return splits;
  }

  int64_t held_out() const override { return validation_; }

 private:
  std::string path_;
  std::string filter_ = "bilinear";
  PhotoOptions options_;
  bool augment_ = true;
  int64_t validation_ = 0;
  int64_t max_bad_ = 10;
  int64_t block_ = 0;
};

const DataRegistration registration("photos", "photos in a folder for each class, as ImageNet's",
                                    [](Config& config) {
                                      return std::make_unique<PhotoSource>(config);
                                    });

}  // namespace
}  // namespace wisp
