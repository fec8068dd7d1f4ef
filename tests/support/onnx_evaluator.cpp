#include "tests/support/onnx_evaluator.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <sstream>

#include "tests/support/tensors.h"

namespace wisp {
namespace {

using Ints = std::vector<int64_t>;

int64_t product(const Ints& dims, size_t begin, size_t end) {
  return std::accumulate(dims.begin() + static_cast<std::ptrdiff_t>(begin),
                         dims.begin() + static_cast<std::ptrdiff_t>(end), int64_t{1},
                         std::multiplies<>());
}
int64_t numel(const Ints& dims) { return product(dims, 0, dims.size()); }

/// A node with its inputs and attributes.
struct Node {
  std::vector<const OnnxArray*> in;
  std::map<std::string, Ints> attributes;
  std::map<std::string, std::string> words;

  Ints ints(size_t input) const {
    return {in.at(input)->values.begin(), in.at(input)->values.end()};
  }
  void expect(const std::string& attribute, int64_t value) const {
    WISP_CHECK(attributes.at(attribute) == Ints{value}, "evaluator: ", attribute, " is not ",
               value);
  }
};

template <class F>
OnnxArray each(const OnnxArray& x, F&& f) {
  OnnxArray y = x;
  for (double& value : y.values) value = f(value);
  return y;
}

template <class Op>
OnnxArray both(const Node& node, const Op& op) {
  WISP_CHECK(node.in[0]->dims == node.in[1]->dims, "evaluator: operands of unequal shapes");
  OnnxArray result = *node.in[0];
  for (size_t i = 0; i < result.values.size(); ++i)
    result.values[i] = op(result.values[i], node.in[1]->values[i]);
  return result;
}

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

OnnxArray clip(const Node& node) {
  const double low = node.in[1]->values.at(0), high = node.in[2]->values.at(0);
  return each(*node.in[0], [&](double x) { return std::clamp(x, low, high); });
}

/// Inputs: x (N, C, ...), then scale, bias, mean and variance (C).
OnnxArray batch_normalization(const Node& node) {
  const auto bits = static_cast<int32_t>(node.attributes.at("epsilon").at(0));
  const double epsilon = std::bit_cast<float>(bits);
  const auto of = [&](size_t input, size_t channel) { return node.in[input]->values.at(channel); };
  OnnxArray y = *node.in[0];
  const int64_t channels = y.dims.at(1), width = product(y.dims, 2, y.dims.size());
  for (size_t i = 0; i < y.values.size(); ++i) {
    const auto c = static_cast<size_t>(static_cast<int64_t>(i) / width % channels);
    y.values[i] = (y.values[i] - of(3, c)) / std::sqrt(of(4, c) + epsilon) * of(1, c) + of(2, c);
  }
  return y;
}

OnnxArray gather(const Node& node) {
  node.expect("axis", 0);
  const OnnxArray& table = *node.in[0];
  const int64_t width = product(table.dims, 1, table.dims.size());
  OnnxArray y{node.in[1]->dims, {}};
  y.dims.insert(y.dims.end(), table.dims.begin() + 1, table.dims.end());
  for (const int64_t id : node.ints(1)) {
    const auto row = table.values.begin() + id * width;
    y.values.insert(y.values.end(), row, row + width);
  }
  return y;
}

/// x (N, I) times the transpose of weight (O, I), plus bias (O).
OnnxArray gemm(const Node& node) {
  node.expect("transB", 1);
  const OnnxArray &x = *node.in[0], &weight = *node.in[1];
  WISP_CHECK(x.dims.size() == 2 && weight.dims.size() == 2 && x.dims[1] == weight.dims[1],
             "evaluator: Gemm of other shapes");
  const auto rows = static_cast<size_t>(x.dims[0]), depth = static_cast<size_t>(x.dims[1]),
             columns = static_cast<size_t>(weight.dims[0]);
  OnnxArray y{{x.dims[0], weight.dims[0]}, std::vector<double>(rows * columns)};
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) {
      double sum = node.in.size() > 2 ? node.in[2]->values.at(c) : 0.0;
      for (size_t i = 0; i < depth; ++i)
        sum += x.values[r * depth + i] * weight.values[c * depth + i];
      y.values[r * columns + c] = sum;
    }
  }
  return y;
}

