// Any text of one's own: the first nine tenths of its lines are to learn from, then half a tenth
// each to validate and to test.
#include <algorithm>
#include <memory>

#include "data/text/text_source.h"

namespace wisp {
namespace {

class TextFile final : public TextSource {
 public:
  explicit TextFile(Config& config) : TextSource(config) {
    config.bind("data.path", path_, "a text, UTF-8");
  }

 private:
  std::string name() const override { return "text"; }
  std::string text(Split split) const override {
    const std::string whole = read_text_file(name(), path_);
    const auto lines = std::count(whole.begin(), whole.end(), '\n');
    const size_t train = line(whole, lines * 9 / 10);
    const size_t test = line(whole, lines * 19 / 20);
    if (split == Split::train) return whole.substr(0, train);
    return split == Split::validation ? whole.substr(train, test - train) : whole.substr(test);
  }

  /// Where line number `wanted` begins.
  static size_t line(const std::string& text, int64_t wanted) {
    size_t at = 0;
    for (int64_t i = 0; i < wanted; ++i) at = text.find('\n', at) + 1;
    return at;
  }

  std::string path_ = "text.txt";
};

const DataRegistration registration("text", "any text, word by word", [](Config& config) {
  return std::make_unique<TextFile>(config);
});

}  // namespace
}  // namespace wisp
