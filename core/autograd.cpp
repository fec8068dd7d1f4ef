#include "core/autograd.h"

#include <atomic>
#include <queue>
#include <unordered_set>
#include <utility>

#include "core/base/error.h"
#include "core/loops/parallel.h"
#include "core/op_log.h"

namespace wisp {
namespace autograd {

struct Node {
  const char* op = "constant";
  int64_t order = 0;  // creation order in its thread
  Context* context = nullptr;
  Shape shape;  // shape of the value and of its gradient
  DType dtype = DType::f32;
  std::vector<std::shared_ptr<Node>> inputs;
  Backward backward;
  bool requires_grad = false;
  GradOwner* owner = nullptr;  // leaves only
  int id = -1;
  Tensor factor;  // rounded copy of the value, if keep_factor() gave one
  // state of the only backward pass
  int uses = 0;
  Tensor grad;

  /// Releases the inputs in a loop: recursion would be as deep as the graph.
  ~Node() {
    std::vector<std::shared_ptr<Node>> pending = std::move(inputs);
    while (!pending.empty()) {
      const std::shared_ptr<Node> next = std::move(pending.back());
      pending.pop_back();
      if (next.use_count() > 1) continue;
      for (std::shared_ptr<Node>& input : next->inputs) pending.push_back(std::move(input));
      next->inputs.clear();
    }
  }
};

}  // namespace autograd

using autograd::Node;

Variable::Variable(Context& context, Tensor value)
    : value_(std::move(value)), node_(std::make_shared<Node>()) {
  static std::atomic<int64_t> created{0};
  node_->order = created++;
  node_->context = &context;
  node_->shape = value_.shape();
  node_->dtype = value_.dtype();
}

Variable Variable::leaf(Context& context, Tensor value, GradOwner& owner, int id) {
  Variable variable(context, std::move(value));
  variable.node()->op = "leaf";
  variable.node()->requires_grad = true;
  variable.node()->owner = &owner;
  variable.node()->id = id;
  return variable;
}

const Tensor& Variable::value() const {
  WISP_CHECK(node_, "Variable: used before it was given a value");
  return value_;
}

const Tensor& Variable::factor(DType type) const {
  const Tensor& exact = value();
  return node_->factor.defined() && node_->factor.dtype() == type ? node_->factor : exact;
}

void Variable::keep_factor(Tensor copy) {
  WISP_CHECK(copy.shape() == shape(), "Variable: a factor of shape ", copy.shape(), ", expected ",
             shape());
  node_->factor = std::move(copy);
}

Context& Variable::context() const {
  WISP_CHECK(node_, "Variable: used before it was given a value");
  return *node_->context;
}

bool Variable::requires_grad() const { return node_ && node_->requires_grad; }

Variable record(const char* op, Tensor value, const std::vector<Variable>& inputs,
                Backward backward, std::initializer_list<OpAttribute> attributes) {
  WISP_CHECK(!inputs.empty(), op, ": an op needs an input");
  Variable result(inputs.front().context(), std::move(value));
  bool wanted = false;
  for (const Variable& input : inputs) {
    WISP_CHECK(input.defined(), op, ": an input was used before it was given a value");
    wanted |= input.requires_grad();
  }
  result.node()->op = op;
  if (wanted && result.context().recording) {
    result.node()->requires_grad = true;
    for (const Variable& input : inputs) result.node()->inputs.push_back(input.node());
    result.node()->backward = std::move(backward);
  }
  if (std::vector<LoggedOp>* log = result.context().log) {
    LoggedOp& logged = log->emplace_back(LoggedOp{op, inputs, result, {}, {}});
    for (const OpAttribute& attribute : attributes)
      logged.attributes[attribute.name] = attribute.value;
  }
  return result;
}

struct Inputs::Pass {
  BackwardOptions options;
  std::unordered_set<const Node*> leaves_written;
};

bool Inputs::wanted(size_t i) const { return node_.inputs.at(i)->requires_grad; }

GradSlot Inputs::slot(size_t i) {
  Node& input = *node_.inputs.at(i);
  if (input.owner) {
    const bool first = pass_.leaves_written.insert(&input).second;
    return {input.owner->gradient(input.id), !first || pass_.options.accumulate};
  }
  const bool first = !input.grad.defined();
  if (first) input.grad = input.context->empty(input.shape, input.dtype);
  return {input.grad, !first};
}

GradSlot Inputs::slot(size_t i, const Tensor& spent) {
  Node& input = *node_.inputs.at(i);
  if (!input.owner && !input.grad.defined() && spent.shape() == input.shape &&
      spent.dtype() == input.dtype && spent.sole_owner()) {
    input.grad = spent;
    return {spent, false};
  }
  return slot(i);
}

namespace {

template <class T>
struct Store {
  T* into;
  T value;
  WISP_HD void operator()() const { *into = value; }
};

/// Counts in Node::uses the uses, below `root`, of each node that needs a gradient.
void count_uses(Node& root) {
  std::vector<Node*> pending{&root};
  while (!pending.empty()) {
    Node* node = pending.back();
    pending.pop_back();
    for (const std::shared_ptr<Node>& input : node->inputs) {
      if (input->requires_grad && input->uses++ == 0) pending.push_back(input.get());
    }
  }
}

}  // namespace

void backward(const Variable& loss, BackwardOptions options) {
  WISP_CHECK(loss.requires_grad(),
             "backward: nothing to differentiate: no parameter led to this loss, or the graph "
             "was walked already");
  Node& root = *loss.node();
  WISP_CHECK(root.shape.numel() == 1, "backward: the loss (", root.op, ") has shape ", root.shape,
             ", expected one element");
  count_uses(root);
  root.grad = root.context->empty(root.shape, root.dtype);
  dispatch_float(root.dtype, "backward", [&]<class T>(T) {
    run_once(root.context->stream, Store<T>{root.grad.data<T>(), static_cast<T>(options.seed)});
  });

  Inputs::Pass pass{options, {}};
  const auto older = [](const auto& a, const auto& b) { return a->order < b->order; };
  using Nodes = std::vector<std::shared_ptr<Node>>;
  std::priority_queue<std::shared_ptr<Node>, Nodes, decltype(older)> ready(older);
  ready.push(loss.node());
  while (!ready.empty()) {
    const std::shared_ptr<Node> node = ready.top();
    ready.pop();
    Inputs inputs(*node, pass);
    node->backward(node->grad, inputs);
    node->backward = nullptr;
    node->grad = {};
    for (std::shared_ptr<Node>& input : node->inputs) {
      if (!input->requires_grad || --input->uses > 0) continue;
      if (!input->owner) {
        ready.push(std::move(input));
      } else if (options.notify) {
        input->owner->ready(input->id);
      }
    }
    node->inputs.clear();
    node->requires_grad = false;
  }
}

}  // namespace wisp
