// Data sets that are texts of words: derive from TextSource and read them.
#pragma once

#include <string>

#include "data/data_source.h"
#include "data/text/vocabulary.h"

namespace wisp {

/// The vocabulary is that of the training text; the words of the others that are not in it are
/// Vocabulary::kUnknown. A split is cut into columns (TextExamples).
class TextSource : public DataSource {
 public:
  /// Binds the keys that all texts have: data.window, data.vocabulary.
  explicit TextSource(Config& config);

  /// Classes are the words of the vocabulary.
  Facts facts() const override;
  bool has_validation() const override { return true; }
  Splits open(DType compute) const override;

 protected:
  /// For messages: "ptb".
  virtual std::string name() const = 0;
  /// The whole text of a split, as read_text_file() gives it.
  virtual std::string text(Split split) const = 0;

 private:
  Vocabulary vocabulary(const std::string& train) const;

  int64_t window_ = 35;
  int64_t most_ = 0;  // words of the vocabulary
};

/// The content of a file in UTF-8, without a byte order mark. Throws Error, naming the data set,
/// the file and data.path, if it cannot be read or is no UTF-8.
std::string read_text_file(const std::string& name, const std::string& path);

}  // namespace wisp
