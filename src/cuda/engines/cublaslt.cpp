// Plain GEMMs by NVIDIA's cuBLASLt, on machines that have it.
#include <algorithm>
#include <mutex>

#include "base/log.hpp"
#include "cuda/cublaslt/lt_problem.hpp"
#include "cuda/driver/context.hpp"
#include "cuda/driver/private_capture.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/engines/gemm_tails.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kMaxWorkspace = 32 << 20;  // what NVIDIA advises for Hopper
constexpr std::size_t kWorkspaceAddress = 256;    // alignment that the library may require
constexpr const char* kWhat = "matmul";

// A fake address for alignment queries, never dereferenced: a multiple of this power of two, and
// below 16 of no higher one.
void* address_aligned_to(std::uintptr_t alignment) {
  alignas(kWorkspaceAddress) static std::array<std::byte, 16> anything;
  return anything.data() + alignment % anything.size();
}

// One handle per device, never destroyed: plans in static storage may outlive it otherwise.
LtHandle handle_of(DeviceOrdinal device) {
  constexpr int kMaxDevices = 64;
  static std::array<std::once_flag, kMaxDevices> once;
  static std::array<LtHandle, kMaxDevices> handles{};
  const auto i = static_cast<std::size_t>(device);
  std::call_once(once.at(i), [&] { check_lt(cublaslt().api->create(&handles[i]), "starting"); });
  return handles[i];
}

class MatrixLayout {
 public:
  MatrixLayout(const LtMatrix& matrix, LtType type, std::int64_t batches) {
    const CublasLtApi& api = *cublaslt().api;
    check_lt(api.create_layout(&handle_, type, static_cast<std::uint64_t>(matrix.rows),
                               static_cast<std::uint64_t>(matrix.columns), matrix.column_distance),
             kWhat);
    const auto count = static_cast<std::int32_t>(batches);
    check_lt(api.set_layout(handle_, LtLayoutAttribute::batch_count, &count, sizeof count), kWhat);
    check_lt(api.set_layout(handle_, LtLayoutAttribute::batch_stride, &matrix.batch_distance,
                            sizeof matrix.batch_distance),
             kWhat);
  }
  ~MatrixLayout() { cublaslt().api->destroy_layout(handle_); }
  MatrixLayout(const MatrixLayout&) = delete;
  MatrixLayout& operator=(const MatrixLayout&) = delete;
  LtLayout handle() const { return handle_; }

 private:
  LtLayout handle_ = nullptr;
};

class CublasLtKernel final : public Kernel {
 public:
  CublasLtKernel(const LtProblem& problem, DeviceOrdinal device)
      : problem_(problem),
        device_(device),
        handle_(handle_of(device)),
        a_(problem.a, problem.inputs, problem.batches),
        b_(problem.b, problem.inputs, problem.batches),
        d_(problem.d, problem.output, problem.batches),
        aligned_(choose(kVectorBytes)),
        unaligned_(choose(bit_width(problem.a.view.dtype) / 8)) {
    const std::size_t bytes = std::max(aligned_.workspace_bytes, unaligned_.workspace_bytes);
    if (bytes > 0)
      workspace_ = scratch_layout_.add("cublaslt workspace",
                                       static_cast<std::int64_t>(bytes + kWorkspaceAddress));
    load_code();
  }

  void run(const KernelContext& context) const override {
    const ContextScope scope(device_);
    Pointers pointers{place(context, problem_.a.view), place(context, problem_.b.view),
                      place(context, problem_.d.view), nullptr, nullptr};
    if (problem_.bias.present()) pointers.bias = place(context, problem_.bias);
    if (workspace_ >= 0) {
      auto* start = context.scratch<std::byte>(scratch_layout_, workspace_);
      const auto past = reinterpret_cast<std::uintptr_t>(start) % kWorkspaceAddress;
      pointers.workspace = start + (past == 0 ? 0 : kWorkspaceAddress - past);
    }
    multiply(pointers, static_cast<StreamHandle>(context.stream()));
  }

