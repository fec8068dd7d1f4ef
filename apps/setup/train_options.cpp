#include "apps/setup/train_options.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/omp_threads.h"
#include "core/cuda/device.h"
#include "models/model.h"

namespace wisp {
namespace {

/// Checks the engine: workers are threads of one process, or processes with one worker each. Throws
/// Error for options that only threads have.
void check_engine(const Config& config, const TrainOptions& o, const World& world) {
  if (!world.processes()) {
    WISP_CHECK(o.engine != "mpi", config.where("distributed.engine"),
               ": distributed.engine is mpi, but this process runs alone; start it with mpirun -n ",
               std::max(2, o.workers), ", or let auto choose threads");
    return;
  }
  const std::string started = concat("mpirun (or srun) started ", world.size, " processes");
  WISP_CHECK(o.engine != "threads", config.where("distributed.engine"),
             ": distributed.engine is threads, but ", started,
             ", and each would train by itself; start one process, or let auto choose mpi");
  WISP_CHECK(!o.turns, config.where("turns"), ": turns works among threads only, but ", started);
  WISP_CHECK(o.link.gbit_per_s <= 0.0, config.where("link.gbit_per_s"),
             ": the emulated link works among threads only, but ", started, ", whose link is real");
  WISP_CHECK(o.link.latency_us <= 0.0, config.where("link.latency_us"),
             ": the emulated link works among threads only, but ", started, ", whose link is real");
}

Device device_named(const std::string& name) {
  return name == "cpu" ? Device{} : Device{Device::Kind::cuda, 0};
}

void check_device(const Config& config, const std::string& device) {
  if (device == "cuda") {
    const std::string missing = missing_for_cuda();
    WISP_CHECK(missing.empty(), config.where("device"), ": device is cuda, but this program lacks ",
               missing);
    const std::string obstacle = cuda::obstacle(device_named(device));
    WISP_CHECK(obstacle.empty(), config.where("device"), ": device is cuda: ", obstacle);
  }
  WISP_CHECK(device != "emulated" || device == device_kind(), config.where("device"),
             ": device is emulated, which only programs have that are built without CUDA and link "
             "wisp::emulated; use cuda or cpu");
}

/// Throws unless workers that are threads share one device, or have one each.
void check_devices(const Config& config, const TrainOptions& o, const World& world, int there) {
  if (o.devices == 1) return;
  const std::string is = concat(config.where("devices"), ": devices is ", o.devices);
  WISP_CHECK(!world.processes(), is, ", but mpirun (or srun) started ", world.size,
             " processes, each of which takes one of its machine's; leave devices out");
  WISP_CHECK(o.devices == o.workers, is, ", expected 1, which all workers share, or ", o.workers,
             ", one for each worker");
  WISP_CHECK(o.devices <= there, is, ", but this machine has ", there);
  WISP_CHECK(o.link.gbit_per_s <= 0.0 && o.link.latency_us <= 0.0, is,
             ": the emulated link is between workers that share a device");
}

/// Chooses devices: processes of a machine take its devices in turn; threads of a process share the
/// first one, or take one each.
void take_devices(const Config& config, TrainOptions& o, const World& world) {
  if (o.device == "cpu") {
    o.devices = 1;
    return;
  }
  int there = 0;
  while (cuda::obstacle({Device::Kind::cuda, there}).empty()) ++there;
  check_devices(config, o, world, there);
  if (there > 0) o.device_index = world.local_rank % there;
  o.own_device = world.processes() ? world.neighbours <= there : o.devices == o.workers;
}

constexpr const char* kWorkers =
    "number of data-parallel workers; under mpirun the number of processes";

/// Sets `workers` to the number of processes, so that a configuration need not know it.
void count_processes(Config& config, TrainOptions& o, const World& world) {
  if (config.given("workers")) {
    Config asked = config;
    asked.bind("workers", o.workers, kWorkers);
    if (o.workers != world.size)
      o.notices.push_back(concat(config.where("workers"), ": workers is ", o.workers,
                                 ", but mpirun (or srun) started ", world.size,
                                 " processes, and each is one worker"));
  }
  config.set("workers", std::to_string(world.size));
}

void bind_threads(Config& config, const std::string& key, int& value, int least,
                  const std::string& meaning) {
  config.bind(key, value, meaning);
  config.expect(least <= value && value <= kMostThreads, key, value,
                concat(least, " to ", kMostThreads));
}

void bind_workers(Config& config, TrainOptions& o, const World& world) {
  if (world.processes()) count_processes(config, o, world);
  config.bind_least("workers", o.workers, 1, kWorkers);
  config.bind_word(
      "distributed.engine", o.engine, {"auto", "threads", "mpi"},
      "kind of workers: threads (of one process), mpi (processes started by mpirun), or "
      "auto (mpi if mpirun started several)");
  bind_threads(config, "threads", o.threads, 0,
               "OpenMP threads of each worker, at most 1024; 0: its share of the cores, at most "
               "OMP_NUM_THREADS and OMP_THREAD_LIMIT");
  bind_threads(config, "comm_threads", o.comm_threads, 1,
               "OpenMP threads of each worker's comm thread, 1 to 1024");
  config.bind("turns", o.turns,
              "let one worker compute at a time: memory for the activations of one worker, no "
              "overlap; threads only");
  bind_device(config, o.device);
  config.bind_least(
      "devices", o.devices, 1,
      "number of GPUs for the workers of one process: 1, shared by all, or one each, with "
      "gradients exchanged by NCCL; no effect on the CPU");
  config.bind("seed", o.seed, "seed of all random numbers");
  config.bind("timeout_s", o.timeout_s,
              "longest wait for another worker, in seconds, 0.001 to 1e9");
  config.bind_least("link.gbit_per_s", o.link.gbit_per_s, 0.0,
                    "emulated link speed of each worker in each direction, 0 or more; 0: no limit; "
                    "threads only");
  config.bind("link.latency_us", o.link.latency_us,
              "emulated latency of a message step, in microseconds, 0 to 1e9; threads only");
  config.expect(0.001 <= o.timeout_s && o.timeout_s <= 1e9, "timeout_s", o.timeout_s,
                "0.001 to 1e9");
  config.expect(0.0 <= o.link.latency_us && o.link.latency_us <= 1e9, "link.latency_us",
                o.link.latency_us, "0 to 1e9");
  check_engine(config, o, world);
}

void bind_training(Config& config, TrainOptions& o) {
  config.bind_least("train.batch", o.batch, 1,
                    "batch size: samples of a step over all workers and micro-batches");
  config.bind_least("train.accumulate", o.accumulate, 1,
                    "number of micro-batches of a step on each worker");
  config.bind_least("train.epochs", o.epochs, 1, "passes over the training set");
  config.bind_least("train.max_steps", o.max_steps, 0,
                    "number of steps after which the run ends; 0: no limit");
  config.bind_least("train.eval_every", o.eval_every, 0,
                    "epochs between evaluations; 0: only at the end");
  config.bind_least(
      "train.eval_batch", o.eval_batch, 0,
      "batch size of an evaluation over all workers, for a text the number of columns; 0: as in "
      "training");
  config.bind_least("train.log_every", o.log_every, 1,
                    "steps between lines of the log and the metrics");
  config.bind("train.tensorboard", o.tensorboard,
              "also write the metrics as TensorBoard event files");
  config.bind("train.one_batch", o.one_batch, "train on the first batch only, again and again");
  config.bind_word(
      "train.precision", o.precision, {"f32", "bf16", "f64"},
      "precision of activations: f32; bf16, with everything else in f32 (on a CPU: AVX-512 "
      "BF16, or the reference backend); f64 (reference backend, no compression)");
  config.bind(
      "train.tf32", o.math.tf32,
      "round the factors of the model's f32 products and convolutions on a GPU to TF32, 10 bits; "
      "no effect on the CPU");
  config.bind(
      "train.deterministic", o.math.deterministic,
      "same bits from GPU convolutions each time; false: possibly faster, with different bits; no "
      "effect on the CPU");
  config.bind_word(
      "train.backend", o.backend, {"auto", "reference"},
      "library for the computation: auto (the fastest of this build) or reference (plain "
      "loops)");
  config.bind_least("train.nonfinite_max", o.nonfinite_max, 1,
                    "number of skipped steps in a row that ends the run");
  config.bind_least(
      "train.distance_every", o.distance_every, -1,
      "steps between measurements of the distance between workers with weights of their "
      "own (gossip, local_sgd), each a dense exchange; 0: once an epoch, -1: never");
  bind_threads(config, "data.threads", o.loader_threads, 0,
               "number of loader threads of each worker, at most 1024; 0: the worker loads by "
               "itself");
  const bool cpus_library = o.backend == "auto" && o.device != "cuda";
  const std::string missing = cpus_library ? missing_for(o.compute()) : "";
  WISP_CHECK(missing.empty(), config.where("train.precision"), ": train.precision = \"",
             o.precision, "\" needs ", missing,
             "; train.precision = \"f32\" runs here, and so does ",
             "train.backend = \"reference\", slowly");
  WISP_CHECK(o.accumulate <= o.batch / o.workers && o.batch % (o.workers * o.accumulate) == 0,
             config.where("train.batch"), ": train.batch is ", o.batch, ", which ", o.workers,
             " workers x ", o.accumulate, " micro-batches cannot share equally");
  WISP_CHECK(o.eval_batch % o.workers == 0, config.where("train.eval_batch"),
             ": train.eval_batch is ", o.eval_batch, ", which ", o.workers,
             " workers cannot share equally");
}

void bind_optimizer(Config& config, TrainOptions& o) {
  o.optimizer = OptimizerOptions::bind(config);
  o.notices.insert(o.notices.end(), o.optimizer.notices.begin(), o.optimizer.notices.end());
  o.schedule = LrSchedule::bind(config, static_cast<double>(o.epochs));
  o.notices.insert(o.notices.end(), o.schedule.notices.begin(), o.schedule.notices.end());
  o.ema = EmaOptions::bind(config);
  config.bind_least("clip.norm", o.clip.norm, 0.0,
                    "bound of the gradient's L2 norm, 0 or more; 0: no clipping");
  config.bind_choice(
      "clip.scope", o.clip.per_layer, {{"model", false}, {"layer", true}},
      "scope of clip.norm: model (the norm of the whole gradient) or layer (each tensor by "
      "its share, which overlaps)");
  config.bind_choice(
      "clip.where", o.clip.where,
      {{"auto", ClipWhere::automatic}, {"local", ClipWhere::local}, {"mean", ClipWhere::mean}},
      "clipped gradient: local (each worker's own, before compression), mean (the mean over "
      "workers), or auto (mean if decoding returns the mean up to rounding: none, fp16, bf16; else "
      "local)");
  config.bind_least(
      "clip.local_factor", o.clip.local_factor, 0.0,
      "local: bound of a worker's own gradient, as a multiple of clip.norm, 0 or more; 0: "
      "sqrt(workers), with which independent gradients have a mean of norm clip.norm");
  WISP_CHECK(!o.schedule.of_kind.plateau || o.eval_every > 0, config.where("train.eval_every"),
             ": train.eval_every is ", o.eval_every, ", but schedule.kind = \"", o.schedule.kind,
             "\" needs evaluations; expected 1 or more");
}

void bind_exchange(Config& config, TrainOptions& o) {
  config.bind("compression.overlap", o.overlap, "encode and exchange gradients during backward");
  config.bind("compression.guard", o.guard, "send a unit dense where its method would send more");
  config.bind_least("compression.probe_every", o.probe_every, 0,
                    "steps between measurements of residuals and of the decoded mean, each a dense "
                    "all-reduce; 0: none");
  config.bind_least(
      "compression.bucket_bytes", o.buckets.bucket_bytes, -1,
      "raw gradient bytes of a bucket; 0: each tensor by itself; -1: an eighth of the model within "
      "[64 KiB, 25 MB], on a GPU [1 MiB, 25 MB]");
  config.bind_least(
      "compression.encode_bytes", o.buckets.encode_bytes, -1,
      "raw bytes up to which small tensors are encoded together; -1: half a bucket and at "
      "most 1 MiB, on a GPU a whole bucket");
  config.bind_least("trace.first_step", o.trace.first_step, 0, "first step in trace.json");
  config.bind_least("trace.steps", o.trace.steps, 0, "number of steps in trace.json; 0: none");
}

void bind_checkpoint(Config& config, CheckpointOptions& o) {
  config.bind_least(
      "checkpoint.every_steps", o.every_steps, 0,
      "steps between checkpoints, in addition to those at the ends of epochs; 0: none");
  config.bind_least("checkpoint.every_epochs", o.every_epochs, 0,
                    "epochs between checkpoints; 0: only the last one of the run");
  config.bind_least("checkpoint.keep", o.keep, 0, "number of newest checkpoints kept; 0: all");
  config.bind("checkpoint.best", o.best,
              "save and keep the checkpoint with the best first metric on the validation split");
}

void bind_record(Config& config, RecordOptions& o) {
  config.bind_least("record.gradients.every", o.every, 0,
                    "steps between recordings of local gradients as NumPy files; 0: none");
  config.bind("record.gradients.layers", o.layers,
              "glob of the parameters whose gradients are recorded");
  config.bind("record.gradients.out", o.out,
              "directory of the recording, rank_R/NAME.npy with a row per recorded step; empty: "
              "gradients in the run directory");
}

}  // namespace

Device bind_device(Config& config, std::string& device) {
  config.bind_word(
      "device", device, {"cpu", "cuda", "emulated"},
      "device of the computation: cpu; cuda (in a build with CUDA): the first GPU, for processes "
      "those of the machine in turn; emulated (in a build without CUDA): the CPU as a device with "
      "memory of its own, which finds errors that a GPU would show; `wisp devices` lists the "
      "devices");
  check_device(config, device);
  return device_named(device);
}

TrainOptions TrainOptions::bind(Config& config, const World& world) {
  TrainOptions options;
  options.trace = {20, 5};
  bind_workers(config, options, world);
  config.bind("model.name", options.model,
              "model; `wisp config --reference` has a section for each");
  config.offer("model.name", ModelRegistry::instance().names());
  config.bind_least(
      "model.classes", options.classes, 0,
      "number of outputs of the model's last layer; 0: one for each class of the data set; "
      "more: additional classes that never occur");
  config.bind("model.init", options.init,
              "safetensors file with the initial weights of a new run; empty: random weights");
  bind_training(config, options);
  bind_optimizer(config, options);
  bind_exchange(config, options);
  bind_checkpoint(config, options.checkpoint);
  bind_record(config, options.record);
  take_devices(config, options, world);
  if (options.turns) options.overlap = false;
  return options;
}

std::unique_ptr<Backend> TrainOptions::make_backend(MemoryPool& pool, const Stream& stream,
                                                    bool of_model) const {
  return backend == "reference" ? make_reference_backend(pool, stream)
                                : wisp::make_backend(pool, stream, of_model ? math : GpuMath{});
}

Deal TrainOptions::deal(Split split, int rank) const {
  const bool training = split == Split::train;
  const bool as_trained = training || eval_batch == 0;
  return {.batch = as_trained ? batch : eval_batch,
          .workers = workers,
          .rank = rank,
          .accumulate = as_trained ? accumulate : 1,
          .seed = static_cast<uint64_t>(seed),
          .training = training};
}

Device TrainOptions::target(int place) const {
  Device target = device_named(device);
  target.index = device_index + place;
  return target;
}

DType TrainOptions::compute() const {
  if (precision == "bf16") return DType::bf16;
  return precision == "f64" ? DType::f64 : DType::f32;
}

}  // namespace wisp
