#include "cuda/engines/sm80/gemm_design.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "base/ceil_div.hpp"
#include "cuda/engines/split_k_reduce.hpp"
#include "cuda/engines/tile_cost.hpp"

namespace ashlar::cuda {

namespace {

using Kind = PointwiseProgram::Step::Kind;

constexpr std::int64_t kMaxIndex = std::numeric_limits<std::int32_t>::max() - (1 << 20);
constexpr std::int64_t kStagingPadding = 8;
constexpr std::int64_t kMaxSplit = 256;
// With fewer terms, the error bound has no room for the product that 3xTF32 skips.
constexpr std::int64_t kFewTerms = 64;

std::int64_t bytes_of(DType dtype) { return bit_width(dtype) / 8; }

bool is_unusual(const PointwiseProgram& program) {
  const auto odd = [](const View& view) {
    return view.ragged_offset != kNoTensor || is_complex(view.dtype);
  };
  return std::any_of(program.steps.begin(), program.steps.end(),
                     [&](const auto& step) { return step.kind == Kind::load && odd(step.view); }) ||
         std::any_of(program.stores.begin(), program.stores.end(),
                     [&](const auto& store) { return odd(store.view); });
}

bool is_small_integer(DType dtype) {
  return dtype == DType::i8 || dtype == DType::u8 || dtype == DType::i4 || dtype == DType::u4 ||
         dtype == DType::boolean;
}
bool is_small_float(DType dtype) {
  return dtype == DType::e4m3 || dtype == DType::e5m2 || dtype == DType::e2m1;
}

// Convolution windows gathered element by element, with coordinates kept in registers.
bool gathers_elements(const OperandText& operand) {
  return operand.mode == LoadMode::elements && operand.place_numbers() > 1;
}

}  // namespace

Support gemm_types(const Region& region, const GemmProblem& problem, GemmTypes& types) {
  const DType a = problem.a.dtype, b = problem.b.dtype, compute = region.anchor->compute;
  const auto either = [&](auto test) { return test(a) || test(b); };
  const auto is = [](DType wanted) { return [wanted](DType dtype) { return dtype == wanted; }; };
  for (const DType dtype : {a, b}) {
    const bool known = dtype == f64 || dtype == f32 || dtype == f16 || dtype == bf16 ||
                       dtype == DType::e8m0 || is_small_integer(dtype) || is_small_float(dtype);
    if (!known) return Support::no("tensor cores do not multiply {}", to_string(dtype));
  }
  if (is_small_integer(a) && is_small_integer(b) && compute != f64) {
    const auto word = [](DType dtype) {
      return dtype == DType::i8 || dtype == DType::i4 ? DType::i8 : DType::u8;
    };
    types = {word(a), word(b), DType::i32, false};
    const auto largest = [](DType dtype) { return dtype == DType::i8 ? 128 : 255; };
    const std::int64_t most =
        std::numeric_limits<std::int32_t>::max() / (largest(types.a) * largest(types.b));
    for (std::size_t v = 0; v < problem.variants; ++v)
      if (problem.extent(GemmDim::k, v) > most)
        return Support::no("K exceeds {}: i32 accumulators could overflow", most);
    return Support::yes();
  }
  if (!is_floating(compute))
    return Support::no("operands of {} with compute type {}", to_string(a), to_string(compute));
  // The narrowest type that represents all values of both.
  DType common = f16;
  if (either(is(f64)) || compute == f64)
    common = f64;
  else if (either(is(f32)) || (either(is(bf16)) && either(is(f16))) ||
           (either(is(DType::e8m0)) && either(is(f16))))
    common = f32;
  else if (either(is(bf16)) || either(is(DType::e8m0)))
    common = bf16;
  types = {common, common, common == f64 ? f64 : f32, common == f32 && either(is(f32))};
  return Support::yes();
}

const PackedOperands& GemmDesigner::none() {
  static const PackedOperands empty;
  return empty;
}

GemmDesigner::GemmDesigner(const Region& region, const DeviceProps& device,
                           const PackedOperands& packs)
    : region_(region), device_(device), packs_(packs), support_(check()) {
  if (!support_) return;
  operands_.emplace_back(problem_, problem_.a, GemmDim::m, types_.a);
  operands_.emplace_back(problem_, problem_.b, GemmDim::n, types_.b);
}

std::vector<int> GemmDesigner::slots_by_element() const {
  std::vector<int> slots;
  for (const OperandText& operand : operands_)
    if (operand.mode == LoadMode::elements) slots.push_back(operand.slot());
  return slots;
}

std::vector<int> GemmDesigner::slots_with_short_vectors() const {
  std::vector<int> slots = slots_by_element();
  for (const OperandText& operand : operands_)
    if (operand.mode == LoadMode::async && operand.vector * bytes_of(types_.a) < kVectorBytes)
      slots.push_back(operand.slot());
  return slots;
}

Support GemmDesigner::check() {
  if (Support support = is_gemm_problem(region_); !support) return support;
  if (device_.compute_capability < 80)
    return Support::no("needs sm_80, the device is sm_{}", device_.compute_capability);
  for (const PointwiseProgram& prologue : region_.prologues)
    if (is_unusual(prologue)) return Support::no("a ragged or complex tensor");
  if (is_unusual(region_.epilogue)) return Support::no("a ragged or complex tensor");
  if (element_count(region_.anchor->outputs[0].dims) == 0) return Support::no("no elements");
  problem_ = gemm_problem(region_);
  for (std::size_t v = 0; v < problem_.variants; ++v)
    for (const GemmDim dim : {GemmDim::batch, GemmDim::m, GemmDim::n, GemmDim::k})
      if (problem_.extent(dim, v) > kMaxIndex)
        return Support::no("an extent of M, N, K or batch exceeds 32-bit indices");
  if (Support support = gemm_types(region_, problem_, types_); !support) return support;
  const double tiles =
      static_cast<double>(problem_.results()) / (64.0 * 64.0) +
      static_cast<double>(problem_.extent(GemmDim::batch)) * static_cast<double>(problem_.variants);
  if (tiles * 8 > static_cast<double>(kMaxIndex))
    return Support::no("more tiles than gridDim.x allows");
  return Support::yes();
}

std::int64_t GemmDesigner::block_k(const WarpTile& tile) const {
  return tile.bytes / bytes_of(types_.a);
}
std::int64_t GemmDesigner::max_k() const {
  std::int64_t depth = 0;
  for (std::size_t v = 0; v < problem_.variants; ++v)
    depth = std::max(depth, problem_.extent(GemmDim::k, v));
  return depth;
}

// A lower bound on the terms of K that are not padding zeros of repacked operands.
std::int64_t GemmDesigner::longest_sum() const {
  const std::int64_t depth = max_k();
  std::int64_t terms = depth;
  for (const auto& [slot, operand] : packs_) {
    const std::int64_t channels = region_.anchor->inputs[static_cast<std::size_t>(slot)].dims[1];
    terms = std::min(terms, depth * channels / operand.view.dims[1]);
  }
  return terms;
}

// Whether every thread loads the same number of packets of both tiles, and few enough where it
// keeps their coordinates in registers. Mirrors sm80/loader.cuh.
bool GemmDesigner::divides_evenly(const WarpTile& tile) const {
  // Coordinates that fit in registers next to 128 accumulators, or next to fewer.
  const std::int64_t max_kept = tile.m * tile.n / tile.threads() >= 128 ? 16 : 24;
  for (std::size_t i = 0; i < 2; ++i) {
    const OperandText& operand = operands_[i];
    const std::int64_t size = bytes_of(types_.a), outer = i == 0 ? tile.m : tile.n;
    const std::int64_t packets = outer * tile.bytes / 16;
    if (packets < tile.threads()) return false;
    if (operand.mode == LoadMode::elements) continue;
    const std::int64_t vector = operand.mode == LoadMode::async ? operand.vector : 16 / size;
    const std::int64_t row_bytes = operand.is_mn_major ? outer * size : tile.bytes;
    const std::int64_t rows = operand.is_mn_major ? tile.bytes / size : outer;
    const std::int64_t per_line = row_bytes / size / vector;
    if (per_line > tile.threads() || tile.threads() % per_line != 0) return false;
    const std::int64_t step = tile.threads() / per_line;
    if (rows % step != 0) return false;
    if (!operand.is_mn_major && rows / step * operand.place_numbers() > max_kept) return false;
  }
  return true;
}

std::int64_t GemmDesigner::shared_bytes(const WarpTile& tile) const {
  const std::int64_t staging =
      std::min<std::int64_t>(tile.n / tile.warps_n(), 64) + kStagingPadding;
  return std::max(tile.stages * (tile.m + tile.n) * tile.bytes,
                  tile.threads() / 32 * 16 * staging * bytes_of(types_.sum));
}

// Whether accumulators leave registers for elements in flight to shared memory.
bool GemmDesigner::fits_registers(const WarpTile& tile) const {
  constexpr std::int64_t kMaxTogether = 160, kMaxGathered = 16, kFewSums = 64;
  const std::int64_t sums = tile.m * tile.n / tile.threads();
  std::int64_t passing = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t bytes = (i == 0 ? tile.m : tile.n) * tile.bytes / tile.threads();
    if (operands_[i].mode == LoadMode::vectors) passing += bytes / 4;
    // 8-bit types have small tiles anyway.
    const std::int64_t most = bytes_of(types_.a) == 1 ? 2 * kMaxGathered : kMaxGathered;
    if (gathers_elements(operands_[i]) && (sums > kFewSums || bytes / bytes_of(types_.a) > most))
      return false;
  }
  return sums + passing <= kMaxTogether;
}

