#include "data/photos/photo_files.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/error_of.h"
#include "tests/support/listed_photos.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

using Names = std::vector<std::string>;

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
              (Names{folder + ": 1 files beside the class folders were skipped, such as loose.jpg",
                     folder + ": 1 files that are no .jpg, .png or .webp were skipped, such as "
                              "cats/notes.txt",
                     folder + ": 1 hidden files and folders were skipped, such as .hidden",
                     folder + ": 1 links to nothing were skipped, such as birds"}));
    std::string buffer;
    EXPECT_EQ(found.photos->bytes(3, buffer), "cats/kittens/c.jpg");
    EXPECT_EQ(found.photos->folder(), folder);
  }
}

TEST(PhotoFiles, AreNoCopiesThatOtherProgramsMade) {
  const TempDir dir;
  for (const char* path :
       {"ants/a.JPG", "ants/.ipynb_checkpoints/a-checkpoint.jpg", "ants/x/.dropbox.cache/a.jpg",
        "ants/.a.jpg", "ants/@eaDir/a.jpg/SYNOPHOTO_THUMB_XL.jpg", "bees/b.Png", "bees/._b.png",
        "@eaDir/c.jpg", "__MACOSX/ants/._a.jpg", ".Trash-1000/files/d.jpg", "lost+found/e.jpg"})
    dir.write(std::string("photos/") + path, path);
  const std::string folder = dir / "photos";
  const Names classes = class_folders(folder);
  EXPECT_EQ(classes, (Names{"ants", "bees"}));
  const FoundPhotos found = photos_by_folder(folder, classes);
  EXPECT_EQ(listed(*found.photos), (Names{"ants/a.JPG 0", "bees/b.Png 1"}));
  EXPECT_EQ(found.notices,
            (Names{folder + ": 3 files and folders of a system (@eaDir, lost+found, …) were "
                            "skipped, such as @eaDir",
                   folder + ": 2 files of macOS (._…, __MACOSX) were skipped, such as __MACOSX",
                   folder + ": 4 hidden files and folders were skipped, such as .Trash-1000"}))
      << "one line of each kind for all classes";
}

TEST(PhotoFiles, InAFolderWhoseNameIsNoUtf8AreRefused) {
  const TempDir dir;
  dir.write("train/tea/a.jpg", "");
  dir.write("val/caf\xe9/b.jpg", "");
  const std::string words =
      ": the name of the class folder \"caf\\xe9\" is no UTF-8; rename the folder";
  EXPECT_EQ(error_of([&] { class_folders(dir / "val"); }), dir / "val" + words);
  EXPECT_EQ(error_of([&] { photos_by_folder(dir / "val", class_folders(dir / "train")); }),
            dir / "val" + words);
  dir.write("train/th\xc3\xa9/c.jpg", "");
  EXPECT_EQ(class_folders(dir / "train"), (Names{"tea", "thé"}));
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

}  // namespace
}  // namespace wisp
