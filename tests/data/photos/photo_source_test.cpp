// Tests of `data.name = "photos"`: the layouts that it finds, and its keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "core/base/error.h"
#include "data/data_source.h"
#include "data/photos/photo_shards.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

class PhotoSource : public testing::Test {
 protected:
  /// Empty files: a source does not read them.
  void photos(const std::string& folder, int count, const char* ending = ".jpg") {
    for (int i = 0; i < count; ++i) dir_.write(concat(folder, "/", i + 100, ending), "");
  }
  std::unique_ptr<DataSource> source(const std::string& keys = "") const {
    Config config = Config::from_text(
        concat("data.name = \"photos\"\ndata.path = \"", dir_ / "set", "\"\n", keys), "run.toml");
    return make_data_source(config);
  }
  Splits open(const std::string& keys = "") const { return source(keys)->open(DType::f32); }
  std::string error(const std::string& keys = "") const {
    return error_of([&] { open(keys); });
  }

  const TempDir dir_;
};

TEST_F(PhotoSource, HoldsOutATenthWhereThereIsNoTestSet) {
  photos("set/ants", 30);
  photos("set/bees", 10);
  const Splits splits = open();
  EXPECT_EQ(splits.train->count(), 36);
  EXPECT_EQ(splits.test->count(), 4);
  EXPECT_EQ(splits.validation, nullptr);
  ASSERT_EQ(splits.notices.size(), 1u);
  EXPECT_EQ(splits.notices[0], dir_ / "set: no test set; 4 photos are held out as one");
  EXPECT_EQ(open("data.validation = 6").train->count(), 30);
  EXPECT_EQ(open("data.validation = 6").validation->count(), 6);
  EXPECT_EQ(error("data.validation = 36"),
            dir_ / "set: data.validation is 36 of 36 training samples, expected fewer");
}

TEST_F(PhotoSource, FindsTrainAndATestSet) {
  photos("set/train/ants", 3);
  photos("set/train/bees", 2);
  for (const char* test : {"test", "validation", "val", "valid", "dev"}) {
    photos(concat("set/", test, "/bees"), 4);
    const Splits splits = open();
    EXPECT_EQ(splits.train->count(), 5);
    EXPECT_EQ(splits.test->count(), 4) << test;
    EXPECT_FALSE(splits.validation);
    EXPECT_FALSE(source()->has_validation());
    EXPECT_TRUE(splits.notices.empty());
    std::filesystem::remove_all(dir_ / concat("set/", test));
  }
  const Facts facts = source()->facts();
  EXPECT_EQ(facts.names, (std::vector<std::string>{"ants", "bees"}));
  EXPECT_EQ(facts.inputs[0].photo.side, 256);
  EXPECT_EQ(facts.inputs[0].sample, Shape({224, 224, 3}));
  photos("set/cats", 1);
  EXPECT_EQ(error(), dir_ /
                         "set: train and cats are beside each other; if train is the training "
                         "set, only val (or valid, validation, dev) and test may be beside it; if "
                         "it is a class, give the folder another name");
}

TEST_F(PhotoSource, ValidatesOnValWhereThereIsATest) {
  photos("set/train/ants", 3);
  photos("set/train/bees", 2);
  photos("set/test/ants", 7);
  photos("set/__MACOSX/train", 1);
  for (const char* name : {"validation", "val", "valid", "dev"}) {
    photos(concat("set/", name, "/bees"), 4);
    EXPECT_TRUE(source()->has_validation());
    EXPECT_EQ(source()->held_out(), 0);
    const Splits splits = open();
    EXPECT_EQ(splits.train->count(), 5);
    EXPECT_EQ(splits.validation->count(), 4) << name;
    EXPECT_EQ(splits.test->count(), 7);
    EXPECT_TRUE(splits.notices.empty());
    EXPECT_EQ(error("data.validation = 2"), concat("data.validation is 2, but ", dir_ / "set/",
                                                   name, " is the validation split, expected 0"));
    std::filesystem::remove_all(dir_ / concat("set/", name));
  }
  photos("set/val/bees", 4);
  photos("set/valid/bees", 4);
  EXPECT_EQ(error(), dir_ / "set/val" +
                         " and valid are beside each other, expected one folder for validation");
}

