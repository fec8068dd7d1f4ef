#include "models/model.h"

namespace wisp {

std::unique_ptr<Model> make_model(const std::string& name, Config& config,
                                  const ModelSetup& setup) {
  return ModelRegistry::instance().find("model (model.name)", name).make(config, setup);
}

}  // namespace wisp
