#include "cuda/text/program_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/fail.hpp"
#include "base/philox.hpp"
#include "graph/pointwise_traits.hpp"

namespace ashlar::cuda {

namespace {

using Step = PointwiseProgram::Step;
using Kind = Step::Kind;

bool is_packed(DType dtype) { return bit_width(dtype) < 8; }

std::string prefetch_text(int rank, int bytes, const std::string& members, const std::string& loads,
                          const std::string& takes) {
  return fmt::format(
      "static const int kPrefetchBytes = {};\n"
      "template <int kCount> struct Held {{\n{}}};\n"
      "template <int kCount>\n"
      "__device__ inline void hold(const Args& args, const Index (&at)[{}], Held<kCount>& held) "
      "{{\n{}}}\n"
      "template <int kCount>\n"
      "__device__ inline void take(const void* from, Held<kCount>& held) {{\n{}}}\n",
      bytes, members, std::max(rank, 1), loads, takes);
}

class Printer {
 public:
  Printer(const PointwiseProgram& program, const Graph& graph, const std::string& function,
          Arguments& arguments, DType kept = f32, bool holds = false)
      : program_(program),
        space_(program.space),
        graph_(graph),
        function_(function),
        arguments_(arguments),
        has_short_results_(has_short_results(program, kept)),
        holds_(holds) {}

  std::string print() {
    for (std::size_t i = 0; i < program_.steps.size(); ++i) add_step(static_cast<int>(i));
    for (std::size_t i = 0; i < program_.stores.size(); ++i) add_store(static_cast<int>(i));
    if (program_.result >= 0) line(fmt::format("copy(v{}, result);", program_.result));
    for (std::size_t i = 0; i < program_.reduced.size(); ++i)
      line(fmt::format("tails.template take<{}>(v{});", i, program_.reduced[i]));
    std::string parameters;
    for (int row = 0; row < rows_; ++row) parameters += fmt::format(", R (&acc{})[kCount]", row);
    if (holds_) parameters += ", const Held<kCount>& held";
    if (program_.result >= 0) parameters += ", R (&result)[kCount]";
    if (!program_.reduced.empty()) parameters += ", Tails& tails";
    const std::string held =
        holds_ ? prefetch_text(program_.space.rank(), prefetch_bytes_, prefetch_members_,
                               prefetch_loads_, prefetch_takes_)
               : "";
    return held +
           fmt::format(
               "template <int kCount{}>\n"
               "__device__ inline void {}(const Args& args, const Index (&at)[{}]{}) {{\n{}}}\n",
               program_.reduced.empty() ? "" : ", class Tails", function_,
               std::max(program_.space.rank(), 1), parameters, body_);
  }

  std::string print_store(const View& view) {
    space_ = view.dims;
    const std::string pointer = arguments_.pointer(function_, view, kAnyAddress);
    if (is_ragged(view))
      line(fmt::format("const V from[1] = {{value}};\n  store_ragged({}, {}, {}, from);",
                       tag(view.dtype), pointer, ragged_position(view, function_)));
    else
      line(fmt::format("store_element({}, {}, {}, value);", tag(view.dtype), pointer,
                       position(view, function_)));
    return fmt::format(
        "template <class V>\n"
        "__device__ inline void {}(const Args& args, const Index (&at)[{}], V value) {{\n{}}}\n",
        function_, std::max(view.dims.rank(), 1), body_);
  }

  std::string print_address(const View& view) {
    space_ = view.dims;
    line(fmt::format("return ({}::Word*){} + ({});", to_string(view.dtype),
                     arguments_.pointer(function_, view), position(view, function_)));
    return fmt::format(
        "__device__ inline void* {}(const Args& args, const Index (&at)[{}]) {{\n{}}}\n", function_,
        std::max(view.dims.rank(), 1), body_);
  }

