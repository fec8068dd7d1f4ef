#include "apps/run/saved_files.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "apps/setup/unusable_values.h"
#include "core/base/error.h"
#include "core/copy.h"
#include "core/io/checkpoint_directory.h"
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
void check_names(const CheckpointReader& file, const std::vector<SavedState>& state,
                 Sharing sharing) {
  std::set<std::string> held, wanted;
  for (const std::string& name : file.names()) held.insert(name_for_all(name));
  for (const SavedState& saved : state) {
    if (saved.sharing != sharing) continue;
    const std::string name = name_for_all(saved.name);
    WISP_CHECK(held.contains(name), file.path(), ": has no tensor ", saved.name,
               "; is it of another model, optimizer or train.freeze?");
    wanted.insert(name);
  }
  for (const std::string& name : held) {
    WISP_CHECK(wanted.contains(name), file.path(), ": has an unexpected tensor ", name,
               "; is it of another model, optimizer or train.freeze?");
  }
}

/// Reads a tensor of a state whose values the state allows.
void read_checked(const SavedState& state, const CheckpointReader& file, const Tensor& into) {
  file.read(state.name, into);
  if (state.check) naming(concat(file.path(), ": ", state.name), [&] { state.check(into); });
}

/// Adds a line to `lines` if the tensor holds values with which nothing can be computed.
void tell_unusable(const SavedState& state, const Tensor& read, std::vector<std::string>& lines) {
  const std::string words = unusable_values(state.name, read);
  if (!words.empty()) lines.push_back(concat(state.name, ": ", words));
}

void add(double value, const std::string&, double& sum) { sum += value; }
void add(int64_t value, const std::string& name, int64_t& sum) {
  WISP_CHECK(!__builtin_add_overflow(sum, value, &sum), "resume: the sum of ", name,
             " over the checkpoint's ranks is too large");
}

int64_t share(int64_t sum, int rank, int workers) {
  return sum / workers + (rank == 0 ? sum % workers : 0);
}

double share(double sum, int, int workers) { return sum / workers; }

/// Adds values up as `Sum`, in order of ranks, and rounds this rank's share once.
template <class T, class Sum>
void add_up(const SavedState& state, std::span<const std::unique_ptr<CheckpointReader>> files,
            int rank, int workers) {
  T* values = state.tensor.data<T>();
  std::vector<Sum> sums(static_cast<size_t>(state.tensor.numel()));
  for (const auto& file : files) {
    read_checked(state, *file, state.tensor);
    for (size_t i = 0; i < sums.size(); ++i) add(static_cast<Sum>(values[i]), state.name, sums[i]);
  }
  for (size_t i = 0; i < sums.size(); ++i)
    values[i] = static_cast<T>(share(sums[i], rank, workers));
}

/// Gathers the part that `state` names from the files' parts, which may be cut differently.
void gather_part(const SavedState& state,
                 std::span<const std::unique_ptr<CheckpointReader>> files) {
  const TensorPart wanted = part_of_name(state.name).value();
  std::vector<std::pair<int64_t, int64_t>> found;  // ranges of the whole
  int64_t elements = 0;
  for (const auto& file : files) {
    for (const std::string& name : file->names()) {
      const std::optional<TensorPart> there = part_of_name(name);
      if (!there || there->whole != wanted.whole) continue;
      const int64_t begin = std::max(wanted.begin, there->begin);
      const int64_t end = std::min(wanted.end, there->end);
      if (begin >= end) continue;
      const Tensor part = file->read(name, state.tensor.dtype());
      WISP_CHECK(part.shape().rank() == 1 && part.numel() == there->end - there->begin,
                 file->path(), ": ", name, " has the shape ", part.shape());
      if (state.check) naming(concat(file->path(), ": ", name), [&] { state.check(part); });
      const int64_t size = size_of(part.dtype());
      std::memcpy(state.tensor.raw() + (begin - wanted.begin) * size,
                  part.raw() + (begin - there->begin) * size,
                  static_cast<size_t>((end - begin) * size));
      found.emplace_back(begin, end);
      elements += end - begin;
    }
  }
  WISP_CHECK(elements == wanted.end - wanted.begin,
             "resume: the files of the checkpoint's ranks hold ", elements, " elements of ",
             state.name, ", expected ", wanted.end - wanted.begin);
  std::ranges::sort(found);
  int64_t next = wanted.begin;
  for (const auto& [begin, end] : found) {
    WISP_CHECK(begin == next, "resume: the files of the checkpoint's ranks hold element ",
               std::min(begin, next), " of ", part_name(wanted), begin < next ? " twice" : "",
               ", expected each element once");
    next = end;
  }
}

}  // namespace

void write_state(const Stream& stream, const std::string& path,
                 const std::vector<SavedState>& state, Sharing sharing) {
  CheckpointWriter writer;
  for (const SavedState& saved : state) {
    if (saved.sharing == sharing) writer.add(saved.name, unpinned(stream, saved.tensor));
  }
  writer.write(path);
}

std::vector<std::string> read_shared(const std::string& directory, const Stream& stream,
                                     const std::vector<SavedState>& state, bool within_epoch) {
  const CheckpointReader file(shared_file(directory));
  check_names(file, state, Sharing::shared);
  std::vector<std::string> unusable;
  for (const SavedState& saved : state) {
    if (saved.sharing != Sharing::shared) continue;
    const auto read = [&] {
      write_from_host(stream, saved.tensor, [&](const Tensor& host) {
        read_checked(saved, file, host);
        tell_unusable(saved, host, unusable);
      });
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
  return unusable;
}

std::vector<std::string> read_own(const std::string& directory, const Stream& stream,
                                  const std::vector<SavedState>& state, Seat seat,
                                  int saved_workers) {
  const bool same = saved_workers == seat.workers;
  const CheckpointReader file(rank_file(directory, same ? seat.rank : 0));
  check_names(file, state, Sharing::per_rank);
  std::vector<std::unique_ptr<CheckpointReader>> files;  // all ranks' files, opened on demand
  std::vector<std::string> unusable;
  for (const SavedState& saved : state) {
    if (saved.sharing != Sharing::per_rank) continue;
    write_from_host(stream, saved.tensor, [&](const Tensor& host) {
      if (same && file.has(saved.name)) {
        read_checked(saved, file, host);
      } else {
        for (int rank = static_cast<int>(files.size()); rank < saved_workers; ++rank)
          files.push_back(std::make_unique<CheckpointReader>(rank_file(directory, rank)));
        SavedState there = saved;
        there.tensor = host;
        read_resized(there, files, seat.rank, seat.workers);
      }
      tell_unusable(saved, host, unusable);
    });
  }
  return unusable;
}

void read_resized(const SavedState& state, std::span<const std::unique_ptr<CheckpointReader>> files,
                  int rank, int workers) {
  switch (state.on_resize) {
    case OnResize::repeat:
      return read_checked(state, *files[static_cast<size_t>(rank) % files.size()], state.tensor);
    case OnResize::zero:
      state.tensor.clear();
      return;
    case OnResize::owner:
      return gather_part(state, files);
    case OnResize::redistribute_sum:
      switch (state.tensor.dtype()) {
        case DType::f32:
          return add_up<float, double>(state, files, rank, workers);
        case DType::f64:
          return add_up<double, double>(state, files, rank, workers);
        case DType::i64:
          return add_up<int64_t, int64_t>(state, files, rank, workers);
        default:
          throw Error(concat("resume: ", state.name, " is ", name_of(state.tensor.dtype()),
                             ", which cannot be added up for another number of workers"));
      }
  }
}

}  // namespace wisp
