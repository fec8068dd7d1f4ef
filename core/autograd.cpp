#include "core/autograd.h"

#include <atomic>
#include <queue>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/loops/parallel.h"
#include "core/op_log.h"

namespace wisp {
namespace autograd {

struct Node {
  const char* op = "constant";
  int64_t order = 0;  // rises with each node that the process makes, so inputs have a lower one
  Context* context = nullptr;
  Shape shape;  // shape of the value and of its gradient
  DType dtype = DType::f32;
  std::vector<std::shared_ptr<Node>> inputs;
  Backward backward;
  bool requires_grad = false;
  bool walked = false;         // a backward pass has come here, and `inputs` may be gone
  GradOwner* owner = nullptr;  // leaves only
  int id = -1;
  Tensor factor;  // rounded copy of the value, if keep_factor() gave one

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

/// What one backward pass knows of the nodes that need a gradient. It ends with the pass, so a pass
/// that throws leaves nothing behind for the next one.
struct Inputs::Pass {
  struct Progress {
    int uses = 0;          // uses below the loss that are still to be walked
    bool written = false;  // some use has asked for the slot
    Tensor grad;           // not of a leaf
  };

  BackwardOptions options;
  std::unordered_map<const Node*, Progress> nodes;
};

bool Inputs::wanted(size_t i) const { return node_.inputs.at(i)->requires_grad; }

GradSlot Inputs::slot(size_t i) {
  Node& input = *node_.inputs.at(i);
  Pass::Progress& progress = pass_.nodes[&input];
  const bool first = !std::exchange(progress.written, true);
  if (input.owner) return {input.owner->gradient(input.id), !first || pass_.options.accumulate};
  if (first) progress.grad = input.context->empty(input.shape, input.dtype);
  return {progress.grad, !first};
}

GradSlot Inputs::slot(size_t i, const Tensor& spent) {
  Node& input = *node_.inputs.at(i);
  Pass::Progress& progress = pass_.nodes[&input];
  if (!input.owner && !progress.written && spent.shape() == input.shape &&
      spent.dtype() == input.dtype && spent.sole_owner()) {
    progress.written = true;
    progress.grad = spent;
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

void check_unwalked(const Node& node, const Node& root) {
  WISP_CHECK(!node.walked, "backward: the loss (", root.op, ") ",
             &node == &root ? concat("of shape ", node.shape, " was walked already")
                            : concat("depends on ", node.op, " of shape ", node.shape,
                                     ", which was walked already"),
             " by an earlier backward(), which frees what it walks; add losses that share a part "
             "of the graph and call backward() once, or run that part's forward pass again");
}

/// The uses, below `root`, of each node that needs a gradient.
std::unordered_map<const Node*, Inputs::Pass::Progress> count_uses(const Node& root) {
  check_unwalked(root, root);
  std::unordered_map<const Node*, Inputs::Pass::Progress> nodes;
  std::vector<const Node*> pending{&root};
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    for (const std::shared_ptr<Node>& input : node->inputs) {
      if (!input->requires_grad) continue;
      check_unwalked(*input, root);
      if (nodes[input.get()].uses++ == 0) pending.push_back(input.get());
    }
  }
  return nodes;
}

}  // namespace

void backward(const Variable& loss, BackwardOptions options) {
  WISP_CHECK(loss.requires_grad(),
             "backward: nothing to differentiate: no parameter led to this loss");
  const Node& root = *loss.node();
  WISP_CHECK(!root.owner, "backward: the loss is a parameter, expected the result of an op");
  WISP_CHECK(root.shape.numel() == 1, "backward: the loss (", root.op, ") has shape ", root.shape,
             ", expected one element");
  Inputs::Pass pass{options, count_uses(root)};
  Tensor& seed = pass.nodes[&root].grad;
  seed = root.context->empty(root.shape, root.dtype);
  dispatch_float(root.dtype, "backward", [&]<class T>(T) {
    run_once(root.context->stream, Store<T>{seed.data<T>(), static_cast<T>(options.seed)});
  });

  const auto older = [](const auto& a, const auto& b) { return a->order < b->order; };
  using Nodes = std::vector<std::shared_ptr<Node>>;
  std::priority_queue<std::shared_ptr<Node>, Nodes, decltype(older)> ready(older);
  ready.push(loss.node());
  while (!ready.empty()) {
    const std::shared_ptr<Node> node = ready.top();
    ready.pop();
    Tensor& grad = pass.nodes[node.get()].grad;
    Inputs inputs(*node, pass);
    node->walked = true;  // also if it throws: it may have written over what it saved
    node->backward(grad, inputs);
    node->backward = nullptr;
    grad = {};
    for (std::shared_ptr<Node>& input : node->inputs) {
      if (!input->requires_grad) continue;
      Inputs::Pass::Progress& progress = pass.nodes[input.get()];
      if (--progress.uses > 0) continue;
      WISP_CHECK(progress.written, "backward: ", node->op, " gave no gradient to its input ",
                 input->op, " of shape ", input->shape);
      if (!input->owner) {
        ready.push(std::move(input));
      } else if (options.notify) {
        input->owner->ready(input->id);
      }
    }
    node->inputs.clear();
  }
}

}  // namespace wisp