  std::string print_integer_load(const View& view) {
    space_ = view.dims;
    const TensorKind kind = graph_.tensor(view.tensor).kind;
    if (kind == TensorKind::scalar || kind == TensorKind::constant)
      line(fmt::format("return {};", arguments_.host_integer(function_, view.tensor, view.dtype)));
    else
      line(fmt::format("return load_integer({}, {}, {});", tag(view.dtype),
                       arguments_.pointer(function_, view, kAnyAddress),
                       position(view, function_)));
    return fmt::format(
        "__device__ inline int64 {}(const Args& args, const Index (&at)[{}]) {{\n{}}}\n", function_,
        std::max(view.dims.rank(), 1), body_);
  }

 private:
  void line(const std::string& statement) { body_ += "  " + statement + "\n"; }

  void add_step(int i) {
    const Step& step = program_.steps[static_cast<std::size_t>(i)];
    line(fmt::format("R v{}[kCount];", i));
    switch (step.kind) {
      case Kind::accumulator:
        rows_ = std::max(rows_, step.row + 1);
        line(fmt::format("copy(acc{}, v{});", step.row, i));
        break;
      case Kind::constant: line(fmt::format("fill({}, v{});", literal(step.constant), i)); break;
      case Kind::load: add_load(step, i); break;
      case Kind::compute: add_compute(step, i); break;
      case Kind::random: add_random(step, i); break;
    }
    if (step.round_to)
      line(each(fmt::format("v{0}[l] = round_through({1}, v{0}[l]);", i, tag(*step.round_to))));
  }

  void add_load(const Step& step, int i) {
    const View& view = step.view;
    const TensorKind kind = graph_.tensor(view.tensor).kind;
    const std::string name = fmt::format("{}_load{}", function_, i);
    if (kind == TensorKind::scalar || kind == TensorKind::constant) {
      const std::string value = arguments_.host_scalar(name, view.tensor, view.dtype);
      return line(fmt::format("fill((R){}, v{});", value, i));
    }
    const std::int64_t stride = view.strides.empty() ? 0 : view.strides[view.strides.rank() - 1];
    const bool is_row = stride == 1 || !step.blocks.empty() || is_ragged(view);
    const std::string pointer = arguments_.pointer(name, view, is_row ? kVectorBytes : kAnyAddress);
    if (is_ragged(view))
      return line(fmt::format("load_ragged({}, {}, {}, v{});", tag(view.dtype), pointer,
                              ragged_position(view, name), i));
    if (!step.blocks.empty()) return add_block_load(step, name, pointer, i);
    const std::string index = position(view, name);
    if (stride == 0)
      line(fmt::format("fill(load_element<R>({}, {}, {}), v{});", tag(view.dtype), pointer, index,
                       i));
    else if (holds_ && is_full_size_load(step, program_, graph_))
      prefetch_load(view, pointer, index, i);
    else if (stride == 1)
      line(fmt::format("load_row({}, {}, {}, v{});", tag(view.dtype), pointer, index, i));
    else
      line(fmt::format("load_strided({}, {}, {}, {}, v{});", tag(view.dtype), pointer, index,
                       stride_text(view, view.strides.rank() - 1, name), i));
  }

  // Splits a load in two: hold() prefetches the raw vector, the program converts it.
  void prefetch_load(const View& view, const std::string& pointer, const std::string& index,
                     int i) {
    prefetch_bytes_ += bit_width(view.dtype) / 8;
    prefetch_members_ +=
        fmt::format("  Vector<kCount, {}::Word> load{};\n", to_string(view.dtype), i);
    prefetch_loads_ +=
        fmt::format("  hold_row({}, {}, {}, held.load{});\n", tag(view.dtype), pointer, index, i);
    prefetch_takes_ += fmt::format("  held.load{} = *(const Vector<kCount, {}::Word>*)from;\n", i,
                                   to_string(view.dtype));
    line(fmt::format("widen_vector({}, held.load{}, v{});", tag(view.dtype), i, i));
  }

