// Named factories, the only globals. A component registers itself at namespace scope, before
// threads start:
//   const Registration<Compressor, const Config&> registration("topk", "summary", make_topk);
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace wisp {

template <class Product, class... Args>
class Registry {
 public:
  using Factory = std::function<std::unique_ptr<Product>(Args...)>;
  struct Entry {
    std::string summary;  // one line, with the paper
    Factory make;
  };

  static Registry& instance() {
    static Registry registry;
    return registry;
  }
  void add(const std::string& name, std::string summary, Factory make) {
    const bool added = entries_.emplace(name, Entry{std::move(summary), std::move(make)}).second;
    WISP_CHECK(added, "registry: ", name, " is registered twice");
  }
  const std::map<std::string, Entry>& entries() const { return entries_; }
  /// The names, ascending.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries_) names.push_back(name);
    return names;
  }
  /// Throws Error with the known names if there is no `name`. `what` names the kind of component in
  /// the message: "compression method".
  const Entry& find(const std::string& what, const std::string& name) const {
    const auto found = entries_.find(name);
    if (found != entries_.end()) return found->second;
    std::string known;
    for (const auto& [other, entry] : entries_) known += (known.empty() ? "" : ", ") + other;
    throw Error("unknown " + what + " '" + name + "'; known: " + known);
  }

 private:
  std::map<std::string, Entry> entries_;
};

template <class Product, class... Args>
struct Registration {
  Registration(const std::string& name, std::string summary,
               typename Registry<Product, Args...>::Factory make) {
    Registry<Product, Args...>::instance().add(name, std::move(summary), std::move(make));
  }
};

}  // namespace wisp
