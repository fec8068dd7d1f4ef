#include "data/text/text_source.h"

#include <gtest/gtest.h>

#include "data/loader.h"
#include "data/text/vocabulary.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

std::unique_ptr<DataSource> source(const std::string& name, const std::string& path,
                                   const std::vector<std::string>& more = {}) {
  std::vector<std::string> keys = {"data.name=" + name, "data.path=" + path};
  keys.insert(keys.end(), more.begin(), more.end());
  Config config = Config::from_text("", "test", keys);
  return make_data_source(config);
}

class TextSources : public testing::Test {
 protected:
  /// Writes three small files at their paths in an archive.
  void write_ptb(const std::string& train) const {
    dir_.write("simple-examples/data/ptb.train.txt", train);
    dir_.write("simple-examples/data/ptb.valid.txt", " a b c \n");
    dir_.write("simple-examples/data/ptb.test.txt", " b new \n");
  }

  TempDir dir_;
};

TEST_F(TextSources, TheVocabularyIsThatOfTheTrainingText) {
  write_ptb(" a b <unk> b \n a b c \n");
  const auto data = source("ptb", dir_ / "", {"data.window=2"});
  EXPECT_EQ(data->facts().names, (std::vector<std::string>{"b", "<eos>", "a", "<unk>", "c"}));
  EXPECT_EQ(data->facts().classes, 5);
  EXPECT_EQ(data->facts().work, "tokens");
  EXPECT_EQ(data->facts().inputs[0].ids, 5);
  EXPECT_TRUE(data->facts().inputs[0].is_sequence());
  const Splits splits = data->open(DType::f32);
  EXPECT_EQ(splits.train->count(), 9);
  EXPECT_EQ(splits.validation->count(), 4);
  Loader loader(*splits.test, {.batch = 1, .training = false});
  loader.start_epoch(0);
  const auto batch = loader.next();
  EXPECT_EQ(batch->inputs[0].data<int32_t>()[0], 0) << "b";
  EXPECT_EQ(batch->targets.data<int32_t>()[0], 3) << "a word that training did not have";
  EXPECT_EQ(batch->targets.data<int32_t>()[1], 1) << "<eos>";
  EXPECT_EQ(source("ptb", dir_ / "simple-examples/data")->facts().classes, 5);
  EXPECT_EQ(source("ptb", dir_ / "", {"data.vocabulary=2"})->facts().classes, 3);
}

TEST_F(TextSources, AnyTextIsCutAtItsLines) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "line " + std::to_string(i) + "\n";
  dir_.write("text", text);
  const Splits splits = source("text", dir_ / "text")->open(DType::f32);
  EXPECT_EQ(splits.train->count(), 36 * 3);
  EXPECT_EQ(splits.validation->count(), 2 * 3);
  EXPECT_EQ(splits.test->count(), 2 * 3);
}

TEST_F(TextSources, ATextOfFewLinesIsCutBetweenWords) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "word" + std::to_string(i) + (i == 20 ? "\n" : " ");
  dir_.write("text", text);
  const auto data = source("text", dir_ / "text");
  const Splits splits = data->open(DType::f32);
  EXPECT_EQ(splits.train->count(), 36 + 2) << "two lines end: the first and what is cut off";
  EXPECT_EQ(splits.validation->count(), 2 + 1);
  EXPECT_EQ(splits.test->count(), 2 + 1);
  EXPECT_TRUE(Vocabulary(data->facts().names).has("word35"));
  EXPECT_FALSE(Vocabulary(data->facts().names).has("word36"));
  dir_.write("text", "just one line of a few words");
  EXPECT_EQ(error_of([&] { data->facts(); }),
            concat("text: ", dir_ / "text",
                   " (data.path) has 0 line feeds and 6 white-space characters in all, expected at "
                   "least 20 of either: nine tenths are for training, half a tenth each for "
                   "validation and test"));
}

TEST_F(TextSources, AByteOrderMarkIsNoPartOfAWord) {
  write_ptb(
      "\xef\xbb\xbf"
      "a b\n");
  EXPECT_EQ(source("ptb", dir_ / "")->facts().names,
            (std::vector<std::string>{"<eos>", "a", "b", "<unk>"}));
}

