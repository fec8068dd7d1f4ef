// The kind of content that a synchronizer left in a segment's gradient arena. It selects the
// optimizer's update. A value.
#pragma once

namespace wisp {

enum class UpdateRule {
  gradient,  // a gradient: the optimizer applies its whole rule
  momentum,  // a momentum: it replaces the optimizer's; decay still applies
  update     // an update with momentum and decay: w -= lr · update
};

}  // namespace wisp
