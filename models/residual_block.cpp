#include "models/residual_block.h"

#include <string>

namespace wisp {

ResidualBlock::ResidualBlock(int in, int width, const ResidualBlockOptions& options)
    : out_(options.bottleneck ? kExpansion * width : width),
      stride_(options.stride),
      same_shape_(in == out_ && options.stride == 1) {
  const double last_scale = options.zero_init ? 0.0 : 1.0;
  if (options.bottleneck) {
    add(in, width, 1, 1);
    add(width, width, 3, stride_);
    add(width, out_, 1, 1, last_scale);
  } else {
    add(in, width, 3, stride_);
    add(width, out_, 3, 1, last_scale);
  }
  if (same_shape_ || options.shortcut == Shortcut::pad) return;
  child("shortcut.conv", projection_.emplace(in, out_, 1, ConvOptions{.stride = stride_}));
  child("shortcut.norm", projection_norm_.emplace(out_));
}

void ResidualBlock::add(int in, int out, int kernel, int64_t stride, double scale) {
  const std::string number = std::to_string(convs_.size() + 1);
  child("conv" + number,
        convs_.emplace_back(in, out, kernel, ConvOptions{.stride = stride, .pad = kernel / 2}));
  child("norm" + number, norms_.emplace_back(out, scale));
}

Variable ResidualBlock::shortcut(const Variable& x) const {
  if (same_shape_) return x;
  if (!projection_) return pad_channels(x, out_, stride_);
  return (*projection_norm_)((*projection_)(x));
}

Variable ResidualBlock::operator()(const Variable& x) const {
  const Variable residual = shortcut(x);
  Variable inner = x;
  for (size_t i = 0; i + 1 < convs_.size(); ++i)
    inner = norms_[i](convs_[i](inner), {.relu = true});
  return norms_.back()(convs_.back()(inner), {.relu = true, .residual = &residual});
}

}  // namespace wisp
