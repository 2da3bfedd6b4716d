// The public classes Plan and Binding.
#include <ashlar/inspect.hpp>

#include "plan/plan_data.hpp"

namespace ashlar {

namespace {

std::size_t position_of(const PlanData& plan, std::string_view name) {
  for (std::size_t i = 0; i < plan.bound.size(); ++i)
    if (plan.graph.tensor(plan.bound[i]).name == name) return i;
  std::string known;
  for (TensorId id : plan.bound) known += (known.empty() ? "" : ", ") + plan.graph.tensor(id).name;
  fail(ErrorCode::invalid_argument, "binding: got '{}', expected one of: {}", name, known);
}

std::size_t position_of(const PlanData& plan, std::int64_t uid) {
  for (std::size_t i = 0; i < plan.bound.size(); ++i)
    if (plan.graph.tensor(plan.bound[i]).uid == uid) return i;
  fail(ErrorCode::invalid_argument,
       "binding: got uid {}, expected that of an input, scalar or output", uid);
}

}  // namespace

Binding::Binding(std::shared_ptr<const PlanData> plan)
    : plan_(std::move(plan)), pointers_(plan_->bound.size()) {}
void Binding::set(std::string_view name, BoundPointer pointer) {
  set_at(position_of(*plan_, name), pointer);
}
void Binding::set(std::int64_t uid, BoundPointer pointer) {
  set_at(position_of(*plan_, uid), pointer);
}
void Binding::set_at(std::size_t position, BoundPointer pointer) {
  const Tensor& tensor = plan_->graph.tensor(plan_->bound[position]);
  if (pointer.is_const_ && tensor.kind == TensorKind::output)
    fail(ErrorCode::invalid_argument,
         "binding: pointer of output '{}': got a const one, expected a mutable one", tensor.name);
  pointers_[position] = pointer.memory_;
}

Plan::Plan(std::shared_ptr<const PlanData> data) : data_(std::move(data)) {}
std::int64_t Plan::workspace_size() const { return data_->workspace_bytes; }
std::int64_t Plan::owned_bytes() const { return data_->owned_bytes; }
const PlanNotes& Plan::notes() const { return data_->notes; }
const Graph& Plan::graph() const { return data_->graph; }
const DeviceProps& Plan::device() const { return data_->device; }
int Plan::region_count() const { return static_cast<int>(data_->steps.size()); }
double Plan::flops() const {
  double total = 0;
  for (const PlanData::Step& step : data_->steps) total += step.region.flops();
  return total;
}
const std::vector<TensorId>& Plan::bound_tensors() const { return data_->bound; }
std::string Plan::explain() const { return data_->explain(); }
Inspection Plan::inspect() const { return data_->inspect(); }
std::vector<double> Plan::region_seconds(std::span<void* const> pointers, void* workspace,
                                         void* stream) const {
  return data_->region_seconds(pointers, workspace, stream);
}
Binding Plan::binding() const { return Binding(data_); }

void Plan::run(std::initializer_list<std::pair<std::string_view, BoundPointer>> pointers,
               void* workspace, void* stream) const {
  Binding prepared(data_);
  for (const auto& [name, pointer] : pointers) prepared.set(name, pointer);
  run(prepared, workspace, stream);
}

void Plan::run(std::span<const std::pair<std::int64_t, BoundPointer>> pointers, void* workspace,
               void* stream) const {
  Binding prepared(data_);
  for (const auto& [uid, pointer] : pointers) prepared.set(uid, pointer);
  run(prepared, workspace, stream);
}

void Plan::run(const Binding& binding, void* workspace, void* stream) const {
  if (binding.plan_ != data_)
    fail(ErrorCode::invalid_argument, "run: got a binding of another plan");
  data_->run(binding.pointers_, workspace, stream);
}

void Plan::run(std::span<void* const> pointers, void* workspace, void* stream) const {
  data_->run(pointers, workspace, stream);
}

}  // namespace ashlar
