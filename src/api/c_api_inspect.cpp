// C API: inspections as values.
#include <ashlar/inspect.hpp>

#include "api/c_api.hpp"

static_assert(static_cast<int>(ashlar::ComputeMethod::tensor_cores) == ASHLAR_METHOD_TENSOR_CORES);

struct ashlar_inspection {
  ashlar::Inspection value;
};

namespace ashlar::capi {

namespace {

const Inspection& require_value(const ashlar_inspection* inspection) {
  return require(inspection, "inspection").value;
}

template <class Rows>
std::int32_t count_of(const Rows& rows) {
  return static_cast<std::int32_t>(rows.size());
}

}  // namespace

}  // namespace ashlar::capi

using namespace ashlar;
using namespace ashlar::capi;

extern "C" {

void ashlar_inspected_plan_init(ashlar_inspected_plan* plan) { init_sized(plan); }
void ashlar_inspected_region_init(ashlar_inspected_region* region) { init_sized(region); }
void ashlar_engine_attempt_init(ashlar_engine_attempt* attempt) { init_sized(attempt); }
void ashlar_region_boundary_init(ashlar_region_boundary* boundary) { init_sized(boundary); }

ashlar_status ashlar_inspect(const ashlar_graph* graph, const ashlar_compile_options* options,
                             ashlar_inspection** inspection) {
  return guard([&] {
    const Graph& source = require(graph, "graph").graph;
    ashlar_inspection*& result = require(inspection, "inspection");
    const Request request = request_from_c(options);
    result = new ashlar_inspection{ashlar::inspect(source, request.device, request.options)};
  });
}

ashlar_status ashlar_plan_inspect(const ashlar_plan* plan, ashlar_inspection** inspection) {
  return guard([&] {
    const Plan& source = require(plan, "plan").plan;
    ashlar_inspection*& result = require(inspection, "inspection");
    result = new ashlar_inspection{source.inspect()};
  });
}

void ashlar_inspection_destroy(ashlar_inspection* inspection) { delete inspection; }

ashlar_status ashlar_inspection_plan(const ashlar_inspection* inspection,
                                     ashlar_inspected_plan* plan) {
  return guard([&] {
    const Inspection& source = require_value(inspection);
    ashlar_inspected_plan result;
    init_sized(&result);
    result.seconds = source.seconds();
    result.workspace_bytes = source.workspace_bytes;
    result.owned_bytes = source.owned_bytes;
    result.operations = source.operations;
    result.rewrites = count_of(source.rewrites);
    result.regions = count_of(source.regions);
    write_sized(require(plan, "plan"), result);
  });
}

ashlar_status ashlar_inspection_notes(const ashlar_inspection* inspection,
                                      ashlar_plan_notes* notes) {
  return guard([&] {
    const Inspection& source = require_value(inspection);
    write_sized(require(notes, "notes"), notes_to_c(source.notes));
  });
}

ashlar_status ashlar_inspection_rewrite(const ashlar_inspection* inspection, int32_t index,
                                        const char** sentence) {
  return guard([&] {
    const std::string& found = row_at(require_value(inspection).rewrites, index);
    require(sentence, "sentence") = found.c_str();
  });
}

ashlar_status ashlar_inspection_graph(const ashlar_inspection* inspection, ashlar_graph** copy) {
  return guard([&] {
    const Inspection& source = require_value(inspection);
    ashlar_graph*& result = require(copy, "copy");
    result = new ashlar_graph{source.graph.clone()};
  });
}

ashlar_status ashlar_inspection_region(const ashlar_inspection* inspection, int32_t region,
                                       ashlar_inspected_region* result) {
  return guard([&] {
    const RegionInspection& source = row_at(require_value(inspection).regions, region);
    ashlar_inspected_region found;
    init_sized(&found);
    found.name = source.name.c_str();
    found.engine = source.engine.c_str();
    found.kind = source.kind.c_str();
    found.config = source.config.c_str();
    found.seconds = source.seconds;
    found.flops = source.flops;
    found.bytes = source.bytes;
    found.peak_flops = source.peak_flops;
    found.arithmetic_seconds = source.arithmetic_seconds;
    found.memory_seconds = source.memory_seconds;
    found.scratch_bytes = source.scratch_bytes;
    found.method = static_cast<ashlar_compute_method>(source.method);
    found.nodes = count_of(source.nodes);
    found.attempts = count_of(source.attempts);
    found.boundaries = count_of(source.boundaries);
    write_sized(require(result, "result"), found);
  });
}

ashlar_status ashlar_inspection_node(const ashlar_inspection* inspection, int32_t region,
                                     int32_t index, int32_t* id) {
  return guard([&] {
    const RegionInspection& source = row_at(require_value(inspection).regions, region);
    require(id, "id") = row_at(source.nodes, index);
  });
}

ashlar_status ashlar_inspection_attempt(const ashlar_inspection* inspection, int32_t region,
                                        int32_t index, ashlar_engine_attempt* attempt) {
  return guard([&] {
    const RegionInspection& source = row_at(require_value(inspection).regions, region);
    const EngineAttempt& one = row_at(source.attempts, index);
    ashlar_engine_attempt found;
    init_sized(&found);
    found.engine = one.engine.c_str();
    found.outcome = one.outcome.c_str();
    found.method = static_cast<ashlar_compute_method>(one.method);
    found.is_chosen = one.is_chosen;
    found.is_other_operation = one.is_other_operation;
    write_sized(require(attempt, "attempt"), found);
  });
}

ashlar_status ashlar_inspection_boundary(const ashlar_inspection* inspection, int32_t region,
                                         int32_t index, ashlar_region_boundary* boundary) {
  return guard([&] {
    const Inspection& source = require_value(inspection);
    const RegionBoundary& one = row_at(row_at(source.regions, region).boundaries, index);
    ashlar_region_boundary found;
    init_sized(&found);
    found.value = source.graph.tensor(one.value).name.c_str();
    found.reason = one.reason.c_str();
    found.region = one.region;
    write_sized(require(boundary, "boundary"), found);
  });
}

ashlar_status ashlar_inspection_text(const ashlar_inspection* inspection, char* buffer,
                                     size_t capacity, size_t* needed) {
  return guard([&] { copy_text(require_value(inspection).to_text(), buffer, capacity, needed); });
}

}  // extern "C"
