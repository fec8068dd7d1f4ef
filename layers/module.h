// A part of a model: named parameters, buffers and child modules. Children are ordinary members
// that a module registers by name in its constructor. A module must therefore stay at the address
// where it was built. Used by one thread.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/parameter.h"

namespace wisp {

class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// All parameters of this module and its children, in order of registration. Their names are full
  /// paths from the outermost module, whichever module is asked. Call it on the outermost one
  /// before FlatParameters takes them.
  std::vector<Parameter*> parameters() { return collect<Parameter>(&Module::parameters_); }
  std::vector<Buffer*> buffers() { return collect<Buffer>(&Module::buffers_); }

 protected:
  /// Registers a parameter of this module. `kind` is that of its layer, for policies. Throws Error
  /// for a shape without elements.
  Parameter& parameter(const std::string& name, Shape shape, Init init, bool decay = true,
                       std::string kind = {}) {
    WISP_CHECK(shape.numel() > 0, "parameter ", name, " is ", shape, ", expected no extent of 0");
    return parameters_.emplace_back(
        Parameter{path_ + name, shape, init, decay, {}, false, std::move(kind)});
  }
  /// Registers a buffer, with every element `initial`.
  Buffer& buffer(const std::string& name, Shape shape, double initial) {
    return buffers_.emplace_back(Buffer{path_ + name, shape, initial, {}});
  }
  /// Registers a member as a child. Its parameters get the prefix "NAME.". Throws Error if it is a
  /// child already.
  void child(const std::string& name, Module& module) {
    WISP_CHECK(module.path_.empty(), "child ", name, " is already a child, with the path ",
               module.path_, " before its names; a module has one place");
    module.move_below(path_ + name + ".");
    children_.push_back(&module);
  }

 private:
  template <class T>
  std::vector<T*> collect(std::deque<T> Module::*member) {
    std::vector<T*> found;
    for (T& own : this->*member) found.push_back(&own);
    for (Module* module : children_)
      for (T* below : module->collect(member)) found.push_back(below);
    return found;
  }

  /// Puts `path` before the names of all that is registered here or below.
  void move_below(const std::string& path) {
    path_ = path + path_;
    for (Parameter& own : parameters_) own.name = path + own.name;
    for (Buffer& own : buffers_) own.name = path + own.name;
    for (Module* module : children_) module->move_below(path);
  }

  std::string path_;                  // from the outermost module known so far: "stage1.block0."
  std::deque<Parameter> parameters_;  // a deque keeps references valid
  std::deque<Buffer> buffers_;
  std::vector<Module*> children_;
};

}  // namespace wisp
