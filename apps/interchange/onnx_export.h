// A translation of a model of any ops to an ONNX graph. One thread.
#pragma once

#include <string>

#include "core/facts.h"
#include "core/parameter.h"
#include "models/model.h"

namespace wisp {

/// The content of an ONNX file, opset 17, of a model in evaluation. `context` made the parameters.
///   inputs     named as in `facts`, (N, …) with any N, f32, i32 or i64; an image is
///              (N, C, H, W). A sequence, whose model carries state, has one position:
///              (1, N, …). A padded input has one sample of any length: (1, frames, …)
///   state_I    tensor I of the carried state, (N, …) f32; zeros at the beginning
///   "logits"   the model's output
///   state_I_after   state_I of the next position
/// Every value of rank 4 is channels first. Initializers have the model's exchange names, the first
/// one of a weight with several. A recurrent layer that reads whole sequences has stacked weights
/// in ONNX's order of gates, named after the first one plus ".W", ".R" or ".B". A graph has one
/// position of any batch, or one sample of any frames. Throws Error for a model that needs more: a
/// sequence without state, padded samples with state, other variable extents, lengths of output
/// rows, or numbers that grow with batch or frames but are no multiples of them. Throws Error that
/// names an op without an ONNX form.
std::string onnx_model(Context& context, Model& model, const FlatParameters& parameters,
                       const Facts& facts);

}  // namespace wisp
