// Invalid JSON documents.
#include "graph/bad_input.hpp"

namespace ashlar::tests {

namespace {

// A document with the given list of tensors and of nodes.
std::string document(const std::string& tensors, const std::string& nodes) {
  return R"({"format":"ashlar-graph","version":1,"tensors":[)" + tensors + R"(],"nodes":[)" +
         nodes + "]}";
}

const std::string kInputX = R"({"name":"x","kind":"input","dtype":"f32","dims":[2,3]})";
const std::string kInputY = R"({"name":"y","kind":"output"})";
const std::string kReluNode =
    R"({"name":"r","op":"pointwise","inputs":{"x":"x"},"outputs":{"y":"y"},)"
    R"("attributes":{"mode":"relu_fwd"}})";

}  // namespace

void add_bad_json(BadInputs& rows) {
  const auto text = [&](const char* name, const std::string& json, std::vector<std::string> says,
                        ErrorCode code = ErrorCode::parse) {
    rows.push_back({name, "json", [=](Graph&) { Graph::from_json(json); }, says, code});
  };
  const auto tensor = [&](const char* name, const std::string& json, std::vector<std::string> says,
                          ErrorCode code = ErrorCode::parse) {
    text(name, document(json + "," + kInputY, kReluNode), says, code);
  };
  const auto node = [&](const char* name, const std::string& json, std::vector<std::string> says,
                        ErrorCode code = ErrorCode::parse) {
    text(name, document(kInputX + "," + kInputY, json), says, code);
  };

  text("empty text", "", {"JSON", "unexpected end of input", "expected"});
  text("truncated text", R"({"format":"ashlar-graph","versi)",
       {"JSON", "line 1", "missing closing quote"});
  text("invalid UTF-8", "{\"format\":\"\xff\"}", {"JSON", "invalid string", "ill-formed UTF-8"});
  text("number out of range", R"({"version":1e400})", {"JSON", "number overflow", "1e400"});
  text("deep nesting", std::string(100000, '['), {"JSON", "nesting", "got more than 64 levels"});
  text("member twice", R"({"format":"a","format":"b"})",
       {"JSON", "member \"format\"", "got it twice", "expected it once"});
  text("an array", "[1, 2]", {"the document", "got an array of 2", "expected an object"});
  text("unknown member", R"({"format":"ashlar-graph","version":1,"node":[]})",
       {"the document", "got unknown member 'node'", "expected one of: format, version"});
  text("no format", "{}", {"the document", "got no member 'format'", "expected one"});
  text("another format", R"({"format":"onnx","version":1,"nodes":[]})",
       {"format", "got \"onnx\"", "expected \"ashlar-graph\""});
  text("another version", R"({"format":"ashlar-graph","version":2,"nodes":[]})",
       {"version", "got 2", "expected version 1"});
  text("version as text", R"({"format":"ashlar-graph","version":"1","nodes":[]})",
       {"version", "got \"1\"", "expected an integer"});
  text("no nodes", R"({"format":"ashlar-graph","version":1})",
       {"the document", "got no member 'nodes'", "expected one"});
  text("nodes as an object", R"({"format":"ashlar-graph","version":1,"nodes":{}})",
       {"nodes", "got an object", "expected an array"});
  text("name as a number", R"({"format":"ashlar-graph","version":1,"name":5,"nodes":[]})",
       {"name", "got 5", "expected a string"});
  text("an empty graph", document("", ""), {"outputs", "got none", "expected at least one"},
       ErrorCode::invalid_graph);
  std::string many = "{";
  for (int i = 0; i < 5000; ++i) many += (i ? ",\"m" : "\"m") + std::to_string(i) + "\":0";
  text("too many members", many + "}", {"JSON", "object", "got more than 4096 members"});

