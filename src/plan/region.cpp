// Region: FLOPs, memory traffic, precision and text form.
#include "plan/region.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ashlar/explanation.hpp>

#include "graph/enum_names.hpp"
#include "graph/multi_head_shapes.hpp"
#include "graph/rnn_shapes.hpp"
#include "graph/schema.hpp"

namespace ashlar {

namespace {

double size_in_bytes(const View& view) {
  double elements = 1;
  for (int axis = 0; axis < view.dims.rank(); ++axis)
    if (view.strides[axis] != 0 || view.dims[axis] == 0)
      elements *= static_cast<double>(view.dims[axis]);
  return elements * bit_width(view.dtype) / 8;
}

double count(const Dims& dims) {
  double elements = 1;
  for (std::int64_t extent : dims) elements *= static_cast<double>(extent);
  return elements;
}

double window(const Dims& w) {
  double elements = 1;
  for (int axis = 1; axis < w.rank(); ++axis) elements *= static_cast<double>(w[axis]);
  return elements;
}

// Multiply-adds count as two.
struct AnchorFlops {
  const Anchor& anchor;
  bool visible_only = false;  // attention scores inside the mask's bounds
  const Dims& in(int slot) const { return anchor.inputs[static_cast<std::size_t>(slot)].dims; }
  const Dims& out(int slot) const { return anchor.outputs[static_cast<std::size_t>(slot)].dims; }

  double operator()(const ConvForward&) const {
    return 2 * count(out(0)) * window(in(ConvForward::w));
  }
  double operator()(const ConvBackwardData&) const {
    return 2 * count(in(ConvBackwardData::dy)) * window(in(ConvBackwardData::w));
  }
  double operator()(const ConvBackwardFilter&) const {
    return 2 * count(in(ConvBackwardFilter::dy)) * window(out(0));
  }
  double operator()(const Matmul&) const {
    const double products =
        count(out(0)) * static_cast<double>(in(Matmul::a)[in(Matmul::a).rank() - 1]);
    return (is_complex(anchor.inputs[Matmul::a].dtype) ? 8 : 2) * products;
  }
  // With scatter, the number of rows is that of the tokens.
  double operator()(const MoeGroupedMatmul& op) const {
    const Dims &token = in(MoeGroupedMatmul::token), &output = out(0);
    const std::int64_t rows = op.mode == MoeMode::scatter ? token[1] : output[1];
    return 2 * count({rows, token[2]}) * static_cast<double>(output[2]);
  }
  double operator()(const MoeGroupedMatmulBackward& op) const {
    const Dims &token = in(MoeGroupedMatmulBackward::token),
               &doutput = in(MoeGroupedMatmulBackward::doutput);
    const bool dtoken = anchor.outputs.size() > 1 && anchor.outputs[1].present();
    const std::int64_t rows = op.mode == MoeMode::scatter ? token[1] : doutput[1];
    return (dtoken ? 4 : 2) * count({rows, token[2]}) * static_cast<double>(doutput[2]);
  }
  double operator()(const CausalConvForward&) const {
    return 2 * count(out(0)) * static_cast<double>(in(CausalConvForward::w)[1]);
  }
  double operator()(const CausalConvBackward&) const {
    return 6 * count(out(0)) * static_cast<double>(in(CausalConvBackward::w)[1]);
  }
  double operator()(const AttentionForward& op) const {
    return 2 * pairs(op) * static_cast<double>(in(0)[3] + in(2)[3]);
  }
  double operator()(const AttentionBackward& op) const {
    return 5 * pairs(op) * static_cast<double>(in(0)[3] + in(2)[3]);
  }
  double operator()(const CtcLoss&) const {
    // Per class one exponential; per state two recursions of three exponentials and a logarithm.
    constexpr double kPerClass = 30, kPerState = 80;
    const Dims& x = in(CtcLoss::x);
    const double states = 2 * count(in(CtcLoss::labels)) + static_cast<double>(x[1]);
    return static_cast<double>(x[0]) *
           (kPerClass * static_cast<double>(x[1] * x[2]) + kPerState * states);
  }
  double operator()(const GridSampleForward&) const { return sampling(count(out(0))); }
  double operator()(const GridSampleBackward&) const {
    return 3 * sampling(count(in(GridSampleBackward::dy)));
  }
  double operator()(const RnnForward& op) const { return recurrent(op, features()); }
  double operator()(const RnnBackwardData& op) const {
    return recurrent(op, rnn_input_size(op, in(RnnBackwardData::weights)[0]));
  }
  double operator()(const RnnBackwardWeights& op) const { return recurrent(op, features()); }
  double operator()(const MultiHeadAttentionForward& op) const { return multi_head(op, 1); }
  // Recomputes the forward pass and does about twice its FLOPs.
  double operator()(const MultiHeadAttentionBackwardData& op) const { return multi_head(op, 3); }
  double operator()(const MultiHeadAttentionBackwardWeights& op) const { return multi_head(op, 3); }
  template <class Other>
  double operator()(const Other&) const {
    return 8 * std::max(count(out(0)), anchor.inputs.empty() ? 0.0 : count(in(0)));
  }

