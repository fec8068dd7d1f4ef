#include "apps/setup/weights.h"

#include <cstring>
#include <map>
#include <set>

#include "apps/setup/unusable_values.h"
#include "core/base/hash.h"
#include "core/copy.h"
#include "core/io/checkpoint.h"
#include "core/tensor/channel_order.h"

namespace wisp {
namespace {

constexpr const char* kRunningMean = "running_mean";
constexpr const char* kBatchesTracked = "num_batches_tracked";
constexpr const char* kClasses = "classes_fnv1a";  // metadata key: hash of the classes' names
constexpr size_t kListed = 12;                     // names of each kind that an error lists

/// A tensor of the model; `value` is undefined if it has no memory.
struct Wanted {
  std::string name;
  Shape shape;
  Tensor value;
};

/// By exchange name.
using WantedTensors = std::map<std::string, Wanted>;

void add(WantedTensors& wanted, const Model& model, const Wanted& tensor) {
  for (const std::string& name : model.exchange_names(tensor.name)) wanted[name] = tensor;
}

WantedTensors tensors_of(const Model& model, const FlatParameters& parameters) {
  WantedTensors wanted;
  for (const Segment& segment : parameters.all_segments())
    add(wanted, model,
        {segment.name, segment.shape, FlatParameters::view(parameters.weight(), segment)});
  for (const Buffer* buffer : parameters.buffers())
    add(wanted, model, {buffer->name, buffer->shape, buffer->value});
  return wanted;
}

bool is_float(const SafetensorsEntry& entry) {
  const std::optional<DType> dtype = safetensors_dtype(entry.dtype);
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

bool of_other_classes(std::vector<int64_t> given, const std::vector<int64_t>& wanted,
                      const Facts& facts) {
  if (given.empty() || wanted.empty() || wanted[0] != facts.classes) return false;
  given[0] = wanted[0];
  return given == wanted;
}

std::string listed(const char* what, const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kListed); ++i) text += "\n  " + names[i];
  if (names.size() > kListed) text += concat("\n  and ", names.size() - kListed, " more");
  return names.empty() ? text : concat("\n", what, ":", text);
}

/// A hash of the classes' names in their order, as hexadecimal digits.
std::string hash_of_classes(const Facts& facts) {
  uint64_t hash = hash_text(kClasses);
  for (const std::string& name : facts.names) hash = hash_text(name, hash);
  return hash_digits(hash);
}

/// Throws Error if the file's classes and the data's have different names, where both have any.
void check_names(const CheckpointReader& file, const Facts& facts) {
  if (facts.names.empty() || !file.has_metadata(kClasses)) return;
  WISP_CHECK(
      file.metadata(kClasses) == hash_of_classes(facts), file.path(),
      " was trained on other classes or words than this data's ", facts.names.size(),
      ", or on the same in another order; to train from its other layers, set it as model.init "
      "with model.classes = ",
      facts.classes + 1, ", and the layers of classes or words start from random weights");
}

/// The tensors that the model and the file share.
struct Match {
  std::vector<std::string> fitting;        // exchange names
  std::vector<std::string> other_classes;  // the model's names
};

Match match(const CheckpointReader& file, const WantedTensors& wanted, const Facts& facts) {
  Match match;
  std::vector<std::string> missing, unexpected, misfits;
  std::set<std::string> given_once;  // some programs write only one of a tensor's names
  for (const auto& [name, tensor] : wanted)
    if (file.has(name)) given_once.insert(tensor.name);
  for (const auto& [name, tensor] : wanted) {
    if (!file.has(name)) {
      if (!given_once.contains(tensor.name)) missing.push_back(name);
      continue;
    }
    const SafetensorsEntry& given = file.entry(name);
    const Shape expected = channels_first(tensor.shape);
    const std::vector<int64_t> extents(expected.begin(), expected.end());
    if (is_float(given) && given.extents == extents) {
      match.fitting.push_back(name);
    } else if (is_float(given) && of_other_classes(given.extents, extents, facts)) {
      match.other_classes.push_back(tensor.name);
    } else {
      misfits.push_back(concat(name, " is ", given.str(), ", expected floats ", expected));
    }
  }
  for (const std::string& name : file.names()) {
    if (!wanted.count(name) && !name.ends_with(kBatchesTracked)) unexpected.push_back(name);
  }
  const std::string faults = listed("missing", missing) + listed("unexpected", unexpected) +
                             listed("of another shape or type", misfits);
  WISP_CHECK(faults.empty(), file.path(), " does not hold this model's weights", faults);
  if (match.other_classes.empty()) check_names(file, facts);
  return match;
}

template <class From, class Wide = float>
void convert_from(const Tensor& from, const Tensor& to) {
  dispatch_float(to.dtype(), "weights", [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < to.numel(); ++i)
      to.data<T>()[i] = static_cast<T>(static_cast<Wide>(from.data<From>()[i]));
  });
}

