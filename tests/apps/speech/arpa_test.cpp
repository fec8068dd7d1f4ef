#include "apps/speech/arpa.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

constexpr const char* kGood = R"(
a comment, with a section of its own:
\1-grams:

\data\
ngram 1=4
ngram 2 = 2

\1-grams:
-1	<UNK>
-99.0	<s>	-0.5
-0.5	</s>	-99.0000
-0.25	a	0.125

\2-grams:
-0.375	<s> a
-0.625	a a	0
\end\
what else there is
)";

class Arpa : public testing::Test {
 protected:
  NgramModel read(const std::string& text) { return read_arpa(dir_.write("x.arpa", text)); }
  /// The error, without the path, for the good file with `from` replaced by `to`.
  std::string error(const std::string& from, const std::string& to) {
    std::string text = kGood;
    const size_t at = text.rfind(from);
    EXPECT_NE(at, text.npos) << from;
    const std::string said = error_of([&] { read(text.replace(at, from.size(), to)); });
    const std::string path = dir_ / "x.arpa:";
    return said.starts_with(path) ? said.substr(path.size()) : said;
  }

  TempDir dir_;
};

TEST_F(Arpa, ReadsCommentsMissingBackOffsAndOtherNamesOfTheUnknown) {
  const NgramModel model = read(kGood);
  EXPECT_EQ(model.counts(), (std::vector<int64_t>{4, 2}));
  const int32_t a = model.words().number("a"), unknown = model.words().number("zwei");
  EXPECT_EQ(model.words().words()[static_cast<size_t>(unknown)], "<unk>");
  const NgramModel::Step step = model.next(model.begin(), a);
  EXPECT_NEAR(step.log_probability, -0.375 * std::log(10.0), 1e-12);
  EXPECT_NEAR(model.next(step.state, unknown).log_probability, (0.125 - 1) * std::log(10.0), 1e-12);
}

TEST_F(Arpa, ReadsWhatItWrites) {
  const NgramModel first = read(kGood);
  write_arpa(first, dir_ / "first.arpa");
  const NgramModel second = read_arpa(dir_ / "first.arpa");
  write_arpa(second, dir_ / "second.arpa");
  EXPECT_EQ(read_text(dir_ / "first.arpa"), read_text(dir_ / "second.arpa"));
  EXPECT_EQ(
      read_text(dir_ / "first.arpa"),
      "\\data\\\nngram 1=4\nngram 2=2\n\n\\1-grams:\n-1\t<unk>\n-99\t<s>\t-0.5\n"
      "-0.5\t</s>\t-99\n-0.25\ta\t0.125\n\n\\2-grams:\n-0.375\t<s> a\n-0.625\ta a\n\n\\end\\\n");
}

TEST_F(Arpa, ReadsLinesThatEndInOtherWaysAndAnEmptySection) {
  const NgramModel model = read(
      "\\data\\\r\nngram 1=2\r\nngram 2=0\r\n\\1-grams:\r\n  -1 <s> \r\n-1 </s>\r\n\\2-grams:\r\n"
      "\\end\\");
  EXPECT_EQ(model.counts(), (std::vector<int64_t>{3})) << "<unk>, too";
  const int32_t unknown = model.words().number("a");
  EXPECT_NEAR(model.next(model.begin(), unknown).log_probability, -99 * std::log(10.0), 1e-9);
}

TEST_F(Arpa, ReadsZeroAsItsLogarithmSignsAndAMark) {
  const NgramModel model = read(
      "\xef\xbb\xbf\\data\\\nngram 1=3\n\\1-grams:\n-inf <s> -inf\n-1e300 </s>\n"
      "+0.0 a +0.5\n\\end\\\n");
  for (const char* never : {"<s>", "</s>"})
    EXPECT_EQ(model.weights(1 + model.words().number(never)).probability, NgramModel::kNever);
  EXPECT_EQ(model.weights(1).back_off, NgramModel::kNever);
  const NgramWeights& a = model.weights(1 + model.words().number("a"));
  EXPECT_EQ(a.probability, 0.0f);
  EXPECT_EQ(a.back_off, 0.5f);
}

