// Tests of runs on photos in folders and shards: packing, training, resuming, evaluation, and
// predictions.
#include <gtest/gtest.h>

#include <filesystem>

#include "apps/inference/predict.h"
#include "apps/run/run_facts.h"
#include "core/io/output_file.h"
#include "core/io/visible_text.h"
#include "data/decoding/image_codec.h"
#include "data/decoding/image_file.h"
#include "tests/support/error_of.h"
#include "tests/support/program.h"
#include "tests/support/random_images.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

using Open = RunDirectory::Open;

constexpr const char* kClasses[] = {"ants", "bees", "cats", "dogs"};

/// 128 training and 40 test photos of four classes, in folders. An epoch has 4 steps.
class PhotoRun : public Program {
 protected:
  PhotoRun() {
    write("train", 32);
    write("val", 10);
  }
  /// Noise, of which class c has more in channel c, and class 3 in none. Every second is a JPEG.
  void write(const std::string& part, int64_t of_each) {
    for (int64_t label = 0; label < std::ssize(kClasses); ++label) {
      const std::string folder = dir_ / concat("photos/", part, "/", kClasses[label]);
      fs::create_directories(folder);
      const ImageSet noise = random_images({(label + 1) * of_each, 24, 20, 3});
      for (int64_t i = 0; i < of_each; ++i) {
        const Tensor image = noise.image(label * of_each + i);
        auto* pixels = image.data<uint8_t>();
        for (int64_t p = 0; p < image.numel(); ++p)
          pixels[p] = static_cast<uint8_t>(pixels[p] / 2 + (p % 3 == label ? 40 : 0));
        if (i % 2 == 0) {
          write_image(concat(folder, "/", i, ".png"), image);
        } else {
          write_file(concat(folder, "/", i, ".jpg"), encode_jpeg(image, 90));
        }
      }
    }
  }
  /// `set` is the folder of the photos.
  Overrides overrides(const std::string& set = "photos") const {
    return {
        "data.name=photos",       "data.path=" + (dir_ / set), "data.size=12",      "data.side=16",
        "data.brightness=0.2",    "data.crop_area=0.5",        "optimizer.lr=0.02", "workers=2",
        "compression.method=dgc", "compression.ratio=0.1"};
  }
  Config photo_config(const Overrides& more, const std::string& set = "photos") const {
    return Config::from_text(
        "threads = 1\nmodel.name = \"mlp\"\nmodel.hidden = [24]\ntrain = { batch = 32, epochs = 4, "
        "log_every = 1 }\nschedule.kind = \"cosine\"\ntimeout_s = 30.0\n",
        "photos.toml", overrides(set) + more);
  }
  Summary train_photos(const std::string& out, const Overrides& more, Open open = Open::create,
                       const std::string& set = "photos") const {
    return *train(photo_config(more, set), {dir_ / out, open, true});
  }

  void pack(const std::string& out, const std::vector<std::string>& options = {}) {
    std::vector<std::string> words = {"pack", dir_ / "photos", dir_ / out, "--jobs", "3"};
    words.insert(words.end(), options.begin(), options.end());
    ASSERT_EQ(run(words), 0) << said();
  }
};

TEST_F(PhotoRun, GoesOnInsideAnEpochWithTheSameBits) {
  pack("shards");
  for (const auto& [set, block] : {std::pair{"photos", "0"}, std::pair{"shards", "8"}}) {
    SCOPED_TRACE(set);
    const std::string blocks = concat("data.block=", block), name = set;
    train_photos(name + "-whole", {blocks, "train.max_steps=11"}, Open::create, set);
    train_photos(name + "-parts", {blocks, "train.max_steps=6"}, Open::create, set);
    train_photos(name + "-parts", {blocks, "train.max_steps=11", "data.threads=3"}, Open::resume,
                 set);
    EXPECT_EQ(checkpoint_content(dir_ / (name + "-parts"), 11),
              checkpoint_content(dir_ / (name + "-whole"), 11));
  }
}

TEST_F(PhotoRun, LearnsFromFoldersAndFromShards) {
  pack("shards");
  const Overrides more = {"train.epochs=12"};
  const Summary folders = train_photos("a", more);
  const Summary shards = train_photos("b", more, Open::create, "shards");
  EXPECT_GT(folders.score("test_accuracy"), 0.8) << "a guess has 0.25";
  EXPECT_GT(shards.score("test_accuracy"), 0.8);
  const std::string before = said();
  EXPECT_NE(before.find("128 photos"), before.npos) << before;
  EXPECT_NE(before.find("40 photos"), before.npos) << before;
  // the packed photos are the photos
  const double loss = evaluate_run(dir_ / "a", {}).test.loss;
  const Overrides packed = {"data.path=" + (dir_ / "shards")};
  EXPECT_NEAR(evaluate_run(dir_ / "a", packed).test.loss, loss, 1e-6);
  pack("shards");
  EXPECT_NE(said().find("shards/train: holds photos of these names already"), std::string::npos)
      << said();
}

TEST_F(PhotoRun, LearnsFromShardsThatWereScaled) {
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--side", "18"}, {"--side", "18", "--raw"}}) {
    const std::string set = concat("shards", options.size());
    pack(set, options);
    EXPECT_GT(
        train_photos(set + "-run", {"train.epochs=12"}, Open::create, set).score("test_accuracy"),
        0.8);
  }
}

