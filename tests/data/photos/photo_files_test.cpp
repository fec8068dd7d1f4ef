#include "data/photos/photo_files.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

using Names = std::vector<std::string>;

/// "path label" of each photo.
Names listed(const PhotoSet& photos) {
  Names names;
  for (int64_t i = 0; i < photos.count(); ++i)
    names.push_back(photos.name(i) + " " + std::to_string(photos.label(i)));
  return names;
}

TEST(PhotoFiles, AreThoseOfTheClassFoldersInOrder) {
  const TempDir dir;
  for (const char* path : {"cats/b.JPEG", "cats/a.png", "cats/kittens/c.jpg", "ants/z.webp",
                           "cats/notes.txt", "loose.jpg", ".hidden/d.jpg"})
    dir.write(std::string("photos/") + path, path);
  std::filesystem::create_symlink(dir / "unmounted", dir / "photos/birds");
  for (const std::string& folder : {dir / "photos", dir / "photos/"}) {
    const Names classes = class_folders(folder);
    EXPECT_EQ(classes, (Names{"ants", "cats"}));
    const FoundPhotos found = photos_by_folder(folder, classes);
    EXPECT_EQ(listed(*found.photos),
              (Names{"ants/z.webp 0", "cats/a.png 1", "cats/b.JPEG 1", "cats/kittens/c.jpg 1"}));
    EXPECT_EQ(found.notices,
              (Names{folder + ": 1 files that are no .jpg, .png or .webp were skipped, such as "
                              "cats/notes.txt",
                     folder + ": 1 files beside the class folders were skipped, such as loose.jpg",
                     folder + ": 1 links to nothing beside the class folders were skipped, such as "
                              "birds"}));
    std::string buffer;
    EXPECT_EQ(found.photos->bytes(3, buffer), "cats/kittens/c.jpg");
    EXPECT_EQ(found.photos->folder(), folder);
  }
}

TEST(PhotoFiles, AllInFoldersOfTheClassesAreNoticed) {
  const TempDir dir;
  for (const char* path : {"birds/train/a.jpg", "birds/val/b.jpg", "cats/train/c.jpg"})
    dir.write(std::string("photos/") + path, path);
  const std::string folder = dir / "photos";
  EXPECT_EQ(photos_by_folder(folder, class_folders(folder)).notices,
            Names{folder + ": all photos lie in folders of its 2 class folders, such as "
                           "birds/train/a.jpg. Is the data set a folder below?"});
}

TEST(PhotoFiles, OfATestSetHaveTheClassesOfTheTrainingSet) {
  const TempDir dir;
  dir.write("train/ants/a.jpg", "");
  dir.write("train/bees/b.jpg", "");
  dir.write("val/bees/c.jpg", "");
  const Names classes = class_folders(dir / "train");
  EXPECT_EQ(listed(*photos_by_folder(dir / "val", classes).photos), Names{"bees/c.jpg 1"});
  dir.write("val/wasps/d.jpg", "");
  EXPECT_EQ(error_of([&] { photos_by_folder(dir / "val", classes); }),
            dir / "val/wasps: the training set has no class 'wasps'");
}

TEST(PhotoFiles, BehindALinkThatCannotBeFollowedAreAnError) {
  const TempDir dir;
  dir.write("photos/ants/a.jpg", "");
  std::filesystem::create_symlink(std::string(300, 'x'), dir / "photos/bees");
  EXPECT_EQ(error_of([&] { class_folders(dir / "photos"); }),
            dir / "photos/bees: cannot be read: File name too long");
}

TEST(PhotoFiles, WhereThereAreNoneIsAnError) {
  const TempDir dir;
  dir.write("photos/a.jpg", "");
  EXPECT_EQ(error_of([&] { class_folders(dir / "photos"); }),
            dir / "photos: no folders in it, expected one for each class");
  dir.write("photos/ants/a.txt", "");
  EXPECT_EQ(error_of([&] { photos_by_folder(dir / "photos", {"ants"}); }),
            dir / "photos: no .jpg, .png or .webp file in its 1 class folders");
  EXPECT_EQ(error_of([&] { class_folders(dir / "nowhere"); }),
            dir / "nowhere: cannot be read: No such file or directory");
}

class PhotoLists : public testing::Test {
 protected:
  PhotoLists() {
    for (const char* name : {"1.JPEG", "2.JPEG", "3.JPEG"})
      dir_.write(std::string("val/") + name, "");
  }
  FoundPhotos read(const std::string& text) {
    return photos_by_list(dir_ / "val", dir_.write("list", text), {"n01", "n02", "n10"});
  }
  std::string refusal(const std::string& text) {
    return error_of([&] { read(text); });
  }

  const TempDir dir_;
};

TEST_F(PhotoLists, NameClassesOrNumbers) {
  EXPECT_EQ(listed(*read("3.JPEG n10\n1.JPEG  0\r\n\n2.JPEG 1").photos),
            (Names{"3.JPEG 2", "1.JPEG 0", "2.JPEG 1"}));
  const FoundPhotos found = read("2.JPEG 2\n");
  EXPECT_EQ(listed(*found.photos), Names{"2.JPEG 2"});
  EXPECT_EQ(found.notices, Names{dir_ / "val: 2 files were skipped that " + (dir_ / "list") +
                                 " does not list, such as 1.JPEG"});
}

TEST_F(PhotoLists, MayBeKaggles) {
  EXPECT_EQ(listed(*read("ImageId,PredictionString\n2,n02 85 131 499 272 \n1,n10 1 2 3 4 n10 5 6 7 "
                         "8\n3,n01 0 0 9 9\n")
                        .photos),
            (Names{"2.JPEG 1", "1.JPEG 2", "3.JPEG 0"}));
}

TEST_F(PhotoLists, TellWhereTheyAreWrong) {
  const std::string list = dir_ / "list";
  EXPECT_EQ(refusal("1.JPEG 0\n2.JPEG"),
            list + ":2: '2.JPEG', expected a file's name and its class");
  EXPECT_EQ(refusal("1.JPEG 0 1"), list + ":1: '1.JPEG 0 1', expected a file's name and its class");
  for (const std::string unknown : {"n03", "3", "-1", "1x"})
    EXPECT_EQ(refusal("1.JPEG " + unknown),
              list + ":1: class '" + unknown +
                  "', expected a class folder's name, or a number from 0 to 2");
  const std::string missing = " is not in " + (dir_ / "val") + ", or is listed twice";
  EXPECT_EQ(refusal("4.JPEG 0"), list + ":1: 4.JPEG" + missing);
  EXPECT_EQ(refusal("1.JPEG 0\n1.JPEG 0"), list + ":2: 1.JPEG" + missing);
  EXPECT_EQ(refusal("\n"), list + ": lists no photos");
}

}  // namespace
}  // namespace wisp
