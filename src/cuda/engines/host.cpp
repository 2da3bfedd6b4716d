// Fallback engine: runs the CPU reference for regions that no GPU kernel supports. Tensors are
// copied to pinned host memory and back; the computation is a host function of the stream, so that
// nothing blocks and streams can be captured.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

#include "base/log.hpp"
#include "cuda/driver/context.hpp"
#include "cuda/driver/stream_event.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/engines/gemm_tails.hpp"

namespace ashlar::cuda {

namespace {

// Pinned host memory.
class PinnedMemory {
 public:
  PinnedMemory(DeviceOrdinal device, std::int64_t bytes) : device_(device) {
    const ContextScope scope(device);
    check(driver_api().allocate_host(&memory_,
                                     static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)), 0),
          fmt::format("allocating {} bytes of pinned host memory", bytes).c_str());
  }
  ~PinnedMemory() {
    // A failure is ignored: the memory is freed with the process.
    try {
      const ContextScope scope(device_);
      driver_api().release_host(memory_);
    } catch (const Error&) {
    }
  }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  DeviceOrdinal device_;
  void* memory_ = nullptr;
};

// By device: the first failure, since it was last thrown, of a computation that ran in stream order
// after the call that enqueued it had returned.
class DeferredFailures {
 public:
  void report(DeviceOrdinal device, const std::string& sentence) {
    const std::lock_guard lock(mutex_);
    sentences_.try_emplace(device, sentence);
  }
  void rethrow(DeviceOrdinal device) {
    std::string sentence;
    {
      const std::lock_guard lock(mutex_);
      const auto found = sentences_.find(device);
      if (found == sentences_.end()) return;
      sentence = std::move(found->second);
      sentences_.erase(found);
    }
    fail(ErrorCode::internal, "{}", sentence);
  }

 private:
  std::mutex mutex_;
  std::map<DeviceOrdinal, std::string> sentences_;
};
// Never destroyed: streams may still run when the program ends.
DeferredFailures& deferred_failures() {
  static DeferredFailures& failures = *new DeferredFailures;
  return failures;
}

// Spin-free lock on an atomic flag.
class FlagLock {
 public:
  explicit FlagLock(std::atomic_flag& flag) : flag_(flag) {
    while (flag_.test_and_set(std::memory_order_acquire)) flag_.wait(true);
  }
  ~FlagLock() {
    flag_.clear(std::memory_order_release);
    flag_.notify_one();
  }
  FlagLock(const FlagLock&) = delete;
  FlagLock& operator=(const FlagLock&) = delete;

 private:
  std::atomic_flag& flag_;
};

