// Definition of gather and scatter.
#include <span>

#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

// The dims of what an index of these dims selects from `whole` along `axis`, or combines into it.
Dims selected_dims(const NodeContext& node, IndexMode mode, const Dims& whole, int axis,
                   int index_slot) {
  const Dims& index = node.input(index_slot).dims;
  Dims selected;
  if (mode == IndexMode::elements) {
    selected = whole;
    if (index.rank() == whole.rank()) selected[axis] = index[axis];
    node.require_dims(index_slot, selected);
    return selected;
  }
  if (whole.rank() - 1 + index.rank() > kMaxRank)
    node.reject(fmt::format("rank of {}", node.input_name(index_slot)), index.rank(),
                "at most {}: its axes replace one of {}, and tensors have at most {}",
                kMaxRank + 1 - whole.rank(), whole.rank(), kMaxRank);
  for (int a = 0; a < axis; ++a) selected.push_back(whole[a]);
  for (const std::int64_t extent : index) selected.push_back(extent);
  for (int a = axis + 1; a < whole.rank(); ++a) selected.push_back(whole[a]);
  return selected;
}

void infer_gather(NodeContext& node) {
  using Self = Gather;
  auto& op = node.op<Self>();
  node.require_integer(Self::index);
  const Tensor& x = node.input(Self::x);
  node.normalise_axis("axis", op.axis, x.dims.rank());
  node.infer_dims(Self::y,
                  selected_dims(node, op.mode, x.dims, static_cast<int>(op.axis), Self::index));
  node.infer_dtype(Self::y, x.dtype);
  node.infer_strides_like(Self::y, op.mode == IndexMode::elements ? x : Tensor{});
}

void infer_scatter(NodeContext& node) {
  using Self = Scatter;
  auto& op = node.op<Self>();
  node.require_integer(Self::index);
  const bool has_base = node.has_input(Self::base);
  const Dims y = has_base ? node.input(Self::base).dims : node.output(Self::y).dims;
  if (y.empty()) node.reject("dims of y", "none", "explicit dims, or those of a base");
  node.normalise_axis("axis", op.axis, y.rank());
  const Dims source = selected_dims(node, op.mode, y, static_cast<int>(op.axis), Self::index);
  node.require_dims(Self::source, source);
  if (op.combine != ScatterMode::set)
    for (const int slot : {Self::source, Self::base}) node.require_arithmetic(slot);
  node.infer_dims(Self::y, y);
  node.infer_dtype(Self::y, node.input(has_base ? int{Self::base} : int{Self::source}).dtype);
  node.infer_strides_like(Self::y, has_base ? node.input(Self::base) : Tensor{});
}

// Every index has a defined result; these are near both ends.
constexpr double kBeyond = 2;

Contents gather_contents(const NodeShapes& node, int slot) {
  if (slot != Gather::index) return {};
  const auto axis = static_cast<int>(node.op<Gather>().axis);
  return indices_below(node.input(Gather::x)[axis], kBeyond, kBeyond);
}
Contents scatter_contents(const NodeShapes& node, int slot) {
  if (slot != Scatter::index) return {};
  const auto axis = static_cast<int>(node.op<Scatter>().axis);
  return indices_below(node.output(Scatter::y)[axis], kBeyond, kBeyond);
}

// One per element moved or combined.
double gather_flops(const NodeShapes& node) { return count_of(node.output(Gather::y)); }
double scatter_flops(const NodeShapes& node) { return count_of(node.input(Scatter::source)); }

// Scale bytes can be replaced, not added.
bool scatter_sets(const Op& op) { return std::get<Scatter>(op).combine == ScatterMode::set; }

std::vector<Value> sample_gather(Graph& g, DType t) {
  using Op = Gather;
  return g
      .apply(Op{}, {{Op::x, g.input("x", {8, 16}, t)}, {Op::index, g.input("index", {2, 3}, i32)}},
             {Op::y})
      .all();
}
std::vector<Value> sample_scatter(Graph& g, DType t) {
  using Op = Scatter;
  return g
      .apply(Op{},
             {{Op::source, g.input("source", {6, 16}, t)}, {Op::index, g.input("index", {6}, i32)}},
             {Op::y}, {.dims = {8, 16}})
      .all();
}

Value of_integers(Graph& graph, PointwiseMode mode, std::initializer_list<Value> operands,
                  DType dtype, int axis = 0) {
  return graph.pointwise(mode, std::span(operands.begin(), operands.size()), {.axis = axis},
                         {.dtype = dtype, .compute = i64});
}