  // One multiply-add per corner of a cell.
  double sampling(double results) const { return 2 * results * (1 << (in(0).rank() - 2)); }
  std::int64_t features() const { return in(0)[in(0).rank() - 1]; }
  // x and dy, the first inputs, have the same rows.
  double recurrent(const RnnAttributes& op, std::int64_t input) const {
    return RnnShape(op, in(0), 0, input).flops();
  }
  // Four projections and the two attention matmuls of all heads.
  double multi_head(const MultiHeadAttentionAttributes& op, double times) const {
    const MultiHeadShape shape(op, in(0), in(1), in(2));
    const double steps = count({shape.batch, shape.beams, shape.queries});
    const double key_steps = count({shape.batch, shape.key_beams, shape.keys});
    double flops = 2 * steps * static_cast<double>(shape.heads * shape.keys) *
                   static_cast<double>(shape.head_size + shape.value_size);
    for (MultiHeadPart part : kMultiHeadParts) {
      const bool of_keys = part == MultiHeadPart::key || part == MultiHeadPart::value;
      flops += 2 * (of_keys ? key_steps : steps) * static_cast<double>(shape[part].matrix_size());
    }
    return times * flops;
  }
  // Number of (query, key) pairs; for paged keys by max_seq_len_kv, not by the container.
  double pairs(const AttentionAttributes& op) const {
    const std::int64_t queries = in(0)[2], keys = op.max_seq_len_kv.value_or(in(1)[2]);
    if (!visible_only || (!op.left_bound && !op.right_bound))
      return count({in(0)[0], in(0)[1], queries}) * static_cast<double>(keys);
    const std::int64_t shift = op.alignment == MaskAlignment::bottom_right ? keys - queries : 0;
    double visible = 0;  // of one head
    for (std::int64_t row = 0; row < queries; ++row) {
      const std::int64_t last = op.right_bound ? row + shift + *op.right_bound : keys - 1;
      const std::int64_t first = op.left_bound ? row + shift - *op.left_bound + 1 : 0;
      visible += static_cast<double>(std::max<std::int64_t>(
          0, std::min(last, keys - 1) - std::max<std::int64_t>(first, 0) + 1));
    }
    return count({in(0)[0], in(0)[1]}) * visible;
  }
};

}  // namespace

bool is_gemm_like(const Op& op) {
  return std::holds_alternative<Matmul>(op) || std::holds_alternative<MoeGroupedMatmul>(op) ||
         std::holds_alternative<MoeGroupedMatmulBackward>(op) ||
         std::holds_alternative<ConvForward>(op) || std::holds_alternative<ConvBackwardData>(op) ||
         std::holds_alternative<ConvBackwardFilter>(op);
}

DType Region::precision() const {
  if (anchor) {
    if (needs_f64(anchor->compute)) return f64;
    // Only operands of arithmetic count: lengths, seeds and indices are read as integers anyway.
    const std::size_t operands =
        std::min<std::size_t>(anchor->inputs.size(), is_gemm_like(anchor->op) ? 2 : 1);
    for (std::size_t slot = 0; slot < operands; ++slot)
      if (anchor->inputs[slot].present() && needs_f64(anchor->inputs[slot].dtype)) return f64;
    if (anchor_as<BlockScaleDequantize>()) {
      const View& zero = anchor->inputs[BlockScaleDequantize::zero_point];
      if (zero.present() && needs_f64(zero.dtype)) return f64;
    }
    for (const PointwiseProgram& prologue : prologues)
      if (!prologue.empty() && !prologue.is_plain_load() && prologue.precision() == f64) return f64;
    for (const View& output : anchor->outputs)
      if (output.present() && output.dtype == f64) return f64;
  }
  return epilogue.empty() ? f32 : epilogue.precision();
}

double Region::bytes() const {
  double total = 0;
  const auto add_program = [&](const PointwiseProgram& program) {
    for (const auto& step : program.steps) {
      if (step.kind != PointwiseProgram::Step::Kind::load) continue;
      total += size_in_bytes(step.view) / (step.blocks.empty() ? 1 : count(step.blocks));
    }
    for (const auto& store : program.stores) total += size_in_bytes(store.view);
  };
  for (const PointwiseProgram& prologue : prologues) add_program(prologue);
  add_program(epilogue);
  for (const TailReduction& reduction : reductions) add_program(reduction.finish);
  if (anchor)
    for (std::size_t slot = 1; slot < anchor->outputs.size(); ++slot)
      if (anchor->outputs[slot].present()) total += size_in_bytes(anchor->outputs[slot]);
  return total;
}

namespace {

double flops_of(const Region& region, bool visible_only) {
  const PointwiseProgram& epilogue = region.epilogue;
  double total = epilogue.flops_per_element() * count(epilogue.space);
  total += static_cast<double>(region.reductions.size()) * count(epilogue.space);
  for (const PointwiseProgram& prologue : region.prologues)
    total += prologue.flops_per_element() * count(prologue.space);
  if (!region.anchor) return total;
  return total + std::visit(AnchorFlops{*region.anchor, visible_only}, region.anchor->op);
}

}  // namespace

double Region::flops() const { return flops_of(*this, false); }
double Region::visible_flops() const { return flops_of(*this, true); }

std::string_view op_label(const Op& op) {
  const auto* pointwise = std::get_if<Pointwise>(&op);
  return pointwise ? enum_name(pointwise->mode) : schema_of(op).name;
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

}  // namespace

void move_as_bits(Region& region) {
  if (region.anchor) {
    const Op& op = region.anchor->op;
    const bool moves = std::holds_alternative<Reshape>(op) ||
                       std::holds_alternative<Transpose>(op) || std::holds_alternative<Slice>(op) ||
                       std::holds_alternative<Concat>(op) || std::holds_alternative<Im2Col>(op);
    if (!moves) return;
  }
  if (!only_moves_i64(region.epilogue) ||
      !std::all_of(region.prologues.begin(), region.prologues.end(), only_moves_i64))
    return;
  as_f64(region.epilogue);
  for (PointwiseProgram& prologue : region.prologues) as_f64(prologue);
  if (!region.anchor) return;
  region.anchor->compute = f64;
  for (View& view : region.anchor->inputs) view.dtype = f64;
  for (View& view : region.anchor->outputs) view.dtype = f64;
}

}  // namespace ashlar
