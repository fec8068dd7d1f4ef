#include "apps/train/gradient_record.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/copy.h"
#include "core/io/glob.h"
#include "data/npy.h"

namespace wisp {
namespace {

/// How many of the file's steps, which ascend, are before `step`.
int64_t steps_before(const std::string& path, int64_t step) {
  if (!std::filesystem::exists(path)) return 0;
  NpyReader reader(path);
  int64_t count = 0;
  for (float number = 0; count < reader.rows(); ++count) {
    reader.read(count, &number);
    if (static_cast<int64_t>(number) >= step) break;
  }
  return count;
}

}  // namespace

GradientRecord::GradientRecord(Replica& replica, const RecordOptions& options,
                               const std::string& path, int64_t step)
    : replica_(replica), every_(options.every) {
  const std::string folder = concat(path, "/rank_", replica.rank());
  std::filesystem::create_directories(folder);
  steps_path_ = folder + "/steps.npy";
  const int64_t rows = steps_before(steps_path_, step);
  for (const Segment& segment : replica.parameters().segments()) {
    Layer& layer = layers_.emplace_back();
    if (!glob(options.layers, segment.name)) continue;
    layer.shape = segment.shape;
    layer.path = folder + "/" + segment.name + ".npy";
    layer.gradient =
        host_tensor(segment.shape, replica.parameters().dtype(), replica.context().stream.device());
    NpyWriter file(layer.path, segment.shape);
    file.keep(rows);
    WISP_CHECK(file.rows() == rows, layer.path, ": holds ", file.rows(), " of ", rows,
               " recorded steps; a run that goes on records the same layers, or into another "
               "record.gradients.out");
  }
  NpyWriter(steps_path_, {}).keep(rows);
  replica.watch_gradients([this](const Segment& segment) { keep(segment); });
}

/// A step that failed may have left copies under way.
GradientRecord::~GradientRecord() {
  replica_.watch_gradients({});
  try {
    replica_.context().stream.synchronize();
  } catch (const std::exception& failure) {  // the step has told of it
  }
}

void GradientRecord::begin(int64_t step) {
  step_ = step;
  due_ = step % every_ == 0;
}

void GradientRecord::keep(const Segment& segment) {
  Layer& layer = layers_[static_cast<size_t>(segment.id)];
  if (!due_ || !layer.gradient.defined()) return;
  copy(replica_.context().stream, FlatParameters::view(replica_.parameters().grad(), segment),
       layer.gradient);
}

/// The gradient of the worker's own loss.
std::vector<float> GradientRecord::values(const Layer& layer) const {
  std::vector<float> result(static_cast<size_t>(layer.gradient.numel()));
  dispatch_float(layer.gradient.dtype(), "record", [&](auto zero) {
    const auto summands = static_cast<decltype(zero)>(replica_.synchronizer().summands());
    const auto* from = layer.gradient.data<decltype(zero)>();
    std::transform(from, from + result.size(), result.begin(),
                   [&](auto value) { return static_cast<float>(value * summands); });
  });
  return result;
}

void GradientRecord::write() {
  if (!due_) return;
  replica_.context().stream.synchronize();
  for (const Layer& layer : layers_) {
    if (layer.gradient.defined()) NpyWriter(layer.path, layer.shape).append(values(layer).data());
  }
  const auto number = static_cast<float>(step_);
  NpyWriter(steps_path_, {}).append(&number);
}

}  // namespace wisp
