// The engine interface. An engine is one implementation of a kind of region for a kind of device.
#pragma once

#include <ashlar/device.hpp>
#include <ashlar/plan.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.hpp"
#include "plan/kernel.hpp"
#include "plan/region.hpp"

namespace ashlar {

// The answer of Engine::supports: yes, or no with a reason.
class Support {
 public:
  static Support yes() { return {}; }
  template <class... Args>
  static Support no(fmt::format_string<Args...> reason, Args&&... args) {
    Support support;
    support.reason_ = fmt::format(reason, std::forward<Args>(args)...);
    return support;
  }
  // The engine is for another operation: explain() only counts such refusals.
  template <class... Args>
  static Support other_operation(fmt::format_string<Args...> reason, Args&&... args) {
    Support support = no(reason, std::forward<Args>(args)...);
    support.is_other_operation_ = true;
    return support;
  }
  explicit operator bool() const { return reason_.empty(); }
  const std::string& reason() const { return reason_; }
  bool is_other_operation() const { return is_other_operation_; }

 private:
  std::string reason_;
  bool is_other_operation_ = false;
};

// The estimated cost of a configuration.
struct Cost {
  double flops = 0;           // FLOPs, including redundant work
  double bytes = 0;           // memory traffic in bytes
  double flops_fraction = 1;  // achievable fraction of peak FLOP/s when compute-bound
  double bytes_fraction = 1;  // achievable fraction of peak bandwidth when memory-bound
  double seconds(const DeviceProps& device, DType precision) const;
};

struct Config {
  std::vector<std::pair<std::string, std::int64_t>> knobs;  // named parameters, stored in plans
  Cost cost;
  std::int64_t scratch_bytes = 0;
  PlanNotes notes;

  std::int64_t knob(std::string_view name) const;  // throws Error(internal) if absent
  std::string to_text() const;                     // "mr=6 nr=32 kc=256"
};

enum class EngineKind : std::uint8_t {
  precompiled_single,
  generic_fusion,
  specialised_fusion,
  naive,  // one thread per output element: supports everything, slow
  reference
};
// Kinds that support every region and are used only if no other engine does.
constexpr bool is_last_resort(EngineKind kind) {
  return kind == EngineKind::naive || kind == EngineKind::reference;
}
std::string_view to_string(EngineKind kind);

// supports and configs are pure functions of the region and the device: no globals, no environment.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::string_view id() const = 0;  // "<backend>.<file stem>"
  virtual EngineKind kind() const = 0;
  virtual std::string_view description() const = 0;
  // By default SIMD, unless the kind is a last resort.
  virtual ComputeMethod method() const;
  virtual ComputeMethod method_for(const Region&) const { return method(); }
  virtual Support supports(const Region& region, const DeviceProps& device) const = 0;
  // Whether each element that the epilogue writes is stored once, after all operands of the element
  // have been read, and whether nothing else is kept in the memory of the results meanwhile. They
  // may then be in the memory of an operand (plan/in_place.hpp).
  virtual bool stores_last(const Region&) const { return is_last_resort(kind()); }
  // Valid configurations, cheapest first; at least one for a supported region.
  virtual std::vector<Config> configs(const Region& region, const DeviceProps& device) const = 0;
  // Dynamic shared memory per CTA of its GPU kernels, in bytes, not counting static arrays of a few
  // KB.
  virtual std::int64_t dynamic_shared_bytes(const Graph&, const Region&, const Config&,
                                            const DeviceProps&) const {
    return 0;
  }
  // The graph and the region outlive the kernel.
  virtual std::unique_ptr<Kernel> build(const Graph& graph, const Region& region,
                                        const Config& config, const DeviceProps& device) const = 0;
};

// The engines of a backend, most specialised first, the last-resort engine last. Selection, tests
// and benchmarks iterate over this table.
using EngineTable = std::span<const Engine* const>;

}  // namespace ashlar
