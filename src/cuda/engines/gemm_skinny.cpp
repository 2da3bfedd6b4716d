// Engine cuda.gemm_skinny: GEMM with up to 32 rows or columns (decode, GEMV), which reads the
// weights once at memory bandwidth. Generates kernel text and launches.
#include <fmt/format.h>

#include <algorithm>

#include "base/ceil_div.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/engines/gemm_skinny_shape.hpp"
#include "cuda/engines/gemm_tails.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/spec_text.hpp"
#include "cuda/text/wgmma_text.hpp"

namespace ashlar::cuda {

namespace {

using Shape = SkinnyShape;
using Layout = SkinnyLayout;

// A vector length of at most `most` that divides the extent of the last axis.
int vector_of(const PointwiseProgram& program, std::int64_t most) {
  int length = vector_length(program, static_cast<int>(most));
  while (program.space[program.space.rank() - 1] % length != 0) length /= 2;
  return length;
}

class Designer {
 public:
  Designer(const Graph& graph, const Shape& shape, const Layout& layout)
      : graph_(graph), shape_(shape), layout_(layout) {}

  KernelDesign design(DType precision) {
    add_numbers();
    std::string programs = print_program(shape_.x, graph_, "x_program", arguments_) + print_work() +
                           print_scale() + print_factors() +
                           print_program(shape_.epilogue, graph_, "epilogue", arguments_);
    if (by_rows() && !on_warpgroups()) programs += print_prefetch();
    const DType of_scales = by_rows() && scaled() ? shape_.scales().dtype : f32;
    const std::string head =
        register_types(precision, {&shape_.x, &shape_.work, &shape_.epilogue, &wide_}) +
        fmt::format("typedef {} W;\ntypedef {} T;\ntypedef {} S;\n",
                    type_name(shape_.weights.dtype), type_name(shape_.type), type_name(of_scales)) +
        constants() + (on_warpgroups() ? warpgroup_constants() : "") + arguments_.struct_text() +
        programs;
    const std::string function = on_warpgroups() ? "gemm_skinny_warpgroup"
                                 : by_rows()     ? "gemm_skinny_tma"
                                                 : "gemm_skinny";
    const std::string own_file = function + ".cuh";
    std::vector<std::string_view> files = {
        "gemm_skinny_packets.cuh",
        shape_.uses_mma() ? "gemm_skinny_mma.cuh" : "gemm_skinny_fma.cuh",
        "gemm_skinny_epilogue.cuh"};
    if (on_warpgroups())
      for (const std::string_view file : warpgroup_files()) files.push_back(file);
    else if (by_rows())
      files.push_back("gemm_skinny_lane.cuh");
    if (by_rows()) files.push_back("gemm_skinny_pdl.cuh");
    files.push_back(own_file);
    LaunchDesign launch{{"gemm_skinny", assemble(files, head)},
                        function,
                        {},
                        static_cast<unsigned>(layout_.threads()),
                        static_cast<unsigned>(layout_.shared_bytes(shape_)),
                        arguments_};
    launch.grid.x = static_cast<unsigned>(layout_.grid(shape_));
    launch.cluster = static_cast<unsigned>(layout_.split);
    launch.is_dependent_launch = by_rows();
    if (!by_rows()) {
      launch.unaligned_function = "gemm_skinny_elements";
      launch.unaligned_grid.x = static_cast<unsigned>(layout_.grid(shape_) / layout_.split);
    }
    KernelDesign design;
    if (on_warpgroups() && !layout_.repacks_in_cta())
      design.launches.push_back(repack_launch(launch));
    design.launches.push_back(std::move(launch));
    design.scratch = std::move(scratch_);
    return design;
  }

 private:
  bool on_warpgroups() const { return layout_.helpers > 0; }
  bool by_rows() const { return layout_.chunk > 0; }
  bool scaled() const { return shape_.scale_block > 0; }

