#include "cudnn/replay/execution.hpp"

#include <algorithm>
#include <ashlar/check.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/fill.hpp"

namespace ashlar::replay {

namespace {

using nlohmann::json;

// A recorded scalar: a number, "-inf", or the bits of a 16-bit value ("raw:15360").
void write_scalar(const Tensor& tensor, std::byte* data, const json& value) {
  if (value.is_string()) {
    const auto text = value.get<std::string>();
    if (text.starts_with("raw:")) {
      const auto bits = static_cast<std::uint16_t>(std::stoul(text.substr(4), nullptr, 0));
      std::memcpy(data, &bits, sizeof(bits));
      return;
    }
    write_element(tensor, data, 0, std::stod(text));
    return;
  }
  write_element(tensor, data, 0, value.get<double>());
}

// A fully masked attention row is NaN when its operations are evaluated one by one. When they are
// recognised as attention (docs/architecture.md) the row is 0 with statistics of -inf.
void accept_masked_rows(const Tensor& tensor, const std::byte* actual, Expected& expected) {
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    if (!std::isnan(expected.values[i])) continue;
    const double value = read_element(tensor, actual, static_cast<std::int64_t>(i));
    if (value == 0 || value == -std::numeric_limits<double>::infinity()) expected.values[i] = value;
  }
}

}  // namespace

Execution::Execution(const cudnn::BoundPlan& plan, const Device& device, const json& by_value,
                     const std::vector<const cudnn::Record*>& tensors, std::uint64_t seed)
    : plan_(plan), uids_(plan.bindings.size()) {
  for (const auto& position : plan.bindings) uids_[position.pointer] = position.uid;
  const Graph& graph = plan.plan->graph();
  const std::vector<TensorId>& bound = plan.plan->bound_tensors();
  for (std::size_t i = 0; i < bound.size(); ++i) {
    Block& block = blocks_[uids_[i]];
    const auto bytes = static_cast<std::size_t>(byte_size(graph.tensor(bound[i])));
    block.before.resize(std::max(block.before.size(), bytes), std::byte{0xFF});
  }
  fill(by_value, tensors, seed);
  for (const cudnn::Assumption& assumed : plan.assumptions) {
    Tensor one;
    one.dtype = assumed.dtype;
    one.dims = one.strides = {1};
    Block& block = blocks_[assumed.uid];
    block.before.resize(sizeof(double));
    write_scalar(one, block.before.data(), by_value.at(std::to_string(assumed.uid)));
  }
  for (std::size_t i = 0; i < bound.size(); ++i) {
    Block& block = blocks_[uids_[i]];
    if (graph.tensor(bound[i]).kind == TensorKind::scalar || block.memory) continue;
    const auto bytes = static_cast<std::int64_t>(block.before.size());
    block.memory.emplace(device, bytes);
    block.memory->upload(block.before.data(), bytes);
  }
  if (plan.workspace_size() > 0) workspace_.emplace(device, plan.workspace_size());
}

void Execution::fill(const json& by_value, const std::vector<const cudnn::Record*>& tensors,
                     std::uint64_t seed) {
  const Graph& graph = plan_.plan->graph();
  const std::vector<TensorId>& bound = plan_.plan->bound_tensors();
  support::BoundMemory suited(graph);
  support::fill_inputs(suited, seed);
  for (std::size_t i = 0; i < bound.size(); ++i) {
    const Tensor& tensor = graph.tensor(bound[i]);
    if (tensor.kind == TensorKind::output) continue;
    Block& block = blocks_[uids_[i]];
    if (const std::string uid = std::to_string(uids_[i]);
        tensor.kind == TensorKind::scalar && by_value.contains(uid))
      write_scalar(tensor, suited.data(bound[i]), by_value.at(uid));
    // Of several views of one buffer, the largest one initialises it.
    if (static_cast<std::size_t>(byte_size(tensor)) == block.before.size())
      std::copy_n(suited.data(bound[i]), block.before.size(), block.before.begin());
  }
  // Sequences of ragged tensors are consecutive, each with room for the maximum length.
  for (const cudnn::Record* tensor : tensors) {
    const cudnn::Record* offsets = tensor->record_or_null(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC);
    if (offsets == nullptr) continue;
    const cudnn::TensorFacts facts = cudnn::facts_of(*tensor, {}),
                             rows = cudnn::facts_of(*offsets, {});
    const auto block = blocks_.find(rows.uid);
    if (block == blocks_.end()) continue;
    Tensor list;
    list.dtype = rows.dtype;
    list.dims = {facts.dims[0] + 1};
    list.strides = {1};
    const std::int64_t row = facts.dims[2] * facts.strides[2];
    for (std::int64_t b = 0; b <= facts.dims[0]; ++b)
      write_element(list, block->second.before.data(), b, static_cast<double>(b * row));
  }
}

void* Execution::pointer(std::int64_t uid) const {
  const auto found = blocks_.find(uid);
  if (found == blocks_.end()) return nullptr;
  const Block& block = found->second;
  return block.memory ? block.memory->data() : const_cast<std::byte*>(block.before.data());
}

void* Execution::workspace() const { return workspace_ ? workspace_->data() : nullptr; }

std::string Execution::compare(double& worst) {
  const Graph& graph = plan_.plan->graph();
  std::vector<const void*> pointers;
  for (const std::int64_t uid : uids_) pointers.push_back(blocks_.at(uid).before.data());
  std::vector<Expected> expected = evaluate_reference(graph, pointers, plan_.plan->notes());
  const std::vector<TensorId>& bound = plan_.plan->bound_tensors();
  const bool is_recognised =
      plan_.plan->explain().find("to attention_forward") != std::string::npos;
  std::string wrong;
  for (Expected& output : expected) {
    const auto position = static_cast<std::size_t>(
        std::find(bound.begin(), bound.end(), output.tensor) - bound.begin());
    const Block& block = blocks_.at(uids_[position]);
    std::vector<std::byte> after(block.before.size());
    block.memory->download(after.data(), static_cast<std::int64_t>(after.size()));
    if (is_recognised) accept_masked_rows(graph.tensor(output.tensor), after.data(), output);
    const Comparison comparison = output.compare(graph.tensor(output.tensor), after.data());
    if (comparison.worst_bound > 0)
      worst = std::max(worst, comparison.worst_error / comparison.worst_bound);
    if (!comparison.ok) wrong += (wrong.empty() ? "" : "; ") + comparison.summary;
  }
  return wrong;
}

}  // namespace ashlar::replay
