// A data set of your own without images: any file, byte by byte. The first nine tenths of the file
// are for training. A twentieth each follows for validation and test.
#include <ios>
#include <map>
#include <set>

#include "core/io/input_file.h"
#include "data/data_source.h"
#include "data/text/text_examples.h"

namespace wisp::examples {

class Characters final : public DataSource {
 public:
  explicit Characters(Config& config) {
    config.bind("data.path", path_, "a text");
    config.bind("data.window", window_, "characters between two updates");
  }

  /// The classes are the bytes that occur.
  Facts facts() const override {
    Facts facts{.inputs = {{.name = "characters", .sample = {0}, .dtype = DType::i32}},
                .work = "characters"};
    for (const char c : characters_of(text())) facts.names.push_back(name_of(c));
    facts.classes = std::ssize(facts.names);
    return facts;
  }

  bool has_validation() const override { return true; }

  Splits open(DType) const override {
    const std::string whole = text();
    const std::string characters = characters_of(whole);
    std::map<char, int32_t> number;
    for (const char c : characters) number[c] = static_cast<int32_t>(number.size());
    const auto part = [&](Split split, size_t begin, size_t end) {
      std::vector<int32_t> tokens;
      for (size_t i = begin; i < end; ++i) tokens.push_back(number.at(whole[i]));
      return std::make_unique<TextExamples>(concat("characters ", wisp::name_of(split)),
                                            std::move(tokens), std::ssize(characters), window_);
    };
    const size_t train = whole.size() * 9 / 10, held = whole.size() / 20;
    return {part(Split::train, 0, train), part(Split::validation, train, train + held),
            part(Split::test, train + held, whole.size())};
  }

 private:
  std::string text() const {
    return naming(concat("characters: ", path_, " (data.path)"),
                  [&] { return read_whole_file(path_, int64_t{1} << 30); });
  }

  /// The name of a byte: "a", or "0xe2" if it is not a character by itself in UTF-8.
  static std::string name_of(char c) {
    if (c >= 0) return {c};
    return concat("0x", std::hex, static_cast<int>(static_cast<unsigned char>(c)));
  }

  static std::string characters_of(const std::string& text) {
    const std::set<char> characters(text.begin(), text.end());
    return {characters.begin(), characters.end()};
  }

  std::string path_ = "README.md";
  int64_t window_ = 32;
};

const DataRegistration registration("characters", "any file, byte by byte",
                                    make_source<Characters>);

}  // namespace wisp::examples
