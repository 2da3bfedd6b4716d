// OpTraits: what the library knows about an operation besides its kernels. Each operation defines
// its own in src/graph/ops; the table follows from the variant Op.
#pragma once

#include <ashlar/operations.hpp>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

namespace ashlar {

class GradientContext;
class NodeContext;
class NodeShapes;

struct Slot {
  std::string_view name;  // the In / Out enumerator of ops.hpp, as written in JSON
  enum class Need : std::uint8_t { required, optional, variadic } need = Need::required;
};

// Some operands of one side of an operation, by In or Out.
class SlotSet {
 public:
  constexpr SlotSet() = default;
  constexpr SlotSet(std::initializer_list<int> slots) {
    for (const int slot : slots) bits_ |= std::uint64_t{1} << slot;
  }
  constexpr bool contains(int slot) const { return slot < 64 && (bits_ >> slot & 1) != 0; }

 private:
  std::uint64_t bits_ = 0;
};

// The inputs that hold the sequence lengths of ragged operands.
struct RaggedLengths {
  int of_keys = 0;  // of the operands listed here
  SlotSet key_inputs = {}, key_outputs = {};
  int of_others = 0;
};

// An output that the epilogue of a GEMM can compute as a reduction: `mode` of f(value).
struct TailPart {
  int output = 0;
  ReductionMode mode = ReductionMode::add;
  std::optional<PointwiseMode> f = {};  // abs; mul: the square
};

struct OpTraits {
  std::string_view name = {};      // "conv_forward"
  std::string_view doc_page = {};  // docs/ops/<doc_page>.md
  // Fills in dims, dtypes and strides of outputs and normalises attributes (full length, no
  // negative axes), or throws Error(invalid_graph).
  void (*infer)(NodeContext& node) = nullptr;
  // Adds the gradients of the inputs to the graph, for gradients(). Null: it has none.
  void (*gradient)(GradientContext& node) = nullptr;
  // Adds the operation to an empty graph, with its main operands in `dtype`; returns the results to
  // keep. Throws Error(invalid_graph) if the operation is not defined for it.
  std::vector<Value> (*sample)(Graph& graph, DType dtype) = nullptr;
  // What an input holds. Null: any values.
  Contents (*contents)(const NodeShapes& node, int slot) = nullptr;
  // FLOPs, 2 per multiply-add. Null: 8 per element of the larger of input 0 and output 0.
  double (*flops)(const NodeShapes& node) = nullptr;
  // The same without attention scores outside of masks. Null: as flops.
  double (*visible_flops)(const NodeShapes& node) = nullptr;

  // Its arithmetic takes longer than its memory traffic: keeping a result is better than computing
  // it again, where there is memory.
  bool is_compute_bound = false;

  // --- dtypes and layouts
  // The inputs whose dtypes decide the precision of the arithmetic.
  SlotSet arithmetic_inputs = {0};
  bool integers_are_parameters = false;  // integer inputs do not make it compute in integers
  bool supports_complex = false;
  bool (*supports_e8m0)(const Op& op) = nullptr;  // block scales. Null: no
  std::optional<RaggedLengths> ragged = {};       // none: operands may not be ragged

  // --- fusion
  SlotSet fused_inputs = {};  // may have a fused pointwise prologue
  // Reads each input element many times and would recompute a fused prologue: it must be cheap.
  bool rereads_inputs = false;
  // Whether the prologue of an input may also store its result, as the kernels read each element
  // exactly once. Null: no.
  bool (*stores_input)(const Op& op, int slot) = nullptr;
  // The epilogue may generate random numbers: the engines run programs over the whole space of
  // output 0 and know the position of every element.
  bool draws_in_epilogue = false;
  // A GEMM whose prologue may dequantise block-scaled weights (Step::blocks).
  bool dequantizes_inputs = false;
  bool is_gemm_like = false;  // a GEMM over its first two inputs: a matmul or a convolution
  bool has_tails = false;     // a GEMM with engines that may support tail reductions
  // The node as tail reductions of a GEMM; empty if it is none. Null: never.
  std::vector<TailPart> (*tails)(const Node& node) = nullptr;
  bool moves_elements = false;  // only copies elements
  // The input that output 0 is an updated version of: of this input, an element of the output
  // depends on the element at its position only. -1: none.
  int updated_input = -1;

  std::span<const Slot> inputs = {}, outputs = {};  // filled in by the table

  bool stores(const Op& op, int slot) const { return stores_input && stores_input(op, slot); }
  bool is_variadic() const { return inputs[0].need == Slot::Need::variadic; }
};

// The definition of one operation, a specialisation in src/graph/ops: the linker reports a missing
// one. `inputs` and `outputs` follow from the struct of the operation.
template <class OpType>
OpTraits define_traits();

// In the order of the variant Op.
std::span<const OpTraits> op_table();
const OpTraits& traits_of(const Op& op);
const OpTraits* find_traits(std::string_view name);
std::string known_operations();        // their names, for messages
Op default_op(std::string_view name);  // throws Error(parse) listing the known names

}  // namespace ashlar
