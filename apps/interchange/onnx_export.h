// A model as an ONNX graph, whatever ops it is made of.
#pragma once

#include <string>

#include "core/facts.h"
#include "core/parameter.h"
#include "models/model.h"

namespace wisp {

/// The content of an ONNX file, opset 17, of a model in evaluation. `context` is the one that the
/// parameters were made with.
///   inputs     by their names in `facts`, (N, …), an image (N, C, H, W); a sequence, whose model
///              carries state, has one position: (1, N, …); f32, i32 or i64; N is free. Of padded
///              samples one is read, (1, frames, …), whose number of frames is free, not N
///   state_I    tensor I that the model carries, (N, …) f32: what went before, zeros at a beginning
///   "logits"   the model's output
///   state_I_after   what becomes state_I of the next position
/// Every value of rank 4 is channels first. Initializers have the model's exchange names, the first
/// of a weight that has several; those of a recurrent layer that reads whole sequences, stacked and
/// in ONNX's order of gates, the first one's with ".W", ".R" or ".B" behind. Throws Error that
/// names an op without an ONNX form, and for what a graph of one position and any batch, or of one
/// sample and any frames, cannot say: a sequence without state, padded samples with one, extents
/// that vary otherwise, lengths of output rows, numbers that depend on the batch or the frames but
/// are no multiple of them.
std::string onnx_model(Context& context, Model& model, const FlatParameters& parameters,
                       const Facts& facts);

}  // namespace wisp