TEST_F(PhotoRun, PacksOnlyWhatIsMissing) {
  pack("shards");
  fs::remove_all(dir_ / "shards/train");
  pack("shards");
  EXPECT_NE(said().find("shards/val: holds photos of these names already"), std::string::npos)
      << said();
  EXPECT_NE(said().find("shards/train: 128 photos"), std::string::npos) << said();
  EXPECT_NE(run({"pack", dir_ / "photos", dir_ / "shards", "--side", "16"}), 0);
  EXPECT_NE(said().find("asked for are 40 photos"), std::string::npos) << said();
}

TEST_F(PhotoRun, ValidatesOnValWhereThereIsATest) {
  write("test", 5);
  pack("shards");
  for (const std::string set : {"photos", "shards"}) {
    const Summary summary = train_photos(set + "-run", {"train.max_steps=4"}, Open::create, set);
    EXPECT_TRUE(RunFacts::read(dir_ / (set + "-run")).has_validation);
    const RunEvaluation found = evaluate_run(dir_ / (set + "-run"), {});
    EXPECT_EQ(found.test.targets, 20);
    EXPECT_EQ(found.validation->targets, 40);
    EXPECT_EQ(summary.score("validation_accuracy"), found.validation->metrics[0]);
  }
}

TEST_F(PhotoRun, PredictsWhatEvaluationComputes) {
  train_photos("run", {"train.epochs=12"});
  std::vector<std::string> files;
  std::vector<std::string> classes;
  for (const char* label : kClasses) {
    for (const auto& entry : fs::directory_iterator(dir_ / concat("photos/val/", label))) {
      files.push_back(entry.path().string());
      classes.emplace_back(label);
    }
  }
  Inference model(dir_ / "run");
  double correct = 0.0;
  size_t seen = 0;
  predict(model, files, 1, [&](const Prediction& prediction) {
    ASSERT_TRUE(prediction.error.empty()) << prediction.error;
    correct += prediction.classes[0].name == classes[seen++];
  });
  ASSERT_EQ(seen, 40u);
  EXPECT_DOUBLE_EQ(correct / 40, evaluate_run(dir_ / "run", {}).test.metrics[0]);
}

TEST_F(PhotoRun, EndsWhenTooManyPhotosAreDamaged) {
  for (const char* label : {"ants", "bees"})
    fs::resize_file(fs::directory_iterator(dir_ / concat("photos/train/", label))->path(), 60);
  EXPECT_GT(train_photos("some", {"train.epochs=1", "data.max_bad=2"}).score("test_accuracy"), 0.0);
  const std::string error = error_of([&] {
    train_photos("none", {"train.epochs=1", "data.max_bad=1"});
  });
  EXPECT_NE(error.find("2 photos are damaged, data.max_bad allows 1; the last one: " +
                       (dir_ / "photos/train/")),
            error.npos)
      << error;
}

/// Whether a terminal would obey something in a text of whole lines.
bool has_hidden(const std::string& text) { return visible_lines(text) != text; }

TEST_F(PhotoRun, NamesOfClassesDoNotReachTheTerminal) {
  std::string longest = "\u202e";  // 255 bytes, the most of a folder's name
  while (longest.size() < 255) longest += "\u00e4";
  const std::vector<std::string> names = {"\x1b[2Jx\ny", "b\u009b31mz\r", longest.substr(0, 255),
                                          "d\x7f\"e"};
  for (const char* part : {"train", "val"})
    for (size_t c = 0; c < names.size(); ++c)
      fs::rename(dir_ / concat("photos/", part, "/", kClasses[c]),
                 dir_ / concat("photos/", part, "/", names[c]));
  const std::string config =
      dir_.write("photos.toml", "threads = 1\nmodel = { name = \"mlp\", hidden = [4] }\n");
  std::vector<std::string> train = {"train", config, "train.batch=32", "train.max_steps=2"};
  const Overrides more = overrides();
  train.insert(train.end(), more.begin(), more.end());
  train.insert(train.end(), {"--out", dir_ / "run"});
  ASSERT_EQ(run(train), 0) << said();
  EXPECT_FALSE(has_hidden(said())) << said();

  const std::string photo = concat(dir_ / "photos/val", "/", names[0], "/0.png");
  const std::string damaged =
      dir_.write(concat("photos/val/", names[0], "/a\tb.png"), "no picture");
  std::vector<std::string> data = {"data", config, "train.batch=32"};
  data.insert(data.end(), more.begin(), more.end());
  data.insert(data.end(), {"--write", dir_ / "pictures"});
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"predict", dir_ / "run", "--top", "4", photo, damaged},
        {"predict", dir_ / "run", "--json", photo, damaged},
        {"eval", dir_ / "run", "--classes"},
        data,
        {"pack", dir_ / "photos", dir_ / "shards", "--side", "8"}}) {
    const int status = run(command);
    const bool refused = command[0] == "pack";  // its index has a class on each line
    EXPECT_EQ(status, refused || command[0] == "predict" ? 1 : 0) << said();
    EXPECT_FALSE(has_hidden(said())) << command[0] << ": " << said();
    if (command[0] == "pack" || command[2] == "--json") continue;
    EXPECT_NE(said().find("\"\\x1b[2Jx\\ny\""), std::string::npos) << said();
  }
  for (const auto& entry : fs::directory_iterator(dir_ / "pictures"))
    EXPECT_EQ(visible(entry.path().filename().string()), entry.path().filename().string());
}

}  // namespace
}  // namespace wisp
