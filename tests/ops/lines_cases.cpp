// Cases of scan, top_k, pad and pad_backward.
#include "graph/enum_names.hpp"
#include "ops/op_case.hpp"

namespace ashlar::ops {

namespace {

std::vector<DType> with_rare(std::vector<DType> dtypes) {
  dtypes.insert(dtypes.end(), kRareArithmetic.begin(), kRareArithmetic.end());
  return dtypes;
}

void add_scan(std::vector<OpCase>& cases, const std::string& label, const Dims& dims,
              const Scan& op, bool one_shape, const std::vector<DType>& dtypes) {
  cases.push_back(
      {"scan", label + ", " + std::string(enum_name(op.mode)) + " of " + to_string(dims), dtypes,
       [=](CaseBuilder& b) {
         b.result(b.graph().apply(op, {{Scan::x, b.operand("x", dims)}}, {Scan::y}));
       },
       op.mode != ScanMode::logsumexp, one_shape});
}

void add_scans(std::vector<OpCase>& cases) {
  for (int m = 0; m <= static_cast<int>(ScanMode::logsumexp); ++m) {
    const auto mode = static_cast<ScanMode>(m);
    const std::vector<DType>& dtypes = mode == ScanMode::logsumexp ? kFloating : kArithmetic;
    const auto add = [&](const std::string& label, const Dims& dims, const Scan& op,
                         bool one_shape = true) {
      add_scan(cases, label, dims, op, one_shape, dtypes);
    };
    add("inclusive", {3, 5, 37}, {.mode = mode}, false);
    add("middle axis", {2, 9, 11}, {.mode = mode, .axis = 1}, false);
    add("reverse", {4, 133}, {.mode = mode, .reverse = true});
    add("exclusive", {2, 41, 3}, {.mode = mode, .axis = 1, .exclusive = true});
    add("exclusive", {5, 67}, {.mode = mode, .exclusive = true});
    add("exclusive and reverse", {3, 19, 9},
        {.mode = mode, .axis = 1, .exclusive = true, .reverse = true});
    add("exclusive and reverse", {3, 35}, {.mode = mode, .exclusive = true, .reverse = true});
    add("one element", {7, 1}, {.mode = mode, .exclusive = true});
    add("no elements", {3, 0}, {.mode = mode});
  }
  const std::vector<DType> few = {f64, f32, bf16};
  for (const ScanMode mode : {ScanMode::add, ScanMode::max, ScanMode::logsumexp}) {
    // Split into chunks, also for one thread.
    add_scan(cases, "long", {70001}, {.mode = mode}, true, few);
    add_scan(cases, "long, reverse and exclusive", {2, 35003},
             {.mode = mode, .exclusive = true, .reverse = true}, true, few);
    add_scan(cases, "long columns", {5003, 17}, {.mode = mode, .axis = 0}, true, few);
  }
  add_scan(cases, "rare dtypes", {3, 21}, {.mode = ScanMode::max}, true, kRareArithmetic);
}

void add_top_k(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& label, const Dims& dims, const TopK& op,
                       bool one_shape = true, DType index = i32, bool with_index = true,
                       const std::vector<DType>& dtypes = kArithmetic) {
    cases.push_back(
        {"top_k", label + " of " + to_string(dims), dtypes,
         [=](CaseBuilder& b) {
           std::vector<Wanted<TopK>> wanted = {TopK::values};
           if (with_index) wanted.push_back({TopK::index, index});
           const auto r = b.graph().apply(op, {{TopK::x, b.operand("x", dims)}}, wanted);
           b.result(r[TopK::values]);
           if (with_index) b.result("index_out", r[TopK::index]);
         },
         true, one_shape});
  };
  add("largest", {3, 5, 37}, {.k = 4}, false);
  add("smallest on the middle axis", {2, 23, 11}, {.axis = 1, .k = 3, .largest = false}, false,
      i64);
  add("sort", {4, 133}, {}, true);
  add("sort of many", {2, 700}, {.largest = false}, true, i64);
  add("sort along the first axis", {61, 9}, {.axis = 0, .largest = false});
  add("few of many", {3, 1500}, {.k = 7}, true, i32);
  add("few of many columns", {1500, 5}, {.axis = 0, .k = 2, .largest = false});
  add("half", {2, 300}, {.k = 149});
  add("without index", {2, 3, 40}, {.k = 5}, true, i32, false);
  add("one of one", {6, 1}, {.k = 1});
  add("of nothing", {3, 0}, {});
  add("no lines", {0, 8}, {.k = 2});
  add("few of a long line", {1, 40000}, {.k = 9}, true, i32, true, {f64, f32, bf16});
  add("many of a long line", {9000}, {.k = 300}, true, i32, true, {f64, f32, i32});
  add("rare dtypes", {3, 21}, {.k = 8}, true, i32, true, kRareArithmetic);
}

struct Counts {
  Dims x, before, after;
  bool one_shape = true;
};

void add_pads(std::vector<OpCase>& cases) {
  const auto add = [&](PadMode mode, const Counts& p, bool few_dtypes = false) {
    const std::vector<DType> few = {f64, f32, bf16, i32};
    const std::string label = std::string(enum_name(mode)) + " of " + to_string(p.x) + " by " +
                              to_string(p.before) + " and " + to_string(p.after);
    cases.push_back({"pad", label, few_dtypes ? few : kPointwise,
                     [=](CaseBuilder& b) {
                       const Pad op{
                           .mode = mode, .before = p.before, .after = p.after, .value = 1.0};
                       b.result(b.graph().apply(op, {{Pad::x, b.operand("x", p.x)}}, {Pad::y}));
                     },
                     true, p.one_shape});
    Dims y = p.x;
    for (int axis = 0; axis < y.rank(); ++axis)
      y[axis] += (p.before.empty() ? 0 : p.before[axis]) + (p.after.empty() ? 0 : p.after[axis]);
    cases.push_back({"pad_backward", label, few_dtypes ? few : with_rare(kArithmetic),
                     [=](CaseBuilder& b) {
                       using Op = PadBackward;
                       const Op op{.mode = mode, .before = p.before, .after = p.after};
                       b.result(b.graph().apply(op, {{Op::dy, b.operand("dy", y)}}, {Op::dx}));
                     },
                     true, p.one_shape});
  };
  for (int m = 0; m <= static_cast<int>(PadMode::circular); ++m) {
    const auto mode = static_cast<PadMode>(m);
    add(mode, {{2, 3, 5, 7}, {0, 0, 1, 2}, {0, 0, 3, 1}, false});
    add(mode, {{3, 4, 9}, {2, 0, 8}, {1, 3, 0}});
    add(mode, {{11}, {}, {10}});
    add(mode, {{2, 1500}, {0, 1499}, {1, 1498}}, true);  // longer than a piece of a row
  }
  add(PadMode::circular, {{2, 3}, {2, 3}, {2, 3}});
  add(PadMode::reflect, {{1, 6}, {0, 5}, {0, 5}});
  add(PadMode::edge, {{1, 1}, {3, 9000}, {0, 4}}, true);
  add(PadMode::edge, {{0, 4}, {0, 1}, {}});
  add(PadMode::constant, {{5, 6, 3}, {-2, 1, 0}, {3, -4, -1}, false});
  add(PadMode::constant, {{3, 5000}, {-4, -100}, {5, 0}}, true);
  add(PadMode::constant, {{4, 3}, {-2, 0}, {-2, 1}});
  add(PadMode::constant, {{0, 3}, {2, 1}, {1, 0}});
}

}  // namespace

std::vector<OpCase> lines_cases() {
  std::vector<OpCase> cases;
  add_scans(cases);
  add_top_k(cases);
  add_pads(cases);
  return cases;
}

}  // namespace ashlar::ops