TEST_F(PhotoSource, ATestSetWithoutClassesIsNotRead) {
  photos("set/train/ants", 3);
  photos("set/train/bees", 2);
  photos("set/val/bees", 4);
  photos("set/test", 2);
  const std::string notice = concat(dir_ / "set/test", " is not read, and ", dir_ / "set/val",
                                    " is the test set: the former has no folder of a class, and ",
                                    dir_ / "set", " no list test.txt");
  for (const char* more : {"", "set/test/unknown", "set/test/.hidden"}) {
    if (*more != 0) photos(more, 1);
    const Splits splits = open();
    EXPECT_EQ(splits.test->count(), 4);
    EXPECT_FALSE(splits.validation);
    EXPECT_FALSE(source()->has_validation());
    EXPECT_EQ(splits.notices, std::vector<std::string>{notice}) << more;
  }
  std::filesystem::remove_all(dir_ / "set/test/unknown");
  dir_.write("set/test.txt", "100.jpg bees\n101.jpg ants\n");
  const Splits splits = open();
  EXPECT_EQ(splits.test->count(), 2);
  EXPECT_EQ(splits.validation->count(), 4);
}

TEST_F(PhotoSource, NotesAListThatItDoesNotRead) {
  photos("set/train/ants", 3);
  photos("set/val/ants", 4);
  dir_.write("set/val.txt", "100.jpg 0\n");
  EXPECT_EQ(open().notices,
            std::vector<std::string>{dir_ / "set/val.txt" + " is not read, because " +
                                     (dir_ / "set/val") + " has class folders"});
  std::filesystem::remove(dir_ / "set/val.txt");
  dir_.write("set/train.txt", "ants/100.jpg 7\n");
  EXPECT_EQ(open().notices,
            std::vector<std::string>{dir_ / "set/train.txt" +
                                     " is not read: training photos have the classes of their "
                                     "folders, numbered in the order of names"});
}

TEST_F(PhotoSource, WarnsOfATestSetThatIsTheTrainingSet) {
  photos("set/train/ants", 3);
  std::filesystem::create_directory_symlink("train", dir_ / "set/val");
  EXPECT_EQ(open().notices,
            std::vector<std::string>{dir_ / "set/val" + ": is the training set by another name"});
}

TEST_F(PhotoSource, WarnsOfClassesWithoutATrainingPhoto) {
  for (const char* part : {"set/train/", "set/val/"}) photos(concat(part, "bees"), 4);
  photos("set/val/ants", 2);
  photos("set/train/ants", 2, ".txt");
  std::filesystem::create_directories(dir_ / "set/train/wasps");
  const Splits splits = open();
  ASSERT_EQ(splits.notices.size(), 2u) << "and the texts are passed over";
  EXPECT_EQ(splits.notices[1],
            dir_ / "set/train: 2 of 3 classes have no training photo: ants, wasps");
  EXPECT_EQ(source()->facts().classes, 3);
}

TEST_F(PhotoSource, WarnsOfClassesWhoseOnlyPhotosAreHeldOut) {
  photos("set/train/ants", 1);
  photos("set/train/bees", 9);
  photos("set/val/bees", 1);
  EXPECT_TRUE(open().notices.empty());
  EXPECT_EQ(open("data.validation = 9").notices.size(), 1u);
}

TEST_F(PhotoSource, WarnsOfClassesThatAreHardlyMeant) {
  photos("set/Ants", 20);
  photos("set/ants", 20);
  photos("set/test", 20);
  const std::vector<std::string> notices = open().notices;
  ASSERT_EQ(notices.size(), 3u) << "and a test set is held out";
  EXPECT_EQ(notices[0], dir_ / "set" +
                            ": test is read as a class; it is a part of the data set only beside a "
                            "folder train");
  EXPECT_EQ(notices[2],
            dir_ / "set" + ": the classes Ants and ants differ only in the case of letters");
}