  // A load of block scales: one element per block.
  void add_block_load(const Step& step, const std::string& name, const std::string& pointer,
                      int i) {
    const View& view = step.view;
    const int last = view.strides.rank() - 1;
    const auto element = [&](const char* further) {
      std::string index = "0";
      for (int axis = 0; axis <= last; ++axis)
        if (view.strides[axis] != 0 && space_[axis] > 1)
          index += fmt::format(" + (at[{}]{}) / {} * {}", axis, axis == last ? further : "",
                               step.blocks[axis], stride_text(view, axis, name));
      if (is_packed(view.dtype) && view.offset != 0)
        index += " + (Index)" + arguments_.number(name + "_offset", view.offset);
      return fmt::format("load_element<R>({}, {}, {})", tag(view.dtype), pointer, index);
    };
    // Vectors start at multiples of their length: they lie inside one block where kCount divides
    // its size.
    line(fmt::format("if constexpr ({} % kCount == 0) fill({}, v{});", step.blocks[last],
                     element(""), i));
    line("else " + each(fmt::format("v{}[l] = {};", i, element(" + l"))));
  }

  void add_store(int s) {
    const PointwiseProgram::Store& store = program_.stores[static_cast<std::size_t>(s)];
    const View& view = store.view;
    const std::string name = fmt::format("{}_store{}", function_, s);
    const std::string pointer = arguments_.pointer(name, view);
    if (is_ragged(view))
      return line(fmt::format("store_ragged({}, {}, {}, v{});", tag(view.dtype), pointer,
                              ragged_position(view, name), store.value));
    const std::string index = position(view, name);
    const int last = view.strides.rank() - 1;
    if (last < 0 || view.strides[last] == 1)
      line(
          fmt::format("store_row({}, {}, {}, v{});", tag(view.dtype), pointer, index, store.value));
    else
      line(fmt::format("store_strided({}, {}, {}, {}, v{});", tag(view.dtype), pointer, index,
                       stride_text(view, last, name), store.value));
  }

  void add_compute(const Step& step, int i) {
    if (step.op.mode == PointwiseMode::gen_index) {
      const int rank = program_.space.rank();
      const auto axis = static_cast<int>(step.op.axis < 0 ? step.op.axis + rank : step.op.axis);
      // On an axis of extent 1 every coordinate means 0.
      if (program_.space[axis] == 1) return line(fmt::format("fill((R)0, v{});", i));
      return line(
          each(fmt::format("v{}[l] = (R)(at[{}]{});", i, axis, axis == rank - 1 ? " + l" : "")));
    }
    if (const Step* gelu = scaled_gelu(step))
      return line(each(fmt::format("v{}[l] = op_gelu_approx_tanh_fwd_scaled<R>(v{}[l], v{}[l]);", i,
                                   gelu->args[0], step.args[1])));
    // Selects by the Boolean itself, not by its value converted to R.
    if (step.op.mode == PointwiseMode::binary_select && is_plain(step.op) &&
        has_flags_.contains(step.args[2]))
      return line(each(fmt::format("v{}[l] = is_one{}[l] ? v{}[l] : v{}[l];", i, step.args[2],
                                   step.args[0], step.args[1])));
    std::vector<std::string> operands;
    for (int n = 0; n < operand_count(step.op.mode); ++n)
      operands.push_back(fmt::format("v{}[l]", step.args[static_cast<std::size_t>(n)]));
    const bool is_short = has_short_results_ && has_short_form(step.op.mode);
    line(each(
        fmt::format("v{}[l] = {};", i, operation_text(step.op, step.compute, operands, is_short))));
  }

