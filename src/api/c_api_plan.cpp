// C API: plans.
#include <algorithm>

#include "api/c_api.hpp"

namespace ashlar::capi {

namespace {

const Tensor& bound_tensor(const ashlar_plan* plan, std::int32_t index) {
  const Plan& source = require(plan, "plan").plan;
  return source.graph().tensor(row_at(source.bound_tensors(), index));
}

}  // namespace

ashlar_plan_notes notes_to_c(const PlanNotes& notes) {
  ashlar_plan_notes result;
  init_sized(&result);
  result.deterministic = notes.deterministic;
  result.tf32 = notes.tf32;
  result.reduced_precision_accumulation = notes.reduced_precision_accumulation;
  result.runtime_compiled = notes.runtime_compiled;
  result.winograd = notes.winograd;
  result.truncating_accumulation = notes.truncating_accumulation;
  return result;
}

}  // namespace ashlar::capi

using namespace ashlar;
using namespace ashlar::capi;

extern "C" {

void ashlar_plan_notes_init(ashlar_plan_notes* notes) { init_sized(notes); }

void ashlar_plan_destroy(ashlar_plan* plan) { delete plan; }

ashlar_status ashlar_plan_to_json(const ashlar_plan* plan, char* buffer, size_t capacity,
                                  size_t* needed) {
  return guard([&] { copy_text(require(plan, "plan").plan.to_json(), buffer, capacity, needed); });
}

ashlar_status ashlar_plan_explain(const ashlar_plan* plan, char* buffer, size_t capacity,
                                  size_t* needed) {
  return guard([&] { copy_text(require(plan, "plan").plan.explain(), buffer, capacity, needed); });
}

ashlar_status ashlar_plan_graph(const ashlar_plan* plan, ashlar_graph** copy) {
  return guard([&] {
    const Plan& source = require(plan, "plan").plan;
    ashlar_graph*& result = require(copy, "copy");
    result = new ashlar_graph{source.graph().clone()};
  });
}

ashlar_status ashlar_plan_device(const ashlar_plan* plan, char* buffer, size_t capacity,
                                 size_t* needed) {
  return guard(
      [&] { copy_text(require(plan, "plan").plan.device().name, buffer, capacity, needed); });
}

ashlar_status ashlar_plan_flops(const ashlar_plan* plan, double* flops) {
  return guard([&] {
    const Plan& source = require(plan, "plan").plan;
    require(flops, "flops") = source.flops();
  });
}

ashlar_status ashlar_plan_workspace_size(const ashlar_plan* plan, int64_t* bytes) {
  return guard([&] {
    const Plan& source = require(plan, "plan").plan;
    require(bytes, "bytes") = source.workspace_size();
  });
}

ashlar_status ashlar_plan_owned_bytes(const ashlar_plan* plan, int64_t* bytes) {
  return guard([&] {
    const Plan& source = require(plan, "plan").plan;
    require(bytes, "bytes") = source.owned_bytes();
  });
}

ashlar_status ashlar_plan_region_count(const ashlar_plan* plan, int32_t* count) {
  return guard([&] {
    const Plan& source = require(plan, "plan").plan;
    require(count, "count") = source.region_count();
  });
}

ashlar_status ashlar_plan_get_notes(const ashlar_plan* plan, ashlar_plan_notes* notes) {
  return guard([&] {
    const Plan& source = require(plan, "plan").plan;
    write_sized(require(notes, "notes"), notes_to_c(source.notes()));
  });
}

ashlar_status ashlar_plan_bound_count(const ashlar_plan* plan, int32_t* count) {
  return guard([&] {
    const Plan& source = require(plan, "plan").plan;
    require(count, "count") = static_cast<int32_t>(source.bound_tensors().size());
  });
}

ashlar_status ashlar_plan_bound_tensor(const ashlar_plan* plan, int32_t index,
                                       ashlar_tensor* tensor) {
  return guard([&] {
    const Tensor& found = bound_tensor(plan, index);
    write_sized(require(tensor, "tensor"), tensor_to_c(found));
  });
}

ashlar_status ashlar_plan_bound_bytes(const ashlar_plan* plan, int32_t index, int64_t* bytes) {
  return guard([&] {
    const Tensor& found = bound_tensor(plan, index);
    require(bytes, "bytes") = byte_size(found);
  });
}

ashlar_status ashlar_plan_find_bound(const ashlar_plan* plan, const char* name, int32_t* index) {
  return guard([&] {
    const Plan& source = require(plan, "plan").plan;
    const std::string_view wanted = require_text(name, "name");
    int32_t& result = require(index, "index");
    const std::vector<TensorId>& bound = source.bound_tensors();
    const auto found = std::find(bound.begin(), bound.end(), source.graph().find_tensor(wanted));
    if (found == bound.end())
      fail(ErrorCode::invalid_argument, "graph '{}' has no bound tensor '{}'",
           source.graph().name(), name);
    result = static_cast<int32_t>(found - bound.begin());
  });
}

ashlar_status ashlar_plan_run(const ashlar_plan* plan, void* const* pointers, int32_t count,
                              void* workspace, void* stream) {
  return guard([&] {
    const Plan& source = require(plan, "plan").plan;
    source.run(require_array(pointers, count, "pointers"), workspace, stream);
  });
}

ashlar_status ashlar_plan_run_by_uid(const ashlar_plan* plan, const int64_t* uids,
                                     void* const* pointers, int32_t count, void* workspace,
                                     void* stream) {
  return guard([&] {
    const Plan& source = require(plan, "plan").plan;
    const std::span<const int64_t> keys = require_array(uids, count, "uids");
    const std::span<void* const> values = require_array(pointers, count, "pointers");
    std::vector<std::pair<std::int64_t, BoundPointer>> pairs;
    for (std::size_t i = 0; i < keys.size(); ++i) pairs.emplace_back(keys[i], values[i]);
    source.run(pairs, workspace, stream);
  });
}

ashlar_status ashlar_plan_region_seconds(const ashlar_plan* plan, void* const* pointers,
                                         int32_t count, void* workspace, void* stream,
                                         double* seconds, int32_t region_count) {
  return guard([&] {
    const Plan& source = require(plan, "plan").plan;
    const std::span<double> result = require_array(seconds, region_count, "seconds");
    if (region_count != source.region_count())
      fail(ErrorCode::invalid_argument, "region_count: got {}, the plan has {} regions",
           region_count, source.region_count());
    const std::vector<double> measured =
        source.region_seconds(require_array(pointers, count, "pointers"), workspace, stream);
    std::copy(measured.begin(), measured.end(), result.begin());
  });
}

ashlar_status ashlar_plan_populate_cuda_graph(const ashlar_plan* plan, void* cuda_graph,
                                              void* const* pointers, int32_t count,
                                              void* workspace) {
  return guard([&] {
    const Plan& source = require(plan, "plan").plan;
    source.populate_cuda_graph(cuda_graph, require_array(pointers, count, "pointers"), workspace);
  });
}

ashlar_status ashlar_plan_update_cuda_graph(const ashlar_plan* plan, void* cuda_graph,
                                            void* const* pointers, int32_t count, void* workspace) {
  return guard([&] {
    const Plan& source = require(plan, "plan").plan;
    source.update_cuda_graph(cuda_graph, require_array(pointers, count, "pointers"), workspace);
  });
}

}  // extern "C"
