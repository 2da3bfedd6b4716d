// In-place outputs: which pairs are declared, what one region reads, and the order of the regions.
#include "plan/in_place.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/fail.hpp"
#include "graph/op_traits.hpp"
#include "plan/execution_order.hpp"
#include "plan/graph_editor.hpp"

namespace ashlar {

namespace {

TensorId bound_tensor(const Graph& graph, const std::string& name, TensorKind kind) {
  const TensorId id = graph.find_tensor(name);
  if (id == kNoTensor || graph.tensor(id).kind != kind)
    fail(ErrorCode::invalid_argument, "in_place: got '{}', expected the name of an {}", name,
         kind == TensorKind::output ? "output" : "input");
  return id;
}

// The stride of an axis of extent 1 does not matter.
bool have_same_strides(const Dims& dims, const Dims& a, const Dims& b) {
  for (int axis = 0; axis < dims.rank(); ++axis)
    if (dims[axis] != 1 && a[axis] != b[axis]) return false;
  return true;
}

// Whether two views have every element at the same distance from the starts of their memory.
bool are_same_elements(const View& a, const View& b) {
  return a.offset == b.offset && a.dtype == b.dtype && a.dims == b.dims &&
         have_same_strides(a.dims, a.strides, b.strides);
}

}  // namespace

std::vector<InPlacePair> in_place_pairs(const Graph& graph, const CompileOptions& options) {
  std::vector<InPlacePair> pairs;
  std::set<TensorId> seen;
  for (const auto& [output, input] : options.in_place) {
    const InPlacePair pair{bound_tensor(graph, output, TensorKind::output),
                           bound_tensor(graph, input, TensorKind::input)};
    const Tensor &y = graph.tensor(pair.output), &x = graph.tensor(pair.input);
    const auto refuse = [&, names = std::pair(output, input)](std::string_view what) {
      fail(ErrorCode::invalid_argument, "in_place: '{}' and '{}': {}", names.first, names.second,
           what);
    };
    if (y.dtype != x.dtype)
      refuse(fmt::format("got dtypes {} and {}, expected equal ones", to_string(y.dtype),
                         to_string(x.dtype)));
    if (y.dims != x.dims || !have_same_strides(y.dims, y.strides, x.strides))
      refuse(fmt::format("got dims {} with strides {} and {} with {}, expected equal ones",
                         to_string(y.dims), to_string(y.strides), to_string(x.dims),
                         to_string(x.strides)));
    if (y.ragged_offset != kNoTensor || x.ragged_offset != kNoTensor || is_complex(y.dtype) ||
        bit_width(y.dtype) < 8)
      refuse("got a ragged tensor, complex elements or elements that share a byte, expected none");
    if (!seen.insert(pair.output).second || !seen.insert(pair.input).second)
      refuse("got a name twice, expected each output and input in one pair");
    for (const auto& [constant, memory] : options.constants)
      if (constant == input) refuse("got a constant input, expected one that may change");
    pairs.push_back(pair);
  }
  return pairs;
}

InPlaceReads in_place_reads(const Region& region, InPlacePair pair) {
  if (!std::ranges::binary_search(region.reads, pair.input)) return InPlaceReads::none;
  using Step = PointwiseProgram::Step;
  const auto draws = [&](const Step& step) {
    return step.seed.tensor == pair.input || step.offset.tensor == pair.input;
  };
  const auto loads = [&](const PointwiseProgram& program) {
    return std::ranges::any_of(program.steps, [&](const Step& step) {
      return draws(step) || (step.kind == Step::Kind::load && step.view.tensor == pair.input);
    });
  };
  const PointwiseProgram& program = region.epilogue;
  const auto store = std::ranges::find_if(program.stores, [&](const PointwiseProgram::Store& one) {
    return one.view.tensor == pair.output;
  });
  if (store == program.stores.end()) return InPlaceReads::others;  // another output of the anchor
  // Prologues and the epilogues of tail reductions work on other elements than the epilogue.
  for (std::size_t slot = 0; slot < region.prologues.size(); ++slot) {
    const PointwiseProgram& prologue = region.prologues[slot];
    if (!loads(prologue)) continue;
    if (std::cmp_not_equal(traits_of(region.anchor->op).updated_input, slot) ||
        !prologue.is_plain_load() || !program.is_plain_store() ||
        !are_same_elements(prologue.steps[0].view, store->view))
      return InPlaceReads::others;
  }
  for (const TailReduction& reduction : region.reductions)
    if (loads(reduction.finish)) return InPlaceReads::others;

  // The steps that the stored value depends on: they run before it is stored.
  std::vector<bool> before(program.steps.size(), false);
  before[static_cast<std::size_t>(store->value)] = true;
  for (std::size_t i = program.steps.size(); i-- > 0;)
    for (const int arg : program.steps[i].args)
      if (before[i] && arg >= 0) before[static_cast<std::size_t>(arg)] = true;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    if (draws(step)) return InPlaceReads::others;
    if (step.kind != Step::Kind::load || step.view.tensor != pair.input) continue;
    if (!are_same_elements(step.view, store->view) || !before[i] || !step.blocks.empty())
      return InPlaceReads::others;
    const auto value = static_cast<int>(i);
    for (std::size_t reader = 0; reader < program.steps.size(); ++reader)
      if (!before[reader] &&
          std::ranges::find(program.steps[reader].args, value) != program.steps[reader].args.end())
        return InPlaceReads::others;
    for (const PointwiseProgram::Store& other : program.stores)
      if (other.value == value && other.view.tensor != pair.output) return InPlaceReads::others;
    if (std::ranges::find(program.reduced, value) != program.reduced.end())
      return InPlaceReads::others;
  }
  return InPlaceReads::own_elements;
}

