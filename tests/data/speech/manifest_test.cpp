#include "data/speech/manifest.h"

#include <gtest/gtest.h>

#include "data/speech/alphabet.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

class Manifests : public testing::Test {
 protected:
  Manifests() {
    dir_.write("a b.wav", "");
    dir_.write("sub/c.flac", "");
  }
  std::vector<Utterance> read(const std::string& text) const {
    return read_manifest(dir_.write("list", text));
  }
  std::string error(const std::string& text) const {
    const std::string message = error_of([&] { read(text); });
    const std::string path = dir_ / "list";
    return message.starts_with(path) ? message.substr(path.size()) : message;
  }

  TempDir dir_;
};

TEST_F(Manifests, AreLinesOfJsonOrCsv) {
  for (const char* text : {R"({"audio": "a b.wav", "text": "one, \"two\"", "duration": 1.5, "x": 1}

{"speaker": "s", "text": "drei", "audio": "sub/c.flac", "id": "u"})",
                           "text,audio,duration,other,speaker,id\r\n"
                           "\"one, \"\"two\"\"\",a b.wav,1.5,x,,\r\n"
                           "drei,sub/c.flac,,,s,u\n\n"}) {
    const std::vector<Utterance> utterances = read(text);
    ASSERT_EQ(utterances.size(), 2u) << text;
    EXPECT_EQ(utterances[0].text, "one, \"two\"");
    EXPECT_EQ(utterances[0].id, "a b");
    EXPECT_EQ(utterances[0].seconds, 1.5);
    EXPECT_EQ(utterances[0].audio, dir_ / "a b.wav");
    EXPECT_EQ(utterances[1].audio, dir_ / "sub/c.flac");
    EXPECT_EQ(utterances[1].speaker, "s");
    EXPECT_EQ(utterances[1].id, "u");
    EXPECT_EQ(utterances[1].seconds, 0.0);
  }
}

TEST_F(Manifests, MayBeginWithAMarkAndBlankLines) {
  const std::string mark = "\xef\xbb\xbf";
  for (const char* text : {"audio,text\na b.wav,one\n", "\r\n \naudio,text\r\na b.wav,one\r\n",
                           "\n{\"audio\": \"a b.wav\", \"text\": \"one\"}"}) {
    for (const std::string& before : {std::string(), mark}) {
      const std::vector<Utterance> utterances = read(before + text);
      ASSERT_EQ(utterances.size(), 1u) << text;
      EXPECT_EQ(utterances[0].text, "one");
    }
  }
  EXPECT_EQ(error(mark), ": the manifest is empty");
  EXPECT_EQ(error("\n\naudio,words\n").substr(0, 28), ":3: no column is called text");
}

TEST_F(Manifests, OfSoundsNeedNoTexts) {
  for (const char* text : {"audio\na b.wav\n", "{\"audio\": \"a b.wav\"}"}) {
    const std::vector<Utterance> sounds = read_manifest(dir_.write("noise", text), Texts::ignored);
    ASSERT_EQ(sounds.size(), 1u);
    EXPECT_EQ(sounds[0].audio, dir_ / "a b.wav");
  }
}

TEST_F(Manifests, KeepCarriageReturnsWithinALineAsWhiteSpace) {
  const std::string text = read("audio,text\r\na b.wav,YES\rNO\r\r\n")[0].text;
  EXPECT_EQ(text, "YES\rNO");
  const Alphabet english;
  EXPECT_EQ(english.labels(text), english.labels("YES NO"));
  EXPECT_EQ(read("audio,text\na b.wav,YES\r")[0].text, "YES");
}

TEST_F(Manifests, RefuseAKeyThatIsThereTwice) {
  EXPECT_EQ(error(R"({"audio": "a b.wav", "text": "YES", "text": "NO"})"),
            ":1: text is there twice");
  EXPECT_EQ(error("\naudio,text,text\na b.wav,YES,NO\n"),
            ":2: more than one column is called text");
  EXPECT_EQ(
      read(R"({"audio": "a b.wav", "text": "YES", "x": {"text": 1, "text": 2}, "x": 3})").size(),
      1u);
  EXPECT_EQ(read("audio,text,,\na b.wav,YES,,\n").size(), 1u);
}

TEST_F(Manifests, RefuseBytesOfZero) {
  const std::string zero(1, '\0');
  EXPECT_EQ(error("audio,text\na b.wav,YE" + zero + "S\n"),
            ": line 2 has a byte of zero, expected text");
  EXPECT_EQ(error(R"({"audio": "a b.wav\u0000.flac", "text": "YES"})"),
            ":1: audio has a byte of zero, expected text");
  EXPECT_EQ(error(R"({"audio": "a b.wav", "text": "YE\u0000S"})"),
            ":1: text has a byte of zero, expected text");
}

TEST_F(Manifests, SayWhereTheyAreDamaged) {
  const std::string good = R"({"audio": "a b.wav", "text": "one"})";
  EXPECT_EQ(error_of([&] { read_manifest(dir_ / "none"); }),
            dir_ / "none" + ": there is no such file");
  EXPECT_EQ(error(" \n"), ": the manifest is empty");
  EXPECT_EQ(error(good + "\n{}"), ":2: there is no audio");
  EXPECT_EQ(error(good + "\n[]"), ":2: expected an object of JSON");
  EXPECT_EQ(error(R"({"audio": "a b.wav", "text": 1})"), ":1: text is 1, expected a text");
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_EQ(error(R"({"audio": "a b.wav", "text": )" + deep + "}"), ":1: it is nested too deeply");
  EXPECT_EQ(error(R"({"audio": "a b.wav", "text": [1, {"x": null}]})"),
            R"(:1: text is [1,{"x":null}], expected a text)");
  EXPECT_EQ(error(R"({"audio": "a b.wav", "text": "x", "duration": -1})"),
            ":1: duration is \"-1\", expected seconds");
  EXPECT_EQ(error(R"({"audio": "d.wav", "text": "x"})"),
            ":1: there is no file " + (dir_ / "d.wav"));
  const std::string endless(5000, 'x');
  EXPECT_EQ(error("audio,text\n" + endless + ",x\n"), ":2: there is no file " + (dir_ / endless));
  EXPECT_NE(error(good + "\n{").find(":2: [json.exception"), std::string::npos);
  EXPECT_EQ(error("audio,words\n"),
            ":1: no column is called text, expected columns audio, text, and perhaps duration, "
            "speaker, id");
  EXPECT_EQ(error("audio,text\n"), ": no utterances");
  EXPECT_EQ(error("audio,text\n\na b.wav\n"), ":3: 1 fields, expected 2");
  EXPECT_EQ(error("audio,text\na b.wav,\"x\n"), ":2: a quotation without an end");
  EXPECT_EQ(error("audio,text,duration\na b.wav,x,1s\n"),
            ":2: duration is \"1s\", expected seconds");
  EXPECT_EQ(error("audio,text\n\xff"), ": byte 11, in line 2, is no UTF-8");
}

}  // namespace
}  // namespace wisp