class HostKernel final : public Kernel {
 public:
  HostKernel(const Graph& graph, const Region& region, std::unique_ptr<Kernel> kernel,
             DeviceOrdinal device)
      : device_(device),
        region_(region.to_text(graph)),
        what_(fmt::format("copying tensors of '{}' between GPU and CPU", region_)),
        kernel_(std::move(kernel)),
        locations_(graph.tensors().size()),
        last_use_(device) {
    std::int64_t total = 0;
    const auto reserve_scratch = [&](std::int64_t bytes) {
      const std::int64_t offset = total;
      total += (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
      return offset;
    };
    const auto add = [&](TensorId id, bool is_written) {
      Location& location = locations_[static_cast<std::size_t>(id)];
      if (location.kind == Location::Kind::workspace) return;
      const Tensor& tensor = graph.tensor(id);
      const bool by_value =
          tensor.kind == TensorKind::scalar || tensor.kind == TensorKind::constant;
      const std::int64_t bytes = by_value ? sizeof(std::uint64_t) : byte_size(tensor);
      location = {Location::Kind::workspace, reserve_scratch(bytes), nullptr};
      if (bytes > 0)
        staged_tensors_.push_back({id, location.index, byte_size(tensor), by_value, is_written});
    };
    for (const TensorId id : region.writes) add(id, true);
    for (const TensorId id : region.reads) add(id, false);
    scratch_offset_ = reserve_scratch(kernel_->scratch_layout().total_bytes());
    staging_ = std::make_unique<PinnedMemory>(device, total);
  }

  void run(const KernelContext& context) const override {
    rethrow_host_failure(device_);
    const ContextScope scope(device_);
    const DriverApi& api = driver_api();
    const auto stream = static_cast<StreamHandle>(context.stream());
    // One staging buffer: concurrent runs are serialised, on the host and on the device.
    const FlagLock turn(busy_);
    last_use_.stream_wait(context.stream());
    for (const StagedTensor& one : staged_tensors_) {
      std::byte* place = staging_->data() + one.offset;
      if (one.by_value) {
        // The scalar's current value, captured by the memset node itself.
        std::array<unsigned, 2> words{};
        std::memcpy(words.data(), context.pointer(one.tensor), static_cast<std::size_t>(one.bytes));
        for (std::size_t i = 0; i < words.size(); ++i)
          check(api.fill_words(reinterpret_cast<DeviceAddress>(place) + 4 * i, words[i], 1, stream),
                what_.c_str());
      } else {
        check(api.copy_to_host(place, reinterpret_cast<DeviceAddress>(context.pointer(one.tensor)),
                               static_cast<std::size_t>(one.bytes), stream),
              what_.c_str());
      }
    }
    check(api.call_host(stream, &compute, const_cast<HostKernel*>(this)), what_.c_str());
    for (const StagedTensor& one : staged_tensors_)
      if (one.is_written)
        check(api.copy_to_device(reinterpret_cast<DeviceAddress>(context.pointer(one.tensor)),
                                 staging_->data() + one.offset, static_cast<std::size_t>(one.bytes),
                                 stream),
              what_.c_str());
    last_use_.record(context.stream());
  }

 private:
  struct StagedTensor {
    TensorId tensor;
    std::int64_t offset, bytes;
    bool by_value, is_written;
  };

  static void compute(void* self) {
    const auto& host = *static_cast<const HostKernel*>(self);
    try {
      KernelContext context(host.locations_, {}, host.staging_->data(), nullptr);
      context.set_scratch(host.staging_->data() + host.scratch_offset_);
      host.kernel_->run(context);
    } catch (const std::exception& error) {
      // The stream goes on: outputs of all ones (NaN in floating types) show that they are invalid.
      for (const StagedTensor& one : host.staged_tensors_)
        if (one.is_written)
          std::memset(host.staging_->data() + one.offset, 0xff,
                      static_cast<std::size_t>(one.bytes));
      log(LogLevel::error, "cuda.host: {}: {}", host.region_, error.what());
      deferred_failures().report(
          host.device_,
          fmt::format("cuda.host: an earlier run of '{}' failed and its outputs are invalid: {}",
                      host.region_, error.what()));
    }
  }

  DeviceOrdinal device_;
  std::string region_, what_;  // for messages
  std::unique_ptr<Kernel> kernel_;
  std::vector<Location> locations_;
  std::vector<StagedTensor> staged_tensors_;
  std::int64_t scratch_offset_ = 0;
  std::unique_ptr<PinnedMemory> staging_;
  mutable std::atomic_flag busy_;
  mutable StreamEvent last_use_;
};

class HostEngine final : public Engine {
 public:
  explicit HostEngine(const Engine& engine) : engine_(engine) {}
  std::string_view id() const override { return "cuda.host"; }
  EngineKind kind() const override { return EngineKind::reference; }
  std::string_view description() const override {
    return "the CPU reference on copies of the tensors; supports everything";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    for (const PointwiseProgram& prologue : region.prologues)
      if (prologue.has_blocks()) return Support::no("a prologue dequantises with block scales");
    if (Support support = has_no_tails(region); !support) return support;
    return engine_.supports(region, cpu_);
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    std::vector<Config> configs = engine_.configs(region, cpu_);
    constexpr double kBusBytesPerSecond = 2e10;  // PCIe bandwidth per direction, about the CPU's
                                                 // read bandwidth too
    constexpr double kFlopsPerSecond = 1e8;      // of the double-precision reference loops
    for (Config& config : configs)
      config.cost = {.flops = region.flops(),
                     .bytes = region.bytes(),
                     .flops_fraction = kFlopsPerSecond / device.flops_f32,
                     .bytes_fraction = kBusBytesPerSecond / device.bytes_per_second};
    return configs;
  }

  std::unique_ptr<Kernel> build(const Graph& graph, const Region& region, const Config& config,
                                const DeviceProps& device) const override {
    return std::make_unique<HostKernel>(graph, region, engine_.build(graph, region, config, cpu_),
                                        device.ordinal);
  }

 private:
  const DeviceProps cpu_ = {};
  const Engine& engine_;
};

}  // namespace

void rethrow_host_failure(DeviceOrdinal device) { deferred_failures().rethrow(device); }

std::unique_ptr<Engine> make_host_engine(const Engine& last_resort) {
  return std::make_unique<HostEngine>(last_resort);
}

}  // namespace ashlar::cuda
