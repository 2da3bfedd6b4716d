#include "comparison.hpp"

#include <fmt/format.h>

#include <chrono>

#include "bench/bench.hpp"
#include "units.hpp"

namespace ashlar::cli {

namespace {

// Of the nominal peak, that an idle machine reaches whatever its clock is.
constexpr double kIdleShare = 0.25;

bool is_same(const Inspection& one, const Inspection& other) {
  return std::equal(one.regions.begin(), one.regions.end(), other.regions.begin(),
                    other.regions.end(), [](const auto& a, const auto& b) {
                      return a.name == b.name && a.engine == b.engine && a.config == b.config;
                    });
}

// By region, the medians of several runs.
std::vector<double> medians_of(const std::vector<std::vector<double>>& runs) {
  std::vector<double> medians;
  for (std::size_t region = 0; region < runs.front().size(); ++region) {
    std::vector<double> seconds;
    for (const auto& run : runs) seconds.push_back(run[region]);
    medians.push_back(median_of(seconds));
  }
  return medians;
}

// `flops_f32` and `bytes_per_second`: of the machine as it was measured, or the device's.
void add_rooflines(const Inspection& plan, const Graph& graph, double flops_f32,
                   double bytes_per_second, Measured& measured) {
  for (const RegionInspection& region : plan.regions) {
    Roofline one = nominal_roofline(region);
    one.arithmetic_seconds *= plan.device.flops_f32 / flops_f32;
    one.memory_seconds = one.bytes / bytes_per_second;
    measured.regions.push_back(one);
    measured.roofline.flops += one.flops;
    measured.roofline.arithmetic_seconds += one.arithmetic_seconds;
  }
  measured.roofline.bytes = traffic_bytes(graph);
  measured.roofline.memory_seconds = measured.roofline.bytes / bytes_per_second;
}

std::string describe(const Rival& rival, double plan_seconds) {
  if (!rival.timing) return fmt::format("  {}: {}\n", rival.name, rival.note);
  return fmt::format("  {}: median {} of {} runs, {}; this plan is {:.2f}x as fast\n", rival.name,
                     duration_text(rival.timing->median), rival.timing->runs, rival.note,
                     rival.timing->median / plan_seconds);
}

}  // namespace

Roofline nominal_roofline(const RegionInspection& region) {
  return {region.flops, region.bytes, region.arithmetic_seconds, region.memory_seconds};
}

Measured measure_side_by_side(const Runner& runner, const TensorMemory& memory,
                              const CompileOptions& options, double budget, Progress& progress) {
  const Graph& graph = memory.graph();
  const Device device(runner.plan().device());
  const Inspection plan = runner.plan().inspect();
  Measured measured;
  measured.unfused.name = "unfused";
  std::vector<std::function<double()>> sides = {[&] { return runner.seconds_of_run(); }};

  std::optional<Runner> unfused;
  if (!options.fuse) {
    measured.unfused.note = "this plan has one region per operation";
  } else {
    progress.stage(fmt::format("compiling {} unfused", graph.name()));
    CompileOptions without = options;
    without.fuse = false;
    unfused.emplace(compile(graph, device, without), memory);
    const Inspection apart = unfused->plan().inspect();
    if (is_same(plan, apart)) {
      measured.unfused.note = "the same plan: there is nothing to fuse";
    } else {
      measured.unfused.note = fmt::format("{} regions of the same engines", apart.regions.size());
      sides.emplace_back([&] { return unfused->seconds_of_run(); });
    }
  }
  const bool has_unfused = sides.size() > 1;

  progress.stage(fmt::format("preparing oneDNN for {}", graph.name()));
  const bool on_cpu = device.props().kind == DeviceKind::cpu;
  bench::PeerProgram peer;
  if (on_cpu) {
    peer = bench::onednn_program(graph, memory.pointers());
  } else {
    peer.name = "oneDNN";
    peer.absence = "runs on the CPU only (ashlar bench --peer cudnn:PATH compares on GPUs)";
  }
  measured.peer = {peer.name, peer.run ? peer.implementation : peer.absence, {}};
  if (peer.run)
    sides.emplace_back([&] {
      const auto start = std::chrono::steady_clock::now();
      peer.run();
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    });

  progress.stage(fmt::format("timing {}", graph.name()));
  std::optional<bench::CpuCeilings> ceilings;
  if (on_cpu) ceilings.emplace(traffic_bytes(graph));
  std::vector<std::vector<double>> region_runs;
  const auto between = [&] {
    if (ceilings) ceilings->sample();
    if (plan.regions.size() == 1) return;
    runner.run();
    region_runs.push_back(runner.region_seconds());
  };
  const std::vector<Timing> timings = time_in_turns(sides, budget, between);
  measured.plan = timings.front();
  if (has_unfused) measured.unfused.timing = timings[1];
  if (peer.run) measured.peer.timing = timings.back();
  measured.region_seconds =
      region_runs.empty() ? std::vector{measured.plan.median} : medians_of(region_runs);
  measured.has_measured_rates = ceilings.has_value();
  measured.is_busy = ceilings && ceilings->flops_f32() < kIdleShare * device.props().flops_f32;
  add_rooflines(plan, graph, ceilings ? ceilings->flops_f32() : device.props().flops_f32,
                ceilings ? ceilings->bytes_per_second() : device.props().bytes_per_second,
                measured);
  return measured;
}

std::string describe(const Measured& measured, const Plan& plan) {
  const double seconds = measured.plan.median;
  const Roofline& roofline = measured.roofline;
  std::string text =
      fmt::format("time: {}\n", describe(measured.plan, roofline.flops, roofline.bytes));
  text += describe(measured.unfused, seconds) + describe(measured.peer, seconds);
  text += fmt::format(
      "  roofline: {} ({} at {}, {} at {}, {}; {} bound); this plan reaches {:.0f} %{}\n",
      duration_text(roofline.seconds()), quantity_text(roofline.flops, "FLOP"),
      quantity_text(roofline.flops / roofline.arithmetic_seconds, "FLOP/s"),
      quantity_text(roofline.bytes, "B"),
      quantity_text(roofline.bytes / roofline.memory_seconds, "B/s"),
      measured.has_measured_rates ? "rates measured between the runs" : "rates of the data sheet",
      roofline.is_compute_bound() ? "compute" : "memory", roofline.seconds() / seconds * 100,
      plan.notes().winograd ? " (Winograd multiplies less than is counted)" : "");
  if (measured.is_busy)
    text += "  the machine is busy with other processes: these times say little\n";
  return text;
}

}  // namespace ashlar::cli