// Resident CTAs that registers and shared memory allow; __launch_bounds__ enforces it.
std::int64_t GemmDesigner::blocks_per_sm(const WarpTile& tile) const {
  const std::int64_t sums =
      tile.m * tile.n / tile.threads() * bytes_of(types_.sum) / 4 * (tile.products > 1 ? 3 : 1);
  const bool gathers = std::any_of(operands_.begin(), operands_.end(), gathers_elements);
  const std::int64_t by_registers =
      std::max<std::int64_t>((sums > 64 || gathers ? 2 : 3) * 128 / tile.threads(), 1);
  const std::int64_t by_memory = device_.l1_bytes / (shared_bytes(tile) + 1024);
  return std::max<std::int64_t>(std::min(by_registers, by_memory), 1);
}

std::int64_t GemmDesigner::tile_count(const WarpTile& tile, std::size_t first,
                                      std::size_t count) const {
  std::int64_t tiles = 0;
  for (std::size_t v = first; v < std::min(first + count, problem_.variants); ++v)
    tiles += ceil_div(problem_.extent(GemmDim::m, v), tile.m) *
             ceil_div(problem_.extent(GemmDim::n, v), tile.n);
  return tiles;
}

std::vector<WarpTile> GemmDesigner::tiles() const {
  std::vector<WarpTile> result;
  std::vector<std::int64_t> products = {1};
  if (types_.rounds_to_tf32) products = {1, longest_sum() < kFewTerms ? 6 : 3};
  struct Shape {
    std::int64_t m, n;
  };
  const std::vector<Shape> wide = {{128, 128}, {256, 128}, {128, 256},
                                   {128, 64},  {64, 128},  {64, 64}};
  const std::vector<Shape> narrow = {{64, 64}, {128, 64}, {64, 128}};
  // Bytes gathered through registers leave room for few accumulators.
  bool gathers_bytes = false;
  for (const OperandText& operand : operands_)
    gathers_bytes = gathers_bytes || (bytes_of(types_.a) == 1 && operand.mode != LoadMode::async);
  for (const std::int64_t terms : products)
    for (const Shape& shape : terms > 1 || types_.sum == f64 ? narrow : wide)
      for (const std::int64_t bytes : {128, 64}) {
        // f64 has only 4 terms in 32 bytes; split f32 is rounded after every stage.
        if (bytes == 64 && (types_.sum == f64 || terms > 1)) continue;
        WarpTile tile{shape.m, shape.n, bytes, 4, 1, terms};
        if ((types_.sum == f64 || gathers_bytes) && shape.m * shape.n > 64 * 64) continue;
        // Two CTAs per SM, if that leaves three stages.
        while (tile.stages > 3 && blocks_per_sm(tile) < 2) --tile.stages;
        while (tile.stages > 2 && shared_bytes(tile) > device_.shared_bytes) --tile.stages;
        if (!divides_evenly(tile) || !fits_registers(tile)) continue;
        if (shared_bytes(tile) > device_.shared_bytes) continue;
        result.push_back(tile);
        // Split-K, so that all SMs have work.
        const std::int64_t tiles =
            tile_count(tile, 0, problem_.variants) * problem_.extent(GemmDim::batch);
        const std::int64_t places = device_.compute_units * blocks_per_sm(tile);
        const std::int64_t stages = ceil_div(max_k(), block_k(tile));
        if (tiles >= 2 * places) continue;
        std::int64_t last = 1;
        for (const std::int64_t wanted : {places / tiles, 2 * places / tiles, 4 * places / tiles}) {
          tile.split = std::min({wanted, stages / 4, kMaxSplit});
          if (tile.split <= last) continue;
          last = tile.split;
          result.push_back(tile);
        }
      }
  return result;
}

