#include "apps/run/saved_files.h"

#include <memory>
#include <optional>
#include <set>

#include "apps/run/resize.h"
#include "core/base/error.h"
#include "core/copy.h"
#include "core/io/checkpoint.h"
#include "core/io/input_file.h"

namespace wisp {
namespace {

/// A copy in pageable host memory, which lives until the file is written.
Tensor unpinned(const Stream& stream, const Tensor& x) {
  if (!x.device().is_cuda()) return fetch(stream, x);
  const Tensor host(x.shape(), x.dtype());
  copy_now(stream, x, host);
  return host;
}

/// A state's name without the range of a rank's part, which is the same on all ranks.
std::string name_for_all(const std::string& name) {
  const std::optional<TensorPart> part = part_of_name(name);
  return part ? part->whole : name;
}

/// Throws Error unless the file holds exactly the states with this sharing.
void check_names(const std::string& path, const CheckpointReader& file,
                 const std::vector<SavedState>& state, Sharing sharing) {
  std::set<std::string> held, wanted;
  for (const std::string& name : file.names()) held.insert(name_for_all(name));
  for (const SavedState& saved : state) {
    if (saved.sharing != sharing) continue;
    const std::string name = name_for_all(saved.name);
    WISP_CHECK(held.count(name) != 0, path, ": has no tensor ", saved.name,
               "; is it of another model, optimizer or train.freeze?");
    wanted.insert(name);
  }
  for (const std::string& name : held) {
    WISP_CHECK(wanted.count(name) != 0, path, ": has an unexpected tensor ", name,
               "; is it of another model, optimizer or train.freeze?");
  }
}

}  // namespace

std::string rank_file(const std::string& directory, int rank) {
  return directory + "/rank_" + std::to_string(rank) + ".safetensors";
}

std::string shared_file(const std::string& directory) { return directory + "/shared.safetensors"; }

void write_state(const Stream& stream, const std::string& path,
                 const std::vector<SavedState>& state, Sharing sharing) {
  CheckpointWriter writer;
  for (const SavedState& saved : state) {
    if (saved.sharing == sharing) writer.add(saved.name, unpinned(stream, saved.tensor));
  }
  writer.write(path);
}

void read_shared(const std::string& directory, const Stream& stream,
                 const std::vector<SavedState>& state, bool within_epoch) {
  const CheckpointReader file(shared_file(directory));
  check_names(file.path(), file, state, Sharing::shared);
  for (const SavedState& saved : state) {
    if (saved.sharing != Sharing::shared) continue;
    const auto read = [&] {
      write_from_host(stream, saved.tensor,
                      [&](const Tensor& host) { file.read(saved.name, host); });
    };
    if (!saved.within_epoch) {
      read();
    } else if (within_epoch) {
      naming(
          "the run stopped within an epoch, so it goes on with its own train.batch and "
          "train.precision",
          read);
    }
  }
}

void read_own(const std::string& directory, const Stream& stream,
              const std::vector<SavedState>& state, Seat seat, int saved_workers) {
  const bool same = saved_workers == seat.workers;
  const CheckpointReader file(rank_file(directory, same ? seat.rank : 0));
  check_names(file.path(), file, state, Sharing::per_rank);
  std::vector<std::unique_ptr<CheckpointReader>> files;  // all ranks' files, opened on demand
  for (const SavedState& saved : state) {
    if (saved.sharing != Sharing::per_rank) continue;
    write_from_host(stream, saved.tensor, [&](const Tensor& host) {
      if (same && file.has(saved.name)) return file.read(saved.name, host);
      for (int rank = static_cast<int>(files.size()); rank < saved_workers; ++rank)
        files.push_back(std::make_unique<CheckpointReader>(rank_file(directory, rank)));
      SavedState there = saved;
      there.tensor = host;
      read_resized(there, files, seat.rank, seat.workers);
    });
  }
}

}  // namespace wisp