  // Philox round keys: computed on the host from a constant seed, else on the device. Returns type
  // and value.
  std::pair<std::string, std::string> stream_keys(const std::string& name, const Step& step) {
    if (step.seed.present())
      return {"SeedKeys", "(uint64)" + stream_number(name + "_seed", step.seed, 0)};
    std::array<std::int64_t, kPhiloxRounds> keys;
    auto first = static_cast<std::uint32_t>(step.random.seed);
    auto second = static_cast<std::uint32_t>(step.random.seed >> 32);
    for (std::int64_t& key : keys) {
      key = static_cast<std::int64_t>(std::uint64_t{second} << 32 | first);
      first += kPhiloxWeyl0;
      second += kPhiloxWeyl1;
    }
    return {"GivenKeys", arguments_.numbers(name + "_keys", keys)};
  }
  // Seed or offset of a random stream: a one-element tensor, or a constant of the graph.
  std::string stream_number(const std::string& name, const View& view, std::int64_t fixed) {
    if (!view.present()) return arguments_.number(name, fixed);
    const TensorKind kind = graph_.tensor(view.tensor).kind;
    if (kind == TensorKind::scalar || kind == TensorKind::constant)
      return arguments_.host_integer(name, view.tensor, view.dtype);
    return fmt::format("load_integer({}, {}, 0)", tag(view.dtype),
                       arguments_.pointer(name, view, kAnyAddress));
  }

  void add_random(const Step& step, int i) {
    const std::string name = fmt::format("{}_random{}", function_, i);
    const Rng& op = step.random;
    const auto [type, keys] = stream_keys(name, step);
    const std::string offset = stream_number(name + "_offset", step.offset, op.offset);
    line(fmt::format("const RandomStream<{}> stream{} = {{{{{}}}, (uint64){}}};", type, i, keys,
                     offset));
    line(fmt::format("const Index place{} = {};", i, position(step.view, name)));
    const int last = step.view.strides.rank() - 1;
    const bool back_to_back = last < 0 || step.view.strides[last] == 1;
    const std::string stride = back_to_back ? "1" : stride_text(step.view, last, name);
    if (op.distribution == RngDistribution::normal)
      return line(each(
          fmt::format("v{0}[l] = {1} + {2} * standard_normal<R>(stream{0}, place{0} + l * {3});", i,
                      literal(op.mean), literal(op.standard_deviation), stride)));
    line(fmt::format("uint32 bits{}[kCount];", i));
    line(back_to_back
             ? fmt::format("random_row<{1}>(stream{0}, place{0}, bits{0});", i,
                           has_one_upper_word(step))
             : fmt::format("random_strided(stream{0}, place{0}, {1}, bits{0});", i, stride));
    if (op.distribution == RngDistribution::uniform)
      return line(each(fmt::format("v{0}[l] = {1} + ({2} - {1}) * (R)uniform_open(bits{0}[l]);", i,
                                   literal(op.minimum), literal(op.maximum))));
    // (k + 1/2) 2^-23 < p for the upper 23 bits k: k < 2^23 p - 1/2, both sides exact. The lower 9
    // bits are ignored.
    const auto probability = static_cast<double>(static_cast<float>(op.probability));
    const double limit = std::clamp(std::ceil(0x1p23 * probability - 0.5), 0.0, 0x1p23);
    if (limit == 0.0) return line(fmt::format("fill((R)0, v{});", i));
    const std::string last_kept =
        arguments_.number(name + "_last", static_cast<std::int64_t>(limit) * 512 - 1);
    line(fmt::format("bool is_one{}[kCount];", i));
    line(each(fmt::format("is_one{0}[l] = bits{0}[l] <= (uint32){1};", i, last_kept)));
    line(each(fmt::format("v{0}[l] = is_one{0}[l] ? (R)1 : (R)0;", i)));
    has_flags_.insert(i);
  }
  // Whether all Philox counters of a stream share their upper 32 bits.
  static bool has_one_upper_word(const Step& step) {
    if (step.offset.present()) return false;
    double last = 0;
    for (int axis = 0; axis < step.view.dims.rank(); ++axis)
      last += static_cast<double>(step.view.dims[axis] - 1) *
              static_cast<double>(step.view.strides[axis]);
    const auto lower = static_cast<std::uint32_t>(step.random.offset);
    return lower + last / 4 < 0x1p32;
  }

