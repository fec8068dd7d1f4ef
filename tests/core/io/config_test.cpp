#include "core/io/config.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

Config text(const std::string& toml, std::vector<std::string> overrides = {}) {
  return Config::from_text(toml, "x.toml", overrides);
}

double number(Config config, const std::string& key) {
  double value = -1.0;
  config.bind(key, value, "");
  return value;
}

std::string word(Config config, const std::string& key) {
  std::string value = "default";
  config.bind(key, value, "");
  return value;
}

template <class T>
std::string bind_error(Config config, const std::string& key, T value = {}) {
  return error_of([&] { config.bind(key, value, ""); });
}

TEST(Config, TakesFiniteNumbersOnly) {
  EXPECT_EQ(bind_error(text("eps = inf"), "eps", 1.0),
            "x.toml:1: eps is inf, expected finite numbers");
  EXPECT_EQ(bind_error(text("", {"eps=nan"}), "eps", 1.0),
            "command line: eps is nan, expected finite numbers");
  EXPECT_EQ(bind_error(text("at = [1.0, -inf]"), "at", std::vector<double>{}),
            "x.toml:1: at is [1.0, -inf], expected finite numbers");
}

TEST(Config, TakesWhatWasTypedForAText) {
  for (const std::string typed : {"2024", "2024-01-01", "1e3", "true", "0x10", "inf", "a b"})
    EXPECT_EQ(word(text("", {"path=" + typed}), "path"), typed);
  EXPECT_EQ(word(text("", {"path=\"2024\""}), "path"), "2024");
  EXPECT_EQ(word(text("", {"path=2024", "path=x"}), "path"), "x");
  EXPECT_EQ(bind_error<std::string>(text("path = 2024"), "path"),
            "x.toml:1: path is an integer (2024), expected string");
  EXPECT_EQ(bind_error<std::string>(text("", {"path=[1]"}), "path"),
            "command line: path is a list ([1]), expected string");
}

TEST(Config, RefusesBytesOfZeroInTexts) {
  EXPECT_EQ(bind_error<std::string>(text("path = \"a\\u0000b\""), "path"),
            "x.toml:1: path is \"a\\u0000b\", expected text without a byte of zero");
  EXPECT_EQ(bind_error<std::vector<std::string>>(text("paths = [\"a\", \"\\u0000\"]"), "paths"),
            "x.toml:1: paths is [\"a\", \"\\u0000\"], expected text without a byte of zero");
}