// dy added up where it was read.
void gather_gradient(GradientContext& c) {
  using Self = Gather;
  const Self op = c.op<Self>();
  const Value x = c.input(Self::x);
  Value index = c.input(Self::index);
  if (op.out_of_range == OutOfRange::clamp) {
    const auto bound = [&](PointwiseMode mode, std::int64_t position) {
      const Value at = c.graph().constant(static_cast<double>(position), i64, index.dims().rank());
      index = of_integers(c.graph(), mode, {index, at}, i64);
    };
    bound(PointwiseMode::min, x.dims()[static_cast<int>(op.axis)] - 1);
    bound(PointwiseMode::max, 0);
  }
  c.add(Self::x, c.graph().apply(Scatter{.axis = op.axis, .mode = op.mode},
                                 {{Scatter::source, c.dy()}, {Scatter::index, index}}, {Scatter::y},
                                 c.spec(Self::x))[Scatter::y]);
}

// Where `set` keeps an element of source: its number, row-major along the index, arrives in y.
Value is_kept(Graph& graph, const Scatter& op, Value source, Value index, const Dims& y) {
  const int first = static_cast<int>(op.axis);
  const int axes = op.mode == IndexMode::slices ? index.dims().rank() : 1;
  Value number;
  for (int a = first; a < first + axes; ++a) {
    const Value along = of_integers(graph, PointwiseMode::gen_index, {source}, i64, a);
    const Value extent =
        graph.constant(static_cast<double>(source.dims()[a]), i64, source.dims().rank());
    number = a == first
                 ? along
                 : of_integers(
                       graph, PointwiseMode::add,
                       {of_integers(graph, PointwiseMode::mul, {number, extent}, i64), along}, i64);
  }
  const Value last = graph.apply(op, {{Scatter::source, number}, {Scatter::index, index}},
                                 {Scatter::y}, {.dims = y})[Scatter::y];
  const Value arrived =
      graph.apply(Gather{.axis = op.axis, .mode = op.mode},
                  {{Gather::x, last}, {Gather::index, index}}, {Gather::y})[Gather::y];
  return of_integers(graph, PointwiseMode::cmp_eq, {arrived, number}, boolean);
}

// add: dsource is dy where source was added, dbase is dy. set: dsource is dy where source was kept,
// dbase is dy but for zeros where source replaced it.
void scatter_gradient(GradientContext& c) {
  using Self = Scatter;
  const Self op = c.op<Self>();
  const bool sets = op.combine == ScatterMode::set;
  if (!sets && op.combine != ScatterMode::add) c.refuse("it combines by mul, min or max");
  Graph& graph = c.graph();
  const Value source = c.input(Self::source), index = c.input(Self::index), dy = c.dy();
  if (c.wants(Self::source)) {
    Value gradient = graph.apply(Gather{.axis = op.axis, .mode = op.mode},
                                 {{Gather::x, dy}, {Gather::index, index}}, {Gather::y})[Gather::y];
    if (sets) gradient = c.select_or_zero(is_kept(graph, op, source, index, dy.dims()), gradient);
    c.add(Self::source, gradient);
  }
  if (!c.wants(Self::base)) return;
  if (!sets) return c.add(Self::base, dy);
  const Value zeros = c.expand(c.constant(0.0, source.dims().rank()), source);
  c.add(Self::base, graph.apply(op, {{Self::source, zeros}, {Self::index, index}, {Self::base, dy}},
                                {Self::y})[Self::y]);
}

}  // namespace

template <>
OpTraits define_traits<Gather>() {
  return {.name = "gather",
          .doc_page = "indexing",
          .infer = infer_gather,
          .gradient = gather_gradient,
          .sample = sample_gather,
          .contents = gather_contents,
          .flops = gather_flops,
          .supports_e8m0 = in_every_form,
          .fused_inputs = {Gather::x},
          .rereads_inputs = true,
          .draws_in_epilogue = true,
          .moves_elements = true};
}

template <>
OpTraits define_traits<Scatter>() {
  return {.name = "scatter",
          .doc_page = "indexing",
          .infer = infer_scatter,
          .gradient = scatter_gradient,
          .sample = sample_scatter,
          .contents = scatter_contents,
          .flops = scatter_flops,
          .arithmetic_inputs = {Scatter::source, Scatter::base},
          .supports_e8m0 = scatter_sets,
          .fused_inputs = {Scatter::source, Scatter::base},
          .draws_in_epilogue = true,
          .updated_input = Scatter::base};
}

}  // namespace ashlar