/// A matrix times every matrix of the other operand, which has rank 4.
OnnxArray matmul(const Node& node) {
  const OnnxArray &a = *node.in[0], &b = *node.in[1];
  const Ints &as = a.dims, &bs = b.dims;
  const bool left = as.size() == 2;
  WISP_CHECK(as.size() + bs.size() == 6 && as.back() == bs[bs.size() - 2],
             "evaluator: MatMul of other shapes");
  const int64_t rows = as[as.size() - 2], depth = as.back(), columns = bs.back();
  OnnxArray y{left ? bs : as, {}};
  y.dims[2] = rows;
  y.dims[3] = columns;
  for (int64_t i = 0; i < numel(y.dims); ++i) {
    const int64_t column = i % columns, row = i / columns % rows, batch = i / columns / rows;
    const int64_t of_a = ((left ? 0 : batch) * rows + row) * depth;
    const int64_t of_b = (left ? batch : 0) * depth * columns + column;
    double sum = 0.0;
    for (int64_t k = 0; k < depth; ++k)
      sum += a.values.at(static_cast<size_t>(of_a + k)) *
             b.values.at(static_cast<size_t>(of_b + k * columns));
    y.values.push_back(sum);
  }
  return y;
}

/// x (N, C, H, W) without padding.
OnnxArray max_pool(const Node& node) {
  const OnnxArray& x = *node.in[0];
  const Ints &kernel = node.attributes.at("kernel_shape"), &strides = node.attributes.at("strides"),
             &xs = x.dims;
  WISP_CHECK(node.attributes.at("pads") == Ints(4, 0), "evaluator: MaxPool with padding");
  OnnxArray y{{xs.at(0), xs.at(1), (xs.at(2) - kernel.at(0)) / strides.at(0) + 1,
               (xs.at(3) - kernel.at(1)) / strides.at(1) + 1},
              {}};
  const Ints& ys = y.dims;
  for (int64_t i = 0; i < numel(ys); ++i) {
    const int64_t w = i % ys[3], h = i / ys[3] % ys[2], plane = i / ys[3] / ys[2];
    double most = -std::numeric_limits<double>::infinity();
    for (int64_t k = 0; k < kernel[0] * kernel[1]; ++k) {
      const int64_t row = h * strides[0] + k / kernel[1], column = w * strides[1] + k % kernel[1];
      most =
          std::max(most, x.values.at(static_cast<size_t>((plane * xs[2] + row) * xs[3] + column)));
    }
    y.values.push_back(most);
  }
  return y;
}

