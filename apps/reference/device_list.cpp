#include "apps/reference/device_list.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/backend.h"

namespace wisp {
namespace {

constexpr const char* kEmulated = "emulated";

std::string label_of(const DeviceList& list, const cuda::DeviceFacts& facts) {
  return fmt::format("{}:{}", list.kind, facts.device.index);
}

std::string memory_text(const cuda::DeviceFacts& facts) {
  if (!facts.failure.empty()) return "cannot be used: " + facts.failure;
  const auto gib = [](int64_t bytes) { return static_cast<double>(bytes) / (int64_t{1} << 30); };
  return fmt::format("{:.1f} of {:.1f} GiB free", gib(facts.free_bytes), gib(facts.total_bytes));
}

std::string line(const std::string& label, const std::string& text) {
  return fmt::format("{:<10}  {}\n", label, text);
}

}  // namespace

DeviceList list_devices() {
  MemoryPool pool;
  const std::unique_ptr<Backend> backend = make_backend(pool, Stream::immediate());
  const std::string missing = missing_for_cuda();
  DeviceList list{.backend = backend->name(),
                  .numerics = backend->numerics(),
                  .kind = device_kind(),
                  .devices = cuda::list_devices(),
                  .no_cuda = missing.empty() ? cuda::obstacle({Device::Kind::cuda, 0})
                                             : "this program lacks " + missing};
  if (list.kind == kEmulated) list.devices.resize(1);  // runs have only the first
  return list;
}

std::string device_table(const DeviceList& list) {
  std::string text = line("cpu", fmt::format("{}: {}", list.backend, list.numerics));
  for (const cuda::DeviceFacts& facts : list.devices)
    text += line(label_of(list, facts),
                 list.kind == kEmulated
                     ? facts.name
                     : fmt::format("{}, compute capability {}, {}, driver for CUDA {}, runtime {}",
                                   facts.name, facts.capability, memory_text(facts), facts.driver,
                                   facts.runtime));
  if (!list.no_cuda.empty()) text += line("cuda", "no training: " + list.no_cuda);
  return text;
}

std::string device_json(const DeviceList& list) {
  nlohmann::ordered_json json;
  json["devices"].push_back(
      {{"device", "cpu"}, {"backend", list.backend}, {"numerics", list.numerics}});
  for (const cuda::DeviceFacts& facts : list.devices) {
    nlohmann::ordered_json device = {{"device", label_of(list, facts)}, {"name", facts.name}};
    if (list.kind != kEmulated) {
      device["compute_capability"] = facts.capability;
      device["driver"] = facts.driver;
      device["runtime"] = facts.runtime;
      device["free_bytes"] = facts.free_bytes;
      device["total_bytes"] = facts.total_bytes;
      device["failure"] = facts.failure;
    }
    json["devices"].push_back(std::move(device));
  }
  json["no_cuda"] = list.no_cuda;
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace wisp