  tensor("tensor as a number", "7", {"tensors[0]", "got 7", "expected an object"});
  tensor("tensor without name", R"({"kind":"input"})",
         {"tensors[0]", "got no member 'name'", "expected one"});
  tensor("tensor with an empty name", R"({"name":""})",
         {"tensors[0].name", "got \"\"", "expected a name"});
  tensor("tensor name twice", kInputX + "," + kInputX,
         {"tensors[1].name", "got \"x\"", "expected a name no other tensor has"});
  tensor("tensor of unknown kind", R"({"name":"x","kind":"virtual"})",
         {"tensors[0].kind", "got \"virtual\"", "expected one of: input, output"});
  tensor("tensor of unknown dtype", R"({"name":"x","kind":"input","dtype":"fp32","dims":[1]})",
         {"tensors[0].dtype", "got \"fp32\"", "expected one of: f64, f32"});
  tensor("tensor with unknown member", R"({"name":"x","shape":[1]})",
         {"tensors[0]", "got unknown member 'shape'", "expected one of: name, kind"});
  tensor("dims as a number", R"({"name":"x","kind":"input","dtype":"f32","dims":4})",
         {"tensors[0].dims", "got 4", "expected an array"});
  tensor("dims of nine", R"({"name":"x","kind":"input","dtype":"f32","dims":[1,1,1,1,1,1,1,1,1]})",
         {"tensors[0].dims", "got an array of 9", "expected at most 8 values"});
  tensor("dims of fractions", R"({"name":"x","kind":"input","dtype":"f32","dims":[1.5]})",
         {"tensors[0].dims[0]", "got 1.5", "expected an integer"});
  tensor("dims past 63 bits",
         R"({"name":"x","kind":"input","dtype":"f32","dims":[9223372036854775808]})",
         {"tensors[0].dims[0]", "got 9223372036854775808", "expected an integer of at most 63"});
  tensor("dims past 64 bits",
         R"({"name":"x","kind":"input","dtype":"f32","dims":[99999999999999999999]})",
         {"tensors[0].dims[0]", "got 1e+20", "expected an integer"});
  tensor("negative dims in JSON", R"({"name":"x","kind":"input","dtype":"f32","dims":[-1]})",
         {"tensor 'x'", "dims", "got [-1]", "expected extents of at least 0"},
         ErrorCode::invalid_graph);
  tensor(
      "layout and strides",
      R"({"name":"x","kind":"input","dtype":"f32","dims":[1],"strides":[1],"layout":"row_major"})",
      {"tensors[0].layout", "got \"row_major\"", "expected either a layout or strides"});
  tensor("layout without dims", R"({"name":"x","layout":"row_major"})",
         {"tensors[0].layout", "got \"row_major\"", "expected dims to apply it to"});
  tensor("unknown layout",
         R"({"name":"x","kind":"input","dtype":"f32","dims":[1],"layout":"nhwc"})",
         {"tensors[0].layout", "got \"nhwc\"", "expected row_major or channels_last"});
  tensor("layout of negative dims",
         R"({"name":"x","kind":"input","dtype":"f32","dims":[-4],"layout":"row_major"})",
         {"tensors[0].dims", "got an array of 1", "expected extents of at least 0"});
  tensor("layout overflow",
         R"({"name":"x","kind":"input","dtype":"f32","dims":[2,4294967296,4294967296],)"
         R"("layout":"row_major"})",
         {"tensor 'x'", "size overflow", "got 4294967296 * 4294967296", "expected at most"},
         ErrorCode::size_overflow);
  tensor("uid as text", R"({"name":"x","kind":"input","dtype":"f32","dims":[1],"uid":"a"})",
         {"tensors[0].uid", "got \"a\"", "expected an integer"});
  tensor("constant without value", R"({"name":"x","kind":"constant","dtype":"f32","dims":[1]})",
         {"tensors[0]", "got no member 'value'", "expected one"});
  tensor("constant of text",
         R"({"name":"x","kind":"constant","dtype":"f32","dims":[1],"value":"one"})",
         {"tensors[0].value", "got \"one\"", "expected a number"});
  tensor("value of an input", R"({"name":"x","kind":"input","dtype":"f32","dims":[1],"value":1})",
         {"tensors[0].value", "got 1", "expected no value except in a constant"});
  tensor("ragged by the unknown",
         R"({"name":"x","kind":"input","dtype":"f32","dims":[1],"ragged_offset":"o"})",
         {"tensors[0].ragged_offset", "got \"o\"", "expected the name of a declared tensor"});

