// Compiling a graph into an executable plan, and running it.
#pragma once

#include <ashlar/device.hpp>
#include <ashlar/graph.hpp>
#include <compare>
#include <cstddef>
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

class PlanData;  // of the library: not exported

#pragma GCC visibility push(default)

// Inputs whose contents never change (weights), by name, with their memory. compile() may read them
// and prepack them for its kernels. run() still requires their pointers, with unchanged contents;
// on a GPU it may read them before earlier work of its stream has completed.
using Constants = std::vector<std::pair<std::string, const void*>>;

// What a plan computes again for reads that come much later, such as those of the backward part of
// a training step, instead of keeping it in the workspace until then.
enum class Recompute : std::uint8_t {
  none,
  cheap,  // results of pointwise operations, norms, reductions, data movement and the like
  all,    // also those of matmuls, convolutions and attention, between a few values that are kept
};

std::string_view to_string(Recompute recompute);   // "none", "cheap", "all"
Recompute parse_recompute(std::string_view name);  // throws Error(invalid_argument)

// Pairs of an output and an input, by name.
using InPlace = std::vector<std::pair<std::string, std::string>>;

struct CompileOptions {
  bool deterministic = false;  // only engines whose results are bitwise reproducible
  bool allow_tf32 = true;      // f32 matmuls and convolutions may round their operands to tf32
  // 3 x 3 convolutions of stride 1 may use Winograd: a quarter of the multiplications, a few times
  // the rounding error, and an infinity or NaN spreads over its tile (docs/numerics.md).
  bool allow_winograd = true;
  // Upper limit of Plan::workspace_size() in bytes. Every limit is feasible, 0 included: memory
  // beyond it is owned by the plan (Plan::owned_bytes).
  std::int64_t workspace_limit = std::numeric_limits<std::int64_t>::max();
  bool fuse = true;             // false: one region per operation
  bool reference_only = false;  // every region runs on the reference engine
  // Places guard bytes around every workspace reservation and checks them after each kernel; an
  // overrun throws Error(internal) naming the kernel and the reservation.
  bool guard = false;
  // Times the candidates of every region on this device, in memory allocated for it, and selects
  // the fastest instead of the cheapest by estimate. A saved plan stores the selection.
  bool tune = false;
  // What tuning measures. True: back-to-back runs on distinct tensors, like the layers of a model;
  // on a GPU as a CUDA graph, where a launch may overlap the end of the previous one. False: an
  // isolated run with cold GPU caches.
  bool tune_back_to_back = false;
  // Tuning times at most this many candidates per region, cheapest by estimate first; 0: all.
  int max_candidates = 0;
  // Engine id ("cpu.conv_tiles") to use for every region it supports; empty: no preference.
  std::string engine = {};
  Recompute recompute = Recompute::none;
  // Recomputes no more than it takes for an estimated workspace of at most so many bytes: the
  // values that free the most bytes per FLOP first. 0: everything that `recompute` allows.
  std::int64_t recompute_budget = 0;
  // Outputs that may be bound to the memory of an input: optimizer states, caches that grow. The
  // input then holds the output after a run. Both have the same dims, strides and dtype. Where the
  // planner cannot prove that every element is read before it is written, the result is computed in
  // the workspace and copied last; explain() tells which.
  InPlace in_place = {};
  // See Constants. Not stored in a saved plan.
  Constants constants = {};
};

// The memory of one bound tensor, as it is passed to a plan: inputs and scalars may be const,
// outputs may not.
class BoundPointer {
 public:
  BoundPointer(void* memory) : memory_(memory), is_const_(false) {}
  BoundPointer(const void* memory) : memory_(const_cast<void*>(memory)), is_const_(true) {}
  BoundPointer(std::nullptr_t) : memory_(nullptr), is_const_(false) {}
  explicit operator bool() const { return memory_ != nullptr; }

 private:
  friend class Binding;
  void* memory_;
  bool is_const_;
};

// One pointer per bound tensor, set by name or uid once and reused for many runs.
class Binding {
 public:
  // Throw Error(invalid_argument) for an unknown tensor and for a const pointer to an output.
  void set(std::string_view name, BoundPointer pointer);
  void set(std::int64_t uid, BoundPointer pointer);

 private:
  friend class Plan;
  explicit Binding(std::shared_ptr<const PlanData> plan);
  void set_at(std::size_t position, BoundPointer pointer);
  std::shared_ptr<const PlanData> plan_;
  std::vector<void*> pointers_;
};

struct Inspection;  // <ashlar/inspect.hpp>

struct PlanNotes {
  bool deterministic = true;
  bool tf32 = false;  // f32 operands of matmuls and convolutions keep 11 significant bits
  // fp8 products accumulate with 14 bits and are promoted to f32 after every 128 terms
  // (docs/numerics.md).
  bool reduced_precision_accumulation = false;
  bool truncating_accumulation =
      false;  // tensor cores truncate where IEEE f32 addition would round
  bool runtime_compiled = false;
  int winograd = 0;  // output pixels per tile and axis of the largest Winograd tile; 0: none
  auto operator<=>(const PlanNotes&) const = default;
};

