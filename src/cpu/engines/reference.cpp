// The reference engine: runs any region, operation by operation, on the reference's loop nests in
// double precision.
//
// It works from the region, not from the original nodes: views, removed nodes and raised patterns
// are in the region's programs.
#include "reference/reference.hpp"

#include <algorithm>

#include "base/element.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "graph/graph_data.hpp"
#include "graph/score_program.hpp"

namespace ashlar::cpu {

namespace {

using Step = PointwiseProgram::Step;

// Builds a private graph whose tensors are the region's views and the values between its
// operations.
class ReferenceKernel final : public Kernel {
 public:
  ReferenceKernel(const Graph& graph, const Region& region) : source_(&graph) {
    std::vector<TensorId> inputs;
    for (const PointwiseProgram& prologue : region.prologues)
      inputs.push_back(prologue.empty() ? kNoTensor : add_program(prologue, kNoTensor));
    TensorId accumulator = kNoTensor;
    if (region.anchor) {
      Node node{"anchor", region.anchor->op, std::move(inputs), {}, region.anchor->compute};
      // Derived here, since a run must not allocate.
      if (auto* op = std::get_if<AttentionBackward>(&node.op);
          op && !op->score_modifier.empty() && op->score_modifier_gradient.empty())
        op->score_modifier_gradient = gradient_of(op->score_modifier);
      if (!region.epilogue.empty()) accumulator = result_of(region.epilogue, 0);
      node.outputs.push_back(accumulator);
      std::vector<std::pair<TensorId, View>> late;
      for (std::size_t slot = 1; slot < region.anchor->outputs.size(); ++slot) {
        const View& view = region.anchor->outputs[slot];
        node.outputs.push_back(view.present() ? add_destination(view, late) : kNoTensor);
      }
      tasks_.push_back({std::move(node), false});
      for (const auto& [value, view] : late) add_copy(value, add_view(view));
    }
    add_program(region.epilogue, accumulator);
    std::size_t most = 0;
    for (const Task& task : tasks_)
      most = std::max(most, task.node.inputs.size() + task.node.outputs.size());
    pointers_ =
        scratch_layout_.add("pointers", static_cast<std::int64_t>(2 * most * sizeof(void*)));
    std::int64_t scratch = 0;
    for (const Task& task : tasks_)
      scratch = std::max(scratch, reference::scratch_bytes(values_, task.node));
    loop_scratch_ = scratch_layout_.add("loop nest", scratch);
    source_ = nullptr;
  }

  void run(const KernelContext& context) const override {
    const void** pointers = context.scratch<const void*>(scratch_layout_, pointers_);
    for (const Task& task : tasks_) {
      if (task.is_element_copy) {
        copy(context, task.node.inputs[0], task.node.outputs[0]);
        continue;
      }
      const std::size_t inputs = task.node.inputs.size(), outputs = task.node.outputs.size();
      const void** offsets = pointers + inputs + outputs;
      for (std::size_t i = 0; i < inputs; ++i) {
        pointers[i] = pointer(context, task.node.inputs[i]);
        offsets[i] = ragged_pointer(context, task.node.inputs[i]);
      }
      for (std::size_t i = 0; i < outputs; ++i) {
        pointers[inputs + i] = pointer(context, task.node.outputs[i]);
        offsets[inputs + i] = ragged_pointer(context, task.node.outputs[i]);
      }
      reference::evaluate_node(
          values_, task.node,
          {std::span(pointers, inputs), std::span(const_cast<void**>(pointers + inputs), outputs),
           std::span(offsets, inputs), std::span(offsets + inputs, outputs),
           context.scratch<void>(scratch_layout_, loop_scratch_)});
    }
  }

 private:
  struct Task {
    Node node;
    bool is_element_copy;
  };
  // Location of a tensor of the private graph.
  struct Place {
    TensorId tensor = kNoTensor;  // of the plan
    std::int64_t offset = 0;      // elements
    TensorId ragged_offset = kNoTensor;
    int reservation = -1;
  };

  std::vector<Tensor>& tensors() { return GraphAccess::data(values_).tensors; }

  TensorId add_tensor(Tensor tensor, const Place& place) {
    tensors().push_back(std::move(tensor));
    places_.push_back(place);
    return static_cast<TensorId>(places_.size()) - 1;
  }

