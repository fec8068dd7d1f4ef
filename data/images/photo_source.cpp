#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "data/data_source.h"
#include "data/images/holdout.h"
#include "data/images/photo_examples.h"
#include "data/images/photo_files.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKagglesFolder = "ILSVRC/Data/CLS-LOC";
constexpr const char* kTestFolders[] = {"val", "validation", "test"};
constexpr const char* kLists[] = {"LOC_val_solution.csv", "val.txt"};
constexpr int64_t kTestShare = 10;  // a tenth is held out where there is no test folder

/// Means and deviations of ImageNet's channels, as torchvision has them, in [0, 255].
Normalization imagenet_normalization() {
  return {{0.485 * 255, 0.456 * 255, 0.406 * 255}, {0.229 * 255, 0.224 * 255, 0.225 * 255}};
}

/// The folders of a data set; empty: there is none.
struct Layout {
  std::string train, test;
  std::string list;  // of the test photos, if `test` has no class folders
};

Layout find_layout(const std::string& path) {
  WISP_CHECK(!path.empty() && fs::is_directory(path), "photos: no directory '", path,
             "' (data.path), expected a folder for each class in it, or train and val with these");
  const fs::path inside = fs::path(path) / kKagglesFolder;
  const fs::path base = fs::is_directory(inside) ? inside : fs::path(path);
  if (!fs::is_directory(base / "train")) return {base.string(), "", ""};
  Layout layout{(base / "train").string(), "", ""};
  for (const char* name : kTestFolders) {
    if (layout.test.empty() && fs::is_directory(base / name)) layout.test = (base / name).string();
  }
  for (const char* name : kLists) {
    if (layout.list.empty() && fs::is_regular_file(fs::path(path) / name))
      layout.list = (fs::path(path) / name).string();
  }
  return layout;
}

bool has_folders(const std::string& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.is_directory()) return true;
  return false;
}

FoundPhotos find_test(const Layout& layout, const std::vector<std::string>& classes) {
  if (has_folders(layout.test)) return photos_by_folder(layout.test, classes);
  WISP_CHECK(!layout.list.empty(), layout.test, ": no folder for each class in it, and no list ",
             kLists[1], " or ", kLists[0], " of its files' classes in data.path");
  return photos_by_list(layout.test, layout.list, classes);
}

std::shared_ptr<const PhotoSet> subset(const std::shared_ptr<const PhotoSet>& photos,
                                       std::vector<int64_t> numbers) {
  return std::make_shared<PhotoSubset>(photos, std::move(numbers));
}

class PhotoSource final : public DataSource {
 public:
  explicit PhotoSource(Config& config) {
    config.bind("data.path", path_,
                "folder with a folder of photos for each class, or with train and val of these");
    config.bind("data.size", options_.size, "height and width of a model's images, in pixels");
    config.bind("data.side", options_.side,
                "shorter side of a photo in evaluation, before its centre of data.size is cut out");
    config.bind("data.filter", filter_, "filter of scaling, antialiased: bilinear or bicubic");
    config.bind("data.augment", augment_,
                "random resized crop (Szegedy et al. 2015) and random flip in training");
    config.bind("data.crop_area", options_.crop.least_area,
                "least share of a photo's area in a random crop, in (0, 1]");
    config.bind("data.brightness", options_.jitter.brightness,
                "strength of random brightness in training, as contrast and saturation; 0: none");
    config.bind("data.contrast", options_.jitter.contrast, "strength of random contrast");
    config.bind("data.saturation", options_.jitter.saturation, "strength of random saturation");
    config.bind("data.lighting", options_.lighting,
                "strength of AlexNet's lighting noise in training (0.1 in the paper); 0: none");
    config.bind("data.validation", validation_,
                "number of training samples held out for validation; they decide the best "
                "checkpoint and the plateau, and the test set is evaluated only at the end; 0: "
                "none, the last checkpoint is the best");
    config.bind("data.max_bad", max_bad_,
                "number of damaged photos of a split that are gone past; more end the run");
    WISP_CHECK(filter_ == "bilinear" || filter_ == "bicubic", config.where("data.filter"),
               ": data.filter is '", filter_, "', expected bilinear or bicubic");
    WISP_CHECK(options_.size > 0, config.where("data.size"), ": data.size is ", options_.size,
               ", expected at least 1");
    WISP_CHECK(options_.side >= options_.size, config.where("data.side"), ": data.side is ",
               options_.side, ", expected at least data.size, ", options_.size);
    WISP_CHECK(validation_ >= 0, config.where("data.validation"), ": data.validation is ",
               validation_, ", expected 0 or more");
    WISP_CHECK(max_bad_ >= 0, config.where("data.max_bad"), ": data.max_bad is ", max_bad_,
               ", expected 0 or more");
    options_.filter = filter_ == "bicubic" ? Filter::bicubic : Filter::bilinear;
  }

  Facts facts() const override {
    const std::vector<std::string> classes = class_folders(find_layout(path_).train);
    return {.inputs = {{.name = "input",
                        .sample = {options_.size, options_.size, 3},
                        .normalization = imagenet_normalization()}},
            .classes = std::ssize(classes),
            .names = classes};
  }

  Splits open(DType compute) const override {
    const Layout layout = find_layout(path_);
    const std::vector<std::string> classes = class_folders(layout.train);
    FoundPhotos found = photos_by_folder(layout.train, classes);
    Splits splits;
    splits.notices = std::move(found.notices);
    std::shared_ptr<const PhotoSet> train = std::move(found.photos), test, validation;
    if (layout.test.empty()) {
      const HeldOutNumbers parts = hold_out(
          train->count(), std::max<int64_t>(train->count() / kTestShare, 1), layout.train);
      test = subset(train, parts.validation);
      train = subset(train, parts.train);
      splits.notices.push_back(concat(layout.train, ": no folder val beside train; ",
                                      test->count(), " photos are held out as the test set"));
    } else {
      FoundPhotos found_test = find_test(layout, classes);
      test = std::move(found_test.photos);
      splits.notices.insert(splits.notices.end(), found_test.notices.begin(),
                            found_test.notices.end());
    }
    const auto examples = [&](std::shared_ptr<const PhotoSet> photos, bool training) {
      const std::string name = photos->folder();
      return std::make_unique<PhotoExamples>(
          name, std::move(photos), options_, imagenet_normalization(), compute,
          PhotoUse{.training = training, .most_bad = max_bad_});
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
};

const DataRegistration registration("photos", "photos in a folder for each class, as ImageNet's",
                                    [](Config& config) {
                                      return std::make_unique<PhotoSource>(config);
                                    });

}  // namespace
}  // namespace wisp
