#include "apps/setup/prepared.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "apps/setup/memory_for.h"
#include "apps/setup/replaced_keys.h"
#include "core/base/error.h"
#include "core/io/glob.h"
#include "core/io/input_file.h"
#include "core/io/utf8.h"
#include "core/train/freeze.h"

namespace wisp {
namespace {

/// The trained parameters as segments, as the run will cut them; nothing has memory yet.
std::vector<Segment> describe(const std::vector<Parameter*>& parameters) {
  std::vector<Segment> segments;
  for (const Parameter* parameter : arena_order(parameters)) {
    if (parameter->frozen) break;
    segments.push_back({static_cast<int>(segments.size()), parameter->name, parameter->shape, 0,
                        parameter->shape.numel(), parameter->decay, parameter->kind});
  }
  return segments;
}

Facts facts_of(const Config& config, const TrainOptions& options, const DataSource& source) {
  Facts facts = source.facts();
  WISP_CHECK(options.classes == 0 || options.classes >= facts.classes,
             config.where("model.classes"), ": model.classes is ", options.classes,
             ", but the data set has ", facts.classes, " classes, expected 0 or at least as many");
  if (options.classes > 0) facts.classes = options.classes;
  return facts;
}

/// Throws Error for names that a run's files, which are JSON, could not hold.
void check_names(const Facts& facts, const std::vector<Metric>& metrics,
                 std::span<const Segment> segments) {
  const auto check = [](const char* kind, const std::string& name) {
    WISP_CHECK(is_utf8(name), "the name of a ", kind, ", ", fmt::format("{:?}", name),
               ", is no UTF-8");
  };
  for (const std::string& name : facts.names) check("class", name);
  for (const Feed& feed : facts.inputs) check("input", feed.name);
  check("unit of work", facts.work);
  for (const Metric& metric : metrics) check("metric", metric.name);
  for (const Segment& segment : segments) check("parameter", segment.name);
}

void check_record(const Config& config, const RecordOptions& record,
                  std::span<const Segment> segments) {
  const bool any = std::ranges::any_of(
      segments, [&](const Segment& segment) { return glob(record.layers, segment.name); });
  WISP_CHECK(any || record.every == 0, config.where("record.gradients.layers"),
             ": record.gradients.layers: no trained parameter's name fits '", record.layers, "'");
}

}  // namespace

Prepared::Prepared(Config config)
    : config_(std::move(config)),
      options_(TrainOptions::bind(config_, world())),
      source_(make_data_source(config_)) {
  WISP_CHECK(!options_.schedule.of_kind.plateau || has_validation(), config_.where("schedule.kind"),
             ": schedule.kind is \"", options_.schedule.kind,
             "\", which needs a validation split; set data.validation");
  facts_ = facts_of(config_, options_, *source_);
  const std::unique_ptr<Model> model = memory_for(
      "the model", "model.…", [&] { return make_model(options_.model, config_, facts_); });
  metrics_ = model->metrics();
  const std::vector<Parameter*> parameters = model->parameters();
  freeze(config_, parameters);
  const std::vector<Segment> segments = describe(parameters);
  check_names(facts_, metrics_, segments);
  const Methods methods = choose_methods(config_, options_, segments);
  exchange_ = plan_exchange(methods, options_, segments);
  check_record(config_, options_.record, segments);
  notices_ = options_.notices;
  std::ranges::copy(finish(config_, methods.names), std::back_inserter(notices_));
}

void Prepared::load() {
  splits_ = memory_for("the data set", "data.…", [&] { return source_->open(options_.compute()); });
  resident_.clear();
  for (int place = 0; place < options_.devices; ++place)
    resident_.push_back(std::make_unique<ResidentSplits>(options_.target(place)));
  const auto check = [&](Split split) {
    if (const Examples* examples = splits_.of(split)) examples->epoch(0, options_.deal(split, 0));
  };
  if (source_->held_out() == 0) {
    check(Split::train);
  } else {
    naming(concat(config_.where("data.validation"), ": data.validation is ", source_->held_out()),
           [&] { check(Split::train); });
  }
  for (const Split split : {Split::validation, Split::test}) check(split);
}

std::unique_ptr<Loader> Prepared::loader(Split split, int rank) const {
  const Examples* examples = splits_.of(split);
  if (!examples) return nullptr;
  ResidentSplits& resident = *resident_[static_cast<size_t>(options_.place(rank))];
  return std::make_unique<Loader>(resident.of(*examples), options_.deal(split, rank),
                                  LoaderOptions{.threads = options_.loader_threads});
}

void run_replicas(const Prepared& run, const std::function<void(Replica&)>& work,
                  const LinkSpec& link) {
  const TrainOptions& options = run.options();
  std::vector<std::unique_ptr<MemoryPool>> pools;  // one per device
  for (int place = 0; place < options.devices; ++place)
    pools.push_back(std::make_unique<MemoryPool>(options.target(place)));
  const LaunchOptions launch{options.threads, options.turns, link, options.timeout_s};
  run_workers(options.workers, launch, [&](Worker& worker) {
    Replica replica(run, *pools[static_cast<size_t>(options.place(worker.rank))], worker);
    work(replica);
  });
}

}  // namespace wisp
