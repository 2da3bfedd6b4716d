#include "bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ashlar/error.hpp>
#include <ashlar/installation.hpp>
#include <ashlar/plan.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#ifndef ASHLAR_NO_OPENMP
#include <omp.h>
#endif

#include "configs.hpp"
#include "engines_used.hpp"
#include "gpu.hpp"
#include "host_time.hpp"
#include "memory.hpp"
#include "peers/cublaslt/library.hpp"
#include "peers/cudnn/library.hpp"
#include "report.hpp"
#include "suite.hpp"

namespace ashlar::bench {

namespace {

// Atomic: writes PATH.part, then renames it.
void write_file(const std::string& path, const std::string& text) {
  const std::string part = path + ".part";
  std::ofstream file(part, std::ios::binary);
  file << text;
  file.close();
  if (!file || std::rename(part.c_str(), path.c_str()) != 0)
    throw Error(ErrorCode::io, fmt::format("{} cannot be written: {}", path, std::strerror(errno)));
}

DeviceKind kind_of(const Request& request) {
  return request.device == "cpu" ? DeviceKind::cpu : Device::named(request.device).props().kind;
}

// With --quick, a suite that marks quick cases runs those only.
void keep_quick(Suite& suite) {
  const auto is_quick = [](const Case& one) { return one.quick; };
  if (std::any_of(suite.cases.begin(), suite.cases.end(), is_quick))
    std::erase_if(suite.cases, [](const Case& one) { return !one.quick; });
}

std::vector<Suite> chosen_suites(const Request& request) {
  std::vector<Suite> suites = choose_suites(request.suites, kind_of(request));
  for (Suite& suite : suites) {
    if (request.quick) keep_quick(suite);
    std::erase_if(suite.cases, [&](const Case& one) {
      return one.name.find(request.filter) == std::string::npos;
    });
  }
  std::erase_if(suites, [](const Suite& suite) { return suite.cases.empty(); });
  if (suites.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("no case has '{}' in its name; --list prints them", request.filter));
  return suites;
}

void list(const std::vector<Suite>& suites, const Listener& listener) {
  for (const Suite& suite : suites) {
    listener.print(fmt::format("{}: {}\n", suite.name, suite.title));
    for (const Case& one : suite.cases) listener.print(fmt::format("  {}\n", one.name));
  }
}

// The device may be absent: plans are made from its description.
void list_kernels(const std::vector<Suite>& suites, const Request& request,
                  const Listener& listener) {
  const Device device = Device::named(request.device);
  for (const Suite& suite : suites) {
    listener.print(fmt::format("{} on {}\n", suite.name, device.props().description));
    for (const Case& one : suite.cases) {
      const EnginesUsed used = engines_used(inspect(
          one.problem.build(), device, plan_options(one.problem, {.engine = request.engine})));
      listener.print(fmt::format("  {:<44}{} region{}  {}\n", one.name, used.regions,
                                 used.regions == 1 ? " " : "s", used.engines));
    }
  }
}

void write_bundle(const std::vector<Suite>& suites, const Request& request,
                  const Listener& listener) {
  listener.progress("planning");
  const BundleBuilder kernels = kernels_of(suites, Device::named(request.device),
                                           {.tune = request.tune || request.configs,
                                            .max_candidates = request.max_configs,
                                            .engine = request.engine});
  write_file(request.bundle, kernels.build([&](int done, int all) {
    listener.progress(fmt::format("compiled {} of {} kernels", done, all));
  }));
  listener.print(fmt::format("{}: {} kernels for {}\n", request.bundle, kernels.kernel_count(),
                             kernels.architecture()));
}

// The peers that --peer selects.
struct Peers {
  bool onednn = false;          // CPU
  bool naive = false;           // GPU: cuda.generic, one thread per output
  std::string cudnn, cublaslt;  // GPU: paths; empty: not selected
};
Peers peers_of(const Request& request, DeviceKind kind) {
  Peers peers;
  if (request.peers.empty()) peers.onednn = kind == DeviceKind::cpu;
  for (const std::string& peer : request.peers) {
    if (peer == "naive" && kind == DeviceKind::cpu)
      throw Error(ErrorCode::invalid_argument,
                  "--peer: naive is the one-thread-per-output engine of GPUs (cuda.generic); the "
                  "CPU has no such engine, expected onednn or none");
    if (peer == "naive")
      peers.naive = true;
    else if (peer == "onednn" && kind == DeviceKind::cpu)
      peers.onednn = true;
    else if (peer.starts_with("cudnn:") && kind == DeviceKind::cuda)
      peers.cudnn = peer.substr(6);
    else if (peer.starts_with("cublaslt:") && kind == DeviceKind::cuda)
      peers.cublaslt = peer.substr(9);
    else if (peer != "none")
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("--peer: got {}, expected {} or none", peer,
                      kind == DeviceKind::cpu ? "onednn"
                                              : "cudnn:/path/to/libcudnn.so.9, "
                                                "cublaslt:/path/to/libcublasLt.so.13, naive"));
  }
  return peers;
}

MeasureOptions options_of(const Request& request, const Peers& peers, DeviceKind kind) {
  if (request.layout != "user" && request.layout != "best" && request.layout != "both")
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--layout: got {}, expected user, best or both", request.layout));
  if (request.max_configs > 0 && !request.configs && !request.tune)
    throw Error(ErrorCode::invalid_argument, "--top: needs --configs or --tune");
  MeasureOptions options;
  options.seconds = request.seconds.value_or(request.quick ? 0.1 : 1.0);
  options.min_samples = request.quick ? 3 : 7;
  if (kind == DeviceKind::cuda) {
    options.seconds = request.seconds.value_or(request.quick ? 0.02 : 0.1);
    options.min_samples = request.quick ? 5 : 21;
    options.search_seconds = 20 * request.seconds.value_or(request.quick ? 0.025 : 0.1);
  }
  options.seed = request.seed;
  options.oracle = request.oracle;
  options.naive = peers.naive;
  options.user_layout = peers.onednn && request.layout != "best";
  options.best_layout = peers.onednn && request.layout != "user";
  options.tune = request.tune;
  options.max_configs = request.max_configs;
  options.engine = request.engine;
  return options;
}

Device present_device(const std::string& name) {
  Device device = Device::named(name);
  if (!device.props().present)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("bench: device {} is not present here: there is nothing to time "
                            "(--kernels works without it)",
                            name));
  return device;
}

