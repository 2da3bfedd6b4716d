// Reads and writes plans as JSON, version 1: the graph, the device, the options and the engine and
// configuration of each region.
#include <ashlar/plan.hpp>

#include "graph/json.hpp"
#include "plan/plan_data.hpp"

namespace ashlar {

namespace {
constexpr int kVersion = 1;
}

std::string Plan::to_json() const {
  Json json;
  json["format"] = "ashlar-plan";
  json["version"] = kVersion;
  json["device"] = data_->device.name;
  json["graph_hash"] = fmt::format("{:016x}", data_->graph.structural_hash());
  Json& options = json["options"] = Json::object();
  options["deterministic"] = data_->options.deterministic;
  options["allow_tf32"] = data_->options.allow_tf32;
  options["allow_winograd"] = data_->options.allow_winograd;
  options["workspace_limit"] = data_->options.workspace_limit;
  options["fuse"] = data_->options.fuse;
  options["reference_only"] = data_->options.reference_only;
  options["guard"] = data_->options.guard;
  options["recompute"] = std::string(to_string(data_->options.recompute));
  options["recompute_budget"] = data_->options.recompute_budget;
  Json& in_place = options["in_place"] = Json::array();
  for (const auto& [output, input] : data_->options.in_place)
    in_place.push_back(Json::array({output, input}));
  Json& regions = json["regions"] = Json::array();
  for (const PlanData::Step& step : data_->steps) {
    Json region;
    region["operations"] = step.region.to_text(data_->lowered.graph);
    region["engine"] = std::string(step.choice.engine->id());
    Json& knobs = region["knobs"] = Json::object();
    for (const auto& [name, value] : step.choice.config.knobs) knobs[name] = value;
    regions.push_back(std::move(region));
  }
  json["graph"] = Json::parse(data_->graph.to_json());
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

SavedPlan read_saved_plan(std::string_view text) {
  const Json document = parse_json(text);
  const JsonReader json(document, "");
  json.require_known({"format", "version", "device", "graph_hash", "options", "regions", "graph"});
  if (json.at("format").string() != "ashlar-plan") json.at("format").reject("\"ashlar-plan\"");
  if (json.at("version").integer() != kVersion)
    json.at("version").reject(fmt::format("version {}", kVersion));
  SavedPlan plan;
  plan.graph = Graph::from_json(json.at("graph").json().dump());
  if (json.at("graph_hash").string() != fmt::format("{:016x}", plan.graph.structural_hash()))
    json.at("graph_hash")
        .reject("the hash of the graph in this file: it was changed after the plan was saved");

  const JsonReader saved_options = json.at("options");
  saved_options.require_known({"deterministic", "allow_tf32", "allow_winograd", "workspace_limit",
                               "fuse", "reference_only", "guard", "recompute", "recompute_budget",
                               "in_place"});
  CompileOptions& options = plan.options;
  options.deterministic = saved_options.at("deterministic").boolean();
  options.allow_tf32 = saved_options.at("allow_tf32").boolean();
  // Absent from plans saved before the options existed.
  if (saved_options.has("allow_winograd"))
    options.allow_winograd = saved_options.at("allow_winograd").boolean();
  if (saved_options.has("recompute"))
    options.recompute = parse_recompute(saved_options.at("recompute").string());
  if (saved_options.has("recompute_budget"))
    options.recompute_budget = saved_options.at("recompute_budget").integer();
  if (saved_options.has("in_place")) {
    const JsonReader pairs = saved_options.at("in_place");
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (pairs[i].size() != 2) pairs[i].reject("an output and an input");
      options.in_place.emplace_back(pairs[i][0].string(), pairs[i][1].string());
    }
  }
  options.workspace_limit = saved_options.at("workspace_limit").integer();
  options.fuse = saved_options.at("fuse").boolean();
  options.reference_only = saved_options.at("reference_only").boolean();
  options.guard = saved_options.at("guard").boolean();

  const JsonReader regions = json.at("regions");
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const JsonReader region = regions[i];
    region.require_known({"operations", "engine", "knobs"});
    SavedChoice choice{region.at("engine").string(), {}};
    const JsonReader knobs = region.at("knobs");
    knobs.require_object();
    for (const auto& knob : knobs.json().items())
      choice.knobs.emplace_back(knob.key(), knobs.at(knob.key().c_str()).integer());
    plan.choices.push_back(std::move(choice));
  }
  plan.device = json.at("device").string();
  return plan;
}

}  // namespace ashlar
