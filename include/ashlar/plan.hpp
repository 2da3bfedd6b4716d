// A compiled graph.
#pragma once

#include <ashlar/device.hpp>
#include <ashlar/graph.hpp>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ashlar {

// Inputs whose contents never change, by name, with their memory. Kernels may read them while a
// plan is made and keep them in a form of their own (weights packed once). run() still takes their
// pointers and must find the same contents there; on a GPU it may read them while earlier work of
// its stream is not done yet.
using Constants = std::vector<std::pair<std::string, const void*>>;

struct CompileOptions {
  bool deterministic = false;  // only engines that give the same bits every time
  bool allow_tf32 = true;      // lets f32 products be rounded to tf32 where the device is faster so
  // Lets 3 x 3 convolutions of stride 1 be computed in Winograd tiles: a quarter of the products, a
  // few times the rounding error, and one infinity or NaN spreads over its tile (docs/numerics.md).
  bool allow_winograd = true;
  // Upper limit of Plan::workspace_size(). A plan exists for every limit, 0 included: what does not
  // fit goes into memory the plan owns (see Plan::owned_bytes).
  std::int64_t workspace_limit = std::numeric_limits<std::int64_t>::max();
  bool fuse = true;             // false: one region per operation
  bool reference_only = false;  // true: every region runs on the reference engine ("naive")
  // Puts guard bytes around every workspace reservation and checks them after each kernel; an
  // overrun throws Error(internal) naming the kernel and the reservation.
  bool guard = false;
  // Times the candidates of every region on this device, on memory of its own, and takes the
  // fastest instead of the cheapest by estimate. A saved plan keeps the choice.
  bool tune = false;
  // What tuning compares. True: a run among many, one after the other on tensors of their own, as a
  // model runs its layers; on a GPU a CUDA graph, in which a launch may begin while the one before
  // it ends. False: a run by itself, a GPU's caches cold.
  bool tune_back_to_back = false;
  // Of each region tuning times so many candidates, the cheapest by estimate; 0: all.
  int max_candidates = 0;
  // An engine ("cpu.conv_tiles") that is taken for every region it can run; empty: any.
  std::string engine = {};
  // See Constants. A saved plan keeps none of them.
  Constants constants = {};
};

// One pointer per bound tensor, in the order of Plan::bound_tensors(). Made once, used many times.
class Binding {
 public:
  void set(std::string_view name,
           const void* pointer);  // throws Error(invalid_argument) for an unknown name
  void set(std::int64_t uid, const void* pointer);

 private:
  friend class Plan;
  explicit Binding(std::shared_ptr<const class PlanData> plan);
  std::shared_ptr<const class PlanData> plan_;
  std::vector<void*> pointers_;
};

struct PlanNotes {
  bool deterministic = true;
  bool tf32 = false;  // f32 factors of products lose all but 11 of their bits
  // Products of fp8 numbers are added to 14 bits, and to f32 after every 128 (docs/numerics.md).
  bool reduced_precision_accumulation = false;
  bool truncating_accumulation =
      false;  // matrix units add products, truncating where f32 would round
  bool runtime_compiled = false;
  int winograd = 0;  // pixels per tile and axis of the largest Winograd convolution; 0: none
  auto operator<=>(const PlanNotes&) const = default;
};

// Immutable: any number of threads may run one plan at once, each with its own workspace. Copies
// share the compiled kernels.
class Plan {
 public:
  std::int64_t workspace_size() const;  // bytes run() needs, 64-byte aligned
  std::int64_t owned_bytes()
      const;  // bytes of intermediates the plan keeps itself, per concurrent run
  const PlanNotes& notes() const;
  const Graph& graph() const;
  const DeviceProps& device() const;
  int region_count() const;
  double flops() const;  // arithmetic of one run, 2 per multiply-add; masks do not lower it
  // The bound tensors in binding order.
  const std::vector<TensorId>& bound_tensors() const;
  // Regions, the engine and configuration of each, every engine for its operation with its estimate
  // or the reason of its refusal, workspace and notes.
  std::string explain() const;

  // Every pointer is checked for null, the rest is the caller's promise: memory of byte_size()
  // bytes, outputs that overlap nothing (except `z` of a convolution, which may be its output). By
  // name is the convenience; by Binding or pointers does no allocation, lookup or lock.
  void run(std::initializer_list<std::pair<std::string_view, const void*>> pointers,
           void* workspace = nullptr, void* stream = nullptr) const;
  void run(std::span<const std::pair<std::int64_t, const void*>> pointers_by_uid,
           void* workspace = nullptr, void* stream = nullptr) const;
  Binding binding() const;
  void run(const Binding& binding, void* workspace = nullptr, void* stream = nullptr) const;
  void run(std::span<void* const> pointers, void* workspace = nullptr,
           void* stream = nullptr) const;

  // The graph, device and choices as versioned JSON. Loading builds the same kernels without
  // searching; constants are given anew.
  std::string to_json() const;
  static Plan from_json(std::string_view text, const Constants& constants = {});

 private:
  friend Plan compile(const Graph&, const Device&, const CompileOptions&);
  explicit Plan(std::shared_ptr<const class PlanData> data);
  std::shared_ptr<const class PlanData> data_;
};

// Throws Error(invalid_graph) for a graph that contradicts itself; every valid graph gets a plan. A
// plan runs on memory of its device: without one named it is the host's.
Plan compile(const Graph& graph, const Device& device = Device::cpu(),
             const CompileOptions& options = {});

// What compile() would choose, for a device that need not be present.
std::string explain(const Graph& graph, const Device& device, const CompileOptions& options = {});

struct EngineInfo {
  std::string id;           // "cpu.matmul_gemm"
  std::string kind;         // "generic fusion", ...
  std::string description;  // one line
  bool is_reference;        // scalar loops in double precision, the last resort
};
std::vector<EngineInfo> engines(DeviceKind kind);

struct RegionEngines {
  std::string region;               // "conv_forward + add"
  std::vector<EngineInfo> engines;  // those that take it, in the order they are tried
};
// The engines that take each region of the graph, for a device that need not be present.
std::vector<RegionEngines> engines_for(const Graph& graph, const Device& device,
                                       const CompileOptions& options = {});

}  // namespace ashlar