TEST_F(Arpa, NamesTheLineOfWhatIsWrong) {
  EXPECT_EQ(error("\\data\\", "data"), "20: the file's end, expected a line \\data\\");
  EXPECT_EQ(error("ngram 1=4", ""), "7: 'ngram 2 = 2', expected ngram 1=COUNT");
  EXPECT_EQ(error("ngram 1=4", "ngram 1=-4"), "6: 'ngram 1=-4', expected ngram 1=COUNT");
  EXPECT_EQ(error("ngram 1=4", "ngram 1"), "6: 'ngram 1', expected ngram 1=COUNT");
  EXPECT_EQ(error("ngram 1=4\nngram 2 = 2", ""),
            "8: '\\1-grams:', expected ngram 1=COUNT behind \\data\\");
  EXPECT_EQ(error("ngram 2 = 2", "ngram 2=3"), "18: 2 2-grams, expected 3 2-grams");
  EXPECT_EQ(error("ngram 2 = 2", "ngram 2=1"),
            "17: '-0.625\ta a\t0', expected a section's title behind 1 2-grams");
  EXPECT_EQ(error("ngram 2 = 2", "ngram 2 = 2\nngram 3=0"), "19: '\\end\\', expected \\3-grams:");
  EXPECT_EQ(error("\\2-grams:", "\\3-grams:"), "15: '\\3-grams:', expected \\2-grams:");
  EXPECT_EQ(error("\\2-grams:", "\\1-grams:"), "15: '\\1-grams:', expected \\2-grams:");
  EXPECT_EQ(error("\\end\\\n", "\\2-grams:\n"),
            "18: '\\2-grams:', expected \\end\\ behind the last section");
  EXPECT_EQ(error("\\end\\\nwhat else there is\n", ""), "18: the file's end, expected \\end\\");
  EXPECT_EQ(error("-0.25\ta", "-nan\ta"), "13: '-nan', expected a finite number");
  EXPECT_EQ(error("0.125", "1e999"), "13: '1e999', expected a finite number");
  for (const char* other : {"+inf", "inf", "+-1", "++1", "+"})
    EXPECT_EQ(error("0.125", other), concat("13: '", other, "', expected a finite number"));
  EXPECT_EQ(error("-0.25\ta", "0.25\ta"), "13: '0.25', expected log10 of a probability, 0 at most");
  EXPECT_EQ(error("-0.25\ta\t0.125", "-0.25"),
            "13: '-0.25', expected log10 of a probability, 1 word and, at most, a back-off weight");
  EXPECT_EQ(error("a a\t0", "a a\t0.5"),
            "17: a back-off weight for an n-gram of the highest order, expected none");
  EXPECT_EQ(error("a a\t0", "a b"), "17: the word 'b', expected words that are among the 1-grams");
  EXPECT_EQ(error("a a\t0", "<s> a"), "17: a second 2-gram '-0.625\t<s> a', expected one");
  EXPECT_EQ(error("-0.25\ta", "-0.25\t</s>"), "13: a second 1-gram '</s>', expected one");
  EXPECT_EQ(error("-0.25\ta\t0.125", "-0.25\t<unk>"), "13: a second 1-gram '<unk>', expected one");
  EXPECT_EQ(error("a comment", std::string(70'000, 'x')),
            "2: a line of more than 65536 bytes, expected shorter ones");
  EXPECT_EQ(error("a comment", std::string("a\0comment", 9)), "2: a byte of zero, expected text");
  EXPECT_EQ(error_of([&] { read_arpa(dir_ / "absent"); }),
            concat(dir_ / "absent", ": there is no such file"));
  EXPECT_EQ(error_of([&] { read_arpa(dir_ / ""); }),
            concat(dir_ / "", ": it is no file, but a directory"));
  EXPECT_EQ(error_of([] { read_arpa("/dev/zero"); }),
            "/dev/zero:1: a line of more than 65536 bytes, expected shorter ones");
}

TEST_F(Arpa, NeedsTheBordersOfSentencesAndContexts) {
  const std::string head = "\\data\\\nngram 1=1\n\n\\1-grams:\n";
  EXPECT_EQ(error_of([&] { read(head + "-1 <s>\n\\end\\\n"); }),
            concat(dir_ / "x.arpa", ":6: no 1-gram </s>, expected one"));
  EXPECT_EQ(error_of([&] {
              read(
                  "\\data\\\nngram 1=2\nngram 2=1\nngram 3=1\n\\1-grams:\n-1 <s>\n-1 </s>\n"
                  "\\2-grams:\n-1 <s> </s>\n\\3-grams:\n-1 </s> <s> </s>\n\\end\\\n");
            }),
            concat(dir_ / "x.arpa",
                   ":11: the 3-gram '-1 </s> <s> </s>', expected its first words "
                   "among the 2-grams"));
}

/// The reader allocates no memory for ten billion announced n-grams that the file lacks.
TEST_F(Arpa, TakesNoMemoryOnAClaim) {
  EXPECT_EQ(error("ngram 1=4", "ngram 1=10000000000"),
            "15: 4 1-grams, expected 10000000000 1-grams");
  EXPECT_EQ(error("ngram 1=4", "ngram 1=99999999999999999999"),
            "6: 'ngram 1=99999999999999999999', expected ngram 1=COUNT");
}

}  // namespace
}  // namespace wisp