  std::vector<std::string_view> warpgroup_files() const {
    const bool limbs = layout_.has_limbs();
    std::vector<std::string_view> files = {limbs ? "gemm_skinny_limbs.cuh"
                                                 : "gemm_skinny_repack.cuh"};
    if (layout_.repacks_in_cta())
      files.push_back(limbs ? "gemm_skinny_limbs_in_cta.cuh" : "gemm_skinny_repack_in_cta.cuh");
    else
      files.insert(files.end(),
                   {limbs ? "gemm_skinny_limbs_prepass.cuh" : "gemm_skinny_repack_prepass.cuh",
                    "gemm_skinny_packed_x.cuh"});
    files.insert(files.end(),
                 {"gemm_skinny_warpgroup_load.cuh", "gemm_skinny_warpgroup_lane.cuh",
                  limbs ? "gemm_skinny_warpgroup_limbs.cuh" : "gemm_skinny_warpgroup_half2.cuh",
                  "gemm_skinny_warpgroup_epilogue.cuh", "gemm_skinny_recompute_nonfinite.cuh"});
    return files;
  }
  // Repack warps per CTA: of the main kernel, or of the pre-pass.
  std::int64_t repack_warps() const {
    constexpr std::int64_t kOfLaunch = 2, kLimbInstructions = 8;
    if (layout_.repacks_in_cta()) return layout_.helpers - 1;
    return layout_.has_limbs() ? kLimbInstructions : kOfLaunch;
  }
  // The pre-pass that repacks x. A warp repacks 128 k of 8 rows, or decomposes 128 k of 2 rows into
  // limbs.
  LaunchDesign repack_launch(const LaunchDesign& main) const {
    constexpr std::int64_t kDepths = 128;
    const std::int64_t rows = layout_.has_limbs() ? 2 : 8;
    const std::int64_t warp_bytes = layout_.has_limbs() ? 0 : 2048;  // of shared memory
    const std::int64_t k = layout_.rounds(shape_) * layout_.chunk * 8 / shape_.bits();
    const std::int64_t blocks = k / kDepths * (shape_.columns() / rows);
    LaunchDesign launch{main.source,
                        "gemm_skinny_repack",
                        {},
                        static_cast<unsigned>(repack_warps() * 32),
                        static_cast<unsigned>(repack_warps() * warp_bytes),
                        main.arguments};
    launch.grid.x = static_cast<unsigned>(ceil_div(blocks, repack_warps()));
    launch.is_dependent_launch = true;
    return launch;
  }

  void add_numbers() {
    const auto batch_strides = [&](const View& view) {
      std::vector<std::int64_t> strides;
      for (int axis = 0; axis < shape_.rank - 2; ++axis)
        strides.push_back(view.dims[axis] == 1 ? 0 : view.strides[axis]);
      if (strides.empty()) strides.push_back(0);
      return strides;
    };
    arguments_.number("n", shape_.n);
    arguments_.number("k", shape_.k);
    arguments_.number("rounds", layout_.rounds(shape_));
    arguments_.number("groups", layout_.groups(shape_));
    arguments_.number("units", layout_.groups(shape_) * shape_.batches);
    std::vector<std::int64_t> extents(shape_.batch_extent.begin(), shape_.batch_extent.end());
    if (extents.empty()) extents.push_back(1);
    arguments_.numbers("batch_extent", extents);
    arguments_.pointer("weights", shape_.weights);
    if (by_rows()) arguments_.never_changes("weights_never_change", shape_.weights.tensor);
    arguments_.number("first_weight", shape_.bits() < 8 ? shape_.weights.offset : 0);
    arguments_.number("row_stride", shape_.row_stride());
    arguments_.number("k_stride", shape_.k_stride());
    arguments_.numbers("batch_stride", batch_strides(shape_.weights));
    const View x = shape_.copies_x() ? shape_.x.steps[0].view : View{};
    x.present() ? arguments_.pointer("x", x) : arguments_.number("x", 0);
    arguments_.number("x_row_stride", x.present() ? x.strides[shape_.rank - 2] : 0);
    arguments_.numbers("x_batch_stride", batch_strides(x.present() ? x : shape_.weights));
    if (on_warpgroups()) {
      arguments_.tensor_map("map_weights", shape_.weights, weight_map());
      if (layout_.repacks_in_cta())
        arguments_.tensor_map("map_x", x, x_map(x));
      else
        arguments_.scratch("packed_x", scratch_.add("repacked x", layout_.scratch_bytes(shape_)));
      if (scaled()) arguments_.tensor_map("map_scales", shape_.scales(), scale_map());
      if (shape_.has_small_integers()) {
        arguments_.pointer("scales", shape_.scales());
        arguments_.number("scale_stride", shape_.scales().strides[shape_.rank - 1]);
      }
    } else if (by_rows()) {
      arguments_.number("row_bytes", shape_.row_bytes());
      scaled() ? arguments_.pointer("scales", shape_.scales()) : arguments_.number("scales", 0);
      const View& scales = scaled() ? shape_.scales() : shape_.weights;
      arguments_.number("scale_stride", scales.strides[shape_.rank - 1]);
      arguments_.numbers("scale_batch_stride", batch_strides(scales));
    }
    wide_.space = shape_.work.space;
    wide_.steps = plain_load(shape_.weights).steps;
  }