// The GPU under test and the peer libraries on it; all null on the CPU.
struct GpuSide {
  std::unique_ptr<Gpu> gpu;
  std::unique_ptr<cudnn::Library> cudnn;
  std::unique_ptr<cublaslt::Library> cublaslt;

  GpuSide(const Request& request, const Peers& peers, DeviceKind kind) {
    if (kind != DeviceKind::cuda) return;
    gpu = std::make_unique<Gpu>(present_device(request.device));
    if (!peers.cudnn.empty()) cudnn = std::make_unique<cudnn::Library>(peers.cudnn, gpu->device());
    if (!peers.cublaslt.empty())
      cublaslt = std::make_unique<cublaslt::Library>(peers.cublaslt, gpu->device());
  }
  std::string versions() const {
    std::string text = cudnn ? cudnn->version() : "";
    if (cublaslt) text += (text.empty() ? "" : ", ") + cublaslt->version();
    return text;
  }
};

Setting setting_of(const Request& request, const Peers& peers, const GpuSide& side) {
  Setting setting = setting_here(request.commit, request.seed);
  setting.tune = request.tune;
  if (!side.gpu) {
    if (!peers.onednn) setting.peer.clear();
    return setting;
  }
  setting.gpu = true;
  setting.device = side.gpu->device().props().description;
  setting.driver = side.gpu->driver();
  if (!request.configs) setting.copy_speed = side.gpu->copy_speed();
  setting.peer = side.versions();
  return setting;
}

Measurement failed(const std::string& name, const std::string& reason) {
  Measurement result;
  result.name = name;
  result.check = fmt::format("FAILED: {}", reason);
  return result;
}

// On a GPU a failing case is recorded and the run continues, unless the CUDA context is lost: then
// it throws.
Measurement measured(const Case& problem, const MeasureOptions& options,
                     const std::function<void(const std::string&)>& progress) {
  if (!options.gpu) return measure(problem, options, progress);
  try {
    return measure(problem, options, progress);
  } catch (const Error& error) {
    try {
      options.gpu->require_alive();
    } catch (const Error&) {
      throw Error(error.code(), fmt::format("{}; the CUDA context is lost", error.what()));
    }
    return failed(problem.name, error.what());
  }
}

