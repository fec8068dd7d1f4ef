#include "apps/lab/lab_setup.h"

#include <filesystem>

#include "apps/setup/exchange_plan.h"
#include "apps/setup/whole_file.h"
#include "compression/policy.h"
#include "core/base/error.h"
#include "distributed/averaging/gradient_averaging.h"

namespace wisp {
namespace {

Segment segment_of(const Parameter& layer) {
  return {
      .name = layer.name, .shape = layer.shape, .numel = layer.shape.numel(), .decay = layer.decay};
}

/// Checks clipping, as a run clips the gradient of all layers together.
void check_clipping(const LabSetup& setup, const Methods& methods,
                    std::vector<std::string>& remarks) {
  const ClipOptions& clip = setup.options.clip;
  if (clip.norm == 0.0) return;
  const bool mean = !clip.per_layer && !clips_locally(clip, methods.methods);
  bool all = true;
  for (int rank = 0; rank < setup.workers(); ++rank) {
    std::optional<NpyReader> whole = setup.whole_of(rank);
    all = all && whole;
    const int64_t numel = setup.layer.shape.numel();
    const int64_t elements = whole ? whole_at(*whole, 0).elements : numel;
    WISP_CHECK(elements >= numel, setup.request.inputs[static_cast<size_t>(rank)], ": a row has ",
               numel, " elements, but by ", kWholeFile, " beside it the whole gradient has only ",
               elements);
    WISP_CHECK(!mean || elements == numel, setup.config.where("clip.norm"),
               ": clip.norm clips the mean gradient of all layers (", elements,
               " elements), whose norm is not known from one layer of ", numel,
               "; use clip.scope = \"layer\" or clip.where = \"local\"");
  }
  if (!all)
    remarks.push_back(
        concat("clip.norm = ", clip.norm,
               " bounds this layer as if it were the whole model: not every file has ", "a run's ",
               kWholeFile, " beside it"));
}

}  // namespace

std::optional<NpyReader> LabSetup::whole_of(int rank) const {
  const std::string& rows = request.inputs[static_cast<size_t>(rank)];
  const std::string path = std::filesystem::path(rows).replace_filename(kWholeFile);
  if (options.clip.norm == 0.0 || steps == 0 || !std::filesystem::exists(path)) return std::nullopt;
  NpyReader file(path);
  WISP_CHECK(file.rows() == steps && file.row_shape() == Shape{kWholeWords}, path, ": has ",
             file.rows(), " rows of ", file.row_shape(), ", expected ", steps, " of ",
             Shape{kWholeWords}, ", one for each row of ", rows);
  return file;
}

WholeGradient whole_at(NpyReader& file, int64_t step) {
  double words[kWholeWords];
  file.read(step, words);
  WISP_CHECK(words[0] >= 0.0 && words[0] <= 0x1p53 && words[1] >= 0.0, file.path(), ": row ", step,
             " has ", words[0], " elements of norm ", words[1], ", expected numbers of 0 or more");
  return {.elements = static_cast<int64_t>(words[0]), .norm = words[1]};
}

Methods choose_for(Config& config, const TrainOptions& options, const Parameter& layer) {
  const Segment segment = segment_of(layer);
  Methods chosen = choose_methods(config, options, {&segment, 1});
  WISP_CHECK(!chosen.recipe, "wisp codec: ", chosen.names,
             " exchanges weights, not gradients; choose a compression method or a code");
  const std::vector<PolicyRule> rules = read_policy(config);
  for (const PolicyRule& rule : rules)
    WISP_CHECK(rule.kind == "*", rule.where, ": a rule for layers of kind \"", rule.kind,
               "\" cannot be applied, because recorded gradients do not have their layer's kind; "
               "use a name");
  const std::vector<int> rule_of = choose_rules({&segment, 1}, rules, true);
  for (const std::string& other_layers : remarks_on_idle_rules(rules, rule_of))
    std::erase(chosen.remarks, other_layers);
  if (rule_of.front() == kDenseRule && !chosen.methods.empty() &&
      chosen.methods.front().compressor->traits().dense_1d)
    chosen.remarks.emplace_back(
        concat(layer.name, " stays dense, as in a run, because its shape ", layer.shape,
               " is a vector's; 'compression.policy=[{method=\"", chosen.methods.front().name,
               "\"}]' compresses it, and --shape gives a flattened layer's shape"));
  for (const Method& method : chosen.methods) {
    WISP_CHECK(
        !method.compressor->traits().squares || options.accumulate == 1,
        config.where("train.accumulate"), ": method ", method.name,
        " needs the gradient of each micro-batch, which is not recorded; set train.accumulate = 1");
    if (method.scope != Scope::layer && chosen.method_of.front() != kDense)
      chosen.remarks.emplace_back(
          "compression.scope: here the field is this layer alone; in a run it has other layers "
          "too");
  }
  return chosen;
}

LabSetup prepare_lab(Config config, const LabRequest& request) {
  WISP_CHECK(!world().processes(), "wisp codec: its workers are threads; start one process");
  WISP_CHECK(!request.inputs.empty(), "wisp codec: no input, expected a file for each worker");
  WISP_CHECK(!config.given("workers"), config.where("workers"),
             ": workers has no place here: there is a worker for each input");
  WISP_CHECK(!config.given("device"), config.where("device"),
             ": device has no place here: workers are threads of the CPU");
  LabSetup setup{request, std::move(config), {}, {}, 0};
  const NpyReader first(request.inputs.front());
  for (const std::string& input : request.inputs) {
    const NpyReader reader(input);
    WISP_CHECK(reader.rows() == first.rows() && reader.row_shape() == first.row_shape(), input,
               ": has ", reader.rows(), " rows of ", reader.row_shape(), ", but ", first.path(),
               " has ", first.rows(), " of ", first.row_shape());
  }
  setup.steps = first.rows();
  const Shape shape = request.shape.value_or(first.row_shape());
  WISP_CHECK(shape.numel() == first.row_shape().numel(), "wisp codec: the layer's shape is ", shape,
             ", but a row of ", first.path(), " has ", first.row_shape().numel(), " elements");
  setup.layer.name =
      request.layer.empty() ? std::filesystem::path(first.path()).stem().string() : request.layer;
  setup.layer.shape = shape;
  setup.layer.decay = shape.rank() > 1;

  setup.config.set("workers", std::to_string(setup.workers()));
  if (!setup.config.given("train.batch"))
    setup.config.set("train.batch", std::to_string(setup.workers()));
  setup.options = TrainOptions::bind(setup.config, World{});
  const Methods methods = choose_for(setup.config, setup.options, setup.layer);
  setup.config.finish();
  const Segment segment = segment_of(setup.layer);
  setup.remarks = plan_exchange(methods, setup.options, {&segment, 1}).remarks;
  check_clipping(setup, methods, setup.remarks);
  return setup;
}

}  // namespace wisp