  std::string constants() const {
    const std::int64_t share = layout_.rows(shape_) / layout_.split;
    int vector_y = vector_of(shape_.epilogue, share % 4 == 0 ? 4 : share % 2 == 0 ? 2 : 1);
    if (!shape_.factors.empty()) vector_y = vector_of(shape_.factors, vector_y);
    return layout_constants() + constant("kKMajor", shape_.k_major ? 1 : 0) +
           constant("kUsesMma", shape_.uses_mma() ? 1 : 0) + constant("kRaw", shape_.raw ? 1 : 0) +
           constant("kRank", shape_.rank) + constant("kM", shape_.m) +
           constant("kRowsPerPass", layout_.rows_per_pass(shape_)) +
           constant("kPacketBytes", shape_.packet_bytes()) +
           constant("kCopyBytes", shape_.copy_bytes()) + constant("kTiles", layout_.tiles) +
           constant("kRows", layout_.rows(shape_)) + constant("kWarpsN", layout_.warps_n) +
           constant("kWarpsK", layout_.warps_k) + constant("kClusterBlocks", layout_.split) +
           constant("kBlocks", layout_.blocks) + constant("kCopiesX", shape_.copies_x() ? 1 : 0) +
           constant("kHasWeightProgram", shape_.has_work ? 1 : 0) +
           constant("kVectorX", vector_of(shape_.x, shape_.uses_mma() ? 8 : 4)) +
           constant("kVectorW", shape_.has_work ? vector_of(shape_.work, 8) : 1) +
           constant("kScaled", shape_.scale_block > 0 ? 1 : 0) +
           constant("kKeepsOffset", shape_.keeps_offset() ? 1 : 0) +
           constant("kScaleBlock", std::max<std::int64_t>(shape_.scale_block, 1)) +
           constant("kVectorY", vector_y);
  }

