#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "core/io/input_file.h"
#include "data/absent_classes.h"
#include "data/data_source.h"
#include "data/images/holdout.h"
#include "data/photos/photo_examples.h"
#include "data/photos/photo_layout.h"
#include "data/photos/photo_shards.h"

namespace wisp {
namespace {

constexpr int64_t kTestShare = 10;  // a tenth is held out where there is no test folder

/// Means and deviations of ImageNet's channels, as torchvision has them, in [0, 255].
Normalization imagenet_normalization() {
  return {{0.485 * 255, 0.456 * 255, 0.406 * 255}, {0.229 * 255, 0.224 * 255, 0.225 * 255}};
}

/// Takes `count` photos out of a set, and returns them. `name` is for messages.
std::shared_ptr<const PhotoSet> take_out(std::shared_ptr<const PhotoSet>& photos, int64_t count,
                                         const std::string& name) {
  const HeldOutNumbers parts = hold_out(photos->count(), count, name);
  const auto out = std::make_shared<PhotoSubset>(photos, parts.validation);
  photos = std::make_shared<PhotoSubset>(photos, parts.train);
  return out;
}

/// Notes classes whose names differ only in the case of ASCII letters.
void note_equal_but_case(const std::vector<std::string>& classes, const std::string& folder,
                         std::vector<std::string>& notices) {
  std::map<std::string, std::string> by_lower;
  for (const std::string& name : classes) {
    std::string lower = name;
    std::ranges::transform(lower, lower.begin(), [](char c) {
      return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    const auto [other, added] = by_lower.emplace(lower, name);
    if (!added)
      notices.push_back(concat(folder, ": the classes ", other->second, " and ", name,
                               " differ only in the case of letters"));
  }
}

class PhotoSource final : public DataSource {
 public:
  explicit PhotoSource(Config& config) {
    config.bind("data.path", path_,
                "folder with a folder of photos for each class, with train, val and test of these, "
                "or with shards");
    config.bind_least("data.size", options_.size, 1,
                      "height and width of a model's images, in pixels");
    config.bind_least(
        "data.side", options_.side, 0,
        "shorter side of a photo in evaluation, before its centre of data.size is cut out; "
        "0: 8/7 of data.size");
    config.bind_word("data.filter", filter_, {"bilinear", "bicubic"},
                     "filter of scaling, antialiased: bilinear or bicubic");
    config.bind("data.shrink_first", options_.shrink_first,
                "let libjpeg make large JPEGs 2, 4 or 8 times smaller: faster, with slightly other "
                "pixels");
    config.bind("data.augment", augment_,
                "train on random resized crops (Szegedy et al. 2015), flipped and with changed "
                "colours; false: on the pixels of evaluation");
    config.bind("data.crop_area", options_.crop.least_area,
                "least share of a photo's area in a random crop, in (0, 1]");
    config.bind_least("data.brightness", options_.jitter.brightness, 0,
                      "strength of random brightness in training, 0 or more");
    config.bind_least("data.contrast", options_.jitter.contrast, 0,
                      "strength of random contrast, 0 or more");
    config.bind_least("data.saturation", options_.jitter.saturation, 0,
                      "strength of random saturation, 0 or more");
    config.bind_least(
        "data.rand_augment", options_.changes.changes, 0,
        "number of RandAugment's changes of a photo in training (2 in the paper); 0: none");
    config.bind("data.magnitude", options_.changes.magnitude,
                "magnitude of RandAugment's changes, 0 to 30");
    config.bind_least(
        "data.lighting", options_.lighting, 0,
        "strength of AlexNet's lighting noise in training, 0 or more (0.1 in the paper)");
    config.bind_least("data.validation", validation_, 0, kHoldOutMeaning);
    config.bind_least(
        "data.block", order_.block, 0,
        "photos of shards that lie together and are drawn near each other in training, in a nearly "
        "random order; 0: a random order");
    config.bind_least(
        "data.repeats", order_.repeats, 1,
        "repeated augmentation (Hoffer et al. 2020): the rows of a step are this many "
        "different changes of each of its photos; an epoch then has fewer photos");
    config.bind_least("data.max_bad", max_bad_, 0,
                      "number of damaged photos of a split that are tolerated; more end the run");
    options_.filter = filter_named(filter_);
    if (options_.side == 0) options_.side = (8 * options_.size + 3) / 7;
    config.expect(options_.side >= options_.size, "data.side", options_.side,
                  concat("at least data.size, ", options_.size));
    WISP_CHECK(augment_ || order_.repeats == 1, config.where("data.repeats"), ": data.repeats is ",
               order_.repeats, ", but without data.augment the rows of a photo would be equal");
    naming(config.where("data.magnitude"), [&] { check(options_.changes); });
    const double area = options_.crop.least_area;
    config.expect(area > 0 && area <= 1, "data.crop_area", area, "more than 0 and at most 1");
    naming("data", [&] { PhotoPipeline(options_, imagenet_normalization(), DType::f32); });
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
    Splits splits{.notices = layout.notices};
    const auto find = [&](const PhotoFolder& folder) {
      const FoundPhotos found = find_photos(folder, classes);
      std::error_code ignored;
      if (folder.path != layout.train &&
          std::filesystem::equivalent(folder.path, layout.train, ignored))
        splits.notices.push_back(concat(folder.path, ": is the training set by another name"));
      splits.notices.insert(splits.notices.end(), found.notices.begin(), found.notices.end());
      return found.photos;
    };
    WISP_CHECK(
        order_.block == 0 || has_shards(layout.train), layout.train, ": data.block is ",
        order_.block,
        ", but neighbours in class folders are of one class; wisp pack makes shards, in which "
        "they are mixed");
    std::shared_ptr<const PhotoSet> train = find({layout.train}), test;
    if (layout.test.path.empty()) {
      const int64_t count = std::max<int64_t>(train->count() / kTestShare, 1);
      test = take_out(train, count, layout.train);
      splits.notices.push_back(
          concat(layout.train, ": no test set; ", count, " photos are held out as one"));
    } else {
      test = find(layout.test);
    }
    const auto examples = [&](const std::string& name, std::shared_ptr<const PhotoSet> photos,
                              bool training) {
      return std::make_unique<PhotoExamples>(
          name, std::move(photos), options_, imagenet_normalization(), compute,
          PhotoUse{.training = training, .most_bad = max_bad_, .order = order_});
    };
    if (const std::string& folder = layout.validation.path; !folder.empty()) {
      WISP_CHECK(validation_ == 0, "data.validation is ", validation_, ", but ", folder,
                 " is the validation split, expected 0");
      splits.validation = examples(folder, find(layout.validation), false);
    } else if (validation_ > 0) {
      WISP_CHECK(validation_ < train->count(), layout.train, ": data.validation is ", validation_,
                 " of ", train->count(), " training samples, expected fewer");
      splits.validation = examples(layout.train + ", held out for validation",
                                   take_out(train, validation_, layout.train), false);
    }
    std::vector<bool> seen(classes.size());
    for (int64_t i = 0; i < train->count(); ++i) seen[static_cast<size_t>(train->label(i))] = true;
    note_absent(splits.notices, layout.train, "classes", "training photo", seen, classes);
    note_equal_but_case(classes, layout.train, splits.notices);
    splits.train = examples(layout.train, train, augment_);
    splits.test = examples(
        layout.test.path.empty() ? layout.train + ", held out as the test set" : layout.test.path,
        test, false);
    return splits;
  }

  int64_t held_out() const override { return validation_; }
  bool has_validation() const override {
    return validation_ > 0 || !find_layout(path_).validation.path.empty();
  }

 private:
  std::string path_;
  std::string filter_ = "bilinear";
  PhotoOptions options_;
  bool augment_ = true;
  int64_t validation_ = 0;
  int64_t max_bad_ = 10;
  SampleOrder order_;
};

const DataRegistration registration("photos", "photos in a folder for each class, as ImageNet's",
                                    make_source<PhotoSource>);

}  // namespace
}  // namespace wisp