namespace {

class InPlacePlanner {
 public:
  InPlacePlanner(const std::vector<InPlacePair>& pairs, LoweredGraph& lowered,
                 EngineChoices& engines, std::vector<FusionLimits>& limits,
                 std::vector<Region>& regions)
      : pairs_(pairs), lowered_(lowered), engines_(engines), limits_(limits), regions_(regions) {}

  void run() {
    while (!all_are_safe()) regions_ = partition_for_device(lowered_, engines_, limits_);
    std::vector<NodeId> positions(regions_.size());
    std::iota(positions.begin(), positions.end(), NodeId{0});
    regions_ = in_execution_order(lowered_, std::move(regions_), positions, constraints_);
    if (const std::size_t direct = pairs_.size() - copies_; direct > 0)
      lowered_.notes.push_back(fmt::format("{} output(s) are written in place", direct));
    for (const auto& [reason, names] : copied_)
      lowered_.notes.push_back(fmt::format("in-place output {} is copied last: {}", names, reason));
  }

 private:
  // Collects the constraints on the order. Otherwise changes the graph where a pair is not safe.
  bool all_are_safe() {
    constraints_.clear();
    ended_.clear();
    followers_.assign(regions_.size(), {});
    std::vector<int> writers(lowered_.graph.tensors().size(), -1);
    for (int r = 0; r < count(); ++r)
      for (const TensorId id : region(r).writes) writers[static_cast<std::size_t>(id)] = r;
    for (int r = 0; r < count(); ++r)
      for (const TensorId id : region(r).reads)
        if (const int writer = writers[static_cast<std::size_t>(id)]; writer >= 0)
          followers_[static_cast<std::size_t>(writer)].push_back(r);
    bool safe = true;
    for (const InPlacePair pair : pairs_)
      safe = make_safe(pair, writers[static_cast<std::size_t>(pair.output)]) && safe;
    return safe;
  }

  // Returns false if it changed the graph.
  bool make_safe(InPlacePair pair, int writer) {
    const InPlaceReads reads = in_place_reads(region(writer), pair);
    if (reads == InPlaceReads::others) return copy_last(pair, "its region reads other elements");
    if (reads == InPlaceReads::own_elements && !engines_.all_store_last(region(writer)))
      return end_region_before(pair, writer);
    std::vector<int> readers;
    for (int r = 0; r < count(); ++r)
      if (r != writer && std::ranges::binary_search(region(r).reads, pair.input))
        readers.push_back(r);
    const std::vector<bool> later = reached_from(writer);
    for (const int reader : readers)
      if (later[static_cast<std::size_t>(reader)])
        return copy_last(pair, fmt::format("'{}' reads the input later",
                                           region(reader).to_text(lowered_.graph)));
    for (const int reader : readers) {
      constraints_.emplace_back(reader, writer);
      followers_[static_cast<std::size_t>(reader)].push_back(writer);
    }
    return true;
  }