  // Weights as [n][128-byte piece of the row][byte].
  TensorMapForm weight_map() const {
    constexpr std::int64_t kPiece = 128;
    TensorMapForm form{.dtype = u8};
    form.axes = {
        {.extent = kPiece, .box = kPiece},
        {.extent = shape_.row_bytes() / kPiece, .stride = kPiece, .box = layout_.chunk / kPiece},
        {.extent = shape_.n,
         .stride = shape_.row_stride() * shape_.bits() / 8,
         .box = layout_.rows(shape_)}};
    return form;
  }
  // Boxes of 64 k of 8 rows: a whole chunk per load. For limbs, two boxes per load, with fewer rows
  // where x has fewer.
  TensorMapForm x_map(const View& x) const {
    constexpr std::int64_t kDepths = 64;
    const std::int64_t of_chunk = layout_.chunk * 8 / shape_.bits() / kDepths;
    TensorMapForm form{.dtype = shape_.type};
    form.axes = {{.extent = kDepths, .box = kDepths},
                 {.extent = shape_.m,
                  .stride = shape_.m == 1 ? shape_.k : x.strides[shape_.rank - 2],
                  .box = layout_.repack_rows(shape_)},
                 {.extent = shape_.k / kDepths,
                  .stride = kDepths,
                  .box = layout_.has_limbs() ? 2 : of_chunk}};
    return form;
  }
  TensorMapForm scale_map() const {
    const View& view = shape_.scales();
    const int width = bit_width(view.dtype);
    TensorMapForm form{.dtype = width == 32 ? f32 : width == 16 ? bf16 : u8, .swizzle = 0};
    form.axes = {{.extent = shape_.n, .box = layout_.rows(shape_)},
                 {.extent = ceil_div(shape_.k, shape_.scale_block),
                  .stride = view.strides[shape_.rank - 1],
                  .box = layout_.chunk * 8 / shape_.bits() / shape_.scale_block}};
    return form;
  }
  // Constants and the instruction `Mma`.
  std::string warpgroup_constants() const {
    const bool limbs = layout_.has_limbs();
    const DType limb_type = shape_.weights.dtype == u4 ? u8 : i8;
    return print_wgmma("Mma", {.a = limbs ? limb_type : shape_.type,
                               .b = limbs ? i8 : shape_.type,
                               .n = static_cast<int>(shape_.columns() * layout_.planes())}) +
           constant("kHelpers", layout_.helpers) + constant("kColumns", shape_.columns()) +
           constant("kAccBuffers", layout_.acc_buffers(shape_)) +
           constant("kRepackWarps", repack_warps()) +
           constant("kRepackRows", layout_.repack_rows(shape_));
  }

  std::string layout_constants() const {
    if (by_rows())
      return constant("kByRows", 1) + constant("kStages", layout_.steps) +
             constant("kChunk", layout_.chunk) +
             constant("kOwnReductionSmem", layout_.has_own_reduction_smem() ? 1 : 0) +
             constant("kWhole", shape_.row_bytes() % layout_.chunk == 0 ? 1 : 0);
    return constant("kByRows", 0) + constant("kSteps", layout_.steps) +
           constant("kPhase", layout_.phase) + constant("kBuffersX", layout_.buffers_x(shape_)) +
           constant("kBuffersScales", layout_.buffers_scales(shape_));
  }

  std::string print_work() {
    if (shape_.has_work) return print_program(shape_.work, graph_, "weight_program", arguments_);
    return "template <int kCount>\n__device__ inline void weight_program(const Args&, const Index "
           "(&)[kRank], R (&)[kCount], R (&)[kCount]) {}\n";
  }
  std::string print_scale() {
    if (scaled() && !by_rows())
      return print_program(shape_.scale, graph_, "weight_scale", arguments_);
    return "template <int kCount>\n__device__ inline void weight_scale(const Args&, const Index "
           "(&)[kRank], R (&)[kCount]) {}\n";
  }
  std::string print_factors() {
    const std::string head =
        "template <int kCount>\n__device__ inline void scale_results(const Args& args, const Index "
        "(&at)[kRank], R (&values)[kCount]) {\n";
    if (shape_.factors.empty()) return head + "}\n";
    return print_program(shape_.factors, graph_, "factors", arguments_) + head +
           "  R factor[kCount];\n  factors<kCount>(args, at, factor);\n"
           "  for (int l = 0; l < kCount; ++l) values[l] *= factor[l];\n}\n";
  }

