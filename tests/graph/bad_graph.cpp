// Invalid tensors, values, operands and graphs.
#include <array>

#include "graph/bad_input.hpp"

namespace ashlar::tests {

namespace {

constexpr std::int64_t kLarge = std::int64_t{1} << 40;

void add_tensors(BadInputs& rows) {
  const auto tensor = [&](const char* name, const Tensor& facts, std::vector<std::string> says,
                          ErrorCode code = ErrorCode::invalid_graph) {
    rows.push_back({name, "tensor", [=](Graph& g) { g.add_tensor(facts); }, says, code});
  };
  using enum TensorKind;
  tensor("input without dims", {.name = "t", .kind = input},
         {"tensor 't'", "dims", "got none", "expected 1 to 8 extents"});
  tensor("negative extent", {.name = "t", .kind = input, .dims = {2, -3}},
         {"tensor 't'", "dims", "got [2, -3]", "expected extents of at least 0"});
  tensor("strides without dims", {.name = "t", .strides = {1}},
         {"tensor 't'", "strides", "got [1]", "expected none without dims"});
  tensor("strides of another rank", {.name = "t", .kind = input, .dims = {2, 3}, .strides = {1}},
         {"tensor 't'", "strides", "got [1]", "expected 2 values"});
  tensor("negative stride", {.name = "t", .kind = input, .dims = {2}, .strides = {-1}},
         {"tensor 't'", "strides", "got [-1]", "expected values of at least 0"});
  tensor("scalar of many", {.name = "t", .kind = scalar, .dims = {2}},
         {"tensor 't'", "dims", "got [2]", "expected one element for a scalar"});
  tensor("constant of none", {.name = "t", .kind = constant, .dims = {0}},
         {"tensor 't'", "dims", "got [0]", "expected one element for a constant"});
  tensor("input without dtype", {.name = "t", .kind = input, .infer_dtype = true, .dims = {2}},
         {"tensor 't'", "dtype", "got none", "expected a dtype"});
  tensor("count overflow", {.name = "t", .kind = input, .dims = {kLarge, kLarge}},
         {"tensor 't'", "size overflow", "got 1099511627776 * 1099511627776", "expected at most"},
         ErrorCode::size_overflow);
  tensor("stride overflow", {.name = "t", .kind = input, .dims = {4}, .strides = {kLarge << 22}},
         {"tensor 't'", "size overflow", "got 3 * 4611686018427387904"}, ErrorCode::size_overflow);
  tensor("byte overflow", {.name = "t", .kind = input, .dtype = f64, .dims = {kLarge << 20}},
         {"tensor 't'", "size overflow", "got 1152921504606846976 * 64"}, ErrorCode::size_overflow);
  tensor("ragged by nothing", {.name = "t", .kind = input, .dims = {2, 3}, .ragged_offset = 7},
         {"tensor 't'", "ragged_offset", "got tensor id 7", "expected a tensor of this graph"});
  tensor("name too long", {.name = std::string(5000, 'n'), .kind = input, .dims = {1}},
         {"name", "got 5000 bytes", "expected at most 1024"});
  const auto ragged = [&](const char* name, const Tensor& offsets, std::vector<std::string> says) {
    rows.push_back(
        {name, "tensor",
         [=](Graph& g) {
           const TensorId id = g.add_tensor(offsets);
           g.add_tensor(
               {.name = "t", .kind = TensorKind::input, .dims = {2, 3}, .ragged_offset = id});
         },
         says});
  };
  ragged("ragged by a scalar", {.name = "o", .kind = scalar, .dtype = i32, .dims = {1}},
         {"tensor 't'", "ragged_offset", "got 'o', of kind scalar", "expected an input"});
  ragged("ragged by floats", {.name = "o", .kind = input, .dtype = f32, .dims = {3}},
         {"tensor 't'", "dtype of ragged_offset", "got f32", "expected i32 or i64"});
  ragged("ragged by too few", {.name = "o", .kind = input, .dtype = i32, .dims = {2}},
         {"tensor 't'", "dims of ragged_offset", "got [2]", "expected [3, 1, ...]"});
  ragged("ragged by strided offsets",
         {.name = "o", .kind = input, .dtype = i32, .dims = {3}, .strides = {2}},
         {"tensor 't'", "strides of ragged_offset", "got [2]", "expected packed offsets"});
  ragged("ragged by a matrix", {.name = "o", .kind = input, .dtype = i32, .dims = {3, 2}},
         {"tensor 't'", "dims of ragged_offset", "got [3, 2]", "expected [3, 1, ...]"});
  rows.push_back(
      {"ragged by ragged",
       "tensor",
       [](Graph& g) {
         const Value first = g.input("first", {4}, i32);
         const Value second = g.ragged_input("second", {3}, i32, row_major, first);
         g.ragged_input("t", {2}, f32, row_major, second);
       },
       {"tensor 't'", "ragged_offset", "'second', which is ragged", "expected a plain"}});
  rows.push_back(
      {"ragged constant",
       "tensor",
       [](Graph& g) {
         const Value offsets = g.input("o", {2}, i32);
         g.add_tensor({.name = "t", .kind = constant, .dims = {1}, .ragged_offset = offsets.id()});
       },
       {"tensor 't'", "ragged_offset", "got a tensor", "expected none for a constant"}});
  rows.push_back({"scalar rank",
                  "tensor",
                  [](Graph& g) { g.scalar("s", f32, 9); },
                  {"tensor 's'", "rank", "got 9", "expected 1 to 8"},
                  ErrorCode::invalid_argument});
  rows.push_back({"constant rank",
                  "tensor",
                  [](Graph& g) { g.constant(1.0, f32, 0); },
                  {"tensor 'constant_0'", "rank", "got 0", "expected 1 to 8"},
                  ErrorCode::invalid_argument});
  rows.push_back({"nine axes",
                  "tensor",
                  [](Graph& g) {
                    g.input("x", {1, 1, 1, 1, 1, 1, 1, 1, 1}, f32);
                  },
                  {"axes", "got more than 8", "expected at most 8"},
                  ErrorCode::invalid_argument});
  rows.push_back({"input of negative extent",
                  "tensor",
                  [](Graph& g) { g.input("x", {-1}, f32, channels_last); },
                  {"tensor 'x'", "dims", "got [-1]", "expected extents of at least 0"}});
  rows.push_back({"input overflow",
                  "tensor",
                  [](Graph& g) {
                    g.input("x", {4, kLarge, kLarge}, f32);
                  },
                  {"tensor 'x'", "size overflow", "expected at most"},
                  ErrorCode::size_overflow});
  rows.push_back({"result that overlaps",
                  "tensor",
                  [](Graph& g) {
                    const Value x = in(g, {2, 3});
                    g.pointwise(PointwiseMode::neg, std::array{x}, {},
                                {.name = "bad", .layout = Layout(Dims{1, 1})});
                  },
                  {"tensor 'bad'", "strides", "got [1, 1]", "to a distinct address"}});
  rows.push_back({"result with zero stride",
                  "tensor",
                  [](Graph& g) {
                    const Value x = in(g, {2, 3});
                    g.pointwise(PointwiseMode::neg, std::array{x}, {},
                                {.name = "bad", .dims = {2, 3}, .layout = Layout(Dims{0, 1})});
                  },
                  {"tensor 'bad'", "strides", "got [0, 1]", "to a distinct address"}});
}

Node relu_node(TensorId x, TensorId y) {
  return {.name = "bad",
          .op = Pointwise{.mode = PointwiseMode::relu_fwd},
          .inputs = {x},
          .outputs = {y}};
}

void add_operands(BadInputs& rows) {
  const auto node = [&](const char* name, std::function<Node(Graph&)> make,
                        std::vector<std::string> says) {
    rows.push_back({name, "pointwise", [=](Graph& g) { g.add_node(make(g)); }, says});
  };
  const auto result = [](Graph& g) { return g.add_tensor({.name = "r", .infer_dtype = true}); };
  node("input id outside", [=](Graph& g) { return relu_node(17, result(g)); },
       {"input x", "got 17", "expected the id of a tensor of this graph (0 to 0)"});
  node("output id outside", [](Graph& g) { return relu_node(in(g, {2}).id(), -5); },
       {"output y", "got -5", "expected the id of a tensor of this graph (0 to 0)"});
  node("node without output", [](Graph& g) { return relu_node(in(g, {2}).id(), kNoTensor); },
       {"output y", "got nothing", "expected a tensor"});
  node("input without producer",
       [=](Graph& g) {
         const TensorId never = g.add_tensor({.name = "never", .infer_dtype = true});
         return relu_node(never, result(g));
       },
       {"input 'never'", "got a tensor that no earlier node computes", "expected an input"});
  node("output that is an input",
       [](Graph& g) {
         const Value x = in(g, {2});
         return relu_node(x.id(), in(g, {2}).id());
       },
       {"output y", "got 'i1', which is not computed", "expected an output or intermediate"});
  node("output computed twice",
       [](Graph& g) {
         const Value x = in(g, {2});
         return relu_node(x.id(), relu(x).id());
       },
       {"output y", "already the result of another node", "expected one producer"});
  node("output that is its own input",
       [=](Graph& g) {
         const TensorId loop = result(g);
         return relu_node(loop, loop);
       },
       {"got a tensor that no earlier node computes", "expected"});
  node("too many outputs",
       [=](Graph& g) {
         Node relu = relu_node(in(g, {2}).id(), result(g));
         relu.outputs.push_back(relu.outputs[0]);
         return relu;
       },
       {"number of outputs", "got 2", "expected at most 1"});
  node("name of a node too long",
       [=](Graph& g) {
         Node relu = relu_node(in(g, {2}).id(), result(g));
         relu.name = std::string(2000, 'n');
         return relu;
       },
       {"name", "got 2000 bytes", "expected at most 1024"});
  node("ragged operand of relu",
       [=](Graph& g) {
         const Value offsets = g.input("o", {3, 1}, i32);
         const Value x = g.ragged_input("x", {2, 4}, f32, row_major, offsets);
         return relu_node(x.id(), result(g));
       },
       {"input 'x'", "got a ragged tensor", "only attention reads ragged tensors"});
  node("ragged result of relu",
       [](Graph& g) {
         const Value offsets = g.input("o", {3, 1}, i32);
         const Value x = g.input("x", {2, 4}, f32);
         return relu_node(
             x.id(),
             g.add_tensor({.name = "r", .infer_dtype = true, .ragged_offset = offsets.id()}));
       },
       {"output 'r'", "got a ragged tensor", "only attention writes ragged tensors"});
  rows.push_back({"one tensor for two outputs",
                  "softmax_forward",
                  [=](Graph& g) {
                    const TensorId y = result(g);
                    g.add_node({.name = "bad",
                                .op = SoftmaxForward{},
                                .inputs = {in(g, {2, 3}).id()},
                                .outputs = {y, y}});
                  },
                  {"output stats", "got 'r' twice", "expected a tensor per output"}});
}

void add_values(BadInputs& rows) {
  const auto argument = ErrorCode::invalid_argument;
  rows.push_back({"tensor of an empty value",
                  "value",
                  [](Graph&) { Value().tensor(); },
                  {"value", "got an empty one", "expected a tensor"},
                  argument});
  rows.push_back({"relu of an empty value",
                  "value",
                  [](Graph&) { relu(Value()); },
                  {"pointwise", "got an empty value", "expected a tensor"},
                  argument});
  rows.push_back({"output of an empty value",
                  "value",
                  [](Graph& g) { g.output("y", {}); },
                  {"output 'y'", "got an empty value", "expected a tensor of this graph"},
                  argument});
  rows.push_back({"output without a name",
                  "value",
                  [](Graph& g) { g.output("", relu(in(g, {2}))); },
                  {"output", "name", "got an empty one", "expected a name"},
                  argument});
  rows.push_back({"output of another graph",
                  "value",
                  [](Graph& g) {
                    Graph other;
                    g.output("y", in(other, {2}));
                  },
                  {"output 'y'", "got 'i0', a tensor of another graph", "expected one of this"},
                  argument});
  rows.push_back({"operand of another graph",
                  "pointwise",
                  [](Graph& g) {
                    Graph other;
                    const Value a = in(g, {2}), b = in(other, {2});
                    a + b;
                  },
                  {"input: got 'i0', a tensor of another graph", "expected one of this graph"},
                  argument});
  rows.push_back({"offsets of another graph",
                  "value",
                  [](Graph& g) {
                    Graph other;
                    g.ragged_input("x", {2}, f32, row_major, other.input("o", {3}, i32));
                  },
                  {"tensor 'x': ragged_offset", "got 'o', a tensor of another graph", "expected"},
                  argument});
  rows.push_back({"uid of an empty value",
                  "value",
                  [](Graph& g) { g.set_uid({}, 5); },
                  {"set_uid", "got an empty value", "expected a tensor of this graph"},
                  argument});
  rows.push_back({"tensor id",
                  "value",
                  [](Graph& g) { g.tensor(3); },
                  {"tensor id", "got 3", "expected 0 to -1"},
                  argument});
  rows.push_back(
      {"ragged input of a conv",
       "value",
       [](Graph& g) {
         const Value x = g.input("x", {2, 4}, f32);
         relu(x);
         g.set_ragged(x, g.input("o", {3, 1}, i32));
       },
       {"pointwise 'pointwise_0'", "tensor 'x'", "got ragged offsets", "expected none"}});
  rows.push_back({"output dims",
                  "value",
                  [](Graph& g) {
                    g.output("y", relu(in(g, {2, 3})), {.dims = {3, 2}});
                  },
                  {"output 'y'", "dims", "got [3, 2]", "expected [2, 3]"}});
  rows.push_back({"output layout of another rank",
                  "value",
                  [](Graph& g) {
                    g.output("y", relu(in(g, {2, 3})), {.layout = Layout(Dims{1})});
                  },
                  {"tensor 'y'", "strides", "got [1]", "expected 2 values"}});
  rows.push_back({"output layout that overlaps",
                  "value",
                  [](Graph& g) {
                    g.output("y", relu(in(g, {2, 3})), {.layout = Layout(Dims{2, 1})});
                  },
                  {"tensor 'y'", "strides", "got [2, 1]", "to a distinct address"}});
}

void add_whole_graphs(BadInputs& rows) {
  rows.push_back({"graph without output",
                  "graph",
                  [](Graph& g) {
                    relu(in(g, {2}));
                    g.validate();
                  },
                  {"graph 'graph'", "outputs", "got none", "expected at least one"}});
  rows.push_back(
      {"two names",
       "graph",
       [](Graph& g) {
         const Value x = g.input("x", {2}, f32);
         g.output("x", relu(x));
         g.validate();
       },
       {"graph 'graph'", "names", "got two tensors named 'x'", "expected unique names"}});
  rows.push_back({"two uids",
                  "graph",
                  [](Graph& g) {
                    const Value x = g.input("x", {2}, f32);
                    const Value y = g.output("y", relu(x));
                    g.set_uid(x, 9);
                    g.set_uid(y, 9);
                    g.validate();
                  },
                  {"graph 'graph'", "uids", "got 9 for both 'x' and 'y'", "expected unique uids"}});
  rows.push_back({"output without producer",
                  "graph",
                  [](Graph& g) {
                    g.add_tensor({.name = "y", .kind = TensorKind::output, .dims = {2}});
                    g.validate();
                  },
                  {"tensor 'y'", "producer", "got no node that computes it", "expected one"}});
}

}  // namespace

void add_bad_graphs(BadInputs& rows) {
  add_tensors(rows);
  add_operands(rows);
  add_values(rows);
  add_whole_graphs(rows);
}

}  // namespace ashlar::tests
