// Definition of paged cache load and band matrices.
#include "base/checked.hpp"
#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

// Normalises the attributes and checks the shift; returns the row axis.
template <class Self>
int check_band(NodeContext& node, Self& op) {
  node.require_rank(Self::x, 2, kMaxRank);
  const Dims& x = node.input(Self::x).dims;
  node.normalise_axis("axis", op.axis, x.rank());
  if (op.axis == 0) node.reject("axis", op.axis, "at least 1: rows are the axis before it");
  if (op.lower_bandwidth < 0) node.reject("lower_bandwidth", op.lower_bandwidth, "at least 0");
  if (op.upper_bandwidth < 0) node.reject("upper_bandwidth", op.upper_bandwidth, "at least 0");
  const int rows = static_cast<int>(op.axis) - 1;
  Dims shifts = Dims::filled(x.rank(), 1);
  if (rows > 0) shifts[0] = x[0];
  node.require_broadcastable(Self::kv_token_offset, shifts);
  node.require_integer(Self::kv_token_offset);
  return rows;
}

void infer_paged_cache_load(NodeContext& node) {
  using Self = PagedCacheLoad;
  const auto& op = node.op<Self>();
  for (const int slot : {Self::container, Self::page_table}) node.require_rank(slot, 4, 4);
  const Tensor& container = node.input(Self::container);
  const Dims& table = node.input(Self::page_table).dims;
  const std::int64_t heads = container.dims[1], block = container.dims[2],
                     width = container.dims[3];
  node.require_dims(Self::page_table, {table[0], 1, table[2], 1});
  node.require_dims(Self::sequence, {table[0], 1, 1, 1});
  for (const int slot : {Self::page_table, Self::sequence}) node.require_integer(slot);

  const std::int64_t most = checked_mul(table[2], block);
  const Dims& given = node.output(Self::y).dims;
  const int time = op.transposed ? 3 : 2;
  const std::int64_t length = given.rank() == 4 ? given[time] : most;
  if (length > most)
    node.reject(fmt::format("extent {} of y", time), length, "at most {}: {} pages of {}", most,
                table[2], block);
  node.infer_dims(Self::y, op.transposed ? Dims{table[0], heads, width, length}
                                         : Dims{table[0], heads, length, width});
  node.infer_dtype(Self::y, container.dtype);
  node.infer_strides_like(Self::y, Tensor{});
}

void infer_expand_band_matrix(NodeContext& node) {
  using Self = ExpandBandMatrix;
  auto& op = node.op<Self>();
  const int rows = check_band(node, op);
  const Tensor& x = node.input(Self::x);
  const std::int64_t width = x.dims[rows + 1];
  if (width - 1 - op.lower_bandwidth != op.upper_bandwidth)
    node.reject(fmt::format("extent {} of {}", rows + 1, node.input_name(Self::x)), width,
                "lower_bandwidth + upper_bandwidth + 1 with {} and {}", op.lower_bandwidth,
                op.upper_bandwidth);
  Dims y = x.dims;
  const Dims& given = node.output(Self::y).dims;
  y[rows + 1] = given.rank() == y.rank() ? given[rows + 1] : x.dims[rows];  // else square
  node.infer_dims(Self::y, y);
  node.infer_dtype(Self::y, x.dtype);
  node.infer_strides_like(Self::y, x);
}

void infer_contract_band_matrix(NodeContext& node) {
  using Self = ContractBandMatrix;
  auto& op = node.op<Self>();
  const int rows = check_band(node, op);
  const Tensor& x = node.input(Self::x);
  Dims y = x.dims;
  y[rows + 1] = checked_add(checked_add(op.lower_bandwidth, op.upper_bandwidth), 1);
  node.infer_dims(Self::y, y);
  node.infer_dtype(Self::y, x.dtype);
  node.infer_strides_like(Self::y, x);
}

Contents paged_cache_load_contents(const NodeShapes& node, int slot) {
  using Self = PagedCacheLoad;
  if (slot == Self::page_table) return indices_below(node.input(Self::container)[0], 1, 1);
  if (slot == Self::sequence)
    return lengths_up_to(node.output(Self::y)[node.op<Self>().transposed ? 3 : 2], -1, 1);
  return {};
}

template <class Self>
Contents band_contents(const NodeShapes&, int slot) {
  return slot == Self::kv_token_offset ? whole_numbers(-2, 2) : Contents{};
}

std::vector<Value> sample_paged_cache_load(Graph& g, DType t) {
  using Op = PagedCacheLoad;
  return g
      .apply(Op{},
             {{Op::container, g.input("container", {4, 2, 4, 8}, t)},
              {Op::page_table, g.input("page_table", {2, 1, 2, 1}, i32)},
              {Op::sequence, g.input("sequence", {2, 1, 1, 1}, i32)}},
             {Op::y}, {.dims = {2, 2, 8, 8}})
      .all();
}
std::vector<Value> sample_expand_band_matrix(Graph& g, DType t) {
  using Op = ExpandBandMatrix;
  Op op;
  op.lower_bandwidth = 1;
  op.upper_bandwidth = 1;
  return g.apply(op, {{Op::x, g.input("x", {1, 1, 8, 3}, t)}}, {Op::y}, {.dims = {1, 1, 8, 8}})
      .all();
}
std::vector<Value> sample_contract_band_matrix(Graph& g, DType t) {
  using Op = ContractBandMatrix;
  Op op;
  op.lower_bandwidth = 1;
  op.upper_bandwidth = 1;
  return g.apply(op, {{Op::x, g.input("x", {1, 1, 8, 8}, t)}}, {Op::y}).all();
}

}  // namespace

template <>
OpTraits define_traits<PagedCacheLoad>() {
  return {.name = "paged_cache_load",
          .doc_page = "cache",
          .infer = infer_paged_cache_load,
          .sample = sample_paged_cache_load,
          .contents = paged_cache_load_contents,
          .fused_inputs = {PagedCacheLoad::container}};
}

template <>
OpTraits define_traits<ExpandBandMatrix>() {
  return {.name = "expand_band_matrix",
          .doc_page = "cache",
          .infer = infer_expand_band_matrix,
          .sample = sample_expand_band_matrix,
          .contents = band_contents<ExpandBandMatrix>,
          .fused_inputs = {ExpandBandMatrix::x}};
}

template <>
OpTraits define_traits<ContractBandMatrix>() {
  return {.name = "contract_band_matrix",
          .doc_page = "cache",
          .infer = infer_contract_band_matrix,
          .sample = sample_contract_band_matrix,
          .contents = band_contents<ContractBandMatrix>,
          .fused_inputs = {ContractBandMatrix::x}};
}

}  // namespace ashlar
