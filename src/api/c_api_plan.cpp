// C API: plans.
#include <limits>

#include "api/c_api.hpp"

namespace ashlar::capi {

namespace {

struct Request {
  Device device;
  CompileOptions options;
};

Request request_from_c(const ashlar_compile_options* given) {
  ashlar_compile_options options;
  ashlar_compile_options_init(&options);
  if (given) options = read_sized(*given, sizeof(ashlar_compile_options), options);
  if (options.workspace_limit < 0)
    fail(ErrorCode::invalid_argument, "workspace_limit: got {}, expected 0 or more",
         options.workspace_limit);
  CompileOptions result;
  result.deterministic = options.deterministic != 0;
  result.allow_tf32 = options.allow_tf32 != 0;
  result.allow_winograd = options.allow_winograd != 0;
  result.fuse = options.fuse != 0;
  result.reference_only = options.reference_only != 0;
  result.guard = options.guard != 0;
  result.workspace_limit = options.workspace_limit;
  return {device_from_c(options.device), result};
}

const Tensor& bound_tensor(const ashlar_plan* plan, std::int32_t index) {
  const Plan& source = require(plan, "plan").plan;
  const std::vector<TensorId>& bound = source.bound_tensors();
  if (index < 0 || std::cmp_greater_equal(index, bound.size()))
    fail(ErrorCode::invalid_argument, "index: got {}, expected 0 to {}", index,
         static_cast<std::int64_t>(bound.size()) - 1);
  return source.graph().tensor(bound[static_cast<std::size_t>(index)]);
}

}  // namespace

}  // namespace ashlar::capi

using namespace ashlar;
using namespace ashlar::capi;

extern "C" {

void ashlar_compile_options_init(ashlar_compile_options* options) {
  if (!options) return;
  *options = {};
  options->size = sizeof(*options);
  options->allow_tf32 = 1;
  options->allow_winograd = 1;
  options->fuse = 1;
  options->workspace_limit = std::numeric_limits<int64_t>::max();
}

void ashlar_plan_notes_init(ashlar_plan_notes* notes) {
  if (!notes) return;
  *notes = {};
  notes->size = sizeof(*notes);
}

ashlar_status ashlar_compile(const ashlar_graph* graph, const ashlar_compile_options* options,
                             ashlar_plan** plan) {
  return guard([&] {
    const Graph& source = require(graph, "graph").graph;
    ashlar_plan*& result = require(plan, "plan");
    const Request request = request_from_c(options);
    result = new ashlar_plan{compile(source, request.device, request.options)};
  });
}

ashlar_status ashlar_explain(const ashlar_graph* graph, const ashlar_compile_options* options,
                             char* buffer, size_t capacity, size_t* needed) {
  return guard([&] {
    const Graph& source = require(graph, "graph").graph;
    const Request request = request_from_c(options);
    copy_text(explain(source, request.device, request.options), buffer, capacity, needed);
  });
}

ashlar_status ashlar_plan_from_json(const char* text, size_t length, ashlar_plan** plan) {
  return guard([&] {
    ashlar_plan*& result = require(plan, "plan");
    result = new ashlar_plan{Plan::from_json({&require(text, "text"), length})};
  });
}

void ashlar_plan_destroy(ashlar_plan* plan) { delete plan; }

ashlar_status ashlar_plan_to_json(const ashlar_plan* plan, char* buffer, size_t capacity,
                                  size_t* needed) {
  return guard([&] { copy_text(require(plan, "plan").plan.to_json(), buffer, capacity, needed); });
}

ashlar_status ashlar_plan_explain(const ashlar_plan* plan, char* buffer, size_t capacity,
                                  size_t* needed) {
  return guard([&] { copy_text(require(plan, "plan").plan.explain(), buffer, capacity, needed); });
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
    const PlanNotes& source = require(plan, "plan").plan.notes();
    ashlar_plan_notes result;
    ashlar_plan_notes_init(&result);
    result.deterministic = source.deterministic;
    result.tf32 = source.tf32;
    result.reduced_precision_accumulation = source.reduced_precision_accumulation;
    result.runtime_compiled = source.runtime_compiled;
    result.winograd = source.winograd;
    result.truncating_accumulation = source.truncating_accumulation;
    write_sized(require(notes, "notes"), sizeof(ashlar_plan_notes), result);
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
    write_sized(require(tensor, "tensor"), sizeof(ashlar_tensor), tensor_to_c(found));
  });
}

ashlar_status ashlar_plan_bound_bytes(const ashlar_plan* plan, int32_t index, int64_t* bytes) {
  return guard([&] {
    const Tensor& found = bound_tensor(plan, index);
    require(bytes, "bytes") = byte_size(found);
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
    std::vector<std::pair<std::int64_t, const void*>> pairs;
    for (std::size_t i = 0; i < keys.size(); ++i) pairs.emplace_back(keys[i], values[i]);
    source.run(pairs, workspace, stream);
  });
}

}  // extern "C"
