#include "apps/train/gradient_record.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "apps/setup/whole_file.h"
#include "core/base/error.h"
#include "core/copy.h"
#include "core/io/glob.h"
#include "core/train/norm.h"
#include "data/npy.h"
#include "distributed/gradient_clip.h"

namespace wisp {
namespace {

/// The number of steps before `step` in the file, which is ascending.
int64_t steps_before(const std::string& path, int64_t step) {
  if (!std::filesystem::exists(path)) return 0;
  NpyReader reader(path);
  int64_t count = 0;
  for (float number = 0; count < reader.rows(); ++count) {
    reader.read(count, &number);
    if (!(number < static_cast<float>(step))) break;
  }
  return count;
}

/// The rows in a file; 0 if there is none.
int64_t rows_in(const std::string& path) {
  return std::filesystem::exists(path) ? NpyReader(path).rows() : 0;
}

}  // namespace

GradientRecord::GradientRecord(Replica& replica, const RecordOptions& options,
                               const std::string& path, int64_t step)
    : replica_(replica),
      every_(options.every),
      squares_(replica.context(), {std::ssize(replica.parameters().segments())}, DType::f64) {
  const std::string folder = concat(path, "/rank_", replica.rank());
  steps_path_ = folder + "/steps.npy";
  whole_path_ = concat(folder, "/", kWholeFile);
  rows_ = steps_before(steps_path_, step);
  const Context& context = replica.context();
  for (const Segment& segment : replica.parameters().segments()) {
    const Ranges::Range range{segment.offset, segment.numel, segment.id};
    ranges_.push_back(std::make_unique<Ranges>(context.stream, context.pool, std::span(&range, 1),
                                               size_of(DType::f64)));
    Layer& layer = layers_.emplace_back();
    if (!glob(options.layers, segment.name)) continue;
    layer.shape = segment.shape;
    layer.path = folder + "/" + segment.name + ".npy";
    layer.gradient =
        host_tensor(segment.shape, replica.parameters().dtype(), context.stream.device());
  }
  for (const File& file : files()) {
    const int64_t rows = rows_in(file.path);
    WISP_CHECK(rows >= rows_, file.path, ": holds ", rows, " rows, but ", rows_,
               " steps were recorded; a resumed run must record the same layers, or have another "
               "record.gradients.out");
  }
  replica.watch_gradients([this](const Segment& segment) { keep(segment); });
}

/// Waits for copies that a failed step may have left under way.
GradientRecord::~GradientRecord() {
  replica_.watch_gradients({});
  try {
    replica_.context().stream.synchronize();
  } catch (const std::exception& failure) {  // the step has reported it
  }
}

/// The files, the steps' numbers last: a killed process leaves no step without its rows.
std::vector<GradientRecord::File> GradientRecord::files() const {
  std::vector<File> all;
  for (const Layer& layer : layers_) {
    if (layer.gradient.defined()) all.push_back({layer.path, layer.shape});
  }
  all.push_back({whole_path_, {kWholeWords}, DType::f64});
  all.push_back({steps_path_, {}});
  return all;
}

void GradientRecord::open() {
  std::filesystem::create_directories(std::filesystem::path(steps_path_).parent_path());
  for (const File& file : files()) NpyWriter(file.path, file.shape, file.dtype).keep(rows_);
}

void GradientRecord::begin(int64_t step) {
  step_ = step;
  due_ = step % every_ == 0;
}

void GradientRecord::keep(const Segment& segment) {
  if (!due_) return;
  const auto id = static_cast<size_t>(segment.id);
  const Stream& stream = replica_.context().stream;
  const Tensor& gradient = replica_.parameters().grad();
  sums_of_squares(stream, gradient, *ranges_[id], squares_.device().data<double>());
  if (layers_[id].gradient.defined())
    copy(stream, FlatParameters::view(gradient, segment), layers_[id].gradient);
}

/// The norm of the whole gradient as clipping measures it: summed in the order of the segments,
/// without segments that count as zero.
double GradientRecord::norm() const {
  double total = 0.0;
  for (int64_t id = 0; id < squares_.host().numel(); ++id) {
    const double square = squares_.host().data<double>()[id];
    if (square <= GradientClip::kLargestNorm * GradientClip::kLargestNorm) total += square;
  }
  return std::sqrt(total) * replica_.synchronizer().summands();
}

/// The layer's gradient of the worker's own loss.
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
  squares_.fetch(replica_.context().stream);
  replica_.context().stream.synchronize();
  for (const Layer& layer : layers_) {
    if (layer.gradient.defined()) NpyWriter(layer.path, layer.shape).append(values(layer).data());
  }
  const double whole[kWholeWords] = {static_cast<double>(replica_.parameters().parameter_count()),
                                     norm()};
  NpyWriter(whole_path_, {kWholeWords}, DType::f64).append(whole);
  const auto number = static_cast<float>(step_);
  NpyWriter(steps_path_, {}).append(&number);
}

}  // namespace wisp
