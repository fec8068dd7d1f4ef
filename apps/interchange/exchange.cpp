#include "apps/interchange/exchange.h"

#include <filesystem>

#include "apps/inference/inference.h"
#include "apps/interchange/onnx_export.h"
#include "apps/run/checkpoints.h"
#include "apps/setup/prepared.h"
#include "apps/setup/weights.h"
#include "core/io/output_file.h"

namespace wisp {

void import_run(Config config, const std::string& file, const std::string& out,
                RunDirectory::Open open) {
  const Prepared run(std::move(config));
  RunDirectory directory(out, open);
  const std::vector<std::string> other = check_weights(file, run);
  WISP_CHECK(other.empty(), file, " has another number of classes than the model's ",
             run.facts().classes, " (tensor ", other.front(),
             "), so it cannot be imported; to train from its other layers, set it as model.init");
  const RunFacts facts = RunFacts::of(run);
  directory.make();
  run_replicas(run, [&](Replica& replica) {
    replica.start_from(file, run.facts());
    if (replica.rank() == 0) directory.begin();
    // without its checkpoint the directory is no run, which could be trained from drawn weights
    Checkpoints(directory.file(kCheckpointsFolder), run.options().checkpoint)
        .save(replica, {}, [&] { directory.write_identity(run.config(), facts); });
  });
}

std::vector<std::string> export_run(const std::string& run_path, const std::string& path,
                                    std::span<const std::string> overrides,
                                    const std::string& checkpoint) {
  const std::string ending = std::filesystem::path(path).extension().string();
  WISP_CHECK(ending == ".safetensors" || ending == ".onnx", path,
             ": expected a name that ends in .safetensors or .onnx");
  Inference model(run_path, overrides, checkpoint);
  if (ending == ".onnx") {
    write_file(path, onnx_model(model.context(), model.model(), model.parameters(), model.facts()),
               Unread::awaited);
  } else {
    write_weights(path, model.model(), model.parameters(), model.facts());
  }
  return model.notices();
}

}  // namespace wisp
