// A table of vectors that are looked up by id. Used by the thread of its context.
#pragma once

#include "core/ops.h"
#include "layers/module.h"

namespace wisp {

class Embedding final : public Module {
 public:
  /// `init` is the distribution of the table's first values.
  Embedding(int64_t entries, int64_t width, Init init)
      : weight_(parameter("weight", {entries, width}, init, /*decay=*/true, "embedding")) {}

  /// ids (N) i32 -> (N, width).
  Variable operator()(const Tensor& ids) const { return embedding(weight_.variable, ids); }

  /// The table (entries, width), for a layer that shares it.
  Parameter& weight() { return weight_; }

 private:
  Parameter& weight_;
};

}  // namespace wisp
