#include "apps/setup/prepared.h"

#include <algorithm>

#include "core/error.h"
#include "core/io/glob.h"
#include "core/train/freeze.h"
#include "data/holdout.h"

namespace wisp {
namespace {

/// What is trained as the run will cut it, before it has memory.
std::vector<Segment> describe(const std::vector<Parameter*>& parameters) {
  std::vector<Segment> segments;
  for (const Parameter* parameter : arena_order(parameters)) {
    if (parameter->frozen) break;
    segments.push_back({static_cast<int>(segments.size()), parameter->name, parameter->shape, 0,
                        parameter->shape.numel(), parameter->decay, parameter->kind});
  }
  return segments;
}

ModelSetup ends_of(const Config& config, const TrainOptions& options, const DataSource& source) {
  WISP_CHECK(options.classes == 0 || options.classes >= source.classes(),
             config.where("model.classes"), ": model.classes is ", options.classes,
             ", but the data set has ", source.classes(), " classes, expected 0 or at least these");
  return {source.sample(), options.classes > 0 ? options.classes : source.classes()};
}

void check_record(const Config& config, const RecordOptions& record,
                  std::span<const Segment> segments) {
  const bool any = std::any_of(segments.begin(), segments.end(), [&](const Segment& segment) {
    return glob(record.layers, segment.name);
  });
  WISP_CHECK(any || record.every == 0, config.where("record.gradients.layers"),
             ": record.gradients.layers: no trained parameter's name fits '", record.layers, "'");
}

/// A key of another method's is no typing error.
void finish(const Config& config, const std::string& methods) {
  try {
    config.finish();
  } catch (const UnknownKey& unknown) {
    if (!is_method_key(unknown.key())) throw;
    throw UnknownKey(unknown.key(), concat(config.where(unknown.key()), ": ", unknown.key(),
                                           " means nothing to compression.method ", methods,
                                           "; `wisp methods NAME` lists a method's keys"));
  }
}

}  // namespace

Prepared::Prepared(Config config)
    : config_(std::move(config)),
      options_(TrainOptions::bind(config_, world())),
      source_(make_data_source(config_)) {
  ends_ = ends_of(config_, options_, *source_);
  const std::unique_ptr<Model> model = make_model(options_.model, config_, ends_);
  const std::vector<Parameter*> parameters = model->parameters();
  freeze(config_, parameters);
  const std::vector<Segment> segments = describe(parameters);
  const Methods methods = choose_methods(config_, options_, segments);
  exchange_ = plan_exchange(methods, options_, segments);
  check_record(config_, options_.record, segments);
  finish(config_, methods.names);
}

void Prepared::load() {
  train_set_ = source_->load(Split::train);
  if (options_.validation > 0) hold_out_validation();
  test_set_ = source_->load(Split::test);
  const int64_t batches = Loader(train_set_, train_loader(0)).batches();
  WISP_CHECK(batches >= options_.accumulate, config_.where("train.accumulate"),
             ": train.accumulate is ", options_.accumulate, ", but an epoch has only ", batches,
             " batches a worker");
  Loader(test_set_, test_loader(0));
}

void Prepared::hold_out_validation() {
  const int64_t count = train_set_.count();
  WISP_CHECK(count - options_.validation >= options_.batch, config_.where("data.validation"),
             ": data.validation is ", options_.validation, " of ", count,
             " training samples, but the rest has to make a step of ", options_.batch,
             " (train.batch)");
  HeldOut parts = hold_out(train_set_, options_.validation);
  train_set_ = std::move(parts.train);
  validation_set_ = std::move(parts.validation);
}

LoaderOptions Prepared::train_loader(int rank) const {
  LoaderOptions loader;
  loader.batch = options_.micro_batch();
  loader.workers = options_.workers;
  loader.rank = rank;
  loader.seed = static_cast<uint64_t>(options_.seed);
  loader.compute = options_.compute();
  loader.threads = options_.loader_threads;
  loader.augment = options_.augment;
  return loader;
}

LoaderOptions Prepared::test_loader(int rank) const {
  LoaderOptions loader = train_loader(rank);
  loader.shuffle = false;
  loader.drop_last = false;
  loader.augment = false;
  return loader;
}

}  // namespace wisp