  static std::string each(const std::string& statement) {
    return "_Pragma(\"unroll\") for (int l = 0; l < kCount; ++l) " + statement;
  }

  std::string stride_text(const View& view, int axis, const std::string& name) {
    const std::string argument = fmt::format("{}_stride{}", name, axis);
    if (strides_.insert(argument).second) arguments_.number(argument, view.strides[axis]);
    return "(Index)args." + argument;
  }

  static bool is_ragged(const View& view) {
    return view.ragged_offset != kNoTensor && view.strides.rank() > 0;
  }
  // The arguments of lib/rows.cuh for a ragged view: row starts, the row index, the element's
  // position within the row, and its stride.
  std::string ragged_position(const View& view, const std::string& name) {
    View row = view;
    row.strides[0] = 0;
    const Tensor& starts = graph_.tensor(view.ragged_offset);
    const std::string rows =
        arguments_.pointer(name + "_rows", view_of(graph_, view.ragged_offset));
    const std::string step =
        arguments_.number(name + "_rows_step", starts.strides.empty() ? 1 : starts.strides[0]);
    const int last = view.strides.rank() - 1;
    const std::string stride = row.strides[last] == 0 ? "0" : stride_text(row, last, name);
    return fmt::format("{}, {}, at[0] * {}, {}, {}, {}", tag(starts.dtype), rows, step, step,
                       position(row, name), stride);
  }

  // Index of the element at `at`, relative to the pointer.
  std::string position(const View& view, const std::string& name) {
    std::string sum;
    const auto add = [&](const std::string& term) { sum += (sum.empty() ? "" : " + ") + term; };
    if (is_packed(view.dtype) && view.offset != 0)
      add("(Index)" + arguments_.number(name + "_offset", view.offset));
    for (int axis = 0; axis < view.strides.rank(); ++axis) {
      if (view.strides[axis] == 0 || space_[axis] == 1) continue;
      if (view.strides[axis] == 1)
        add(fmt::format("at[{}]", axis));
      else
        add(fmt::format("at[{}] * {}", axis, stride_text(view, axis, name)));
    }
    return sum.empty() ? "0" : sum;
  }

  // The GELU that a step scales by a constant, where the 16-bit form fuses both and the GELU has no
  // other use.
  const Step* scaled_gelu(const Step& step) const {
    constexpr double kLeast = 0x1p-20, kMost = 0x1p20;  // range in which the reciprocal is accurate
    if (!has_short_results_ || step.op.mode != PointwiseMode::mul || !is_plain(step.op))
      return nullptr;
    const Step& x = program_.steps[static_cast<std::size_t>(step.args[0])];
    const Step& factor = program_.steps[static_cast<std::size_t>(step.args[1])];
    if (x.kind != Kind::compute || x.op.mode != PointwiseMode::gelu_approx_tanh_fwd ||
        !is_plain(x.op) || x.round_to || factor.kind != Kind::constant ||
        std::abs(factor.constant) < kLeast || std::abs(factor.constant) > kMost)
      return nullptr;
    int uses = program_.result == step.args[0] ? 1 : 0;
    for (const Step& other : program_.steps)
      uses += static_cast<int>(std::count(other.args.begin(), other.args.end(), step.args[0]));
    for (const auto& store : program_.stores) uses += store.value == step.args[0] ? 1 : 0;
    return uses == 1 ? &x : nullptr;
  }
  static bool is_plain(const Pointwise& op) { return op.alpha1 == 1.0 && op.alpha2 == 1.0; }