  // Prefetches of epilogue operands into L2 while weights are streamed.
  std::string print_prefetch() {
    std::string functions, calls;
    int count = 0;
    for (const PointwiseProgram* program : {&shape_.factors, &shape_.epilogue})
      for (const PointwiseProgram::Step& step : program->steps) {
        if (step.kind != PointwiseProgram::Step::Kind::load || !step.blocks.empty()) continue;
        const TensorKind kind = graph_.tensor(step.view.tensor).kind;
        if (kind == TensorKind::scalar || kind == TensorKind::constant) continue;
        if (bit_width(step.view.dtype) < 8) continue;
        const std::string name = fmt::format("operand{}", count++);
        functions += print_address(step.view, graph_, name, arguments_);
        calls += fmt::format("  prefetch_to_l2({}(args, at));\n", name);
      }
    return constant("kOperands", count) + functions +
           "__device__ inline void prefetch_operands(const Args& args, const Index (&at)[kRank]) "
           "{\n" +
           calls + "}\n";
  }

  const Graph& graph_;
  const Shape& shape_;
  const Layout& layout_;
  PointwiseProgram wide_;  // a load of the weights, which in `work` are the accumulator
  Arguments arguments_;
  ScratchLayout scratch_;
};

class GemmSkinnyEngine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.gemm_skinny"; }
  ComputeMethod method() const override { return ComputeMethod::tensor_cores; }
  ComputeMethod method_for(const Region& region) const override {
    Shape shape;
    return Shape::describe(region, shape) && shape.uses_mma() ? ComputeMethod::tensor_cores
                                                              : ComputeMethod::cuda_cores;
  }
  std::string_view description() const override {
    return "GEMM with up to 32 rows or columns, reading the weights once";
  }

  Support supports(const Region& region, const DeviceProps& device) const override {
    Shape shape;
    if (Support support = Shape::describe(region, shape); !support) return support;
    if (Support support = has_no_tails(region); !support) return support;
    if (device.compute_capability < 80)
      return Support::no("needs sm_80, the device is sm_{}", device.compute_capability);
    if (skinny_layouts(shape, device).empty())
      return Support::no("no layout for {} rows fits registers and shared memory", shape.m);
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    Shape shape;
    if (!Shape::describe(region, shape)) return {};
    std::vector<Config> result;
    for (const Layout& layout : skinny_layouts(shape, device)) {
      Config config;
      config.knobs = layout.knobs();
      constexpr double kLeast = 1e-7;
      // The comparison of engines adds the launch itself.
      const double seconds =
          std::max(layout.seconds(shape, device) - device.launch_seconds, kLeast);
      config.cost = {.flops = region.flops(),
                     .bytes = region.bytes(),
                     .flops_fraction = shape.uses_mma() ? device.flops_f16 / device.flops_f32 : 0.5,
                     .bytes_fraction = region.bytes() / device.bytes_per_second / seconds};
      config.scratch_bytes = layout.scratch_bytes(shape);
      config.notes.runtime_compiled = true;
      config.notes.truncating_accumulation = shape.uses_mma();
      result.push_back(std::move(config));
    }
    return result;
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps& device) const override {
    Shape shape;
    if (const Support support = Shape::describe(region, shape); !support)
      fail(ErrorCode::internal, "cuda.gemm_skinny: {}", support.reason());
    const Layout layout(config);
    KernelDesign design = Designer(graph, shape, layout).design(region.precision());
    if (layout.chunk > 0) {
      const std::vector<Layout> others = cp_async_layouts(shape, device, 1);
      if (others.empty())
        fail(ErrorCode::internal, "cuda.gemm_skinny: no layout for unaligned data");
      design.unaligned = [&graph, &region, shape, other = others[0]] {
        return Designer(graph, shape, other).design(region.precision());
      };
    }
    return design;
  }
};

}  // namespace

const CudaEngine& gemm_skinny_engine() {
  static const GemmSkinnyEngine engine;
  return engine;
}

}  // namespace ashlar::cuda
