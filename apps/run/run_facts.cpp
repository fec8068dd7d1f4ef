#include "apps/run/run_facts.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/setup/prepared.h"
#include "core/base/error.h"
#include "core/base/hash.h"

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

SpectrogramOptions sound_of(const ordered_json& input) {
  if (!input.contains("sound")) return {.rate = 0};
  const ordered_json& sound = input["sound"];
  return {sound.at("rate"), sound.at("window_ms"), sound.at("stride_ms"), sound.at("mels")};
}

PhotoFit photo_of(const ordered_json& input) {
  if (!input.contains("photo")) return {};
  return {input["photo"].at("side"), input["photo"].at("filter")};
}

}  // namespace

RunFacts RunFacts::read(const std::string& directory) {
  const std::string path = directory + "/facts.json";
  if (!std::filesystem::exists(path)) return {};
  std::ifstream file(path);
  try {
    const ordered_json object = ordered_json::parse(file);
    RunFacts run;
    for (const ordered_json& input : object.at("inputs")) {
      const auto sample = input.at("sample").get<std::vector<int64_t>>();
      const std::vector<double> none;
      run.facts.inputs.push_back({input.at("name"),
                                  Shape(std::span(sample)),
                                  dtype_named(input.at("dtype").get<std::string>()),
                                  {input.value("mean", none), input.value("deviation", none)},
                                  input.value("ids", int64_t{0}),
                                  input.value("padded", false),
                                  sound_of(input),
                                  photo_of(input)});
    }
    object.at("classes").get_to(run.facts.classes);
    object.at("names").get_to(run.facts.names);
    object.at("work").get_to(run.facts.work);
    run.metrics.clear();
    for (const ordered_json& metric : object.at("metrics")) {
      run.metrics.push_back({.name = metric.at("name"),
                             .percent = metric.at("percent"),
                             .lower_is_better = metric.at("lower_is_better")});
    }
    WISP_CHECK(!run.metrics.empty(), path, ": no metric, expected at least one");
    object.at("validation").get_to(run.has_validation);
    for (const ordered_json& part : object.value("data", ordered_json::array()))
      run.data.push_back({part.at("split"), part.at("samples"), part.at("digest")});
    return run;
  } catch (const nlohmann::json::exception& error) {
    throw Error(path + " is damaged or incomplete: " + error.what());
  }
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