  // Modes with a cheaper approximation for 16-bit results in lib/pointwise.cuh.
  static bool has_short_form(PointwiseMode mode) {
    return mode == PointwiseMode::gelu_fwd || mode == PointwiseMode::gelu_bwd ||
           mode == PointwiseMode::gelu_approx_tanh_fwd ||
           mode == PointwiseMode::gelu_approx_tanh_bwd;
  }
  // Whether all results are stored or kept in 16-bit types (at most 11 bits of mantissa).
  static bool has_short_results(const PointwiseProgram& program, DType kept) {
    return program.reduced.empty() && (program.result < 0 || bit_width(kept) <= 16) &&
           std::all_of(program.stores.begin(), program.stores.end(),
                       [](const auto& store) { return bit_width(store.view.dtype) <= 16; });
  }

  const PointwiseProgram& program_;
  Dims space_;  // extents that `at` indexes
  const Graph& graph_;
  const std::string& function_;
  Arguments& arguments_;
  std::string body_;
  std::set<std::string> strides_;  // already added as arguments
  std::set<int> has_flags_;        // Bernoulli steps, whose values also exist as Booleans
  int rows_ = 0;
  const bool has_short_results_;
  const bool holds_;
  std::string prefetch_members_, prefetch_loads_, prefetch_takes_;
  int prefetch_bytes_ = 0;  // bytes per element of all prefetched loads
};

}  // namespace

std::string print_program(const PointwiseProgram& program, const Graph& graph,
                          const std::string& name, Arguments& arguments, DType kept) {
  return Printer(program, graph, name, arguments, kept).print();
}

std::string print_program_with_prefetch(const PointwiseProgram& program, const Graph& graph,
                                        const std::string& name, Arguments& arguments, DType kept) {
  return Printer(program, graph, name, arguments, kept, true).print();
}

std::string print_empty_prefetch(int rank) { return prefetch_text(rank, 0, "", "", ""); }

bool loads_per_result(const Step& step, const PointwiseProgram& program) {
  if (step.kind != Kind::load || step.view.strides.empty()) return false;
  for (int axis = 0; axis < program.space.rank(); ++axis)
    if (program.space[axis] > 1 && step.view.strides[axis] == 0) return false;
  return true;
}

bool is_full_size_load(const Step& step, const PointwiseProgram& program, const Graph& graph) {
  if (!loads_per_result(step, program) || !step.blocks.empty()) return false;
  const View& view = step.view;
  const TensorKind kind = graph.tensor(view.tensor).kind;
  if (kind == TensorKind::scalar || kind == TensorKind::constant ||
      view.ragged_offset != kNoTensor || is_packed(view.dtype))
    return false;
  const int rank = program.space.rank();
  return rank > 0 && view.strides[rank - 1] == 1;
}

std::string print_store(const View& view, const Graph& graph, const std::string& name,
                        Arguments& arguments) {
  return Printer({}, graph, name, arguments).print_store(view);
}

std::string print_address(const View& view, const Graph& graph, const std::string& name,
                          Arguments& arguments) {
  return Printer({}, graph, name, arguments).print_address(view);
}

std::string print_integer_load(const View& view, const Graph& graph, const std::string& name,
                               Arguments& arguments) {
  return Printer({}, graph, name, arguments).print_integer_load(view);
}

int vector_length(const PointwiseProgram& program, int most) {
  const int last = program.space.rank() - 1;
  int length = most;
  const auto limit = [&](const View& view) {
    if (view.strides[last] != 1) return;
    const auto fits = [&](std::int64_t number) {
      while (length > 1 && number % length != 0) length /= 2;
    };
    fits(view.offset);
    for (int axis = 0; axis < last; ++axis)
      if (program.space[axis] > 1) fits(view.strides[axis]);
  };
  for (const Step& step : program.steps)
    if ((step.kind == Kind::load && step.blocks.empty()) || step.kind == Kind::random)
      limit(step.view);
  for (const PointwiseProgram::Store& store : program.stores) limit(store.view);
  return length;
}

}  // namespace ashlar::cuda