  TensorId add_view(const View& view) {
    TensorId offsets = kNoTensor;
    if (view.ragged_offset != kNoTensor)
      offsets = add_tensor(source_->tensor(view.ragged_offset), {});
    Tensor tensor;
    tensor.kind = TensorKind::input;
    tensor.dtype = view.dtype;
    tensor.dims = view.dims;
    tensor.strides = view.strides;
    tensor.ragged_offset = offsets;
    return add_tensor(std::move(tensor), {view.tensor, view.offset, view.ragged_offset, -1});
  }

  // A packed value in scratch, rounded as the register it stands for.
  TensorId add_value(const Dims& dims, std::optional<DType> rounding) {
    Tensor tensor;
    tensor.dtype = rounding.value_or(f64);
    tensor.dims = dims;
    tensor.strides = row_major.strides_for(dims);
    const int reservation = scratch_layout_.add("value", byte_size(tensor));
    return add_tensor(std::move(tensor), {kNoTensor, 0, kNoTensor, reservation});
  }

  TensorId add_constant(const Dims& dims, double value) {
    Tensor tensor;
    tensor.kind = TensorKind::constant;
    tensor.dtype = f64;
    tensor.dims = dims;
    tensor.strides = Dims::filled(dims.rank(), 0);
    tensor.value = value;
    return add_tensor(std::move(tensor), {});
  }

  // Offset inside a byte: a view of booleans or of a 4-bit type can start inside a byte, which the
  // loop nests do not support.
  static std::int64_t place_in_byte(DType dtype, std::int64_t offset) {
    return bit_width(dtype) < 8 ? offset % (8 / bit_width(dtype)) : 0;
  }
  static bool starts_inside_byte(const View& view) {
    return place_in_byte(view.dtype, view.offset) != 0;
  }

  TensorId add_source(const View& view) {
    const TensorId memory = add_view(view);
    if (!starts_inside_byte(view)) return memory;
    const TensorId value = add_value(view.dims, view.dtype);
    add_copy(memory, value);
    return value;
  }
  TensorId add_destination(const View& view, std::vector<std::pair<TensorId, View>>& late) {
    if (!starts_inside_byte(view)) return add_view(view);
    const TensorId value = add_value(view.dims, view.dtype);
    late.emplace_back(value, view);
    return value;
  }
  void add_copy(TensorId from, TensorId to) {
    const bool inside_byte = place_in_byte(from) != 0 || place_in_byte(to) != 0;
    tasks_.push_back({Node{"copy", Pointwise{}, {from}, {to}, f64}, inside_byte});
  }
  std::int64_t place_in_byte(TensorId id) const {
    return place_in_byte(values_.tensor(id).dtype, places_[static_cast<std::size_t>(id)].offset);
  }

  // Destination of value `number`: directly to memory if it is stored once and not used otherwise.
  TensorId result_of(const PointwiseProgram& program, int number) {
    const Step& step = program.steps[static_cast<std::size_t>(number)];
    const View* only_store = nullptr;
    int uses = number == program.result ? 2 : 0;
    for (const Step& other : program.steps)
      uses += static_cast<int>(std::count(other.args.begin(), other.args.end(), number));
    for (const auto& store : program.stores)
      if (store.value == number) {
        ++uses;
        only_store = &store.view;
      }
    if (uses == 1 && only_store != nullptr && !starts_inside_byte(*only_store))
      return add_view(*only_store);
    return add_value(program.space, step.round_to);
  }

