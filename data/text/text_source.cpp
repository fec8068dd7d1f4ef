#include "data/text/text_source.h"

#include <memory>

#include "core/base/error.h"
#include "core/io/input_file.h"
#include "data/text/text_examples.h"

namespace wisp {

std::string read_text_file(const std::string& name, const std::string& path) {
  return naming(concat(name, ": ", path, " (data.path)"), [&] {
    return read_utf8(path);  // refuses a pipe, which can be read only once
  });
}

TextSource::TextSource(Config& config, std::string name) : name_(std::move(name)) {
  config.bind_least(
      "data.window", window_, 1,
      "length of a window: words between two updates, through which gradients flow back");
  config.bind("data.vocabulary", most_,
              "size of the vocabulary, the most frequent words of the training text; 0: all words");
  config.expect(most_ >= 0, "data.vocabulary", most_, "0 (all words) or more");
}

Vocabulary TextSource::vocabulary(const std::string& train) const {
  return naming(concat(name(), " ", name_of(Split::train)),
                [&] { return Vocabulary::of(train, most_); });
}

Facts TextSource::facts() const {
  const Vocabulary known = vocabulary(text(Split::train));
  return {.inputs = {{.name = "tokens", .sample = {0}, .dtype = DType::i32, .ids = known.size()}},
          .classes = known.size(),
          .names = known.words(),
          .work = "tokens"};
}

Splits TextSource::open(DType) const {
  const std::string train = text(Split::train);
  const Vocabulary known = vocabulary(train);
  Splits splits;
  WrittenEnds written;
  const auto examples = [&](Split split, const std::string& text) {
    const auto [at_line_ends, elsewhere] = written_ends(text);
    written.at_line_ends += at_line_ends;
    written.elsewhere += elsewhere;
    return std::make_unique<TextExamples>(concat(name(), " ", name_of(split)), known.numbers(text),
                                          known.size(), window_);
  };
  splits.train = examples(Split::train, train);
  splits.validation = examples(Split::validation, text(Split::validation));
  splits.test = examples(Split::test, text(Split::test));
  if (written.at_line_ends > 0)
    splits.notices.push_back(concat(name(), ": ", written.at_line_ends, " lines end with the word ",
                                    Vocabulary::kEnd, ", which is not added to them again"));
  if (written.elsewhere > 0)
    splits.notices.push_back(concat(name(), ": the word ", Vocabulary::kEnd, " is ",
                                    written.elsewhere,
                                    " times within lines, beside the one at each line end"));
  if (const std::string_view mark = closing_mark(train); !mark.empty())
    splits.notices.push_back(concat(name(), ": all lines end with the word ", mark, ", and ",
                                    Vocabulary::kEnd, " follows it; the perplexity counts both"));
  return splits;
}

}  // namespace wisp
