// Recurrent layers on packed products (core/cpu/packed_product.h), for activations of f32 and bf16.
// Arguments are as in RecurrentLayers. `workspace` has rnn_workspace() bytes, aligned to 64. Called
// inside the stream's tasks.
#pragma once

#include <span>

#include "core/rnn.h"

namespace wisp {

enum class RnnPass { forward, dx, dw };

template <class T>
int64_t rnn_kept_bytes(const RnnSpec& spec);

template <class T>
int64_t rnn_workspace(const RnnSpec& spec, RnnPass pass);

template <class T>
void rnn_forward(const RnnSpec& spec, const Tensor& x, std::span<const RnnWeights> weights,
                 const RnnState& before, const Tensor& y, const RnnState& after,
                 const Tensor& saved, std::byte* workspace);

template <class T>
void rnn_dx(const RnnSpec& spec, const Tensor& y, const Tensor& dy,
            std::span<const RnnWeights> weights, const RnnState& before, const Tensor& saved,
            const GradSlot& dx, std::byte* workspace);

template <class T>
void rnn_dw(const RnnSpec& spec, const Tensor& x, const Tensor& y, const RnnState& before,
            const Tensor& saved, std::span<const RnnGradients> gradients, std::byte* workspace);

}  // namespace wisp