  // Adds the program's operations; returns the tensor of its result.
  TensorId add_program(const PointwiseProgram& program, TensorId accumulator) {
    std::vector<TensorId> values;
    for (int number = 0; number < static_cast<int>(program.steps.size()); ++number) {
      const Step& step = program.steps[static_cast<std::size_t>(number)];
      switch (step.kind) {
        case Step::Kind::accumulator: values.push_back(accumulator); break;
        case Step::Kind::load: values.push_back(add_source(step.view)); break;
        case Step::Kind::constant:
          values.push_back(add_constant(program.space, step.constant));
          break;
        case Step::Kind::random: {
          Node node{"step", step.random, {}, {result_of(program, number)}, step.compute};
          for (const View* view : {&step.seed, &step.offset})
            node.inputs.push_back(view->present() ? add_source(*view) : kNoTensor);
          values.push_back(node.outputs[0]);
          tasks_.push_back({std::move(node), false});
          break;
        }
        case Step::Kind::compute: {
          Node node{"step", step.op, {}, {result_of(program, number)}, step.compute};
          for (int arg : step.args)
            node.inputs.push_back(arg < 0 ? kNoTensor : values[static_cast<std::size_t>(arg)]);
          // gen_index has no operand here, only an extent.
          if (step.op.mode == PointwiseMode::gen_index)
            node.inputs[0] = add_constant(program.space, 0.0);
          values.push_back(node.outputs[0]);
          tasks_.push_back({std::move(node), false});
        }
      }
    }
    for (const auto& store : program.stores) {
      const TensorId value = values[static_cast<std::size_t>(store.value)];
      const Place& place = places_[static_cast<std::size_t>(value)];
      const bool there =
          place.tensor == store.view.tensor && place.offset == store.view.offset &&
          program.steps[static_cast<std::size_t>(store.value)].kind != Step::Kind::load;
      if (!there) add_copy(value, add_view(store.view));
    }
    return program.result < 0 ? kNoTensor : values[static_cast<std::size_t>(program.result)];
  }

  const void* pointer(const KernelContext& context, TensorId id) const {
    if (id == kNoTensor) return nullptr;
    const Place& place = places_[static_cast<std::size_t>(id)];
    if (place.reservation >= 0)
      return context.scratch<std::byte>(scratch_layout_, place.reservation);
    if (place.tensor == kNoTensor) return nullptr;
    const std::int64_t bits = place.offset * bit_width(values_.tensor(id).dtype);
    return static_cast<const std::byte*>(context.pointer(place.tensor)) + bits / 8;
  }
  const void* ragged_pointer(const KernelContext& context, TensorId id) const {
    if (id == kNoTensor) return nullptr;
    const TensorId offsets = places_[static_cast<std::size_t>(id)].ragged_offset;
    return offsets == kNoTensor ? nullptr : context.pointer(offsets);
  }

  // Copies element by element, from and to any offset inside a byte.
  void copy(const KernelContext& context, TensorId from, TensorId to) const {
    const Tensor& source = values_.tensor(from);
    const Tensor& target = values_.tensor(to);
    const void* read = pointer(context, from);
    void* write = const_cast<void*>(pointer(context, to));
    const std::int64_t count = element_count(target.dims);
    for (std::int64_t position = 0; position < count; ++position) {
      std::int64_t read_at = place_in_byte(from), write_at = place_in_byte(to), rest = position;
      for (int axis = target.dims.rank() - 1; axis >= 0; --axis) {
        const std::int64_t coordinate = rest % target.dims[axis];
        rest /= target.dims[axis];
        read_at += coordinate * source.strides[axis];
        write_at += coordinate * target.strides[axis];
      }
      const bool constant = source.kind == TensorKind::constant;
      store_element(target.dtype, write, write_at,
                    constant ? source.value : load_element(source.dtype, read, read_at));
    }
  }

  const Graph* source_;  // only while building
  Graph values_{"reference"};
  std::vector<Place> places_;  // by tensor of values_
  std::vector<Task> tasks_;
  int pointers_ = -1, loop_scratch_ = -1;
};

class ReferenceEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.reference"; }
  EngineKind kind() const override { return EngineKind::reference; }
  std::string_view description() const override {
    return "any region, one loop nest per operation in double precision";
  }

  Support supports(const Region&, const DeviceProps&) const override { return Support::yes(); }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    // Scalar code that converts every element on every use. Its scratch is not counted: this engine
    // must stay legal under any workspace limit, and the plan allocates the memory itself if the
    // caller's workspace is too small.
    const Cost cost{.flops = region.flops(),
                    .bytes = region.bytes(),
                    .flops_fraction = 5e-4,
                    .bytes_fraction = 5e-3};
    return {make_config({}, cost)};
  }

  std::unique_ptr<Kernel> build(const Graph& graph, const Region& region, const Config&,
                                const DeviceProps&) const override {
    return std::make_unique<ReferenceKernel>(graph, region);
  }
};

}  // namespace

const Engine& reference_engine() {
  static const ReferenceEngine engine;
  return engine;
}

}  // namespace ashlar::cpu