  std::vector<bool> reached_from(int start) const {
    std::vector<bool> reached(regions_.size(), false);
    std::vector<int> stack = {start};
    while (!stack.empty()) {
      const int r = stack.back();
      stack.pop_back();
      for (const int next : followers_[static_cast<std::size_t>(r)])
        if (!reached[static_cast<std::size_t>(next)]) {
          reached[static_cast<std::size_t>(next)] = true;
          stack.push_back(next);
        }
    }
    return reached;
  }

  // The operation's kernels may store results more than once: the pointwise work behind it becomes
  // a region of its own.
  bool end_region_before(InPlacePair pair, int writer) {
    const Region& one = region(writer);
    if (!one.anchor) return copy_last(pair, "an engine may store elements twice");
    for (const NodeId id : one.nodes) {
      const Node& node = lowered_.graph.nodes()[static_cast<std::size_t>(id)];
      if (std::holds_alternative<Pointwise>(node.op)) continue;
      if (!mark_unfused(node.outputs[0]) && !ended_.contains(writer))
        return copy_last(pair, "its region could not be divided");
    }
    ended_.insert(writer);
    return false;
  }
  bool mark_unfused(TensorId result) {
    lowered_.unfused.resize(lowered_.graph.tensors().size(), false);
    if (lowered_.unfused[static_cast<std::size_t>(result)]) return false;
    lowered_.unfused[static_cast<std::size_t>(result)] = true;
    return true;
  }

  // Computes the output in the workspace; a copy that joins no region writes it.
  bool copy_last(InPlacePair pair, const std::string& reason) {
    GraphEditor editor(lowered_.graph);
    const Tensor output = editor.tensor(pair.output);
    const TensorId computed = editor.add_intermediate(output.name + ".computed", output.dims,
                                                      output.dtype, output.strides);
    lowered_.views.push_back(view_of(lowered_.graph, computed));
    if (!lowered_.late.empty()) lowered_.late.push_back(true);
    for (View& view : lowered_.views)
      if (view.tensor == pair.output) view.tensor = computed;
    lowered_.views[static_cast<std::size_t>(pair.output)].tensor = pair.output;
    editor.move_result(pair.output, computed);
    Node copy{output.name + ".copy", Pointwise{}, {computed, kNoTensor, kNoTensor}, {pair.output}};
    copy.compute = default_compute(GraphAccess::data(lowered_.graph), copy);
    editor.add_repeated(std::move(copy));
    mark_unfused(pair.output);
    ++copies_;
    std::string& names = copied_[reason];
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", output.name);
    return false;
  }

  int count() const { return static_cast<int>(regions_.size()); }
  const Region& region(int r) const { return regions_[static_cast<std::size_t>(r)]; }

  const std::vector<InPlacePair>& pairs_;
  LoweredGraph& lowered_;
  EngineChoices& engines_;
  std::vector<FusionLimits>& limits_;
  std::vector<Region>& regions_;
  std::vector<std::vector<int>> followers_;       // by region
  std::vector<std::pair<int, int>> constraints_;  // regions: the first runs before the second
  std::set<int> ended_;                           // regions that end_region_before() divides
  std::size_t copies_ = 0;
  std::map<std::string, std::string> copied_;  // names, by reason
};

}  // namespace

void plan_in_place(const std::vector<InPlacePair>& pairs, LoweredGraph& lowered,
                   EngineChoices& engines, std::vector<FusionLimits>& limits,
                   std::vector<Region>& regions) {
  if (!pairs.empty()) InPlacePlanner(pairs, lowered, engines, limits, regions).run();
}

}  // namespace ashlar
