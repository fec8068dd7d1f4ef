// Published text corpora for language models: three files in a folder.
#include <filesystem>
#include <memory>

#include "data/text/text_source.h"

namespace wisp {
namespace {

struct Files {
  const char* name;
  const char* folder;  // folder inside the published archive
  const char* begin;   // part of a file's name before train, valid or test
  const char* end;
};

/// 929,589 words of training text, 10,000 different. Source: Mikolov et al. 2010.
constexpr Files kPtb{"ptb", "simple-examples/data", "ptb.", ".txt"};
/// 2,088,628 words of training text, 33,278 different. Source: Merity et al. 2017.
constexpr Files kWikiText2{"wikitext2", "wikitext-2", "wiki.", ".tokens"};

class Corpus final : public TextSource {
 public:
  Corpus(Config& config, const Files& files) : TextSource(config, files.name), files_(files) {
    config.bind("data.path", path_, concat("folder with the files, or with ", files.folder));
  }

 private:
  std::string text(Split split) const override {
    const std::string inside = concat(path_, "/", files_.folder);
    const std::string folder = std::filesystem::is_directory(inside) ? inside : path_;
    const char* part = split == Split::validation ? "valid" : name_of(split);
    return read_text_file(name(), concat(folder, "/", files_.begin, part, files_.end));
  }

  const Files files_;
  std::string path_ = "data-cache";
};

const DataRegistration ptb("ptb", "Penn Treebank, words (Mikolov et al. 2010)",
                           [](Config& config) { return std::make_unique<Corpus>(config, kPtb); });
const DataRegistration wikitext2("wikitext2", "WikiText-2, words (Merity et al. 2017)",
                                 [](Config& config) {
                                   return std::make_unique<Corpus>(config, kWikiText2);
                                 });

}  // namespace
}  // namespace wisp