TEST_F(TextSources, AWrittenEndOfALineIsNotRepeated) {
  std::string plain, written, marked;
  for (int i = 0; i < 40; ++i) {
    const std::string line = "line " + std::to_string(i % 7);
    plain += line + "\n";
    written += line + (i % 2 ? " <eos>\n" : " <eos> \r\n");
    marked += line + " </s>\n";
  }
  const auto open = [&](const std::string& text) {
    return source("text", dir_.write("text", text))->open(DType::f32);
  };
  const Splits expected = open(plain), found = open(written);
  for (const Split split : {Split::train, Split::validation, Split::test})
    EXPECT_EQ(found.of(split)->digest(), expected.of(split)->digest()) << name_of(split);
  EXPECT_TRUE(expected.notices.empty());
  EXPECT_EQ(found.notices,
            std::vector<std::string>{
                "text: 40 lines end with the word <eos>, which is not added to them again"});
  EXPECT_EQ(open("<eos> " + plain).notices,
            std::vector<std::string>{"text: the word <eos> is 1 times within lines, beside the one "
                                     "at each line end"});
  EXPECT_EQ(open(marked).notices,
            std::vector<std::string>{"text: all lines end with the word </s>, and <eos> follows "
                                     "it; the perplexity counts both"});
}

TEST_F(TextSources, AWrittenEndIsNotRepeatedInCorpora) {
  write_ptb(" a b <unk> b \n a b c \n");
  const uint64_t expected = source("ptb", dir_ / "")->open(DType::f32).train->digest();
  EXPECT_TRUE(source("ptb", dir_ / "")->open(DType::f32).notices.empty());
  write_ptb(" a b <unk> b <eos>\n a b c <eos>\n");
  const Splits splits = source("ptb", dir_ / "")->open(DType::f32);
  EXPECT_EQ(splits.train->digest(), expected);
  EXPECT_EQ(splits.notices.size(), 1u);
}

TEST_F(TextSources, RefuseWhatCannotBeRead) {
  EXPECT_EQ(
      error_of([&] { source("wikitext2", dir_ / "")->facts(); }),
      concat("wikitext2: ", dir_ / "", "/wiki.train.tokens (data.path): there is no such file"));
  EXPECT_EQ(error_of([&] { source("text", dir_ / "")->facts(); }),
            concat("text: ", dir_ / "", " (data.path): it is no file, but a directory"));
  write_ptb("");
  EXPECT_EQ(error_of([&] { source("ptb", dir_ / "")->facts(); }), "ptb train: there is no word");
  write_ptb("a\n\xff");
  const auto no_utf8 = [&](const std::string& file, const std::string& place) {
    return concat(dir_ / "", file, " (data.path): ", place, ", is no UTF-8");
  };
  const std::string folder = "simple-examples/data/ptb.";
  EXPECT_EQ(error_of([&] { source("ptb", dir_ / "")->facts(); }),
            "ptb: " + no_utf8("/" + folder + "train.txt", "byte 2, in line 2"));
  write_ptb("a b\n");
  for (const char* part : {"valid", "test"}) {
    dir_.write(concat("simple-examples/data/ptb.", part, ".txt"), "a\nb \xff");
    EXPECT_EQ(error_of([&] { source("ptb", dir_ / "")->open(DType::f32); }),
              "ptb: " + no_utf8(concat("/", folder, part, ".txt"), "byte 4, in line 2"));
    write_ptb("a b\n");
  }
  std::string text;
  for (int i = 0; i < 40; ++i) text += i == 39 ? "b\xff\n" : "a\n";
  dir_.write("text", text);
  EXPECT_EQ(error_of([&] { source("text", dir_ / "text")->open(DType::f32); }),
            "text: " + no_utf8("text", "byte 79, in line 40"))
      << "of the file, not of its part";
  dir_.write("text", "");
  EXPECT_NE(error_of([&] {
              source("text", dir_ / "text")->facts();
            }).find("text (data.path) has 0 line feeds and 0 white-space characters"),
            std::string::npos);
  dir_.write("text", std::string(20, '\n'));
  EXPECT_EQ(error_of([&] { source("text", dir_ / "text")->facts(); }),
            "text train: there is no word");
  EXPECT_NE(error_of([&] { source("ptb", dir_ / "", {"data.window=0"}); }).find("data.window is 0"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              source("ptb", dir_ / "", {"data.vocabulary=-1"});
            }).find("data.vocabulary is -1"),
            std::string::npos);
}

}  // namespace
}  // namespace wisp
