// Reshape, transpose, slice and concat as row copies with fused pointwise prologue and epilogue.
// The planner turns most of them into views.
#include "cpu/box_space.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/store_to.hpp"
#include "cpu/threads.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kChunks = 64;  // chunks of work

bool reads_coordinates(const PointwiseProgram& program) {
  return std::any_of(program.steps.begin(), program.steps.end(), [](const auto& step) {
    return step.kind == PointwiseProgram::Step::Kind::compute &&
           step.op.mode == PointwiseMode::gen_index;
  });
}

// The prologue with the transpose or slice applied to every load.
PointwiseProgram moved(PointwiseProgram program, const Op& op, const Dims& dims) {
  for (auto& step : program.steps) {
    if (step.kind != PointwiseProgram::Step::Kind::load) continue;
    const Dims strides = step.view.strides;
    for (int axis = 0; axis < dims.rank(); ++axis) {
      if (const auto* transpose = std::get_if<Transpose>(&op)) {
        step.view.strides[axis] = strides[static_cast<int>(transpose->permutation[axis])];
      } else if (const auto* slice = std::get_if<Slice>(&op)) {
        step.view.offset += slice->start[axis] * strides[axis];
        step.view.strides[axis] = strides[axis] * (slice->step.empty() ? 1 : slice->step[axis]);
      }
    }
    step.view.dims = dims;
  }
  program.space = dims;
  return program;
}

// Copies sources into one destination of the same rank, each at its own offset along an axis.
template <class T>
class JoinKernel final : public Kernel {
 public:
  JoinKernel(const Region& region, StoreTo store_to) {
    const Dims& dims = region.anchor->outputs[0].dims;
    const Op& op = region.anchor->op;
    PointwiseProgram epilogue = region.epilogue;
    if (const auto* concat = std::get_if<Concat>(&op)) {
      join_axis_ = static_cast<std::size_t>(concat->axis);
      const int axis = choose_row_axis(dims, {&epilogue});
      destination_ = RowProgram<T>(epilogue, axis, nullptr, 1, store_to);
      std::int64_t begin = 0;
      for (const PointwiseProgram& prologue : region.prologues) {
        add(prologue, axis, begin);
        begin += prologue.space[static_cast<int>(concat->axis)];
      }
      return;
    }
    PointwiseProgram source = moved(region.prologues[0], op, dims);
    Dims space = dims;
    merge_axes({&source, &epilogue}, {&space});
    const int axis = choose_row_axis(space, {&source, &epilogue});
    destination_ = RowProgram<T>(epilogue, axis, nullptr, 1, store_to);
    add(source, axis, 0);
  }

  void run(const KernelContext& context) const override {
    const auto destination = destination_.bind(context);
    for (const Source& source : sources_) {
      const auto from = source.program.bind(context);
      const std::int64_t chunks = std::min(kChunks, source.space.rows());
      if (source.space.items() == 0) continue;
      parallel_for(chunks,
                   items_per_thread(source.space.box_size() / std::max<std::int64_t>(chunks, 1)),
                   [&](std::int64_t begin, std::int64_t end, int) {
                     alignas(64) T buffer[kRowLength];
                     for (std::int64_t chunk = begin; chunk < end; ++chunk)
                       source.space.for_rows(
                           0, chunk, chunks, [&](const Coords& coords, std::int64_t count) {
                             const T* row = from.view(coords.data(), count, buffer);
                             Coords to = coords;
                             to[join_axis_] += source.begin;
                             destination.store(to.data(), count, row);
                           });
                   });
    }
  }

 private:
  struct Source {
    RowProgram<T> program;
    BoxSpace space;
    std::int64_t begin;
  };
  void add(const PointwiseProgram& program, int axis, std::int64_t begin) {
    if (element_count(program.space) == 0) return;
    const Dims one_box = Dims::filled(program.space.rank(), 1);
    sources_.push_back(
        {RowProgram<T>(program, axis), BoxSpace(program.space, one_box, axis), begin});
  }

  std::size_t join_axis_ = 0;
  RowProgram<T> destination_;
  std::vector<Source> sources_;
};

// Copies elements in row-major order, in runs inside a row of both sides.
template <class T>
class ReshapeKernel final : public Kernel {
 public:
  ReshapeKernel(const Region& region, StoreTo store_to) {
    PointwiseProgram source = region.prologues[0], destination = region.epilogue;
    from_dims_ = source.space;
    to_dims_ = destination.space;
    merge_axes({&source}, {&from_dims_});
    merge_axes({&destination}, {&to_dims_});
    from_ = RowProgram<T>(source, from_dims_.rank() - 1);
    to_ = RowProgram<T>(destination, to_dims_.rank() - 1, nullptr, 1, store_to);
  }

  void run(const KernelContext& context) const override {
    const auto from = from_.bind(context), to = to_.bind(context);
    parallel_for(element_count(to_dims_), items_per_thread(1),
                 [&](std::int64_t begin, std::int64_t end, int) {
                   alignas(64) T buffer[kRowLength];
                   for (std::int64_t at = begin; at < end;) {
                     Coords source, destination;
                     const std::int64_t source_left = locate(from_dims_, at, source);
                     const std::int64_t count = std::min(
                         {source_left, locate(to_dims_, at, destination), end - at, kRowLength});
                     to.store(destination.data(), count, from.view(source.data(), count, buffer));
                     at += count;
                   }
                 });
  }

 private:
  // Coordinates of a row-major position; returns the number of elements left in its row.
  static std::int64_t locate(const Dims& dims, std::int64_t position, Coords& coords) {
    const int last = dims.rank() - 1;
    const std::int64_t left = dims[last] - position % dims[last];
    for (int axis = last; axis >= 0; --axis) {
      coords[static_cast<std::size_t>(axis)] = position % dims[axis];
      position /= dims[axis];
    }
    return left;
  }

  Dims from_dims_, to_dims_;
  RowProgram<T> from_, to_;
};

class DataMovementEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.data_movement"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "reshape, transpose, slice and concat as copies";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    const bool moves = region.anchor_as<Transpose>() || region.anchor_as<Slice>();
    if (!moves && !region.anchor_as<Reshape>() && !region.anchor_as<Concat>())
      return Support::other_operation("the anchor is not a reshape, transpose, slice or concat");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    if (moves && reads_coordinates(region.prologues[0]))
      return Support::no("the prologue reads coordinates, which the move would change");
    if (moves && !region.prologues[0].stores.empty())
      return Support::no("the prologue stores a tensor, which the move would change");
    if (region.anchor->outputs[0].dims.empty()) return Support::no("the tensors have no axes");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    return {make_config({}, row_cost(region, 0.5))};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps& device) const override {
    const StoreTo results = store_to(region.epilogue, device);
    if (region.anchor_as<Reshape>()) return build_for_precision<ReshapeKernel>(region, results);
    return build_for_precision<JoinKernel>(region, results);
  }
};

}  // namespace

const Engine& data_movement_engine() {
  static const DataMovementEngine engine;
  return engine;
}

}  // namespace ashlar::cpu
