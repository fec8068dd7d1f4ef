#include "data/absent_classes.h"

#include <gtest/gtest.h>

namespace wisp {
namespace {

using Names = std::vector<std::string>;

TEST(AbsentClasses, AreNamedInOneLine) {
  Names notices;
  note_absent(notices, "set", "classes", "training photo", {true, true}, {"a", "b"});
  EXPECT_TRUE(notices.empty());
  note_absent(notices, "set", "classes", "training photo", {false, true, false}, {"a", "b", "c"});
  note_absent(notices, "set", "classes", "training photo", {true, false}, {});
  note_absent(notices, "set", "labels", "text", std::vector<bool>(9),
              {"a", "b", "c", "d", "e", "f"});
  EXPECT_EQ(notices, (Names{"set: 2 of 3 classes have no training photo: a, c",
                            "set: 1 of 2 classes have no training photo: 1",
                            "set: 9 of 9 labels have no text: a, b, c, d, e, …"}));
}

}  // namespace
}  // namespace wisp