/// Inputs: x (N, I, H, W), weight (O, I / group, kH, kW), optionally bias (O).
OnnxArray conv(const Node& node) {
  const OnnxArray &x = *node.in[0], &weight = *node.in[1];
  const Ints &strides = node.attributes.at("strides"), &pads = node.attributes.at("pads"),
             &dilations = node.attributes.at("dilations"), &xs = x.dims, &ws = weight.dims;
  const int64_t outputs = ws.at(0) / node.attributes.at("group").at(0);  // outputs per group
  WISP_CHECK((node.attributes.at("kernel_shape") == Ints{ws.at(2), ws.at(3)}),
             "evaluator: kernel_shape is not the weight's");
  const auto extent = [&](size_t axis) {
    const int64_t reach = dilations.at(axis) * (ws[2 + axis] - 1) + 1;
    return (xs.at(2 + axis) + pads.at(axis) + pads.at(2 + axis) - reach) / strides.at(axis) + 1;
  };
  OnnxArray y{{xs[0], ws[0], extent(0), extent(1)}, {}};
  const Ints& ys = y.dims;
  for (int64_t i = 0; i < numel(ys); ++i) {
    const int64_t w = i % ys[3], h = i / ys[3] % ys[2], o = i / ys[3] / ys[2] % ys[1];
    const int64_t n = i / ys[3] / ys[2] / ys[1];
    double sum = node.in.size() > 2 ? node.in[2]->values.at(static_cast<size_t>(o)) : 0.0;
    for (int64_t k = 0; k < ws[1] * ws[2] * ws[3]; ++k) {
      const int64_t channel = o / outputs * ws[1] + k / ws[3] / ws[2];
      const int64_t row = h * strides[0] - pads[0] + k / ws[3] % ws[2] * dilations[0];
      const int64_t column = w * strides[1] - pads[1] + k % ws[3] * dilations[1];
      if (row < 0 || row >= xs[2] || column < 0 || column >= xs[3]) continue;
      sum +=
          x.values.at(static_cast<size_t>(((n * xs[1] + channel) * xs[2] + row) * xs[3] + column)) *
          weight.values.at(static_cast<size_t>(o * ws[1] * ws[2] * ws[3] + k));
    }
    y.values.push_back(sum);
  }
  return y;
}

/// Extent 0 keeps the input's extent; -1 is computed from the others.
OnnxArray reshape(const Node& node) {
  OnnxArray y{node.ints(1), node.in[0]->values};
  for (size_t i = 0; i < y.dims.size(); ++i)
    if (y.dims[i] == 0) y.dims[i] = node.in[0]->dims.at(i);
  const auto left = std::find(y.dims.begin(), y.dims.end(), -1);
  if (left != y.dims.end()) *left = std::ssize(y.values) / -numel(y.dims);
  WISP_CHECK(numel(y.dims) == std::ssize(y.values), "evaluator: Reshape to another size");
  return y;
}

/// A contiguous range of one axis.
OnnxArray slice(const Node& node) {
  WISP_CHECK(node.in.size() == 4 && node.ints(3).size() == 1, "evaluator: Slice of several axes");
  const auto axis = static_cast<size_t>(node.ints(3)[0]);
  const int64_t begin = node.ints(1).at(0), end = node.ints(2).at(0);
  const OnnxArray& x = *node.in[0];
  WISP_CHECK(0 <= begin && begin <= end && end <= x.dims.at(axis), "evaluator: Slice out of range");
  const int64_t width = product(x.dims, axis + 1, x.dims.size());
  OnnxArray y{x.dims, {}};
  y.dims[axis] = end - begin;
  for (int64_t at = begin * width; at < numel(x.dims); at += x.dims[axis] * width) {
    const auto from = x.values.begin() + at;
    y.values.insert(y.values.end(), from, from + (end - begin) * width);
  }
  return y;
}

OnnxArray concat(const Node& node) {
  const auto axis = static_cast<size_t>(node.attributes.at("axis").at(0));
  OnnxArray y{node.in[0]->dims, {}};
  y.dims.at(axis) = 0;
  for (const OnnxArray* x : node.in) y.dims[axis] += x->dims[axis];
  for (int64_t outer = 0; outer < product(y.dims, 0, axis); ++outer) {
    for (const OnnxArray* x : node.in) {
      const int64_t count = product(x->dims, axis, x->dims.size());
      const auto from = x->values.begin() + outer * count;
      y.values.insert(y.values.end(), from, from + count);
    }
  }
  return y;
}

OnnxArray transpose(const Node& node) {
  const Ints& perm = node.attributes.at("perm");
  const OnnxArray& x = *node.in[0];
  OnnxArray y{{}, {}};
  for (const int64_t axis : perm) y.dims.push_back(x.dims.at(static_cast<size_t>(axis)));
  for (int64_t i = 0; i < numel(x.dims); ++i) {
    int64_t rest = i, from = 0;
    for (size_t axis = perm.size(); axis-- > 0; rest /= y.dims[axis]) {
      const auto source = static_cast<size_t>(perm[axis]);
      from += rest % y.dims[axis] * product(x.dims, source + 1, x.dims.size());
    }
    y.values.push_back(x.values[static_cast<size_t>(from)]);
  }
  return y;
}

