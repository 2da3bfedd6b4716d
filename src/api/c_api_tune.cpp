// C API: autotuning.
#include <ashlar/inspect.hpp>
#include <ashlar/tune.hpp>

#include "api/c_api.hpp"

struct ashlar_trials {
  struct Region {
    ashlar::RegionTrials region;
    std::vector<std::string> configs;  // by trial
  };
  std::vector<Region> regions;
};

namespace ashlar::capi {

namespace {

ashlar_trials* new_trials(std::vector<RegionTrials> regions) {
  auto result = std::make_unique<ashlar_trials>();
  for (RegionTrials& region : regions) {
    ashlar_trials::Region& entry = result->regions.emplace_back();
    for (const Trial& trial : region.trials) entry.configs.push_back(trial.config_text());
    entry.region = std::move(region);
  }
  return result.release();
}

}  // namespace

}  // namespace ashlar::capi

using namespace ashlar;
using namespace ashlar::capi;

extern "C" {

ashlar_status ashlar_candidates(const ashlar_graph* graph, const ashlar_compile_options* options,
                                ashlar_trials** trials) {
  return guard([&] {
    const Graph& source = require(graph, "graph").graph;
    ashlar_trials*& result = require(trials, "trials");
    const Request request = request_from_c(options);
    std::vector<RegionTrials> regions;
    for (RegionInspection& region :
         inspect(source, request.device, request.options, {.candidates = true}).regions)
      regions.push_back({.region = std::move(region.name), .trials = std::move(region.candidates)});
    result = new_trials(std::move(regions));
  });
}

ashlar_status ashlar_autotune(const ashlar_graph* graph, const ashlar_compile_options* options,
                              int again, ashlar_tune_progress progress, void* context,
                              ashlar_trials** trials) {
  return guard([&] {
    const Graph& source = require(graph, "graph").graph;
    ashlar_trials*& result = require(trials, "trials");
    Request request = request_from_c(options);
    TuneRequest wanted{std::move(request.options), again != 0};
    if (progress)
      wanted.progress = [=](const std::string& what) { progress(what.c_str(), context); };
    result = new_trials(autotune(source, request.device, wanted));
  });
}

void ashlar_trials_destroy(ashlar_trials* trials) { delete trials; }

void ashlar_region_trials_init(ashlar_region_trials* region) { init_sized(region); }
void ashlar_trial_init(ashlar_trial* trial) { init_sized(trial); }

ashlar_status ashlar_trials_region_count(const ashlar_trials* trials, int32_t* count) {
  return guard([&] {
    const auto& regions = require(trials, "trials").regions;
    require(count, "count") = static_cast<int32_t>(regions.size());
  });
}

ashlar_status ashlar_trials_region(const ashlar_trials* trials, int32_t region,
                                   ashlar_region_trials* result) {
  return guard([&] {
    const RegionTrials& source = row_at(require(trials, "trials").regions, region).region;
    ashlar_region_trials found;
    init_sized(&found);
    found.region = source.region.c_str();
    found.trials = static_cast<int32_t>(source.trials.size());
    found.best = static_cast<int32_t>(source.best);
    found.remembered = source.remembered;
    write_sized(require(result, "result"), found);
  });
}

ashlar_status ashlar_trials_get(const ashlar_trials* trials, int32_t region, int32_t index,
                                ashlar_trial* trial) {
  return guard([&] {
    const ashlar_trials::Region& entry = row_at(require(trials, "trials").regions, region);
    const Trial& source = row_at(entry.region.trials, index);
    ashlar_trial found;
    init_sized(&found);
    found.engine = source.engine.c_str();
    found.config = row_at(entry.configs, index).c_str();
    found.failure = source.failure.c_str();
    found.estimated = source.estimated;
    found.measured = source.measured.value_or(-1.0);
    write_sized(require(trial, "trial"), found);
  });
}

}  // extern "C"
