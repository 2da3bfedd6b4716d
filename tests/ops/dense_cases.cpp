// Cases of matmul, pointwise, reduction and softmax.
#include "graph/enum_names.hpp"
#include "ops/op_case.hpp"

namespace ashlar::ops {

namespace {

void add_matmul(std::vector<OpCase>& cases) {
  struct Product {
    std::string label;
    Dims a, b;
    bool one_shape = true;
  };
  const std::vector<Product> products = {
      {"primes", {17, 37}, {37, 19}, false},
      {"batches", {3, 5, 7}, {3, 7, 11}, false},
      {"both broadcast", {1, 3, 5, 4}, {2, 1, 4, 9}},
      {"one matrix for all batches", {4, 6, 5}, {1, 5, 3}},
      {"all extents 1", {1, 1}, {1, 1}},
      {"row times matrix", {1, 65}, {65, 33}},
      {"matrix times column", {67, 31}, {31, 1}},
      {"outer product", {13, 1}, {1, 40}},
      {"larger than a block of rows", {130, 9}, {9, 70}},
      {"deep", {3, 530}, {530, 5}},
      {"no depth", {5, 0}, {0, 6}},
      {"no rows", {0, 4}, {4, 3}},
      {"no columns", {2, 3, 4}, {2, 4, 0}},
      {"no batch", {0, 3, 4}, {0, 4, 2}},
  };
  for (const Product& p : products)
    cases.push_back({"matmul", p.label, kArithmetic,
                     [p](CaseBuilder& b) {
                       b.result(b.graph().matmul(b.operand("a", p.a), b.operand("b", p.b)));
                     },
                     true, p.one_shape});
  cases.push_back({"matmul",
                   "wider result",
                   {f16, bf16, e4m3, e5m2, i8, u8},
                   [](CaseBuilder& b) {
                     const DType wider = is_integer(b.dtype()) ? i32 : f32;
                     b.result(b.graph().matmul(b.operand("a", {9, 21}), b.operand("b", {21, 12}),
                                               {.dtype = wider}));
                   },
                   true,
                   true});
  for (const auto& [label, mask] : {std::pair("m override", 1), std::pair("n override", 2),
                                    std::pair("k override", 4), std::pair("all overrides", 7)})
    cases.push_back(
        {"matmul",
         label,
         {f64, f32, f16, i32},
         [mask](CaseBuilder& b) {
           Graph& g = b.graph();
           Node node{.name = "product",
                     .op = Matmul{.padding_value = -2.0},
                     .inputs = {b.operand("a", {3, 5, 7}).id(), b.operand("b", {3, 7, 6}).id()},
                     .outputs = {}};
           for (int i = 0; i < 3; ++i) {
             const bool given = (mask >> i & 1) != 0;
             const std::string name = std::string(1, "mnk"[i]) + "_length";
             node.inputs.push_back(given ? g.input(name, {3, 1, 1}, i32).id() : kNoTensor);
           }
           node.compute = b.dtype() == f64 ? f64 : is_integer(b.dtype()) ? i32 : f32;
           Tensor c{.name = "c", .infer_dtype = true};
           node.outputs = {g.add_tensor(std::move(c))};
           const TensorId id = node.outputs[0];
           g.add_node(std::move(node));
           b.result(g.value(id));
         },
         true,
         true});
}

void add_reduction(std::vector<OpCase>& cases) {
  struct Axes {
    std::string label;
    Dims x, axes;
    bool one_shape = true;
  };
  const std::vector<Axes> shapes = {
      {"rows", {5, 37}, {1}, false}, {"columns", {37, 5}, {0}, false},
      {"all", {3, 4, 5}, {}, false}, {"outer and inner", {3, 4, 2, 5}, {0, 3}},
      {"middle", {3, 7, 5}, {1}},    {"extent 1", {4, 1, 3}, {1}},
      {"long row", {2, 1031}, {1}},  {"nothing to reduce", {4, 0}, {1}},
      {"no rows", {0, 3}, {1}},
  };
  for (const ReductionMode mode :
       {ReductionMode::add, ReductionMode::avg, ReductionMode::min, ReductionMode::max})
    for (const Axes& p : shapes)
      cases.push_back({"reduction",
                       "booleans, " + std::string(enum_name(mode)) + ", " + p.label,
                       {boolean},
                       [p, mode](CaseBuilder& b) {
                         b.result(b.graph().reduce(b.operand("x", p.x), mode, p.axes));
                       },
                       true,
                       p.one_shape});
  for (int m = 0; m <= static_cast<int>(ReductionMode::mul_no_zeros); ++m) {
    const auto mode = static_cast<ReductionMode>(m);
    for (const Axes& p : shapes)
      cases.push_back({"reduction", std::string(enum_name(mode)) + ", " + p.label, kArithmetic,
                       [p, mode](CaseBuilder& b) {
                         b.result(b.graph().reduce(b.operand("x", p.x), mode, p.axes));
                       },
                       mode == ReductionMode::add || mode == ReductionMode::max, p.one_shape});
  }
}

}  // namespace

std::vector<OpCase> dense_cases() {
  std::vector<OpCase> cases;
  add_matmul(cases);
  add_reduction(cases);
  return cases;
}

}  // namespace ashlar::ops
