// A model as an ONNX graph, whatever ops it is made of: from the log of one forward pass.
#pragma once

#include <string>

#include "core/parameter.h"
#include "models/model.h"

namespace wisp {

/// The content of an ONNX file, opset 17. Input "input", what the loader hands to the model, as (N,
/// C, H, W) f32; output "logits" (N, classes); N is free. Initializers have the model's exchange
/// names. Norms evaluate with these running statistics. Throws Error that names an op
/// without an ONNX form.
std::string onnx_model(Context context, Model& model, const FlatParameters& parameters,
                       const Facts& facts);

}  // namespace wisp
