// A text file of the user's own: the first nine tenths of its lines are for training, then half a
// tenth each for validation and test. A text of few lines is cut between words instead.
#include <algorithm>
#include <string_view>

#include "core/base/error.h"
#include "data/text/text_source.h"

namespace wisp {
namespace {

constexpr int64_t kFewest = 20;  // gives each part at least one line or word
constexpr std::string_view kLineEnds = "\n", kSpaces = "\n \t\r\v\f";

class TextFile final : public TextSource {
 public:
  explicit TextFile(Config& config) : TextSource(config, "text") {
    config.bind("data.path", path_, "text file in UTF-8 with at least 20 lines or words");
  }

 private:
  std::string text(Split split) const override {
    const std::string whole = read_text_file(name(), path_);
    const bool lines = count(whole, kLineEnds) >= kFewest;
    const std::string_view ends = lines ? kLineEnds : kSpaces;
    const int64_t parts = count(whole, ends);
    WISP_CHECK(
        parts >= kFewest, name(), ": ", path_, " (data.path) has ", count(whole, kLineEnds),
        " line feeds and ", parts, " white-space characters in all, expected at least ", kFewest,
        " of either: nine tenths are for training, half a tenth each for validation and test");
    const size_t train = behind(whole, ends, parts * 9 / 10);
    const size_t test = behind(whole, ends, parts * 19 / 20);
    if (split == Split::train) return whole.substr(0, train);
    return split == Split::validation ? whole.substr(train, test - train) : whole.substr(test);
  }

  /// The number of characters of `text` that are in `any`.
  static int64_t count(std::string_view text, std::string_view any) {
    return std::count_if(text.begin(), text.end(), [&](char c) { return any.find(c) != any.npos; });
  }

  /// The position after the `wanted`-th character of `text` that is in `any`.
  static size_t behind(std::string_view text, std::string_view any, int64_t wanted) {
    size_t at = 0;
    for (int64_t i = 0; i < wanted; ++i) at = text.find_first_of(any, at) + 1;
    return at;
  }

  std::string path_ = "text.txt";
};

const DataRegistration registration("text", "words of any text file", make_source<TextFile>);

}  // namespace
}  // namespace wisp
