// Invalid inputs of scan, top_k, pad and pad_backward.
#include "graph/bad_input.hpp"

namespace ashlar::tests {

namespace {

template <class Op>
void row(BadInputs& rows, const char* name, const char* op_name, const Op& op, const Dims& dims,
         DType dtype, const std::vector<std::string>& says,
         const std::vector<std::type_identity_t<Wanted<Op>>>& wanted = {typename Op::Out{}}) {
  rows.push_back({name, op_name,
                  [=](Graph& g) {
                    g.apply(op, {{typename Op::In{}, in(g, dims, dtype)}}, wanted, kBad);
                  },
                  says});
}

void add_scans(BadInputs& rows) {
  row(rows, "scan along a missing axis", "scan", Scan{.axis = 2}, {4, 5}, f32,
      {"axis", "got 2", "expected -2 to 1"});
  row(rows, "scan of booleans", "scan", Scan{}, {4, 5}, boolean, {"dtype of x 'i0'", "got bool"});
  row(rows, "logsumexp scan of integers", "scan", Scan{.mode = ScanMode::logsumexp}, {4, 5}, i32,
      {"dtype of x 'i0'", "got i32", "expected a floating-point type"});
  row(rows, "scan into other dims", "scan", Scan{}, {4, 5}, f32,
      {"dims of y", "got [4, 4]", "expected [4, 5]"}, {{Scan::y, {}, {4, 4}}});
}

void add_top_k(BadInputs& rows) {
  row(rows, "top_k of more than the axis", "top_k", TopK{.k = 6}, {4, 5}, f32,
      {"k", "got 6", "expected 0 (the whole axis) to 5, the extent of axis 1"});
  row(rows, "top_k of fewer than none", "top_k", TopK{.axis = 0, .k = -1}, {4, 5}, f32,
      {"k", "got -1", "to 4, the extent of axis 0"});
  row(rows, "top_k with a narrow index", "top_k", TopK{.k = 2}, {4, 5}, f32,
      {"dtype of index", "got u8", "expected i32 or i64"}, {TopK::values, {TopK::index, u8}});
  row(rows, "top_k with an index of other dims", "top_k", TopK{.k = 2}, {4, 5}, f32,
      {"dims of index", "got [4, 5]", "expected [4, 2]"},
      {TopK::values, {TopK::index, i32, {4, 5}}});
}

void add_pads(BadInputs& rows) {
  row(rows, "pad by counts of other rank", "pad", Pad{.before = {1}}, {4, 5}, f32,
      {"before", "got [1]", "expected 2 values, one per axis"});
  row(rows, "pad that reflects the border", "pad", Pad{.mode = PadMode::reflect, .after = {0, 5}},
      {4, 5}, f32, {"padding of axis 1", "got 5", "expected less than 5, the extent to reflect"});
  row(rows, "pad that repeats twice", "pad", Pad{.mode = PadMode::circular, .before = {5, 0}},
      {4, 5}, f32, {"padding of axis 0", "got 5", "expected at most 4, the extent to repeat"});
  row(rows, "pad with the edge of nothing", "pad", Pad{.mode = PadMode::edge, .before = {0, 1}},
      {4, 0}, f32, {"padding of axis 1", "got 1", "expected 0 around an axis of no elements"});
  row(rows, "pad that crops a reflection", "pad", Pad{.mode = PadMode::reflect, .after = {-1, 0}},
      {4, 5}, f32, {"after", "got [-1, 0]", "expected values of at least 0 in mode reflect"});
  row(rows, "pad that crops too much", "pad", Pad{.before = {-3, 0}, .after = {-2, 0}}, {4, 5}, f32,
      {"axis 0 of y", "got -1", "expected at least 0 elements"});
}

void add_pad_gradients(BadInputs& rows) {
  row(rows, "pad_backward of booleans", "pad_backward", PadBackward{}, {4, 5}, boolean,
      {"dtype of dy 'i0'", "got bool"});
  row(rows, "pad_backward of less than the padding", "pad_backward",
      PadBackward{.before = {0, 3}, .after = {0, 3}}, {4, 5}, f32,
      {"axis 1 of dx", "got -1", "expected at least 0 elements"});
  row(rows, "pad_backward of a reflected border", "pad_backward",
      PadBackward{.mode = PadMode::reflect, .before = {2, 0}}, {4, 5}, f32,
      {"padding of axis 0", "got 2", "expected less than 2, the extent to reflect"});
  row(rows, "pad_backward into other dims", "pad_backward", PadBackward{.before = {1, 1}}, {4, 5},
      f32, {"dims of dx", "got [4, 5]", "expected [3, 4]"}, {{PadBackward::dx, {}, {4, 5}}});
}

}  // namespace

void add_bad_lines(BadInputs& rows) {
  add_scans(rows);
  add_top_k(rows);
  add_pads(rows);
  add_pad_gradients(rows);
}

}  // namespace ashlar::tests
