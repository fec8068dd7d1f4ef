#include "apps/prepared.h"

#include "apps/methods.h"

namespace wisp {

Prepared prepare(Config config) {
  Prepared run;
  run.options = TrainOptions::bind(config);
  run.train_set = make_dataset(config, Split::train);
  run.test_set = make_dataset(config, Split::test);
  const Shape& images = run.train_set->images.shape();
  run.ends = {{images[1], images[2], images[3]}, run.train_set->classes};
  const auto model = ModelRegistry::instance()
                         .find("model (model.name)", run.options.model)
                         .make(config, run.ends);
  std::vector<Segment> segments;
  for (const Parameter* parameter : model->parameters()) {
    segments.push_back({static_cast<int>(segments.size()), parameter->name, parameter->shape, 0,
                        parameter->shape.numel(), parameter->decay});
  }
  choose_methods(config, run.options, segments);
  config.finish();
  run.config = std::move(config);
  return run;
}

LoaderOptions Prepared::train_loader(int rank) const {
  LoaderOptions loader;
  loader.batch = options.micro_batch();
  loader.workers = options.workers;
  loader.rank = rank;
  loader.seed = static_cast<uint64_t>(options.seed);
  loader.compute = options.compute();
  loader.threads = options.loader_threads;
  loader.augment = options.augment;
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
