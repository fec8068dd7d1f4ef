// A base class of texts of words: derived classes read the text of each split. One thread.
#pragma once

#include <string>

#include "data/data_source.h"
#include "data/text/vocabulary.h"

namespace wisp {

/// The vocabulary comes from the training text. Words of the other splits that it lacks become
/// Vocabulary::kUnknown. A split is cut into columns (TextExamples).
class TextSource : public DataSource {
 public:
  /// Binds the keys of all texts: data.window, data.vocabulary. `name` is for messages: "ptb".
  TextSource(Config& config, std::string name);

  /// The classes are the words of the vocabulary.
  Facts facts() const override;
  bool has_validation() const override { return true; }
  Splits open(DType compute) const override;

 protected:
  const std::string& name() const { return name_; }
  /// The whole text of a split, as returned by read_text_file().
  virtual std::string text(Split split) const = 0;

 private:
  Vocabulary vocabulary(const std::string& train) const;

  const std::string name_;
  int64_t window_ = 35;
  int64_t most_ = 0;  // limit of words in the vocabulary; 0: all
};

/// The content of a UTF-8 file without a byte order mark. Throws Error that names the data set, the
/// file and data.path if the file cannot be read or is not UTF-8.
std::string read_text_file(const std::string& name, const std::string& path);

}  // namespace wisp
