#include "apps/run/run_facts.h"

#include <algorithm>
#include <filesystem>

#include "apps/setup/prepared.h"
#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/io/input_file.h"
#include "core/io/json.h"

namespace wisp {

using nlohmann::ordered_json;

std::string SplitFacts::str() const { return concat(samples, " samples, ", digest); }

RunFacts RunFacts::of(const Prepared& run) {
  RunFacts facts{run.facts(), run.metrics(), run.has_validation(), {}};
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    if (const Examples* examples = run.examples(split))
      facts.data.push_back({name_of(split), examples->count(), hash_digits(examples->digest())});
  }
  return facts;
}

std::string RunFacts::json() const {
  ordered_json object;
  object["inputs"] = ordered_json::array();
  for (const Feed& feed : facts.inputs) {
    ordered_json& input = object["inputs"].emplace_back();
    input = {{"name", feed.name}, {"sample", feed.sample}, {"dtype", name_of(feed.dtype)}};
    if (feed.ids > 0) input["ids"] = feed.ids;
    if (feed.padded) input["padded"] = true;
    if (const SpectrogramOptions& sound = feed.sound; sound.rate > 0)
      input["sound"] = {{"rate", sound.rate},
                        {"window_ms", sound.window_ms},
                        {"stride_ms", sound.stride_ms},
                        {"mels", sound.mels}};
    if (feed.photo.side > 0)
      input["photo"] = {{"side", feed.photo.side}, {"filter", feed.photo.filter}};
    if (feed.normalization == Normalization{}) continue;
    input["mean"] = feed.normalization.mean;
    input["deviation"] = feed.normalization.deviation;
  }
  object["classes"] = facts.classes;
  object["names"] = facts.names;
  object["work"] = facts.work;
  object["metrics"] = ordered_json::array();
  for (const Metric& metric : metrics) {
    object["metrics"].push_back({{"name", metric.name},
                                 {"percent", metric.percent},
                                 {"lower_is_better", metric.lower_is_better}});
  }
  object["validation"] = has_validation;
  object["data"] = ordered_json::array();
  for (const SplitFacts& part : data) {
    object["data"].push_back(
        {{"split", part.split}, {"samples", part.samples}, {"digest", part.digest}});
  }
  try {
    return object.dump(2) + "\n";
  } catch (const nlohmann::json::exception& error) {
    throw Error(
        concat("the names of inputs, classes and metrics have to be UTF-8: ", error.what()));
  }
}

namespace {

constexpr int64_t kMostValues = int64_t{1} << 28;  // of a sample, and classes
constexpr int64_t kMostSide = 1 << 16;             // of a photo, in pixels

SpectrogramOptions sound_of(const ordered_json& input) {
  if (!input.contains("sound")) return {.rate = 0};
  const ordered_json& sound = json_part(input, "sound");
  SpectrogramOptions options;
  options.rate = json_at<decltype(options.rate)>(sound, "rate");
  options.window_ms = json_at<decltype(options.window_ms)>(sound, "window_ms");
  options.stride_ms = json_at<decltype(options.stride_ms)>(sound, "stride_ms");
  options.mels = json_at<decltype(options.mels)>(sound, "mels");
  return options;
}

PhotoFit photo_of(const ordered_json& input) {
  if (!input.contains("photo")) return {};
  const ordered_json& photo = json_part(input, "photo");
  const auto side = json_at<decltype(PhotoFit::side)>(photo, "side");
  WISP_CHECK(side >= 1 && side <= kMostSide, "a photo's side is ", side, ", expected 1 to ",
             kMostSide);
  return {side, json_at<std::string>(photo, "filter")};
}

Feed input_of(const ordered_json& input) {
  const auto sample = json_at<std::vector<int64_t>>(input, "sample");
  int64_t values = 1;
  for (const int64_t extent : sample) {
    WISP_CHECK(extent >= 0 && extent <= kMostValues && values * extent <= kMostValues,
               "an input's sample has more than ", kMostValues, " values, or an extent below 0");
    values *= extent;
  }
  const std::vector<double> none;
  return {json_at<std::string>(input, "name"),
          Shape(std::span(sample)),
          dtype_named(json_at<std::string>(input, "dtype")),
          {json_or(input, "mean", none), json_or(input, "deviation", none)},
          json_or(input, "ids", int64_t{0}),
          json_or(input, "padded", false),
          sound_of(input),
          photo_of(input)};
}

RunFacts facts_of(const ordered_json& object) {
  RunFacts run;
  for (const ordered_json& input : json_part(object, "inputs"))
    run.facts.inputs.push_back(input_of(input));
  run.facts.classes = json_at<decltype(run.facts.classes)>(object, "classes");
  WISP_CHECK(run.facts.classes >= 0 && run.facts.classes <= kMostValues, "classes is ",
             run.facts.classes, ", expected 0 to ", kMostValues);
  run.facts.names = json_at<std::vector<std::string>>(object, "names");
  WISP_CHECK(std::ssize(run.facts.names) <= run.facts.classes, std::ssize(run.facts.names),
             " names of ", run.facts.classes, " classes, expected no more than classes");
  run.facts.work = json_at<std::string>(object, "work");
  run.metrics.clear();
  for (const ordered_json& metric : json_part(object, "metrics")) {
    run.metrics.push_back({.name = json_at<std::string>(metric, "name"),
                           .percent = json_at<bool>(metric, "percent"),
                           .lower_is_better = json_at<bool>(metric, "lower_is_better")});
  }
  WISP_CHECK(!run.metrics.empty(), "no metric, expected at least one");
  run.has_validation = json_at<bool>(object, "validation");
  if (!object.contains("data")) return run;
  for (const ordered_json& part : json_part(object, "data"))
    run.data.push_back({json_at<std::string>(part, "split"), json_at<int64_t>(part, "samples"),
                        json_at<std::string>(part, "digest")});
  return run;
}

}  // namespace

RunFacts RunFacts::read(const std::string& directory) {
  const std::string path = directory + "/facts.json";
  if (!is_there(path)) return {};
  return naming(path + " is damaged or incomplete", [&] {
    return facts_of(parse_json<ordered_json>(read_whole_file(path, kMostJsonBytes)));
  });
}

void check_classes(const Facts& data, const Facts& trained, const std::string& run) {
  if (trained.inputs.empty()) return;  // an older run, which has no facts
  WISP_CHECK(data.classes == trained.classes, run, " was trained on ", trained.classes,
             " classes, this data has ", data.classes);
  for (size_t i = 0; i < std::min(data.names.size(), trained.names.size()); ++i)
    WISP_CHECK(data.names[i] == trained.names[i], "class ", i, " was '", trained.names[i],
               "' when ", run, " was trained, but is '", data.names[i], "' in this data");
}

}  // namespace wisp
