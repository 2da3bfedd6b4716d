#include "cuda/engines/channel_axes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace ashlar::cuda {

namespace {

using Kind = PointwiseProgram::Step::Kind;

template <class Program, class Visit>
void for_each_view(Program& program, Visit&& visit) {
  for (auto& step : program.steps)
    if (step.kind == Kind::load) visit(step.view);
  for (auto& store : program.stores) visit(store.view);
}

Dims picked(const Dims& dims, const std::vector<int>& order) {
  Dims result;
  for (int axis : order) result.push_back(axis < dims.rank() ? dims[axis] : 1);
  return result;
}

std::string with_calls_of(std::string text, std::string_view before, std::string_view after) {
  for (std::size_t at = text.find(before); at != std::string::npos;
       at = text.find(before, at + after.size()))
    text.replace(at, before.size(), after);
  return text;
}

// The program over [outer, channel], the space of parameters and statistics.
PointwiseProgram of_cells(const PointwiseProgram& program) { return reordered(program, {0, 1}); }

}  // namespace

bool reads_coordinates(const PointwiseProgram& program) {
  return std::any_of(program.steps.begin(), program.steps.end(), [](const auto& step) {
    return step.kind == Kind::compute && step.op.mode == PointwiseMode::gen_index;
  });
}

const ConvAttributes* conv_attributes(const Region& region) {
  if (const auto* op = region.anchor_as<ConvForward>()) return op;
  if (const auto* op = region.anchor_as<ConvBackwardData>()) return op;
  return region.anchor_as<ConvBackwardFilter>();
}

bool touches_unsupported(const Region& region) {
  bool found = false;
  const auto look = [&](const View& view) {
    found = found || view.ragged_offset != kNoTensor || is_complex(view.dtype);
  };
  const auto look_in = [&](const PointwiseProgram& program) {
    for_each_view(program, look);
    found = found || program.has_random();
  };
  for (const PointwiseProgram& prologue : region.prologues) look_in(prologue);
  look_in(region.epilogue);
  if (region.anchor)
    for (const View& output : region.anchor->outputs) look(output);
  return found;
}

PointwiseProgram reordered(const PointwiseProgram& program, const std::vector<int>& order) {
  PointwiseProgram result = program;
  for_each_view(result, [&](View& view) {
    view.dims = picked(view.dims, order);
    view.strides = picked(view.strides, order);
  });
  for (auto& step : result.steps)
    if (!step.blocks.empty()) step.blocks = picked(step.blocks, order);
  result.space = picked(program.space, order);
  return result;
}

bool join_axes(const std::vector<PointwiseProgram*>& programs, int axis) {
  bool allowed = true;
  for (const PointwiseProgram* program : programs) {
    const Dims& space = program->space;
    if (space[axis] == 1 || space[axis + 1] == 1) continue;
    for_each_view(*program, [&](const View& view) {
      allowed = allowed && view.strides[axis] == view.strides[axis + 1] * space[axis + 1];
    });
  }
  if (!allowed) return false;
  for (PointwiseProgram* program : programs) {
    const bool keep_first = program->space[axis + 1] == 1;
    const std::int64_t extent = program->space[axis] * program->space[axis + 1];
    std::vector<int> order;
    for (int a = 0; a < program->space.rank(); ++a)
      if (a != (keep_first ? axis + 1 : axis)) order.push_back(a);
    *program = reordered(*program, order);
    program->space[axis] = extent;
    for_each_view(*program, [&](View& view) { view.dims[axis] = extent; });
  }
  return true;
}

bool channels_are_contiguous(const std::vector<const PointwiseProgram*>& programs) {
  int channels = 0, pixels = 0;
  for (const PointwiseProgram* program : programs)
    for_each_view(*program, [&](const View& view) {
      const Dims& space = program->space;
      if (space[1] > 1 && view.strides[1] == 1) ++channels;
      for (int axis = 2; axis < space.rank(); ++axis)
        if (space[axis] > 1 && view.strides[axis] == 1) ++pixels;
    });
  return channels > pixels;
}

