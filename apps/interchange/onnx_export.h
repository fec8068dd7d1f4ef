// A model as an ONNX graph, whatever ops it is made of: from the log of one forward pass.
#pragma once

#include <string>

#include "apps/setup/replica.h"

namespace wisp {

/// The content of an ONNX file, opset 17. Input "input", what the loader hands to the model, as (N,
/// C, H, W) f32; output "logits" (N, classes); N is free. Initializers have the model's exchange
/// names. Norms evaluate with this replica's running statistics. Throws Error that names an op
/// without an ONNX form.
std::string onnx_model(Replica& replica, const Facts& facts);

}  // namespace wisp
