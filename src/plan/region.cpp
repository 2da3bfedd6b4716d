// Region: FLOPs, memory traffic, precision and text form.
#include "plan/region.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ashlar/inspect.hpp>

#include "graph/enum_names.hpp"
#include "graph/node_shapes.hpp"
#include "graph/op_traits.hpp"

namespace ashlar {

namespace {

double size_in_bytes(const View& view) {
  double elements = 1;
  for (int axis = 0; axis < view.dims.rank(); ++axis)
    if (view.strides[axis] != 0 || view.dims[axis] == 0)
      elements *= static_cast<double>(view.dims[axis]);
  return elements * bit_width(view.dtype) / 8;
}

class AnchorShapes final : public NodeShapes {
 public:
  explicit AnchorShapes(const Anchor& anchor) : NodeShapes(anchor.op), anchor_(anchor) {}
  const Dims& input(int slot) const override { return view(anchor_.inputs, slot).dims; }
  const Dims& output(int slot) const override { return view(anchor_.outputs, slot).dims; }
  DType input_dtype(int slot) const override { return view(anchor_.inputs, slot).dtype; }
  int input_count() const override { return static_cast<int>(anchor_.inputs.size()); }

 private:
  static const View& view(const std::vector<View>& views, int slot) {
    static const View absent;
    return std::cmp_less(slot, views.size()) ? views[static_cast<std::size_t>(slot)] : absent;
  }
  const Anchor& anchor_;
};

}  // namespace

DType Region::precision() const {
  if (anchor) {
    if (needs_f64(anchor->compute)) return f64;
    // Only operands of arithmetic count: lengths, seeds and indices are read as integers anyway.
    const SlotSet operands = traits_of(anchor->op).arithmetic_inputs;
    int slot = -1;
    for (const View& input : anchor->inputs)
      if (operands.contains(++slot) && input.present() && needs_f64(input.dtype)) return f64;
    for (const PointwiseProgram& prologue : prologues)
      if (!prologue.empty() && !prologue.is_plain_load() && prologue.precision() == f64) return f64;
    for (const View& output : anchor->outputs)
      if (output.present() && output.dtype == f64) return f64;
  }
  return epilogue.empty() ? f32 : epilogue.precision();
}

namespace {

// The share of an input that the anchor reads: a gather reads at most as many elements as it
// writes.
double share_read(const Region& region, std::size_t slot) {
  if (!region.anchor_as<Gather>() || slot != Gather::x) return 1.0;
  const double elements = count_of(region.anchor->inputs[slot].dims);
  return elements == 0 ? 0.0 : std::min(1.0, count_of(region.epilogue.space) / elements);
}

}  // namespace

double Region::bytes() const {
  double total = 0;
  const auto add_program = [&](const PointwiseProgram& program, double share = 1.0) {
    for (const auto& step : program.steps) {
      if (step.kind != PointwiseProgram::Step::Kind::load) continue;
      total += share * size_in_bytes(step.view) / (step.blocks.empty() ? 1 : count_of(step.blocks));
    }
    for (const auto& store : program.stores) total += size_in_bytes(store.view);
  };
  for (std::size_t slot = 0; slot < prologues.size(); ++slot)
    add_program(prologues[slot], share_read(*this, slot));
  add_program(epilogue);
  for (const TailReduction& reduction : reductions) add_program(reduction.finish);
  if (anchor)
    for (std::size_t slot = 1; slot < anchor->outputs.size(); ++slot)
      if (anchor->outputs[slot].present()) total += size_in_bytes(anchor->outputs[slot]);
  return total;
}

namespace {

double anchor_flops(const Anchor& anchor, bool visible_only) {
  const OpTraits& traits = traits_of(anchor.op);
  const AnchorShapes shapes(anchor);
  if (visible_only && traits.visible_flops) return traits.visible_flops(shapes);
  if (traits.flops) return traits.flops(shapes);
  constexpr double kPerElement = 8;
  return kPerElement * std::max(count_of(shapes.output(0)),
                                shapes.input_count() == 0 ? 0.0 : count_of(shapes.input(0)));
}

double flops_of(const Region& region, bool visible_only) {
  const PointwiseProgram& epilogue = region.epilogue;
  double total = epilogue.flops_per_element() * count_of(epilogue.space);
  total += static_cast<double>(region.reductions.size()) * count_of(epilogue.space);
  for (const PointwiseProgram& prologue : region.prologues)
    total += prologue.flops_per_element() * count_of(prologue.space);
  if (!region.anchor) return total;
  return total + anchor_flops(*region.anchor, visible_only);
}

}  // namespace

double Region::flops() const { return flops_of(*this, false); }
double Region::visible_flops() const { return flops_of(*this, true); }

std::string_view op_label(const Op& op) {
  const auto* pointwise = std::get_if<Pointwise>(&op);
  return pointwise ? enum_name(pointwise->mode) : traits_of(op).name;
}

std::string Region::to_text(const Graph& graph) const {
  std::string text;
  for (NodeId id : nodes) {
    text += (text.empty() ? "" : " + ");
    text += op_label(graph.nodes()[static_cast<std::size_t>(id)].op);
  }
  return text;
}

namespace {

bool only_moves_i64(const PointwiseProgram& program) {
  for (const auto& step : program.steps) {
    if (step.kind == PointwiseProgram::Step::Kind::constant ||
        step.kind == PointwiseProgram::Step::Kind::random)
      return false;
    if (step.kind == PointwiseProgram::Step::Kind::load && step.view.dtype != i64) return false;
    if (step.kind == PointwiseProgram::Step::Kind::compute &&
        (step.op.mode != PointwiseMode::identity || step.op.alpha1 != 1.0 || step.round_to != i64))
      return false;
  }
  return std::all_of(program.stores.begin(), program.stores.end(),
                     [](const auto& store) { return store.view.dtype == i64; });
}

void as_f64(PointwiseProgram& program) {
  for (auto& step : program.steps) {
    step.view.dtype = f64;
    step.compute = f64;
    step.round_to.reset();
  }
  for (auto& store : program.stores) store.view.dtype = f64;
}

// Whether an anchor only copies elements of some of its inputs.
bool moves_elements(const Op& op) {
  const auto* scatter = std::get_if<Scatter>(&op);
  return scatter ? scatter->combine == ScatterMode::set : traits_of(op).moves_elements;
}

// Whether an input is read for its elements; the others are indices.
bool is_moved(const Op& op, std::size_t slot) {
  const OpTraits& traits = traits_of(op);
  return traits.is_variadic() || traits.arithmetic_inputs.contains(static_cast<int>(slot));
}

}  // namespace

void move_as_bits(Region& region) {
  if (region.anchor && !moves_elements(region.anchor->op)) return;
  if (!only_moves_i64(region.epilogue)) return;
  for (std::size_t slot = 0; slot < region.prologues.size(); ++slot)
    if (is_moved(region.anchor->op, slot) && !only_moves_i64(region.prologues[slot])) return;
  as_f64(region.epilogue);
  if (!region.anchor) return;
  region.anchor->compute = f64;
  for (std::size_t slot = 0; slot < region.prologues.size(); ++slot) {
    if (!is_moved(region.anchor->op, slot)) continue;
    as_f64(region.prologues[slot]);
    region.anchor->inputs[slot].dtype = f64;
  }
  for (View& view : region.anchor->outputs) view.dtype = f64;
}

}  // namespace ashlar
