// Dropout, forward and backward: Philox decisions by row-major position, drawn in chunks.
#include <cstring>

#include "base/philox.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/integer_operand.hpp"
#include "cpu/kernels/philox.hpp"
#include "cpu/kernels/pointwise.hpp"
#include "cpu/threads.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kChunk = 1024;  // elements drawn at once

// The operands with axes merged; rows along the last one, in row-major order.
struct Rows {
  PointwiseProgram source, result, mask;
  Dims dims;

  Rows(const PointwiseProgram& from, const PointwiseProgram& to, PointwiseProgram bits)
      : source(from), result(to), mask(std::move(bits)), dims(from.space) {
    merge_axes({&source, &result, &mask}, {&dims});
  }
};

template <class T>
class DropoutKernel final : public Kernel {
 public:
  explicit DropoutKernel(const Region& region) {
    if (const auto* forward = region.anchor_as<DropoutForward>()) {
      using Op = DropoutForward;
      set_up(region, *forward,
             {region.prologues[Op::x], region.epilogue,
              output_program(region.anchor->outputs, Op::mask)});
      writes_mask_ = has_mask_;
      if (region.anchor->outputs.size() > Op::next_offset)
        next_ = region.anchor->outputs[Op::next_offset];
    } else {
      using Op = DropoutBackward;
      set_up(region, *region.anchor_as<Op>(),
             {region.prologues[Op::dy], region.epilogue, input_program(region, Op::mask)});
    }
  }

  void run(const KernelContext& context) const override {
    const auto seed = static_cast<std::uint64_t>(seed_.load(context, {}, seed_attribute_));
    const auto offset = static_cast<std::uint64_t>(offset_.load(context, {}, offset_attribute_));
    const auto source = source_.bind(context), result = result_.bind(context);
    typename RowProgram<T>::Bound mask;
    if (has_mask_) mask = mask_.bind(context);
    const bool draws = writes_mask_ || !has_mask_;
    const std::int64_t elements = element_count(dims_), length = dims_[dims_.rank() - 1];
    parallel_for(elements, items_per_thread(1), [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T kept[kChunk], row[kChunk], bits[kChunk];
      for (std::int64_t chunk = begin; chunk < end; chunk += kChunk) {
        const std::int64_t chunk_end = std::min(chunk + kChunk, end);
        if (draws) draw(seed, offset, chunk, chunk_end, kept);
        for (std::int64_t at = chunk; at < chunk_end;) {
          const std::int64_t count = std::min(length - at % length, chunk_end - at);
          Coords coords;
          locate(at, coords);
          const T* keeps = kept + (at - chunk);
          if (!draws) {
            mask.load(coords.data(), count, bits);
            keeps = bits;
          }
          source.load(coords.data(), count, row);
          scale_row(scale_, row, count, row);
          select_(Pointwise{}, row, kZeros, keeps, count, row);
          result.store(coords.data(), count, row);
          if (writes_mask_) mask.store(coords.data(), count, keeps);
          at += count;
        }
      }
    });
    if (next_.present()) {
      const std::uint64_t end = offset + (static_cast<std::uint64_t>(elements) + 3) / 4;
      std::memcpy(static_cast<std::uint64_t*>(context.pointer(next_.tensor)) + next_.offset, &end,
                  sizeof(end));
    }
  }

 private:
  alignas(64) static constexpr T kZeros[kChunk] = {};

  template <class Op>
  void set_up(const Region& region, const Op& op, const Rows& rows) {
    dims_ = rows.dims;
    const int axis = dims_.rank() - 1;
    source_ = RowProgram<T>(rows.source, axis);
    result_ = RowProgram<T>(rows.result, axis);
    has_mask_ = !rows.mask.empty();
    if (has_mask_) mask_ = RowProgram<T>(rows.mask, axis);
    seed_ = IntegerOperand(input_program(region, Op::seed_tensor));
    offset_ = IntegerOperand(input_program(region, Op::offset_tensor));
    seed_attribute_ = op.seed;
    offset_attribute_ = op.offset;
    keep_ = static_cast<float>(1.0 - op.probability);
    // probability 1 drops everything: the scale is irrelevant.
    scale_ = op.probability < 1.0 ? static_cast<T>(1.0 / (1.0 - op.probability)) : T{0};
    select_ = pointwise_row<T>(PointwiseMode::binary_select, f32);
  }

  // Keep decisions for elements [begin, end).
  void draw(std::uint64_t seed, std::uint64_t offset, std::int64_t begin, std::int64_t end,
            T* kept) const {
    alignas(64) std::uint32_t random[kChunk];
    philox_(seed, offset, static_cast<std::uint64_t>(begin), end - begin, random);
    for (std::int64_t i = 0; i < end - begin; ++i)
      kept[i] = uniform_open(random[i]) < keep_ ? T{1} : T{0};
  }
  void locate(std::int64_t position, Coords& coords) const {
    for (int axis = dims_.rank() - 1; axis >= 0; --axis) {
      coords[static_cast<std::size_t>(axis)] = position % dims_[axis];
      position /= dims_[axis];
    }
  }

  Dims dims_;
  RowProgram<T> source_, result_, mask_;
  bool has_mask_ = false, writes_mask_ = false;
  IntegerOperand seed_, offset_;
  std::int64_t seed_attribute_ = 0, offset_attribute_ = 0;
  PhiloxRow philox_ = philox_row();
  float keep_ = 1;
  T scale_ = 1;
  PointwiseRow<T> select_;
  View next_;
};

class DropoutEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.dropout"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "dropout with vectorised Philox, forward and backward";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<DropoutForward>() && !region.anchor_as<DropoutBackward>())
      return Support::other_operation("the anchor is not a dropout");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    if (region.epilogue.space.empty()) return Support::no("the tensor has no axes");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    return {make_config({}, row_cost(region, 0.2))};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps&) const override {
    return build_for_precision<DropoutKernel>(region);
  }
};

}  // namespace

const Engine& dropout_engine() {
  static const DropoutEngine engine;
  return engine;
}

}  // namespace ashlar::cpu
