// Tests that the pages on extending Wisp show the files that are built, word for word.
#include <gtest/gtest.h>

#include <regex>

#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

std::string text_of(const std::string& path) {
  return read_text(std::string(WISP_SOURCE_DIR) + "/" + path);
}

struct Shown {
  std::string page, language, file;
};

TEST(Pages, ShowTheirFilesAsTheyAre) {
  const Shown all[] = {{"README.md", "cpp", "examples/train.cpp"},
                       {"docs/adding_a_compressor.md", "cpp", "examples/fp8.cpp"},
                       {"docs/adding_a_layer.md", "cpp", "examples/prelu.cpp"},
                       {"docs/adding_a_model.md", "cpp", "examples/small_cnn.cpp"},
                       {"docs/adding_a_dataset.md", "cpp", "examples/mnist.cpp"},
                       {"docs/adding_a_dataset.md", "toml", "examples/mnist.toml"}};
  for (const auto& [page, language, file] : all) {
    const std::string code = text_of(file);
    ASSERT_FALSE(code.empty()) << file;
    EXPECT_NE(text_of(page).find("```" + language + "\n" + code + "```\n"), std::string::npos)
        << page << " does not show " << file << " as it is";
  }
}

TEST(Pages, ListAllFunctionsOfTheGraph) {
  const std::string header = text_of("core/ops.h"), page = text_of("docs/adding_a_layer.md");
  const std::regex declaration("\\n(?:Variable|void) (\\w+)\\(");
  const std::sregex_iterator first(header.begin(), header.end(), declaration), end;
  EXPECT_GT(std::distance(first, end), 15);
  for (auto function = first; function != end; ++function)
    EXPECT_NE(page.find(concat("`", (*function)[1].str(), "`")), std::string::npos)
        << "docs/adding_a_layer.md does not list " << (*function)[1];
}

}  // namespace
}  // namespace wisp