/// One position of one direction. x and r are the inputs' and the state's shares of each gate, all
/// units of a gate together. h and c are updated.
void step(const std::string& cell, const std::vector<double>& x, const std::vector<double>& r,
          std::vector<double>& h, std::vector<double>& c) {
  const size_t units = h.size();
  for (size_t u = 0; u < units; ++u) {
    const auto sum = [&](size_t gate) { return x[gate * units + u] + r[gate * units + u]; };
    if (cell == "LSTM") {  // order of gates: i, o, f, c
      c[u] = sigmoid(sum(2)) * c[u] + sigmoid(sum(0)) * std::tanh(sum(3));
      h[u] = sigmoid(sum(1)) * std::tanh(c[u]);
    } else if (cell == "GRU") {  // order of gates: z, r, h
      const double update = sigmoid(sum(0));
      const double candidate = std::tanh(x[2 * units + u] + sigmoid(sum(1)) * r[2 * units + u]);
      h[u] = (1.0 - update) * candidate + update * h[u];
    } else {
      h[u] = std::tanh(sum(0));
    }
  }
}

/// A block of a weight (B, rows, I) times `v`, plus the bias that begins at `bias`.
std::vector<double> product_of(const OnnxArray& weight, int64_t block, const double* v,
                               const double* bias) {
  const int64_t rows = weight.dims[1], width = weight.dims[2];
  std::vector<double> y(bias, bias + rows);
  const double* from = weight.values.data() + block * rows * width;
  for (double& value : y) {
    value = std::inner_product(from, from + width, v, value);
    from += width;
  }
  return y;
}

/// x (T, N, I), weights (D, G H, I) and (D, G H, H), biases (D, 2 G H) -> (T, D, N, H). The initial
/// state is zero.
OnnxArray recurrent(const std::string& cell, const Node& node) {
  const OnnxArray &x = *node.in[0], &w = *node.in[1], &r = *node.in[2], &b = *node.in[3];
  const int64_t positions = x.dims.at(0), sequences = x.dims.at(1), directions = w.dims.at(0);
  const int64_t gates = w.dims.at(1), units = r.dims.at(2);
  if (cell == "GRU") node.expect("linear_before_reset", 1);
  node.expect("hidden_size", units);
  WISP_CHECK(directions == (node.words.count("direction") ? 2 : 1) && w.dims[2] == x.dims.at(2) &&
                 r.dims[1] == gates && b.dims == (Ints{directions, 2 * gates}),
             "evaluator: ", cell, " of other shapes");
  OnnxArray y{{positions, directions, sequences, units}, {}};
  y.values.resize(static_cast<size_t>(numel(y.dims)));
  for (int64_t line = 0; line < directions * sequences; ++line) {
    const int64_t d = line / sequences, n = line % sequences;
    const double* bias = b.values.data() + d * 2 * gates;
    std::vector<double> h(static_cast<size_t>(units)), c = h;
    for (int64_t i = 0; i < positions; ++i) {
      const int64_t t = d == 0 ? i : positions - 1 - i;
      const double* at = x.values.data() + (t * sequences + n) * x.dims[2];
      step(cell, product_of(w, d, at, bias), product_of(r, d, h.data(), bias + gates), h, c);
      std::copy(h.begin(), h.end(), y.values.begin() + (t * directions * sequences + line) * units);
    }
  }
  return y;
}

