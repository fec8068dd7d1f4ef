#include "apps/reference/config_reference.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "apps/setup/prepared.h"
#include "tests/support/error_of.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

TEST(ConfigReference, HasEveryKeyOfARun) {
  std::set<std::string> known;
  for (const ConfigKey& key : config_keys()) known.insert(key.name);
  for (const char* method : {"none", "fp16", "topk", "dgc", "choco", "local_sgd"}) {
    const Prepared run(tiny_config({concat("compression.method=", method)}));
    for (const ConfigKey& key : run.config().keys())
      EXPECT_TRUE(known.count(key.name)) << key.name << " of " << method;
  }
}

TEST(ConfigReference, TellsUnitsAndKeepsTablesWhole) {
  const std::string text = config_reference();
  for (const char* row :
       {"| `timeout_s` | number | `60.0` | s |", "| `link.gbit_per_s` | number | `0.0` | Gbit/s |",
        "| `train.batch` | integer | `128` | samples |",
        "| `model.tied` | bool | `false` |  | words' vectors are the output's weights, too"})
    EXPECT_NE(text.find(row), std::string::npos) << row;
}

TEST(ConfigReference, SaysTheRangeOfEveryNumber) {
  const std::regex range(R"( in [\[(]|above 0|or more| to -?\d)");
  for (const ConfigKey& key : config_keys()) {
    if (key.type == "number") {
      EXPECT_TRUE(std::regex_search(key.meaning, range)) << key.name << ": " << key.meaning;
    }
  }
}

/// Whether a run takes `word` for a value of the key, which other keys may not fit.
bool knows(const Overrides& chosen, const std::string& key, const std::string& word) {
  const std::string error =
      error_of([&] { Prepared(tiny_config(chosen + Overrides{key + "=" + word})); });
  for (const char* refusal : {"expected ", "unknown ", "known: ", "is no code"})
    if (error.find(refusal) != error.npos && error.find("'" + word + "'") != error.npos)
      return error.find("neighbours in gossip") != error.npos;
  return true;
}

TEST(ConfigReference, TheWordsOfAKeyAreThoseThatItTakes) {
  int lists = 0;
  for (const char* method : {"none", "topk", "block_topk", "qsgd", "int8", "powersgd", "choco"}) {
    const Overrides chosen = method_overrides(method);
    const Prepared run(tiny_config(chosen));
    for (const ConfigKey& key : run.config().keys()) {
      if (key.words.empty()) continue;
      ++lists;
      EXPECT_FALSE(knows(chosen, key.name, "nonesuch")) << method << ", " << key.name;
      for (const std::string& word : key.words)
        EXPECT_TRUE(knows(chosen, key.name, word)) << method << ", " << key.name << "=" << word;
    }
  }
  EXPECT_GT(lists, 80);
}

/// Every number out of range is refused before any data is read.
TEST(ConfigReference, NoNumberIsTakenOutOfItsRange) {
  for (const std::string& method : method_names()) {
    if (bind_method(method).summary.starts_with("test:")) continue;
    const Overrides chosen = method_overrides(method);
    const Prepared run(tiny_config(chosen));
    for (const ConfigKey& key : run.config().keys()) {
      if (key.type != "number") continue;
      const std::string error =
          error_of([&] { Prepared(tiny_config(chosen + Overrides{key.name + "=-1e300"})); });
      EXPECT_NE(error.find(key.name + " is -1e+300, expected "), std::string::npos)
          << method << ", " << key.name << ": " << error;
    }
  }
}

TEST(ConfigReference, NoNumberOfSpeechIsTakenOutOfItsRange) {
  const std::string text = "model.name = \"deepspeech\"\ndata.name = \"speech\"\n";
  const Prepared run(Config::from_text(text, "speech.toml"));
  for (const ConfigKey& key : run.config().keys()) {
    if (key.type != "number" || !key.name.starts_with("data.")) continue;
    const std::string error = error_of(
        [&] { Prepared(Config::from_text(text, "speech.toml", Overrides{key.name + "=-1e300"})); });
    EXPECT_NE(error.find(" is -1e+300, expected "), std::string::npos) << key.name << ": " << error;
  }
}

}  // namespace
}  // namespace wisp
