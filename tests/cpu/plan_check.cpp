// PlanCheck: compiles, runs and compares a graph with the oracle.
#include "cpu/plan_check.hpp"

#include <algorithm>
#include <memory>

namespace ashlar::cpu {

namespace {

constexpr std::size_t kAlignment = 64;  // workspace alignment
constexpr std::byte kStale{0xA5};       // content of outputs before a run

}  // namespace

PlanCheck::PlanCheck(Graph graph) : graph_(std::move(graph)), bound_(graph_.bound_tensors()) {
  for (TensorId id : bound_) {
    const Tensor& tensor = graph_.tensor(id);
    memory_.emplace_back(static_cast<std::size_t>(std::max<std::int64_t>(byte_size(tensor), 8)),
                         kStale);
    if (tensor.kind != TensorKind::output) fill_random(tensor, memory_.back().data(), seed_++);
  }
}

std::size_t PlanCheck::slot(std::string_view name) const {
  const TensorId id = graph_.find_tensor(name);
  const auto found = std::find(bound_.begin(), bound_.end(), id);
  EXPECT_NE(found, bound_.end()) << name;
  return static_cast<std::size_t>(found - bound_.begin());
}

void PlanCheck::fill(std::string_view name, double low, double high) {
  const std::size_t at = slot(name);
  fill_random(graph_.tensor(bound_[at]), memory_[at].data(), seed_++, low, high);
}

void PlanCheck::set(std::string_view name, const std::vector<double>& values) {
  const std::size_t at = slot(name);
  for (std::size_t i = 0; i < values.size(); ++i)
    write_element(graph_.tensor(bound_[at]), memory_[at].data(), static_cast<std::int64_t>(i),
                  values[i]);
}

std::vector<double> PlanCheck::get(std::string_view name) const {
  const std::size_t at = slot(name);
  const Tensor& tensor = graph_.tensor(bound_[at]);
  std::vector<double> values;
  for (std::int64_t i = 0; i < number_count(tensor); ++i)
    values.push_back(read_element(tensor, memory_[at].data(), i));
  return values;
}

std::vector<const void*> PlanCheck::readable() const {
  std::vector<const void*> pointers;
  for (const auto& block : memory_) pointers.push_back(block.data());
  return pointers;
}

void PlanCheck::expect_within_bounds(const std::string& context, const PlanNotes& notes) {
  for (const Expected& expected : evaluate_reference(graph_, readable(), notes)) {
    const auto found = std::find(bound_.begin(), bound_.end(), expected.tensor);
    ASSERT_NE(found, bound_.end());
    const auto& block = memory_[static_cast<std::size_t>(found - bound_.begin())];
    const Comparison comparison = expected.compare(graph_.tensor(expected.tensor), block.data());
    EXPECT_TRUE(comparison.ok) << comparison.summary << "\n" << context;
    const std::int64_t elements = element_count(graph_.tensor(expected.tensor).dims);
    EXPECT_EQ(comparison.compared > 0, elements > 0) << context;
  }
}

void PlanCheck::run(const Plan& plan) {
  std::vector<std::byte> block(static_cast<std::size_t>(plan.workspace_size()) + kAlignment);
  void* workspace = block.data();
  std::size_t space = block.size();
  ASSERT_NE(std::align(kAlignment, block.size() - kAlignment, workspace, space), nullptr);
  std::vector<void*> pointers;
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    if (graph_.tensor(bound_[i]).kind == TensorKind::output)
      std::fill(memory_[i].begin(), memory_[i].end(), kStale);
    pointers.push_back(memory_[i].data());
  }
  plan.run(std::span<void* const>(pointers), workspace);
}

void PlanCheck::expect_agrees(std::string_view engine, CompileOptions options,
                              const Device& device) {
  options.guard = true;
  for (const EngineInfo& info : engines(DeviceKind::cpu))
    if (info.id == engine) options.engine = info.id;
  const Plan plan = compile(graph_, device, options);
  const std::string explanation = plan.explain();
  // The plan's JSON names the engine of each region and no other.
  EXPECT_NE(plan.to_json().find(engine), std::string::npos) << "expected " << engine << " in\n"
                                                            << explanation;
  run(plan);
  const std::vector<std::vector<std::byte>> first = memory_;
  run(plan);
  EXPECT_EQ(first, memory_) << "two runs differ\n" << explanation;
  expect_within_bounds(explanation, plan.notes());

  for (std::size_t i = 0; i < bound_.size(); ++i)
    if (const Tensor& tensor = graph_.tensor(bound_[i]); tensor.kind == TensorKind::input)
      options.constants.emplace_back(tensor.name, memory_[i].data());
  run(compile(graph_, device, options));
  expect_within_bounds("with constants: " + explanation, plan.notes());
}

}  // namespace ashlar::cpu