 private:
  static constexpr std::uintptr_t kVectorBytes = 16;
  struct Pointers {
    void *a, *b, *d, *bias, *workspace;
    bool are_aligned() const {
      const auto all = reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b) |
                       reinterpret_cast<std::uintptr_t>(d) | reinterpret_cast<std::uintptr_t>(bias);
      return all % kVectorBytes == 0;
    }
  };

  static void* place(const KernelContext& context, const View& view) {
    return static_cast<std::byte*>(context.pointer(view.tensor)) +
           view.offset * (bit_width(view.dtype) / 8);
  }

  LtMatmul product(void* bias) const {
    const CublasLtApi& api = *cublaslt().api;
    LtMatmul result{};
    const bool is_f64 = problem_.compute == LtCompute::f64;
    check_lt(api.init_product(&result, sizeof result, problem_.compute,
                              is_f64 ? LtType::f64 : LtType::f32),
             kWhat);
    const auto set = [&](LtMatmulAttribute which, const auto& value) {
      check_lt(api.set_product(&result, which, &value, sizeof value), kWhat);
    };
    set(LtMatmulAttribute::transpose_a, static_cast<std::int32_t>(problem_.a.transposed));
    set(LtMatmulAttribute::transpose_b, static_cast<std::int32_t>(problem_.b.transposed));
    if (problem_.bias.present()) {
      set(LtMatmulAttribute::epilogue, LtEpilogue::bias);
      set(LtMatmulAttribute::bias, bias);
    }
    return result;
  }

  LtHeuristic choose(std::uintptr_t alignment) const {
    const CublasLtApi& api = *cublaslt().api;
    LtPreference preference = nullptr;
    check_lt(api.create_preference(&preference), kWhat);
    const auto set = [&](LtPreferenceAttribute which, const auto& value) {
      check_lt(api.set_preference(preference, which, &value, sizeof value), kWhat);
    };
    set(LtPreferenceAttribute::workspace_bytes, static_cast<std::uint64_t>(kMaxWorkspace));
    // Split-K partials are added in the compute type and in a fixed order: results are bitwise
    // reproducible.
    constexpr std::uint32_t kComputeType = 2;
    set(LtPreferenceAttribute::reduction_schemes, kComputeType);
    for (const auto which :
         {LtPreferenceAttribute::alignment_a, LtPreferenceAttribute::alignment_b,
          LtPreferenceAttribute::alignment_c, LtPreferenceAttribute::alignment_d})
      set(which, static_cast<std::uint32_t>(alignment));
    const LtMatmul what = product(address_aligned_to(alignment));
    LtHeuristic found{};
    int count = 0;
    const int error = api.choose(handle_, &what, a_.handle(), b_.handle(), d_.handle(), d_.handle(),
                                 preference, 1, &found, &count);
    api.destroy_preference(preference);
    check_lt(error, "choosing a matmul algorithm");
    check_lt(found.state, "choosing a matmul algorithm");
    if (count == 0) fail(ErrorCode::device, "cuda: cuBLASLt has no algorithm for this matmul");
    return found;
  }

  // The library loads code on first use, which must not happen within a capture of the caller: a
  // capture of our own warms it up, with addresses that are never dereferenced.
  void load_code() const {
    void* workspace = address_aligned_to(kVectorBytes);
    for (const std::uintptr_t alignment : {kVectorBytes, kVectorBytes / 2}) {
      void* any = address_aligned_to(alignment);
      try {
        const CapturedGraph graph([&](void* stream) {
          multiply({any, any, any, problem_.bias.present() ? any : nullptr, workspace},
                   static_cast<StreamHandle>(stream));
        });
      } catch (const Error& error) {
        log(LogLevel::debug, "cuda.cublaslt: kernels are not loaded yet: {}", error.what());
      }
    }
  }

  void multiply(const Pointers& pointers, StreamHandle stream) const {
    const LtMatmul what = product(pointers.bias);
    const LtHeuristic& how = pointers.are_aligned() ? aligned_ : unaligned_;
    const double one64 = 1, zero64 = 0;
    const float one32 = 1, zero32 = 0;
    const bool is_f64 = problem_.compute == LtCompute::f64;
    const void* one = is_f64 ? static_cast<const void*>(&one64) : &one32;
    const void* zero = is_f64 ? static_cast<const void*>(&zero64) : &zero32;
    check_lt(cublaslt().api->multiply(handle_, &what, one, pointers.a, a_.handle(), pointers.b,
                                      b_.handle(), zero, pointers.d, d_.handle(), pointers.d,
                                      d_.handle(), &how.algorithm, pointers.workspace,
                                      how.workspace_bytes, stream),
             kWhat);
  }

  LtProblem problem_;
  DeviceOrdinal device_;
  LtHandle handle_;
  MatrixLayout a_, b_, d_;
  LtHeuristic aligned_, unaligned_;
  int workspace_ = -1;
};

class CublasLtEngine final : public Engine {
 public:
  std::string_view id() const override { return "cuda.cublaslt"; }
  EngineKind kind() const override { return EngineKind::precompiled_single; }
  ComputeMethod method() const override { return ComputeMethod::tensor_cores; }
  std::string_view description() const override {
    return "plain GEMMs with a bias by NVIDIA's cuBLASLt";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    LtProblem problem;
    if (Support support = describe(region, problem); !support) return support;
    return has_no_tails(region);
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    // It reaches three quarters of the peak and more. A lower estimate ranks it first only where
    // our own kernels are far behind, so that plans seldom depend on another library; tuning
    // decides by time.
    constexpr double kShare = 0.6;
    LtProblem problem;
    describe(region, problem);
    const bool narrow = problem.inputs == LtType::f16 || problem.inputs == LtType::bf16;
    Config config;
    config.cost = {.flops = region.flops(),
                   .bytes = region.bytes(),
                   .flops_fraction = kShare * (narrow ? device.flops_f16 / device.flops_f32 : 1.0),
                   .bytes_fraction = kShare};
    return {config};
  }

  // The library does not say beforehand what it refuses; the generic engine then runs instead.
  std::unique_ptr<Kernel> build(const Graph& graph, const Region& region, const Config&,
                                const DeviceProps& device) const override {
    LtProblem problem;
    if (const Support support = describe(region, problem); !support)
      fail(ErrorCode::internal, "cuda.cublaslt: {}", support.reason());
    try {
      const ContextScope scope(device.ordinal);
      return std::make_unique<CublasLtKernel>(problem, device.ordinal);
    } catch (const Error& error) {
      log(LogLevel::info, "{}; cuda.generic takes '{}'", error.what(), region.to_text(graph));
    }
    const Engine& generic = generic_engine();
    return generic.build(graph, region, generic.configs(region, device).at(0), device);
  }
};

}  // namespace

const Engine& cublaslt_engine() {
  static const CublasLtEngine engine;
  return engine;
}

}  // namespace ashlar::cuda
