// Random tensors: Philox4x32-10 by element position, identical to every other engine.
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/integer_operand.hpp"
#include "cpu/random_row.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kDrawn = 1024;  // a multiple of the 4 lanes of a counter

template <class T>
class RngKernel final : public Kernel {
 public:
  explicit RngKernel(const Region& region)
      : op_(*region.anchor_as<Rng>()),
        dims_(region.epilogue.space),
        seed_(input_program(region, Rng::seed_tensor)),
        offset_(input_program(region, Rng::offset_tensor)),
        y_(region.epilogue, region.epilogue.space.rank() - 1) {}

  void run(const KernelContext& context) const override {
    const RandomStream stream{static_cast<std::uint64_t>(seed_.load(context, {}, op_.seed)),
                              static_cast<std::uint64_t>(offset_.load(context, {}, op_.offset))};
    const auto y = y_.bind(context);
    const std::int64_t length = dims_[dims_.rank() - 1];
    parallel_for(element_count(dims_), items_per_thread(1),
                 [&](std::int64_t begin, std::int64_t end, int) {
                   alignas(64) T values[kDrawn];
                   for (std::int64_t at = begin; at < end;) {
                     const std::int64_t count = std::min({length - at % length, end - at, kDrawn});
                     random_row(op_, stream, at, 1, count, values);
                     Coords coords;
                     std::int64_t rest = at;
                     for (int axis = dims_.rank() - 1; axis >= 0; --axis) {
                       coords[static_cast<std::size_t>(axis)] = rest % dims_[axis];
                       rest /= dims_[axis];
                     }
                     y.store(coords.data(), count, values);
                     at += count;
                   }
                 });
  }

 private:
  Rng op_;
  Dims dims_;
  IntegerOperand seed_, offset_;
  RowProgram<T> y_;
};

class RngEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.rng"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "Philox random tensors: bernoulli, uniform, normal";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<Rng>())
      return Support::other_operation("the anchor is not a random tensor");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    if (region.epilogue.space.empty()) return Support::no("the tensor has no axes");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    return {make_config({}, row_cost(region, 0.1))};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps&) const override {
    return build_for_precision<RngKernel>(region);
  }
};

}  // namespace

const Engine& rng_engine() {
  static const RngEngine engine;
  return engine;
}

}  // namespace ashlar::cpu
