#include "apps/survey/picture_files.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "core/io/utf8.h"
#include "core/io/visible_text.h"
#include "data/decoding/image_file.h"

namespace wisp {
namespace {

/// The most bytes of a class in a file name, beside a sample's number.
constexpr size_t kMostBytes = 200;

/// A class as part of a file name: "golden-retriever", "class3".
std::string file_word(const Facts& facts, int32_t target) {
  if (target < 0 || target >= std::ssize(facts.names)) return concat("class", target);
  std::string word;
  for (std::string_view rest = facts.names[static_cast<size_t>(target)]; !rest.empty();) {
    const std::string_view character = rest.substr(0, std::max<size_t>(character_bytes(rest), 1));
    const auto first = static_cast<unsigned char>(character[0]);
    const bool is_sign = first < 0x80 && !std::isalnum(first) && first != '_';
    word += is_sign || visible_bytes(rest) == 0 ? "-" : character;
    rest.remove_prefix(character.size());
  }
  return std::string(beginning_of(word, kMostBytes));
}

void make_folder(const std::string& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  WISP_CHECK(!failure, "cannot make the folder ", folder, ": ", failure.message());
}

}  // namespace

int64_t write_pictures(const Prepared& prepared, int64_t count, const std::string& folder) {
  const Facts facts = prepared.source().facts();
  const Examples& examples = *prepared.examples(Split::train);
  Deal deal = prepared.options().deal(Split::train, 0);  // same samples for any number of workers
  deal.workers = 1;
  deal.accumulate = 1;
  Loader loader(examples, deal, {.threads = 0});
  loader.start_epoch(0);
  int64_t written = 0;
  while (const std::optional<Batch> batch = loader.next()) {
    for (int64_t row = 0; row < batch->samples.numel(); ++row) {
      if (written == count) return written;
      const Tensor picture = examples.picture(*batch, row);
      WISP_CHECK(picture.defined() && batch->targets.numel() == batch->samples.numel(),
                 "this data set has no pictures with one class each, so none can be written; "
                 "Examples::picture() makes them");
      const int32_t target = batch->targets.data<int32_t>()[row];
      if (target == -1) continue;
      if (written == 0) make_folder(folder);
      write_image(concat(folder, "/", file_word(facts, target), "_",
                         batch->samples.data<int64_t>()[row], ".png"),
                  picture);
      ++written;
    }
  }
  return written;
}

}  // namespace wisp
