#include "apps/method_list.h"

#include <fmt/format.h>

#include "compression/compressor.h"
#include "compression/ratio_schedule.h"

namespace wisp {

std::string list_methods() {
  std::string text;
  for (const auto& [name, entry] : CompressorRegistry::instance().entries()) {
    text += fmt::format("{:<12} {}\n", name, entry.summary);
  }
  return text;
}

std::string describe_method(const std::string& name) {
  const auto& entry = CompressorRegistry::instance().find("compression method", name);
  Config config;
  const std::unique_ptr<Compressor> compressor = entry.make(config, {});
  if (compressor && compressor->traits().sparse) RatioSchedule schedule(config);
  std::string text = fmt::format("{}: {}\n", name, entry.summary);
  for (const ConfigKey& key : config.keys()) {
    text += fmt::format("  {} ({}, default {})\n      {}\n", key.name, key.type, key.initial,
                        key.meaning);
  }
  return text;
}

}  // namespace wisp