bool reads_along(const PointwiseProgram& program, int axis) {
  int along = 0, elsewhere = 0;
  for (const auto& step : program.steps) {
    if (step.kind != Kind::load) continue;
    const View& view = step.view;
    bool is_whole = true;
    for (int other = 0; other < view.dims.rank(); ++other)
      is_whole = is_whole && (view.strides[other] != 0 || view.dims[other] == 1);
    if (!is_whole) continue;
    const bool is_along = view.strides[axis] == 1 || view.dims[axis] == 1;
    (is_along ? along : elsewhere) += bit_width(view.dtype);
  }
  return along > elsewhere;
}

PointwiseProgram without_stores(PointwiseProgram program) {
  program.stores.clear();
  return program;
}

int packet_length(const std::vector<const PointwiseProgram*>& programs, int most) {
  int narrowest = 64;
  for (const PointwiseProgram* program : programs)
    for_each_view(*program, [&](const View& view) {
      if (view.strides[view.strides.rank() - 1] == 1)
        narrowest = std::min(narrowest, std::max(bit_width(view.dtype), 8));
    });
  int length = std::min(128 / narrowest, most);
  for (const PointwiseProgram* program : programs) {
    length = vector_length(*program, length);
    while (length > 1 && program->space[program->space.rank() - 1] % length != 0) length /= 2;
  }
  return length;
}

std::string with_streaming_stores(std::string text) {
  return with_calls_of(std::move(text), "store_row(", "stream_row(");
}
std::string with_streaming_loads(std::string text) {
  return with_calls_of(std::move(text), "load_row(", "load_row_once(");
}
std::string with_prefetches(std::string text) {
  return with_calls_of(std::move(text), "load_row(", "prefetch_row(");
}

std::string print_reader(const PointwiseProgram& program, const Graph& graph,
                         const std::string& name, const std::string& absent, Arguments& arguments) {
  const std::string head = fmt::format(
      "__device__ inline R {}(const Args& args, Index outer, Index channel) {{\n", name);
  if (program.empty()) return head + fmt::format("  return {};\n}}\n", absent);
  const std::string inner = name + "_program";
  return print_program(of_cells(program), graph, inner, arguments) + head +
         fmt::format(
             "  const Index at[2] = {{outer, channel}};\n  R value[1];\n"
             "  {}<1>(args, at, value);\n  return value[0];\n}}\n",
             inner);
}

std::string print_writer(const View& view, const Graph& graph, const std::string& name,
                         Arguments& arguments) {
  const std::string head = fmt::format(
      "__device__ inline void {}(const Args& args, Index outer, Index channel, R value) {{\n",
      name);
  if (!view.present()) return head + "}\n";
  const std::string inner = name + "_program";
  return print_program(of_cells(plain_store(view)), graph, inner, arguments) + head +
         fmt::format(
             "  const Index at[2] = {{outer, channel}};\n  R values[1] = {{value}};\n"
             "  {}<1>(args, at, values);\n}}\n",
             inner);
}

std::string print_address(const View& view, const std::string& name, Arguments& arguments) {
  std::string place = "(Index)0";
  for (int axis = 0; axis < view.dims.rank(); ++axis)
    if (view.dims[axis] > 1)
      place +=
          fmt::format(" + at[{}] * (Index){}", axis,
                      arguments.number(fmt::format("{}_stride{}", name, axis), view.strides[axis]));
  return place;
}

std::string print_integers(Access access, const View& view, const std::string& pointer,
                           const std::string& name, Arguments& arguments) {
  const int last = view.dims.rank() - 1;
  const std::string place = print_address(view, name, arguments);
  const bool together = view.strides[last] == 1;
  const std::string stride =
      together ? "" : arguments.number(name + "_step", view.strides[last]) + ", ";
  return fmt::format(
      "template <int kCount>\n"
      "__device__ inline void {}(const Args& args, const Index (&at)[{}], int (&values)[kCount]) "
      "{{\n  {}_{}({}, {}, {}, {}values);\n}}\n",
      name, view.dims.rank(), access == Access::load ? "load" : "store",
      together ? "positions" : "strided", tag(view.dtype), pointer, place, stride);
}

}  // namespace ashlar::cuda