TEST_F(PhotoSource, WarnsOfPhotosThatWerePackedFromHiddenFolders) {
  const auto notices = [&](const std::string& last) {
    std::filesystem::remove_all(dir_ / "set");
    PhotoShardWriter writer(dir_ / "set", {"ants"}, "photos");
    for (int i = 0; i < 20; ++i) writer.add(concat("ants/", i, ".jpg"), 0, "bytes");
    writer.add(last, 0, "bytes");
    writer.finish();
    return open().notices;
  };
  EXPECT_EQ(notices("ants/x.git/20.jpg").size(), 1u) << "a test set is held out";
  EXPECT_EQ(notices("ants/.git/20.jpg").at(0),
            dir_ / "set" +
                ": 1 photos were packed from hidden files or folders, such as ants/.git/20.jpg; "
                "pack them again without these");
}

TEST_F(PhotoSource, FindsKagglesImageNet) {
  const std::string inside = "set/ILSVRC/Data/CLS-LOC/";
  photos(inside + "train/n01440764", 3, ".JPEG");
  photos(inside + "train/n01443537", 3, ".JPEG");
  photos(inside + "val", 2, ".JPEG");
  dir_.write(
      "set/LOC_val_solution.csv",
      "ImageId,PredictionString\n100,n01443537 1 2 3 4\n101,n01440764 1 2 3 4 n01440764 1 2 3 4\n");
  const Splits splits = open();
  EXPECT_EQ(splits.train->count(), 6);
  EXPECT_EQ(splits.test->count(), 2);
  EXPECT_EQ(splits.test->origin(0).id, "100.JPEG");
  std::filesystem::remove(dir_ / "set/LOC_val_solution.csv");
  EXPECT_EQ(error(), dir_ / (inside + "val: no folder for each class in it, and no list val.txt or "
                                      "LOC_val_solution.csv of its files' classes in data.path"));
}

TEST_F(PhotoSource, ChecksItsKeys) {
  photos("set/ants", 3);
  photos("set/bees", 3);
  EXPECT_EQ(error("data.size = 0"), "run.toml:3: data.size is 0, expected 1 or more");
  EXPECT_EQ(error("data.side = 100"),
            "run.toml:3: data.side is 100, expected at least data.size, 224");
  EXPECT_EQ(error("data.repeats = 0"), "run.toml:3: data.repeats is 0, expected 1 or more");
  EXPECT_EQ(error("data.repeats = 2\ndata.augment = false"),
            "run.toml:3: data.repeats is 2, but without data.augment the rows of a photo would be "
            "equal");
  EXPECT_EQ(error("data.max_bad = -1"), "run.toml:3: data.max_bad is -1, expected 0 or more");
  EXPECT_EQ(error("data.crop_area = 0"),
            "run.toml:3: data.crop_area is 0, expected more than 0 and at most 1");
  EXPECT_EQ(error("data.magnitude = 31"),
            "run.toml:3: RandAugment: the magnitude is 31, expected 0 to 30");
  for (const char* key : {"data.brightness", "data.contrast", "data.saturation", "data.lighting"})
    EXPECT_EQ(error(concat(key, " = -0.5")),
              concat("run.toml:3: ", key, " is -0.5, expected 0 or more"));
  EXPECT_TRUE(error("data.filter = \"box\"").starts_with("run.toml:3: ")) << error();
  EXPECT_EQ(error("data.block = 2"),
            dir_ /
                "set: data.block is 2, but neighbours in class folders are of one class; wisp "
                "pack makes shards, in which they are mixed");
  std::filesystem::remove_all(dir_ / "set");
  EXPECT_EQ(error(), "photos: no directory '" + (dir_ / "set") +
                         "' (data.path), expected a folder for each class in it, or train and val "
                         "with these");
}

}  // namespace
}  // namespace wisp
