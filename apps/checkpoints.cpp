#include "apps/checkpoints.h"

#include "core/checkpoint.h"
#include "core/checkpoint_directory.h"
#include "core/error.h"

namespace wisp {
namespace {

std::string rank_file(const std::string& directory, int rank) {
  return directory + "/rank_" + std::to_string(rank) + ".safetensors";
}

std::string shared_file(const std::string& directory) { return directory + "/shared.safetensors"; }

int64_t number(const CheckpointReader& file, const std::string& key) {
  return std::stoll(file.metadata(key));
}

}  // namespace

void save_checkpoint(const std::string& directory, Replica& replica, int workers,
                     const Position& position) {
  const std::string tmp = directory + ".tmp";
  if (replica.rank() == 0) {
    prepare_directory(tmp);
    CheckpointWriter shared;
    for (const auto& [name, tensor] : replica.shared_state()) shared.add(name, tensor);
    shared.metadata("workers", std::to_string(workers));
    shared.metadata("methods", replica.methods());
    shared.metadata("epoch", std::to_string(position.epoch));
    shared.metadata("in_epoch", std::to_string(position.in_epoch));
    shared.metadata("step", std::to_string(position.step));
    shared.metadata("skipped", std::to_string(position.skipped));
    shared.write(shared_file(tmp));
  }
  replica.barrier();
  CheckpointWriter own;
  for (const auto& [name, tensor] : replica.rank_state()) own.add(name, tensor);
  own.write(rank_file(tmp, replica.rank()));
  replica.barrier();
  if (replica.rank() == 0) publish_directory(tmp, directory);
  replica.barrier();
}

Position load_checkpoint(const std::string& directory, Replica& replica, int workers) {
  const std::string found = find_checkpoint(directory);
  const CheckpointReader shared(shared_file(found));
  const int64_t saved_workers = number(shared, "workers");
  WISP_CHECK(saved_workers == workers, found, " was saved by ", saved_workers,
             " workers, this run has ", workers, "; resume with workers = ", saved_workers);
  const std::string& methods = shared.metadata("methods");
  WISP_CHECK(methods == replica.methods(), found, " holds the state of compression.method ",
             methods, ", this run has ", replica.methods(), "; a run goes on with its own method");
  for (const auto& [name, tensor] : replica.shared_state()) shared.read(name, tensor);
  const CheckpointReader own(rank_file(found, replica.rank()));
  for (const auto& [name, tensor] : replica.rank_state()) own.read(name, tensor);
  replica.barrier();
  return {number(shared, "epoch"), number(shared, "in_epoch"), number(shared, "step"),
          number(shared, "skipped")};
}

}  // namespace wisp