OnnxArray result_of(const std::string& type, const Node& node) {
  if (type == "Add") return both(node, std::plus<>());
  if (type == "BatchNormalization") return batch_normalization(node);
  if (type == "Clip") return clip(node);
  if (type == "Concat") return concat(node);
  if (type == "Conv") return conv(node);
  if (type == "Flatten") {
    node.expect("axis", 1);
    const OnnxArray& x = *node.in[0];
    return {{x.dims.at(0), product(x.dims, 1, x.dims.size())}, x.values};
  }
  if (type == "Gather") return gather(node);
  if (type == "Gemm") return gemm(node);
  if (type == "GRU" || type == "LSTM" || type == "RNN") return recurrent(type, node);
  if (type == "Identity") return *node.in[0];
  if (type == "MatMul") return matmul(node);
  if (type == "MaxPool") return max_pool(node);
  if (type == "Mul") return both(node, std::multiplies<>());
  if (type == "Relu") return each(*node.in[0], [](double x) { return std::max(x, 0.0); });
  if (type == "Reshape") return reshape(node);
  if (type == "Sigmoid") return each(*node.in[0], sigmoid);
  if (type == "Slice") return slice(node);
  if (type == "Sub") return both(node, std::minus<>());
  if (type == "Tanh") return each(*node.in[0], [](double x) { return std::tanh(x); });
  WISP_CHECK(type == "Transpose", "evaluator: does not know ", type);
  return transpose(node);
}

/// `declared` is like "state_0 1 batch 32". `free` has the known extents by name, such as "batch".
void check_extents(const std::string& declared, const OnnxArrays& inputs,
                   std::map<std::string, int64_t>& free) {
  std::istringstream words(declared);
  std::string name, type;
  words >> name >> type;
  WISP_CHECK(inputs.count(name), "evaluator: no input ", name);
  Ints dims;
  for (std::string word; words >> word;) {
    const size_t axis = dims.size();
    const bool is_number = word.find_first_not_of("0123456789") == std::string::npos;
    dims.push_back(is_number ? std::stoll(word)
                             : free.emplace(word, inputs.at(name).dims.at(axis)).first->second);
  }
  WISP_CHECK(inputs.at(name).dims == dims, "evaluator: ", name, " is not as declared: ", declared);
}

}  // namespace

OnnxArray OnnxArray::of(const Tensor& tensor) {
  OnnxArray array;
  for (int i = 0; i < tensor.shape().rank(); ++i) array.dims.push_back(tensor.shape()[i]);
  if (tensor.dtype() == DType::i32) {
    array.values = {tensor.data<int32_t>(), tensor.data<int32_t>() + tensor.numel()};
  } else {
    array.values = wisp::values(tensor);
  }
  return array;
}

OnnxArrays evaluate(const OnnxFile& file, OnnxArrays arrays) {
  std::map<std::string, int64_t> free;
  for (const std::string& end : file.ends(OnnxFile::kInput)) check_extents(end, arrays, free);
  for (const auto& [name, tensor] : file.initializers) {
    constexpr int64_t kInt64 = 7;
    OnnxArray& array = arrays[name];
    array.dims = file.dims(name);
    if (tensor.number(OnnxFile::kDataType) == kInt64) {
      const std::vector<int64_t> data = file.data<int64_t>(name);
      array.values = {data.begin(), data.end()};
    } else {
      const std::vector<float> data = file.data<float>(name);
      array.values = {data.begin(), data.end()};
    }
  }
  for (size_t i = 0; i < file.nodes.size(); ++i) {
    const ProtobufFields& fields = file.nodes[i];
    Node node{.in = {}, .attributes = file.attributes(i), .words = file.words(i)};
    for (size_t k = 0; k < fields.count(OnnxFile::kNodeInput); ++k)
      node.in.push_back(&arrays.at(fields.text(OnnxFile::kNodeInput, k)));
    arrays[fields.text(OnnxFile::kNodeOutput)] = result_of(fields.text(OnnxFile::kOpType), node);
  }
  return arrays;
}

}  // namespace wisp