Config GemmDesigner::config_of(const WarpTile& tile, std::string_view engine) const {
  Config config;
  config.knobs = {{"tile_m", tile.m},      {"tile_n", tile.n},    {"tile_bytes", tile.bytes},
                  {"stages", tile.stages}, {"split", tile.split}, {"products", tile.products}};
  if (!packs_.empty()) config.knobs.emplace_back(kPacked, 1);
  config.notes.runtime_compiled = true;
  config.notes.tf32 = types_.rounds_to_tf32 && tile.products == 1;
  config.notes.truncating_accumulation = types_.sum == f32 && tile.products == 1;
  const double batches = static_cast<double>(problem_.extent(GemmDim::batch));
  const double elements = static_cast<double>(element_count(problem_.d.program.space));
  const double size = static_cast<double>(bytes_of(types_.sum));
  if (tile.split > 1)
    config.scratch_bytes = SplitKReduction{problem_.d.program, tile.split, types_.sum, 0}.bytes();
  double packed_bytes = 0;
  for (const auto& [slot, operand] : packs_) {
    config.scratch_bytes += operand.scratch_bytes;
    packed_bytes += operand.moved_bytes;
  }
  // Element by element: 21 and 45 TFLOP/s on an H200 where vectors reach 400 (filter gradients of
  // stems, bf16).
  // Split f32 interleaves splitting with MMAs and has two accumulators per result: 0.38 to 0.6 of
  // the rate of the MMAs alone (filter gradients of ResNet-50).
  const double in_parts = tile.products > 1 ? 0.45 : 1.0;
  double efficiency = in_parts / static_cast<double>(tile.products);
  for (const OperandText& operand : operands_)
    efficiency *= operand.mode == LoadMode::async      ? 1.0
                  : operand.mode == LoadMode::elements ? 0.1
                  : operand.converts()                 ? 0.3
                                                       : 0.7;
  const std::int64_t depth = ceil_div(ceil_div(max_k(), block_k(tile)), tile.split) * tile.bytes;
  const double area = static_cast<double>(tile.m * tile.n);
  TileWork work;
  work.engine = engine;
  work.operands = types_.a;
  work.tile_m = static_cast<int>(tile.m);
  work.tile_n = static_cast<int>(tile.n);
  // The load mode of each operand matters more than the tile.
  int place = 1;
  for (const OperandText& operand : operands_) {
    work.variant += place * (operand.converts() ? 3 : static_cast<int>(operand.mode));
    place *= 4;
  }
  work.tiles = static_cast<double>(tile_count(tile, 0, problem_.variants) * tile.split) * batches;
  const std::int64_t terms = depth / bytes_of(types_.a);
  work.flops = 2 * area * static_cast<double>(terms);
  work.load_bytes = static_cast<double>((tile.m + tile.n) * depth);
  const double per_result = region_.bytes() / std::max(elements, 1.0);
  work.store_bytes = tile.split > 1 ? area * size : area * std::min(per_result, 16.0);
  work.memory_bytes =
      region_.bytes() + packed_bytes +
      (tile.split > 1 ? 2.0 * elements * size * static_cast<double>(tile.split) : 0.0);
  work.blocks_per_sm = static_cast<int>(blocks_per_sm(tile));
  work.launches =
      static_cast<int>(ceil_div(static_cast<std::int64_t>(problem_.variants), kVariantsPerLaunch) +
                       (tile.split > 1 ? 1 : 0) + static_cast<std::int64_t>(packs_.size()));
  work.efficiency = efficiency;
  config.cost = tile_cost(work, device_, region_.precision());
  return config;
}

std::vector<Config> GemmDesigner::configs(std::string_view engine) const {
  std::vector<Config> result;
  for (const WarpTile& tile : tiles()) result.push_back(config_of(tile, engine));
  sort_by_cost(result, device_, region_.precision());
  return result;
}

}  // namespace ashlar::cuda
