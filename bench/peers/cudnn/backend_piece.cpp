// Execution plans of cuDNN's backend API: operation graph, heuristics, engine configurations.
#include <fmt/format.h>

#include <set>

#include "clock.hpp"
#include "piece.hpp"

namespace ashlar::bench::cudnn {

namespace {

// The operation graph with its bindings; shared by its plans.
struct Problem {
  OperationGraph operations;
  const Descriptor* graph = nullptr;
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;

  Problem(const Library& library, const Subgraph& subgraph, Bindings& bindings)
      : operations(library, subgraph) {
    translate(operations);
    graph = &operations.finish();
    for (const auto& [tensor, uid] : operations.bound()) {
      ids.push_back(uid);
      pointers.push_back(bindings.at(tensor));
    }
    for (const auto& [uid, value] : operations.numbers()) {
      ids.push_back(uid);
      pointers.push_back(const_cast<void*>(value));
    }
  }
};

class BackendPiece : public Piece {
 public:
  BackendPiece(const Library& library, std::shared_ptr<const Problem> problem,
               const Descriptor& config)
      : library_(library),
        problem_(std::move(problem)),
        plan_(library, DescriptorType::execution_plan),
        pack_(library, DescriptorType::variant_pack) {
    plan_.set(Attribute::plan_handle, library.handle());
    plan_.set(Attribute::plan_engine_config, config);
    plan_.finalize();
    engine_ = config.descriptor(Attribute::engine_config_engine, DescriptorType::engine)
                  .int64(Attribute::engine_global_index);
    const std::int64_t bytes = plan_.int64(Attribute::plan_workspace_size);
    workspace_ = std::make_unique<ashlar::Memory>(library.device(), bytes);
    pack_.set(Attribute::variant_pack_unique_ids, std::span<const std::int64_t>(problem_->ids));
    pack_.set(Attribute::variant_pack_pointers, std::span<void* const>(problem_->pointers));
    pack_.set(Attribute::variant_pack_workspace, workspace_->data());
    pack_.finalize();
  }

  void run() override {
    library_.check(library_.call().execute(library_.handle(), plan_.object(), pack_.object()),
                   "executing");
  }
  std::string description() const override { return fmt::format("engine {}", engine_); }

 private:
  const Library& library_;
  std::shared_ptr<const Problem> problem_;
  Descriptor plan_;
  Descriptor pack_;
  std::unique_ptr<ashlar::Memory> workspace_;
  std::int64_t engine_ = 0;
};

std::vector<Descriptor> proposals(const Library& library, const Problem& problem,
                                  HeuristicMode mode, std::int64_t most) {
  Descriptor heuristics(library, DescriptorType::engine_heuristics);
  heuristics.set(Attribute::heuristics_operation_graph, *problem.graph);
  heuristics.set(Attribute::heuristics_mode, ValueType::heuristic_mode, static_cast<int>(mode));
  heuristics.finalize();
  return heuristics.descriptors(Attribute::heuristics_results, DescriptorType::engine_config, most);
}

// Times engine configurations one by one.
class Search {
 public:
  Search(const Library& library, std::shared_ptr<const Problem> problem, const SearchLimits& limits,
         Fastest& fastest)
      : library_(library), problem_(std::move(problem)), limits_(limits), fastest_(fastest) {}

  void propose(HeuristicMode mode) {
    std::vector<Descriptor> configs;
    try {
      configs = proposals(library_, *problem_, mode, limits_.plans);
    } catch (const Refused& refusal) {
      fastest_.refused(refusal.what());
    }
    for (const Descriptor& config : configs) {
      if (is_over()) return;
      consider(config, config.descriptor(Attribute::engine_config_engine, DescriptorType::engine));
    }
  }

  // Every engine, by index and with default knobs, that no heuristic proposed.
  void all_engines() {
    std::int64_t count = 0;
    try {
      count = problem_->graph->int64(Attribute::operation_graph_engine_count);
    } catch (const Refused& refusal) {
      fastest_.refused(refusal.what());
    }
    for (std::int64_t index = 0; index < count && !is_over(); ++index) {
      if (seen_.contains(index)) continue;
      try {
        Descriptor engine(library_, DescriptorType::engine);
        engine.set(Attribute::engine_operation_graph, *problem_->graph);
        engine.set(Attribute::engine_global_index, index);
        engine.finalize();
        Descriptor config(library_, DescriptorType::engine_config);
        config.set(Attribute::engine_config_engine, engine);
        config.finalize();
        consider(config, engine);
      } catch (const Refused& refusal) {
        fastest_.refused(refusal.what());
      }
    }
  }

 private:
  bool is_over() const { return fastest_.found() && seconds_since(start_) > limits_.seconds; }

  void consider(const Descriptor& config, const Descriptor& engine) {
    try {
      seen_.insert(engine.int64(Attribute::engine_global_index));
      if (!limits_.tf32 && rounds(engine)) {
        fastest_.refused("the engine rounds f32 operands, which the suite forbids");
        return;
      }
      fastest_.consider(std::make_unique<BackendPiece>(library_, problem_, config));
    } catch (const Refused& refusal) {
      fastest_.refused(refusal.what());
    }
  }

  // PyTorch's rule if tf32 is not allowed.
  static bool rounds(const Descriptor& engine) {
    constexpr std::int64_t kMaxNotes = 32;
    for (const int note :
         engine.numbers(Attribute::engine_numerical_notes, ValueType::numerical_note, kMaxNotes))
      if (note == static_cast<int>(NumericalNote::tensor_core) ||
          note == static_cast<int>(NumericalNote::down_convert_inputs))
        return true;
    return false;
  }

  const Library& library_;
  const std::shared_ptr<const Problem> problem_;
  const SearchLimits limits_;
  Fastest& fastest_;
  std::set<std::int64_t> seen_;  // engines
  const Clock::time_point start_ = Clock::now();
};

bool has_convolution(const Subgraph& subgraph) {
  for (std::size_t i = 0; i < subgraph.size(); ++i) {
    const Op& op = subgraph.node(i).op;
    if (std::holds_alternative<ConvForward>(op) || std::holds_alternative<ConvBackwardData>(op) ||
        std::holds_alternative<ConvBackwardFilter>(op))
      return true;
  }
  return false;
}

}  // namespace

void consider_backend(const Library& library, const Subgraph& subgraph, Bindings& bindings,
                      const SearchLimits& limits, Fastest& fastest) {
  std::shared_ptr<const Problem> problem;
  try {
    problem = std::make_shared<const Problem>(library, subgraph, bindings);
  } catch (const Refused& refusal) {
    fastest.refused(refusal.what());
    return;
  }
  Search search(library, std::move(problem), limits, fastest);
  search.propose(HeuristicMode::a);
  const bool all = has_convolution(subgraph);
  if (all || !fastest.found()) search.propose(HeuristicMode::fallback);
  if (all && subgraph.size() == 1) search.all_engines();
  if (!fastest.found()) fastest.refused("no engine of the backend supports the graph");
}

}  // namespace ashlar::bench::cudnn
