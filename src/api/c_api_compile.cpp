// C API: options, and compiling graphs into plans.
#include <limits>

#include "api/c_api.hpp"

namespace ashlar::capi {

namespace {

Constants constants_from_c(const char* const* names, const void* const* data, std::int32_t count) {
  const std::span<const char* const> keys = require_array(names, count, "constant_names");
  const std::span<const void* const> values = require_array(data, count, "constant_data");
  Constants constants;
  for (std::size_t i = 0; i < keys.size(); ++i)
    constants.emplace_back(require_text(keys[i], "constant_names"), values[i]);
  return constants;
}

InPlace in_place_from_c(const ashlar_compile_options& options) {
  const std::span<const char* const> outputs =
      require_array(options.in_place_outputs, options.in_place_count, "in_place_outputs");
  const std::span<const char* const> inputs =
      require_array(options.in_place_inputs, options.in_place_count, "in_place_inputs");
  InPlace pairs;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    pairs.emplace_back(require_text(outputs[i], "in_place_outputs"),
                       require_text(inputs[i], "in_place_inputs"));
  return pairs;
}

}  // namespace

Request request_from_c(const ashlar_compile_options* given) {
  ashlar_compile_options options;
  ashlar_compile_options_init(&options);
  if (given) options = read_sized(*given, options);
  if (options.workspace_limit < 0)
    fail(ErrorCode::invalid_argument, "workspace_limit: got {}, expected 0 or more",
         options.workspace_limit);
  if (options.max_candidates < 0)
    fail(ErrorCode::invalid_argument, "max_candidates: got {}, expected 0 or more",
         options.max_candidates);
  CompileOptions result;
  result.deterministic = options.deterministic != 0;
  result.allow_tf32 = options.allow_tf32 != 0;
  result.allow_winograd = options.allow_winograd != 0;
  result.workspace_limit = options.workspace_limit;
  result.fuse = options.fuse != 0;
  result.reference_only = options.reference_only != 0;
  result.guard = options.guard != 0;
  result.tune = options.tune != 0;
  result.tune_back_to_back = options.tune_back_to_back != 0;
  result.max_candidates = options.max_candidates;
  if (options.engine) result.engine = options.engine;
  if (options.recompute) result.recompute = parse_recompute(options.recompute);
  result.recompute_budget = options.recompute_budget;
  result.in_place = in_place_from_c(options);
  result.constants =
      constants_from_c(options.constant_names, options.constant_data, options.constant_count);
  return {device_from_c(options.device), std::move(result)};
}

}  // namespace ashlar::capi

using namespace ashlar;
using namespace ashlar::capi;

extern "C" {

void ashlar_compile_options_init(ashlar_compile_options* options) {
  if (!options) return;
  init_sized(options);
  options->allow_tf32 = 1;
  options->allow_winograd = 1;
  options->fuse = 1;
  options->workspace_limit = std::numeric_limits<int64_t>::max();
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
  return ashlar_plan_from_json_with_constants(text, length, nullptr, nullptr, 0, plan);
}

ashlar_status ashlar_plan_from_json_with_constants(const char* text, size_t length,
                                                   const char* const* names,
                                                   const void* const* data, int32_t count,
                                                   ashlar_plan** plan) {
  return guard([&] {
    ashlar_plan*& result = require(plan, "plan");
    const Constants constants = constants_from_c(names, data, count);
    result = new ashlar_plan{Plan::from_json({&require(text, "text"), length}, constants)};
  });
}

}  // extern "C"