  node("node as text", "\"relu\"", {"nodes[0]", "got \"relu\"", "expected an object"});
  node("node without op", R"({"outputs":{"y":"y"}})",
       {"nodes[0]", "got no member 'op'", "expected one"});
  node("unknown operation", R"({"op":"relu","outputs":{"y":"y"}})",
       {"nodes[0].op", "got \"relu\"", "expected one of: conv_forward"});
  node("node with unknown member", R"({"op":"pointwise","outputs":{"y":"y"},"attrs":{}})",
       {"nodes[0]", "got unknown member 'attrs'", "expected one of: name, op"});
  node("node without outputs", R"({"op":"pointwise","inputs":{"x":"x"}})",
       {"nodes[0]", "got no member 'outputs'", "expected one"});
  node("operands as an array", R"({"op":"pointwise","inputs":["x"],"outputs":{"y":"y"}})",
       {"nodes[0].inputs", "got an array of 1", "expected an object"});
  node("unknown operand", R"({"op":"pointwise","inputs":{"a":"x"},"outputs":{"y":"y"}})",
       {"nodes[0].inputs", "got unknown operand 'a'", "expected: x, b, predicate"});
  node("operand as a number", R"({"op":"pointwise","inputs":{"x":1},"outputs":{"y":"y"}})",
       {"nodes[0].inputs.x", "got 1", "expected a string"});
  node("operand without name", R"({"op":"pointwise","inputs":{"x":""},"outputs":{"y":"y"}})",
       {"nodes[0].inputs.x", "got \"\"", "expected the name of a tensor"});
  node("concat of one name", R"({"op":"concat","inputs":{"x":"x"},"outputs":{"y":"y"}})",
       {"nodes[0].inputs.x", "got \"x\"", "expected an array"});
  node("unknown attribute",
       R"({"op":"reshape","inputs":{"x":"x"},"outputs":{"y":"y"},"attributes":{"shape":[6]}})",
       {"nodes[0].attributes", "got unknown attribute 'shape'", "expected one of: dims"});
  node("attributes as an array",
       R"({"op":"reshape","inputs":{"x":"x"},"outputs":{"y":"y"},"attributes":[6]})",
       {"nodes[0].attributes", "got an array of 1", "expected an object"});
  node("attribute of unknown mode",
       R"({"op":"pointwise","inputs":{"x":"x"},"outputs":{"y":"y"},"attributes":{"mode":"relu"}})",
       {"nodes[0].attributes.mode", "got \"relu\"", "expected one of: add, mul"});
  node("attribute not boolean",
       R"({"op":"softmax_forward","inputs":{"x":"x"},"outputs":{"y":"y"},"attributes":{"log":1}})",
       {"nodes[0].attributes.log", "got 1", "expected true or false"});
  node("attribute not a number",
       R"({"op":"norm_forward","inputs":{"x":"x"},"outputs":{"y":"y"},)"
       R"("attributes":{"epsilon":"small"}})",
       {"nodes[0].attributes.epsilon", "got \"small\"", "expected a number"});
  node("unknown compute",
       R"({"op":"reshape","inputs":{"x":"x"},"outputs":{"y":"y"},"compute":"tf32"})",
       {"nodes[0].compute", "got \"tf32\"", "expected one of: f64"});
  const auto graph_error = ErrorCode::invalid_graph;
  node("a cycle",
       R"({"name":"a","op":"pointwise","inputs":{"x":"p"},"outputs":{"y":"q"}},)"
       R"({"name":"b","op":"pointwise","inputs":{"x":"q"},"outputs":{"y":"p"}})",
       {"pointwise 'a'", "inputs", "got a cycle", "expected an acyclic graph"}, graph_error);
  node("an undeclared input",
       R"({"name":"a","op":"pointwise","inputs":{"x":"lost"},"outputs":{"y":"y"}})",
       {"pointwise 'a'", "input 'lost'", "got a tensor that no earlier node computes"},
       graph_error);
  node("two producers", kReluNode + "," + kReluNode,
       {"pointwise 'r'", "output y", "already the result of another node"}, graph_error);
  node("a node without name", R"({"op":"reshape","inputs":{"x":"x"},"outputs":{"y":"y"}})",
       {"reshape 'reshape_0'", "dims", "got none", "expected the extents of y"}, graph_error);
}

}  // namespace ashlar::tests
