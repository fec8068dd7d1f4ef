// Fuzz target for n-gram models in the ARPA format. A valid model must be written as it is read.
#include <optional>

#include "apps/speech/arpa.h"
#include "apps/speech/ngram_training.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

void write_again(const NgramModel& model, const TempDir& dir) {
  write_arpa(model, dir / "first.arpa");
  write_arpa(read_arpa(dir / "first.arpa"), dir / "second.arpa");
  if (read_text(dir / "first.arpa") != read_text(dir / "second.arpa"))
    throw Finding("arpa: written:\n" + read_text(dir / "first.arpa") + "reads as:\n" +
                  read_text(dir / "second.arpa"));
}

}  // namespace

void fuzz(std::string_view input) {
  static const TempDir dir;
  const std::string path = dir.write("t.arpa", std::string(input));
  std::optional<NgramModel> model;
  try {
    model = read_arpa(path);
  } catch (const Error&) {
    return;
  }
  score_ngrams(*model, "a b c\nb\n");
  write_again(*model, dir);
}

std::vector<std::string> fuzz_seeds() {
  const TempDir dir;
  write_arpa(train_ngrams("a b a c\nb a\na b a b\n", 3), dir / "own.arpa");
  return {read_text(dir / "own.arpa"),
          "words\n\\1-grams:\n\n\\data\\\nngram 1=3\nngram 2=1\n\n\\1-grams:\n-99.0000 <s> 0.5\n"
          "-1\t</s>\t-99\n-2 <UNK>\n\n\\2-grams:\n0.0 <s> </s>\n\n\\end\\\n"};
}

int64_t fuzz_memory(int64_t input_bytes) { return (1 << 18) + 200 * input_bytes; }

}  // namespace wisp