// A compiled graph. Immutable: any number of threads may run a plan concurrently, each with its own
// workspace. Copies share the compiled kernels.
class Plan {
 public:
  std::int64_t workspace_size() const;  // bytes that run() requires, 64-byte aligned
  std::int64_t owned_bytes() const;     // bytes of workspace owned by the plan, per concurrent run
  const PlanNotes& notes() const;
  const Graph& graph() const;
  const DeviceProps& device() const;
  int region_count() const;
  double flops() const;  // FLOPs of one run, 2 per multiply-add; masked work is counted
  // The bound tensors in binding order.
  const std::vector<TensorId>& bound_tensors() const;
  // Text: the regions, the engine and configuration of each, the estimate or refusal of every other
  // engine for the operation, workspace and notes.
  std::string explain() const;
  Inspection inspect() const;  // the same as values

  // Executes the plan. Pointers refer to memory of the plan's device (host memory for scalars) of
  // byte_size() bytes each, aligned to their elements. Outputs must not overlap other
  // tensors, except their input of CompileOptions::in_place; `z` of a convolution may be its
  // output. `workspace` has workspace_size() bytes. `stream` is a CUstream, null for the default
  // stream; the CPU ignores it. The overloads with a Binding or a span of pointers, in binding
  // order, do no allocation, lookup or locking. The memory of inputs and scalars is never written,
  // except that of in-place outputs.
  void run(std::initializer_list<std::pair<std::string_view, BoundPointer>> pointers,
           void* workspace = nullptr, void* stream = nullptr) const;
  void run(std::span<const std::pair<std::int64_t, BoundPointer>> pointers_by_uid,
           void* workspace = nullptr, void* stream = nullptr) const;
  Binding binding() const;
  void run(const Binding& binding, void* workspace = nullptr, void* stream = nullptr) const;
  void run(std::span<void* const> pointers, void* workspace = nullptr,
           void* stream = nullptr) const;
  // One run that the device times region by region: seconds of each, in execution order. Unlike
  // run() it allocates, and it waits for the device.
  std::vector<double> region_seconds(std::span<void* const> pointers, void* workspace = nullptr,
                                     void* stream = nullptr) const;

  // Adds one run to `cuda_graph`, an empty CUgraph (or cudaGraph_t), as a linear chain of nodes
  // without child graphs: for programs that construct CUDA graphs explicitly. Programs that use
  // stream capture need nothing of this: run() can be captured from its first call on. Pointers and
  // workspace are those of run(); the values of scalar tensors are read during this call. The plan
  // must outlive the graph and everything instantiated from it.
  //
  // A plan with owned memory (owned_bytes() > 0) supports one graph at a time: launches of its
  // graphs and other runs of the plan must not overlap. The same holds for plans that run a region
  // on the CPU ("cuda.host" in explain()).
  //
  // Throws Error(invalid_argument) for a plan that is not for CUDA, Error(device) for driver
  // errors.
  void populate_cuda_graph(void* cuda_graph, std::span<void* const> pointers,
                           void* workspace = nullptr) const;
  void populate_cuda_graph(void* cuda_graph, const Binding& binding,
                           void* workspace = nullptr) const;
  // Replaces pointers, workspace and scalar values in a graph that this plan populated. Bring
  // existing executable graphs up to date with cuGraphExecUpdate; it always succeeds, because the
  // topology does not change.
  void update_cuda_graph(void* cuda_graph, std::span<void* const> pointers,
                         void* workspace = nullptr) const;
  void update_cuda_graph(void* cuda_graph, const Binding& binding, void* workspace = nullptr) const;

  // Graph, device, options and selected engines as versioned JSON. from_json() builds the same
  // kernels without selection or tuning; constants have to be passed again.
  std::string to_json() const;
  static Plan from_json(std::string_view text, const Constants& constants = {});

 private:
  friend Plan compile(const Graph&, const Device&, const CompileOptions&);
  explicit Plan(std::shared_ptr<const PlanData> data);
  std::shared_ptr<const PlanData> data_;
};

// Builds a plan. Every valid graph has one; an invalid graph throws Error(invalid_graph). Throws
// Error(device) for a device that is not present.
Plan compile(const Graph& graph, const Device& device = Device::cpu(),
             const CompileOptions& options = {});

// Plan::explain() of the plan that compile() would build; the device need not be present.
std::string explain(const Graph& graph, const Device& device, const CompileOptions& options = {});

// How an engine computes, slowest first.
enum class ComputeMethod : std::uint8_t {
  reference,          // scalar loops in double precision on the CPU
  thread_per_output,  // a GPU thread per output element, no tiling
  cuda_cores,         // tiled GPU kernels without tensor cores
  simd,               // vector instructions of the CPU
  tensor_cores,
};
std::string_view to_string(ComputeMethod method);  // "one thread per output", "SIMD", ...

struct EngineInfo {
  std::string id;           // "cpu.matmul_gemm"
  std::string kind;         // "generic fusion", ...
  std::string description;  // one line
  bool is_reference;        // scalar double-precision loops: the last resort
  ComputeMethod method;     // with the fastest units it uses
};
std::vector<EngineInfo> engines(DeviceKind kind);

#pragma GCC visibility pop

}  // namespace ashlar
