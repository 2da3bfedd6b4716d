// Plans of the backend: operation graph, heuristics, engine configurations, execution plans.
#include <fmt/format.h>

#include <chrono>

#include "piece.hpp"

namespace ashlar::bench::cudnn {

namespace {

using Clock = std::chrono::steady_clock;

// The operation graph with what a run of it is given; its plans share it.
struct Problem {
  OperationGraph operations;
  const Descriptor* graph = nullptr;
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;

  Problem(const Library& library, const Stretch& stretch, Bindings& bindings)
      : operations(library, stretch) {
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

}  // namespace

void consider_backend(const Library& library, const Stretch& stretch, Bindings& bindings,
                      const SearchLimits& limits, Fastest& fastest) {
  const Clock::time_point start = Clock::now();
  std::shared_ptr<const Problem> problem;
  try {
    problem = std::make_shared<const Problem>(library, stretch, bindings);
  } catch (const Refused& refusal) {
    fastest.refused(refusal.what());
    return;
  }
  for (const HeuristicMode mode : {HeuristicMode::a, HeuristicMode::fallback}) {
    if (fastest.found()) return;
    std::vector<Descriptor> configs;
    try {
      configs = proposals(library, *problem, mode, limits.plans);
    } catch (const Refused& refusal) {
      fastest.refused(refusal.what());
    }
    for (const Descriptor& config : configs) {
      const std::chrono::duration<double> spent = Clock::now() - start;
      if (fastest.found() && spent.count() > limits.seconds) return;
      try {
        fastest.consider(std::make_unique<BackendPiece>(library, problem, config));
      } catch (const Refused& refusal) {
        fastest.refused(refusal.what());
      }
    }
  }
  if (!fastest.found()) fastest.refused("no engine of its backend takes the graph");
}

}  // namespace ashlar::bench::cudnn
