#include "data/data_source.h"

namespace wisp {

std::unique_ptr<DataSource> make_data_source(Config& config) {
  std::string name = "cifar10";
  config.bind("data.name", name, "data set; `wisp config --reference` has a section for each");
  config.offer("data.name", DataRegistry::instance().names());
  return DataRegistry::instance().find("data set (data.name)", name).make(config);
}

}  // namespace wisp