TEST(Config, BindsEveryType) {
  Config config = text(
      "flag = true\nsmall = -3\nbig = 5_000_000_000\nreal = 1e-3\nword = 'w'\n"
      "integers = [1, 2]\nreals = [1, 0.5]\nwords = ['a', 'b']\n");
  bool flag = false;
  int small = 0;
  int64_t big = 0;
  double real = 0;
  std::string name;
  std::vector<int64_t> integers;
  std::vector<double> reals;
  std::vector<std::string> words;
  config.bind("flag", flag, "");
  config.bind("small", small, "");
  config.bind("big", big, "");
  config.bind("real", real, "");
  config.bind("word", name, "");
  config.bind("integers", integers, "");
  config.bind("reals", reals, "");
  config.bind("words", words, "");
  config.finish();
  EXPECT_TRUE(flag);
  EXPECT_EQ(small, -3);
  EXPECT_EQ(big, 5000000000);
  EXPECT_EQ(real, 1e-3);
  EXPECT_EQ(name, "w");
  EXPECT_EQ(integers, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(reals, (std::vector<double>{1.0, 0.5}));
  EXPECT_EQ(words, (std::vector<std::string>{"a", "b"}));
}

TEST(Config, DefaultsStayAndAreNotGiven) {
  Config config;
  EXPECT_EQ(number(config, "a.b"), -1.0);
  EXPECT_FALSE(config.given("a.b"));
  EXPECT_EQ(config.where("a.b"), "a.b");
  EXPECT_EQ(config.opening("a.b"), "");
  EXPECT_NO_THROW(config.finish());
}

TEST(Config, OverridesWinAndBareWordsAreStrings) {
  const Config config = text("[a]\nb = 1\nc = 'file'\n", {"a.b=2", "a.c=dgc", "d.path=runs/x.y"});
  EXPECT_EQ(number(config, "a.b"), 2.0);
  EXPECT_EQ(word(config, "a.c"), "dgc");
  EXPECT_EQ(word(config, "d.path"), "runs/x.y");
  EXPECT_EQ(config.where("a.b"), "command line");
  EXPECT_EQ(config.opening("a.b"), "command line: ");
  EXPECT_EQ(word(text("", {"a="}), "a"), "");
  EXPECT_EQ(word(text("", {"a=b=c"}), "a"), "b=c");
  EXPECT_EQ(word(text("", {"a=x\ny = 1"}), "a"), "x\ny = 1");
  EXPECT_EQ(number(text("", {"a={ b = 3 }"}), "a.b"), 3.0);
}

TEST(Config, BadOverridesAreRefused) {
  EXPECT_EQ(error_of([] { text("", {"a.b"}); }),
            "command line: 'a.b' has no '=', expected a.b=value");
  EXPECT_EQ(error_of([] { text("", {"a..b=1"}); }),
            "command line: 'a..b' is not a key, expected a.b=value");
  EXPECT_NE(error_of([] { text("", {"a=[1,"}); }).find("command line: a=[1,: "), std::string::npos);
}

TEST(Config, AnOverrideIsUtf8) {
  Config config = text("", {"a=\u00e9"});
  std::string value;
  config.bind("a", value, "");
  EXPECT_EQ(value, "\u00e9");
  EXPECT_EQ(error_of([] { text("", {"a=\xff"}); }).find("command line: a=\xff: "), 0u);
}

/// Texts that would use up the stack, or far more memory than their own size.
TEST(Config, NeitherDepthNorLongKeysMultiply) {
  const auto repeated = [](const std::string& piece, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += piece;
    return all;
  };
  constexpr int kMany = 100'000;
  EXPECT_EQ(error_of([&] { text(repeated("a.", kMany) + "a = 1"); }),
            "x.toml:1: a key has more than 32 parts");
  const std::string deep = error_of([&] { text("", {"b={" + repeated("a.", kMany) + "a=1}"}); });
  EXPECT_TRUE(deep.ends_with(": a key has more than 32 parts")) << deep.substr(0, 100);
  EXPECT_NE(error_of([&] { text("a = " + repeated("[", kMany)); }), "no error");
  EXPECT_NE(error_of([&] { text("a = " + repeated("[{a = ", kMany)); }), "no error");
  EXPECT_EQ(error_of([&] { text("[" + repeated("a", 300) + "]\nb = 1\n"); }),
            "x.toml:1: a key has 300 characters, at most 256 are possible");
}

TEST(Config, SetWinsOverOverridesAndLeavesCopiesAlone) {
  Config config = text("a = 1", {"a=2"});
  const Config copy = config;
  config.set("a", "3");
  EXPECT_EQ(number(config, "a"), 3.0);
  EXPECT_EQ(number(copy, "a"), 2.0);
}

TEST(Config, UnknownKeyIsNamedWithPlaceAndNearest) {
  Config config = text("[optimizer]\nlr = 0.1\nlrr = 0.2\n");
  double lr = 0;
  config.bind("optimizer.lr", lr, "");
  EXPECT_EQ(error_of([&] { config.finish(); }),
            "x.toml:3: unknown key 'optimizer.lrr'; did you mean 'optimizer.lr'?");
}

TEST(Config, UnknownOverrideIsOnTheCommandLine) {
  Config config = text("", {"lr=1"});
  double value = 0;
  config.bind("a.b", value, "");
  config.bind("optimizer.lr", value, "");
  EXPECT_EQ(error_of([&] { config.finish(); }),
            "command line: unknown key 'lr'; did you mean 'optimizer.lr'?");
  EXPECT_EQ(error_of([] { text("", {"lr=1"}).finish(); }), "command line: unknown key 'lr'");
}

TEST(Config, UnboundSectionsAreFound) {
  Config config = text("[optimiser]\nlr = 0.1\n");
  double lr = 0;
  config.bind("optimizer.lr", lr, "");
  EXPECT_EQ(error_of([&] { config.finish(); }),
            "x.toml:2: unknown key 'optimiser.lr'; did you mean 'optimizer.lr'?");
}

TEST(Config, UnknownKeysAreNamedToTheProgram) {
  Config config = text("a = 1\nb.c = 2");
  int64_t a = 0;
  config.bind("a", a, "");
  try {
    config.finish();
    FAIL() << "b.c is bound by nobody";
  } catch (const UnknownKey& error) {
    EXPECT_EQ(error.key(), "b.c");
  }
}

TEST(Config, ListsWhatWasGiven) {
  using Values = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(text("b.c = [1, 2]\na = 1", {"s=word"}).given_values(),
            (Values{{"a", "1"}, {"b.c", "[1, 2]"}, {"s", "\"word\""}}));
  EXPECT_TRUE(Config().given_values().empty());
}

TEST(Config, WrongTypesSayWhatIsThereAndWhatShouldBe) {
  const Config config = text(
      "real = 1.5\nword = 'fast'\nbig = 3000000000\nlist = [1, 'x']\ndate = 2020-01-02\n"
      "[table]\nx = 1\n");
  EXPECT_EQ(bind_error<int64_t>(config, "real"),
            "x.toml:1: real is a number (1.5), expected integer");
  EXPECT_EQ(bind_error<double>(config, "word"),
            "x.toml:2: word is a string (\"fast\"), expected number");
  EXPECT_EQ(bind_error<int>(config, "big"),
            "x.toml:3: big is an integer (3000000000), expected integer of 32 bits");
  EXPECT_EQ(bind_error<std::vector<int64_t>>(config, "list"),
            "x.toml:4: list is a list ([1, \"x\"]), expected list of integers");
  EXPECT_EQ(bind_error<std::string>(config, "date"),
            "x.toml:5: date is a date or time (2020-01-02), expected string");
  EXPECT_EQ(bind_error<bool>(config, "table"), "x.toml:7: table is a table, expected bool");
  EXPECT_EQ(bind_error<bool>(text("", {"a=1"}), "a"),
            "command line: a is an integer (1), expected bool");
}

TEST(Config, SyntaxErrorsHaveAPlace) {
  EXPECT_EQ(error_of([] { text("a = 1\nb = = 2\n"); }).substr(0, 9), "x.toml:2:");
  EXPECT_EQ(error_of([] { text("a = [}\n"); }).substr(0, 9), "x.toml:1:");
}

TEST(Config, ExtendsIsRelativeAndChained) {
  const TempDir dir;
  dir.write("base/root.toml", "a = 1\nb = 1\nc = 1\nlist = [1, 2, 3]\n[t]\nx = 1\ny = 1\n");
  dir.write("base/middle.toml", "extends = 'root.toml'\nb = 2\nc = 2\n[t]\nx = 2\n");
  const std::string top =
      dir.write("top.toml", "extends = \"base/middle.toml\"\nc = 3\nlist = [9]\n");
  Config config = Config::load(top, {});
  EXPECT_EQ(number(config, "a"), 1.0);
  EXPECT_EQ(number(config, "b"), 2.0);
  EXPECT_EQ(number(config, "c"), 3.0);
  EXPECT_EQ(number(config, "t.x"), 2.0);
  EXPECT_EQ(number(config, "t.y"), 1.0);
  EXPECT_EQ(config.where("b"), dir / "base/middle.toml:2");
  EXPECT_FALSE(config.given("extends"));
  std::vector<int64_t> list;
  config.bind("list", list, "");
  EXPECT_EQ(list, std::vector<int64_t>{9});
}

TEST(Config, AValueReplacesATableAndBack) {
  EXPECT_EQ(number(text("[a]\nb = 1\n", {"a=2"}), "a"), 2.0);
  EXPECT_EQ(number(text("a = 1\n", {"a.b=2"}), "a.b"), 2.0);
  EXPECT_FALSE(text("a = 1\n", {"a.b=2"}).given("a"));
}

TEST(Config, KnowsWhatWasGivenEarlier) {
  const TempDir dir;
  dir.write("root.toml", "a = 1\nb = 1\n");
  dir.write("middle.toml", "extends = 'root.toml'\na = 2\n");
  const std::string top = dir.write("top.toml", "extends = 'middle.toml'\nc = 3\n");
  const std::vector<std::string> overrides = {"a=4", "b=4"};
  Config config = Config::load(top, overrides);
  config.set("b", "5");
  using Values = std::vector<std::pair<std::string, std::string>>;
  const std::vector<Config> earlier = config.earlier();
  ASSERT_EQ(earlier.size(), 3u);
  EXPECT_EQ(earlier[0].given_values(), (Values{{"a", "2"}, {"b", "1"}, {"c", "3"}}));
  EXPECT_EQ(earlier[1].given_values(), (Values{{"a", "2"}, {"b", "1"}}));
  EXPECT_EQ(earlier[2].given_values(), (Values{{"a", "1"}, {"b", "1"}}));
  EXPECT_EQ(earlier[1].where("b"), dir / "root.toml:2");
  EXPECT_TRUE(text("a = 1").earlier().empty());
}

TEST(Config, AForgottenKeyWasNotGiven) {
  Config config = text("a.b = 1\na.c = 2");
  const Config copy = config;
  config.forget("a.b");
  EXPECT_EQ(number(config, "a.b"), -1.0);
  EXPECT_EQ(number(config, "a.c"), 2.0);
  EXPECT_EQ(number(copy, "a.b"), 1.0);
}

TEST(Config, ExtendsCyclesAreRefused) {
  const TempDir dir;
  const std::string a = dir.write("a.toml", "x = 1\nextends = 'b.toml'\n");
  const std::string b = dir.write("b.toml", "extends = './a.toml'\n");
  EXPECT_EQ(error_of([&] { Config::load(a, {}); }),
            b + ":1: extends makes a cycle: " + a + " -> " + b + " -> " + a);
}

TEST(Config, MissingFilesAreNamed) {
  const TempDir dir;
  EXPECT_EQ(error_of([&] { Config::load(dir / "no.toml", {}); }),
            dir / "no.toml: there is no such file");
  EXPECT_EQ(error_of([&] { Config::load(dir.path(), {}); }),
            dir.path() + ": it is no file, but a directory");
  const std::string top = dir.write("top.toml", "extends = 'no.toml'\n");
  EXPECT_EQ(error_of([&] { Config::load(top, {}); }),
            top + ":1: extends " + (dir / "no.toml: there is no such file"));
  const std::string far = dir.write("far.toml", "extends = '" + std::string(5000, 'x') + "'\n");
  EXPECT_NE(error_of([&] { Config::load(far, {}); }).find("File name too long"), std::string::npos);
  const std::string bad = dir.write("bad.toml", "extends = 3\n");
  EXPECT_EQ(error_of([&] { Config::load(bad, {}); }),
            bad + ":1: extends is an integer, expected a file name");
}

TEST(Config, RowsAreBoundOneByOne) {
  Config config = text("[[c.policy]]\npattern = 'a'\n[[c.policy]]\npattern = 'b'\nratoi = 1\n");
  std::vector<Config> rows = config.rows("c.policy", "rules");
  config.finish();
  ASSERT_EQ(rows.size(), 2u);
  std::string pattern;
  double ratio = 0;
  for (Config& row : rows) {
    row.bind("pattern", pattern, "");
    row.bind("ratio", ratio, "");
  }
  EXPECT_EQ(pattern, "b");
  EXPECT_EQ(rows[1].where("pattern"), "x.toml:4");
  EXPECT_NO_THROW(rows[0].finish());
  EXPECT_EQ(error_of([&] { rows[1].finish(); }),
            "x.toml:5: unknown key 'c.policy.ratoi'; did you mean 'c.policy.ratio'?");
  EXPECT_EQ(bind_error<bool>(rows[0], "pattern"),
            "x.toml:2: c.policy.pattern is a string (\"a\"), expected bool");
}

TEST(Config, RowsMayBeMissingEmptyOrOverridden) {
  EXPECT_TRUE(Config().rows("p", "").empty());
  EXPECT_TRUE(text("p = []").rows("p", "").empty());
  EXPECT_EQ(text("p = []", {"p=[{a=1},{a=2}]"}).rows("p", "").size(), 2u);
  EXPECT_EQ(error_of([] { text("p = [1]").rows("p", ""); }),
            "x.toml:1: p is a list ([1]), expected list of tables");
  EXPECT_EQ(error_of([] { text("[p]\na = 1\n").rows("p", ""); }),
            "x.toml:2: p is a table, expected list of tables");
}

TEST(Config, RebindingOneKeyNeedsOneTypeAndOneDefault) {
  Config config;
  double a = 1, b = 1, c = 2;
  int64_t d = 1;
  config.bind("x", a, "");
  config.bind("x", b, "");
  EXPECT_EQ(config.keys().size(), 1u);
  EXPECT_EQ(error_of([&] { config.bind("x", c, ""); }),
            "config: x is bound with the defaults 1.0 and 2.0");
  EXPECT_EQ(error_of([&] { config.bind("x", d, ""); }),
            "config: x is bound as number and as integer");
}

enum class Fruit { none, apple, pear };

Fruit fruit(Config config, Fruit value = Fruit::none) {
  config.bind_choice("fruit", value,
                     {{"none", Fruit::none}, {"apple", Fruit::apple}, {"pear", Fruit::pear}}, "");
  return value;
}

TEST(Config, AChoiceIsOneOfItsWords) {
  EXPECT_EQ(fruit({}), Fruit::none);
  EXPECT_EQ(fruit({}, Fruit::pear), Fruit::pear);
  EXPECT_EQ(fruit(text("fruit = \"apple\""), Fruit::pear), Fruit::apple);
  EXPECT_EQ(error_of([] { fruit(text("", {"fruit=plum"})); }),
            "command line: fruit is 'plum', expected none, apple or pear");
  EXPECT_EQ(error_of([] { fruit(text("fruit = 1")); }),
            "x.toml:1: fruit is an integer (1), expected string");
  Config config;
  std::string side = "left";
  config.bind_word("side", side, {"left", "right"}, "");
  config.bind_word("side", side, {"left", "middle"}, "");
  config.bind("free", side, "");
  EXPECT_EQ(config.keys()[0].initial, "\"left\"");
  EXPECT_EQ(config.keys()[0].words, (std::vector<std::string>{"left", "right", "middle"}));
  EXPECT_TRUE(config.keys()[1].words.empty());
  EXPECT_EQ(error_of([&] { config.offer("unbound", {"a"}); }),
            "config: unbound is offered words before it is bound");
}

TEST(Config, ALeastNumberIsTheLeast) {
  const auto bind = [](Config config) {
    double value = 2.0;
    config.bind_least("x", value, 0.5, "");
    return value;
  };
  EXPECT_EQ(bind({}), 2.0);
  EXPECT_EQ(bind(text("x = 0.5")), 0.5);
  EXPECT_EQ(error_of([&] { bind(text("x = 0.25")); }), "x.toml:1: x is 0.25, expected 0.5 or more");
}

TEST(Config, ExpectNamesThePlaceOfAGivenKey) {
  const Config config = text("a = 1");
  config.expect(true, "a", 1, "1");
  EXPECT_EQ(error_of([&] { config.expect(false, "a", 1, "2 to 3"); }),
            "x.toml:1: a is 1, expected 2 to 3");
  EXPECT_EQ(error_of([&] { config.expect(false, "b", 1, "2 to 3"); }), "b is 1, expected 2 to 3");
}

TEST(Config, KeysListWhatWasBound) {
  Config config = text("a.b = 2");
  double b = 0.5;
  config.bind("a.b", b, "how much");
  ASSERT_EQ(config.keys().size(), 1u);
  const ConfigKey& key = config.keys()[0];
  EXPECT_EQ(key.name, "a.b");
  EXPECT_EQ(key.type, "number");
  EXPECT_EQ(key.value, "2.0");
  EXPECT_EQ(key.initial, "0.5");
  EXPECT_EQ(key.meaning, "how much");
}

struct Everything {
  double lr = 0.1;
  int64_t workers = 1;
  std::string path = "a\\b \"c\"\n";
  std::vector<double> milestones = {0.5, 1.0 / 3.0};
  bool on = false;

  std::vector<Config> bind(Config& config) {
    config.bind("optimizer.lr", lr, "");
    config.bind("workers", workers, "");
    config.bind("data.path", path, "");
    config.bind("optimizer.milestones", milestones, "");
    config.bind("data.on", on, "");
    return config.rows("data.sets", "");
  }
};

TEST(Config, ResolvedReadsBackTheSame) {
  Config config = text(
      "[[data.sets]]\nname = \"it's\"\nsize = [1, 2.5]\nsub.x = true\n"
      "[[data.sets]]\n'odd key' = 1\n",
      {"optimizer.lr=1e-3"});
  Everything first;
  first.bind(config);
  config.finish();
  EXPECT_EQ(config.resolved(),
            "workers = 1\n"
            "\n[optimizer]\nlr = 0.001\nmilestones = [0.5, 0.3333333333333333]\n"
            "\n[data]\npath = \"a\\\\b \\\"c\\\"\\u000a\"\non = false\n"
            "sets = [{ name = \"it's\", size = [1, 2.5], sub = { x = true } }, "
            "{ \"odd key\" = 1 }]\n");
  Config again = text(config.resolved());
  Everything second;
  EXPECT_EQ(second.bind(again).size(), 2u);
  again.finish();
  EXPECT_EQ(second.path, first.path);
  EXPECT_EQ(second.milestones, first.milestones);
  EXPECT_EQ(again.resolved(), config.resolved());
}

}  // namespace
}  // namespace wisp
