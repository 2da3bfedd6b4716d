// Checks of attention (q [B, Hq, Sq, D], k [B, Hk, Skv, D], v [B, Hv, Skv, Dv], o [B, Hq, Sq, Dv]),
// paged caches and band matrices.
#include "backend/checks/operand.hpp"
#include "backend/finalize.hpp"

namespace ashlar::cudnn {

namespace {

// The operands that forward and backward share.
struct Attention {
  Operand q, k, v, o, stats, scale, q_lengths, kv_lengths;
  bool is_paged;
};

void check_heads(const Operand& q, const Operand& shared) {
  if (q.extent(1) % shared.extent(1) != 0)
    shared.fail_shape(fmt::format("{} heads", shared.extent(1)),
                      fmt::format("a divisor of the {} heads of q", q.extent(1)));
}

void check_lengths(const Operand& lengths, std::int64_t batch) {
  lengths.require_dims(Extents{batch, 1, 1, 1}, ", one per batch").require_integer();
}

void check(const Attention& a) {
  for (const Operand* operand : {&a.q, &a.k, &a.v, &a.o}) operand->require_set().require_rank(4, 4);
  const std::int64_t batch = a.q.extent(0);
  if (a.k.extent(3) != a.q.extent(3))
    a.k.fail_shape(fmt::format("width {}", a.k.extent(3)),
                   fmt::format("{}, the width of q", a.q.extent(3)));
  check_heads(a.q, a.k);
  check_heads(a.q, a.v);
  // Paged keys and values have the shape of their containers, which is checked separately.
  if (!a.is_paged) {
    if (a.k.extent(0) != batch && a.k.extent(0) != 1)
      a.k.fail_shape(fmt::format("batch {}", a.k.extent(0)),
                     fmt::format("{}, the batch of q", batch));
    if (a.v.extent(0) != a.k.extent(0) || a.v.extent(2) != a.k.extent(2))
      a.v.fail_shape("dims " + text_of(a.v.dims()),
                     fmt::format("batch {} and length {}, as k has", a.k.extent(0), a.k.extent(2)));
  }
  a.o.require_dims(Extents{batch, a.q.extent(1), a.q.extent(2), a.v.extent(3)},
                   ", the dims of q with the width of v");
  a.stats.require_dims(Extents{batch, a.q.extent(1), a.q.extent(2), 1}, ", one per row of q")
      .require_floating();
  a.scale.require_one_element().require_floating();
  check_lengths(a.q_lengths, batch);
  check_lengths(a.kv_lengths, batch);
}

FinishedRef check_band(const Record& operation, cudnnBackendAttributeName_t lower,
                       cudnnBackendAttributeName_t upper, cudnnBackendAttributeName_t axis_name,
                       const Operand& band, const Operand& matrix) {
  constexpr std::int64_t kMaxBandwidth = std::int64_t{1} << 40;
  require_set(operation, {lower, upper});
  require_within(operation, lower, 0, kMaxBandwidth);
  require_within(operation, upper, 0, kMaxBandwidth);
  matrix.require_set().require_rank(2);
  const int rank = matrix.rank();
  band.require_set().require_rank(rank, rank);
  const std::int64_t axis = operation.integer(axis_name);
  // The axis before `axis` holds the rows.
  if (axis != -1 && (axis < 1 || axis >= rank))
    fail_bound(axis_name, std::to_string(axis), fmt::format("-1, or 1 to {}", rank - 1));
  Extents expected(matrix.dims().begin(), matrix.dims().end());
  expected[static_cast<std::size_t>(axis == -1 ? rank - 1 : axis)] =
      operation.integer(lower) + operation.integer(upper) + 1;
  band.require_dims(expected, ", the dims of the matrix with the width of the band");
  return attributes_only();
}

}  // namespace

FinishedRef finalize_sdpa_forward(const Record& operation) {
  const Operand k_pages(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_KDESC);
  const Operand v_pages(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_VDESC);
  check({.q = {operation, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC},
         .k = {operation, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC},
         .v = {operation, CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC},
         .o = {operation, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC},
         .stats = {operation, CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC},
         .scale = {operation, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC},
         .q_lengths = {operation, CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC},
         .kv_lengths = {operation, CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC},
         .is_paged = k_pages.is_set() || v_pages.is_set()});
  k_pages.require_rank(4, 4).require_integer();
  v_pages.require_rank(4, 4).require_integer();
  return attributes_only();
}

FinishedRef finalize_sdpa_backward(const Record& operation) {
  const Attention attention = {
      .q = {operation, CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC},
      .k = {operation, CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC},
      .v = {operation, CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC},
      .o = {operation, CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC},
      .stats = {operation, CUDNN_ATTR_OPERATION_SDPA_BWD_STATSDESC},
      .scale = {operation, CUDNN_ATTR_OPERATION_SDPA_BWD_SCALEDESC},
      .q_lengths = {operation, CUDNN_ATTR_OPERATION_SDPA_BWD_SEQ_LEN_QDESC},
      .kv_lengths = {operation, CUDNN_ATTR_OPERATION_SDPA_BWD_SEQ_LEN_KVDESC},
      .is_paged = false};
  check(attention);
  attention.stats.require_set();
  Operand(operation, CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC)
      .require_set()
      .require_dims(attention.o.dims(), ", the dims of o");
  Operand(operation, CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC)
      .require_dims(attention.q.dims(), ", the dims of q");
  Operand(operation, CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC)
      .require_dims(attention.k.dims(), ", the dims of k");
  Operand(operation, CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC)
      .require_dims(attention.v.dims(), ", the dims of v");
  return attributes_only();
}

FinishedRef finalize_paged_cache_load(const Record& operation) {
  const Operand container(operation, CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_CONTAINER_DESC);
  const Operand table(operation, CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_PAGE_TABLE_DESC);
  const Operand lengths(operation, CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_SEQUENCE_DESC);
  const Operand y(operation, CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_YDESC);
  for (const Operand* operand : {&container, &table, &y}) operand->require_set().require_rank(4, 4);
  lengths.require_set();
  table.require_integer();
  check_lengths(lengths, table.extent(0));
  const std::int64_t width = container.extent(3), pages = table.extent(2);
  // The positions of the cache are rows of y, or its columns. Compares quotients: a product of
  // extents may overflow.
  const auto is_length = [&](std::int64_t rows) {
    return (rows - 1) / container.extent(2) < pages;
  };
  const bool is_plain = y.extent(3) == width && is_length(y.extent(2));
  const bool is_transposed = y.extent(2) == width && is_length(y.extent(3));
  if (y.extent(0) != table.extent(0) || y.extent(1) != container.extent(1) ||
      !(is_plain || is_transposed))
    y.fail_shape(
        "dims " + text_of(y.dims()),
        fmt::format("[{}, {}, rows, {}] or its transpose, with at most {} pages of {} rows",
                    table.extent(0), container.extent(1), width, pages, container.extent(2)));
  return attributes_only();
}

FinishedRef finalize_expand_band_matrix(const Record& operation) {
  Operand(operation, CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_KV_TOKEN_OFFSET_DESC)
      .require_integer();
  return check_band(operation, CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_LOWER_BANDWIDTH,
                    CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_UPPER_BANDWIDTH,
                    CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_AXIS,
                    {operation, CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_XDESC},
                    {operation, CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_YDESC});
}

FinishedRef finalize_contract_band_matrix(const Record& operation) {
  return check_band(operation, CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_LOWER_BANDWIDTH,
                    CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_UPPER_BANDWIDTH,
                    CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_AXIS,
                    {operation, CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_YDESC},
                    {operation, CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_XDESC});
}

}  // namespace ashlar::cudnn
