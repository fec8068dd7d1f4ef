#include "data/photos/photo_list.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/listed_photos.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

using Names = std::vector<std::string>;

class PhotoLists : public testing::Test {
 protected:
  PhotoLists() {
    for (const char* name : {"1.JPEG", "2.JPEG", "3.JPEG"})
      dir_.write(std::string("val/") + name, "");
  }
  FoundPhotos read(const std::string& text, const Names& classes = {"n01", "n02", "n10"}) {
    return photos_by_list(dir_ / "val", dir_.write("list", text), classes);
  }
  std::string refusal(const std::string& text, const Names& classes = {"n01", "n02", "n10"}) {
    return error_of([&] { read(text, classes); });
  }

  const TempDir dir_;
};

TEST_F(PhotoLists, NameClassesOrNumbers) {
  const Names expected = {"3.JPEG 2", "1.JPEG 0", "2.JPEG 1"};
  EXPECT_EQ(listed(*read("3.JPEG n10\n1.JPEG  n01\r\n\n2.JPEG n02").photos), expected);
  EXPECT_EQ(listed(*read("3.JPEG\t2 \r\n1.JPEG  0\r\n \t\r\n2.JPEG \t 1").photos), expected);
  EXPECT_TRUE(read("1.JPEG 0\n2.JPEG 1\n3.JPEG 2").notices.empty());
  const FoundPhotos found = read("2.JPEG 2\n");
  EXPECT_EQ(listed(*found.photos), Names{"2.JPEG 2"});
  EXPECT_EQ(found.notices, Names{dir_ / "val: 2 files that " + (dir_ / "list") +
                                 " does not list were skipped, such as 1.JPEG"});
}

TEST_F(PhotoLists, HaveNumbersWhereOneClassIsNoName) {
  const FoundPhotos found = read("1.JPEG 0\n2.JPEG 1\n3.JPEG 2\n", {"1", "2", "3"});
  EXPECT_EQ(listed(*found.photos), (Names{"1.JPEG 0", "2.JPEG 1", "3.JPEG 2"}));
  EXPECT_TRUE(found.notices.empty());
  EXPECT_EQ(listed(*read("3.JPEG 2\n1.JPEG 1\n2.JPEG 0", {"1", "2", "3"}).photos),
            (Names{"3.JPEG 2", "1.JPEG 1", "2.JPEG 0"}))
      << "the line that decides may be the last";
}

TEST_F(PhotoLists, HaveNamesWhereOneClassIsNoNumber) {
  const FoundPhotos found = read("1.JPEG 1\n2.JPEG 2\n3.JPEG 3\n", {"1", "2", "3"});
  EXPECT_EQ(listed(*found.photos), (Names{"1.JPEG 0", "2.JPEG 1", "3.JPEG 2"}));
  EXPECT_TRUE(found.notices.empty());
  EXPECT_EQ(listed(*read("1.JPEG 01\n2.JPEG 00\n", {"00", "01", "1"}).photos),
            (Names{"1.JPEG 1", "2.JPEG 0"}));
}

TEST_F(PhotoLists, ThatMayHaveEitherHaveNames) {
  const FoundPhotos found = read("1.JPEG 2\n2.JPEG 1\n", {"1", "2", "3"});
  EXPECT_EQ(listed(*found.photos), (Names{"1.JPEG 1", "2.JPEG 0"}));
  ASSERT_EQ(found.notices.size(), 2u) << "and one file is not listed";
  EXPECT_EQ(found.notices[0],
            dir_ / "list" +
                ": its classes may be names of class folders or numbers from 0; they are read as "
                "names, so '2' is not the class number 2");
  const Names sorted = {"0", "1", "10", "2"};
  EXPECT_EQ(listed(*read("1.JPEG 0\n2.JPEG 2\n3.JPEG 1", sorted).photos),
            (Names{"1.JPEG 0", "2.JPEG 3", "3.JPEG 1"}));
  EXPECT_EQ(read("1.JPEG 0\n2.JPEG 2\n3.JPEG 1", sorted).notices.size(), 1u);
  EXPECT_TRUE(read("1.JPEG 0\n2.JPEG 1\n3.JPEG 2", {"0", "1", "2"}).notices.empty())
      << "both readings are the same";
}

TEST_F(PhotoLists, WithNamesBesideNumbersAreRefused) {
  const std::string list = dir_ / "list";
  EXPECT_EQ(refusal("3.JPEG n10\n1.JPEG 0\n2.JPEG 1"),
            list +
                ":2: class '0' is a number, but 'n10' in line 1 is a class folder's name; "
                "expected names in all lines, or numbers in all");
  EXPECT_EQ(refusal("1.JPEG 0\n2.JPEG 3", {"1", "2", "3"}),
            list +
                ":1: class '0' is a number, but '3' in line 2 is a class folder's name; "
                "expected names in all lines, or numbers in all");
}

TEST_F(PhotoLists, PassOverHiddenFiles) {
  dir_.write("val/.DS_Store", "");
  dir_.write("val/.git/config", "");
  const FoundPhotos found = read("1.JPEG 0\n2.JPEG 1\n3.JPEG 2");
  EXPECT_EQ(found.notices, Names{dir_ / "val: 2 hidden files and folders were skipped, such as "
                                        ".DS_Store"});
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
  for (const std::string unknown : {"n03", "3", "-1", "1x", "01", "1.0", "+1", "99999999999"})
    EXPECT_EQ(refusal("1.JPEG " + unknown),
              list + ":1: class '" + unknown +
                  "', expected a class folder's name, or a number from 0 to 2");
  const std::string missing = " is not in " + (dir_ / "val") + ", or is listed twice";
  EXPECT_EQ(refusal("4.JPEG 0"), list + ":1: 4.JPEG" + missing);
  EXPECT_EQ(refusal("1.JPEG 0\n1.JPEG 0"), list + ":2: 1.JPEG" + missing);
  EXPECT_EQ(refusal("\n"), list + ": lists no photos");
  EXPECT_EQ(refusal("caf\xe9.JPEG 0"), list + ": byte 3, in line 1, is no UTF-8");
}

}  // namespace
}  // namespace wisp