// --configs: every engine configuration of every case, without peers.
bool run_configs(const std::vector<Suite>& suites, const Request& request,
                 const MeasureOptions& options, const Setting& setting, const Listener& listener) {
  std::vector<CaseConfigs> all;
  for (const Suite& suite : suites) {
    std::vector<CaseConfigs> timed;
    for (const Case& one : suite.cases) {
      try {
        timed.push_back(measure_configs(one, options, [&](const std::string& what) {
          listener.progress(fmt::format("{} {}: {}", suite.name, one.name, what));
        }));
      } catch (const Error& error) {
        listener.print(fmt::format("{}: FAILED: {}\n", one.name, error.what()));
        options.gpu->require_alive();
        timed.push_back({one.name, {}, {}, error.what()});
      }
      listener.print(configs_text(timed.back()));
      if (!request.record.empty())
        write_file(
            (std::filesystem::path(request.record) / ("configs_" + suite.name + ".json")).string(),
            configs_json(setting, suite.name, timed));
    }
    listener.print(fmt::format("{}: {}", suite.name, configs_summary(timed)));
    all.insert(all.end(), timed.begin(), timed.end());
  }
  if (!request.json.empty()) write_file(request.json, configs_json(setting, "", all));
  return true;
}

bool run_host(const Request& request, const Listener& listener) {
  present_device(request.device);
  const HostTimes times =
      measure_host(request.device, request.seed, request.program, listener.progress);
  listener.print(host_text(times));
  if (!request.record.empty())
    write_file((std::filesystem::path(request.record) / "host.json").string(),
               to_json(setting_here(request.commit, request.seed),
                       Device::named(request.device).props().description, times));
  return true;
}

}  // namespace

bool run(const Request& request, const Listener& listener) {
  if (!request.record.empty()) {
    if (const std::string folder = kernel_folder(); !folder.empty())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--record: kernels of {} (ASHLAR_KERNELS) replace those of the "
                              "commit; unset ASHLAR_KERNELS or use --json",
                              folder));
    std::filesystem::create_directories(request.record);
  }
  if (request.compile_only) {
    const CompileTimes times = compile_times(request.device, request.seed);
    listener.print(fmt::format("{} {}\n", times.first, times.others));
    return true;
  }
  if (request.host) return run_host(request, listener);
  const std::vector<Suite> suites = chosen_suites(request);
  if (request.list) {
    list(suites, listener);
    return true;
  }
  if (request.kernels) {
    list_kernels(suites, request, listener);
    return true;
  }
  if (!request.bundle.empty()) {
    write_bundle(suites, request, listener);
    return true;
  }
#ifndef ASHLAR_NO_OPENMP
  if (request.threads > 0) omp_set_num_threads(request.threads);
#endif
  const DeviceKind kind = kind_of(request);
  const Peers peers = peers_of(request, kind);
  MeasureOptions options = options_of(request, peers, kind);
  listener.progress("starting");
  const GpuSide side(request, peers, kind);
  options.gpu = side.gpu.get();
  options.cudnn = side.cudnn.get();
  options.cublaslt = side.cublaslt.get();

  if (side.gpu && request.configs)
    compile_configs_ahead(suites, options, listener.progress);
  else if (side.gpu)
    compile_ahead(suites, options, listener.progress);

  std::size_t total = 0, done = 0;
  for (const Suite& suite : suites) total += suite.cases.size();
  const Setting setting = setting_of(request, peers, side);
  if (request.configs) {
    if (!side.gpu)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--configs: got device {}, expected a GPU", request.device));
    return run_configs(suites, request, options, setting, listener);
  }
  listener.print(table_head(setting));
  std::vector<SuiteResult> results;
  bool right = true, alive = true;
  for (auto suite = suites.begin(); suite != suites.end() && alive; ++suite) {
    SuiteResult& result = results.emplace_back(
        SuiteResult{suite->name, suite->title, suite->bound_by, suite->target, {}});
    listener.print(suite_head(result, setting));
    for (auto one = suite->cases.begin(); one != suite->cases.end() && alive; ++one) {
      ++done;
      try {
        result.measurements.push_back(measured(*one, options, [&](const std::string& what) {
          listener.progress(
              fmt::format("[{}/{}] {} {}: {}", done, total, suite->name, one->name, what));
        }));
      } catch (const Error& error) {
        if (!side.gpu) throw;
        alive = false;
        result.measurements.push_back(failed(one->name, error.what()));
      }
      right = right && result.measurements.back().ok;
      listener.print(table_row(result.measurements.back(), setting));
      // After every case: a peer may crash the process.
      if (!request.record.empty())
        write_file((std::filesystem::path(request.record) /
                    (suite->name + (request.tune ? "_tuned.json" : ".json")))
                       .string(),
                   to_json(setting, {&result, 1}));
    }
    listener.print(suite_foot(result));
  }
  if (!alive) listener.print("the CUDA context is lost: the remaining cases are not measured\n");
  if (!request.json.empty()) write_file(request.json, to_json(setting, results));
  if (!request.html.empty()) write_file(request.html, to_html(setting, results));
  return right;
}

}  // namespace ashlar::bench