void convert(const Tensor& from, const Tensor& to) {
  switch (from.dtype()) {
    case DType::f16:
      return convert_from<Half>(from, to);
    case DType::bf16:
      return convert_from<BFloat16>(from, to);
    case DType::f64:
      return convert_from<double, double>(from, to);
    default:
      return convert_from<float>(from, to);
  }
}

/// Reads a tensor as `dtype`, in PyTorch's layout. Throws Error for values that no model has.
Tensor read_converted(const CheckpointReader& file, const std::string& name, const Wanted& wanted,
                      DType dtype) {
  const Tensor given(channels_first(wanted.shape), *safetensors_dtype(file.entry(name).dtype));
  file.read(name, given);
  Tensor converted(given.shape(), dtype);
  convert(given, converted);
  const std::string words = unusable_values(wanted.name, converted);
  WISP_CHECK(words.empty(), file.path(), ": ", name, ": ", words,
             converted.dtype() == given.dtype()
                 ? ""
                 : concat(" as ", name_of(dtype), " (the file has ", file.entry(name).dtype, ")"));
  return converted;
}

}  // namespace

void write_weights(const std::string& path, const Model& model, const FlatParameters& parameters,
                   const Facts& facts) {
  CheckpointWriter writer;
  for (const auto& [name, tensor] : tensors_of(model, parameters)) {
    writer.add(name, channels_first(tensor.value));
    if (name.ends_with(kRunningMean)) {
      writer.add(name.substr(0, name.size() - std::strlen(kRunningMean)) + kBatchesTracked,
                 Tensor({}, DType::i64));
    }
  }
  writer.metadata("format", "pt");  // required by Python's loaders
  if (!facts.names.empty()) writer.metadata(kClasses, hash_of_classes(facts));
  writer.write(path);
}

std::vector<std::string> check_weights(const std::string& path, const Prepared& run) {
  Config config = run.config();
  const std::unique_ptr<Model> model = make_model(run.options().model, config, run.facts());
  WantedTensors wanted;
  for (const Parameter* parameter : model->parameters())
    add(wanted, *model, {parameter->name, parameter->shape, {}});
  for (const Buffer* buffer : model->buffers())
    add(wanted, *model, {buffer->name, buffer->shape, {}});
  const CheckpointReader file(path, CheckpointReader::Checksums::optional);
  const Match found = match(file, wanted, run.facts());
  for (const std::string& name : found.fitting)
    read_converted(file, name, wanted.at(name), wide_of(run.options().compute()));
  return found.other_classes;
}

void read_weights(const Stream& stream, const std::string& path, const Model& model,
                  const FlatParameters& parameters, const Facts& facts) {
  const WantedTensors wanted = tensors_of(model, parameters);
  const CheckpointReader file(path, CheckpointReader::Checksums::optional);
  std::map<const std::byte*, std::string> read;  // several names of a tensor must have one value
  for (const std::string& name : match(file, wanted, facts).fitting) {
    const Tensor& value = wanted.at(name).value;
    const Tensor converted =
        channels_last(read_converted(file, name, wanted.at(name), value.dtype()));
    const auto [first, once] = read.emplace(value.raw(), name);
    WISP_CHECK(once || std::memcmp(fetch(stream, value).raw(), converted.raw(),
                                   static_cast<size_t>(value.bytes())) == 0,
               path, ": ", first->second, " and ", name,
               " differ, but are one tensor of this model");
    copy_now(stream, converted, value);
  }
}

}  // namespace wisp
