#include "plan/engine_choices.hpp"

#include <algorithm>
#include <map>

#include "graph/attribute_words.hpp"
#include "graph/visit_attributes.hpp"

namespace ashlar {

namespace {

// Appends everything an engine may read of a region as 64-bit words.
class KeyWriter {
 public:
  std::string take() { return std::move(key_); }

  void add(std::uint64_t word) { key_.append(reinterpret_cast<const char*>(&word), sizeof word); }
  void add(double value) { words_.add(value); }
  void add(const Dims& dims) { words_.add(dims); }
  template <class E>
  requires std::is_enum_v<E> || std::is_same_v<E, bool> || std::is_same_v<E, int>
  void add(E value) { add(static_cast<std::uint64_t>(value)); }
  template <class T>
  void add(const std::optional<T>& value) {
    add(value.has_value());
    if (value) add(*value);
  }
  // Tensors are numbered in the order in which they appear.
  void add_tensor(TensorId id) {
    if (id == kNoTensor) return add(std::uint64_t{0});
    add(static_cast<std::uint64_t>(numbers_.emplace(id, numbers_.size() + 1).first->second));
  }
  void add(const View& view) {
    add_tensor(view.tensor);
    if (!view.present()) return;
    add(static_cast<std::uint64_t>(view.offset));
    add(view.dtype);
    add(view.dims);
    add(view.strides);
    add_tensor(view.ragged_offset);
  }
  void add(const PointwiseProgram& program) {
    add(program.space);
    add(std::uint64_t{program.steps.size()});
    for (const PointwiseProgram::Step& step : program.steps) add(step);
    add(std::uint64_t{program.stores.size()});
    for (const PointwiseProgram::Store& store : program.stores) {
      add(store.view);
      add(store.value);
    }
    add(program.result);
    add(std::uint64_t{program.reduced.size()});
    for (const int value : program.reduced) add(value);
  }
  void add(const PointwiseProgram::Step& step) {
    using Kind = PointwiseProgram::Step::Kind;
    add(step.kind);
    add(step.row);
    add(step.view);
    add(step.blocks);
    add(step.constant);
    add(step.compute);
    add(step.round_to);
    if (step.kind == Kind::compute) Pointwise::attributes(step.op, words_);
    for (const int arg : step.args) add(arg);
    if (step.kind != Kind::random) return;
    Rng::attributes(step.random, words_);
    add(step.seed);
    add(step.offset);
  }
  void add(const Op& op) {
    add(std::uint64_t{op.index()});
    visit_attributes(op, words_);
  }

 private:
  struct Sink {
    KeyWriter& key;
    void operator()(std::uint64_t word) const { key.add(word); }
  };
  std::string key_;
  std::map<TensorId, std::size_t> numbers_;
  AttributeWords<Sink> words_{Sink{*this}};
};

}  // namespace

std::string region_key(const Region& region) {
  KeyWriter key;
  key.add(region.anchor.has_value());
  if (region.anchor) {
    key.add(region.anchor->op);
    key.add(region.anchor->compute);
    for (const auto* views : {&region.anchor->inputs, &region.anchor->outputs}) {
      key.add(std::uint64_t{views->size()});
      for (const View& view : *views) key.add(view);
    }
  }
  key.add(std::uint64_t{region.prologues.size()});
  for (const PointwiseProgram& prologue : region.prologues) key.add(prologue);
  key.add(region.epilogue);
  key.add(std::uint64_t{region.reductions.size()});
  for (const TailReduction& reduction : region.reductions) {
    key.add(reduction.fold);
    key.add(reduction.finish);
  }
  for (const auto* ids : {&region.reads, &region.writes}) {
    key.add(std::uint64_t{ids->size()});
    for (const TensorId id : *ids) key.add_tensor(id);
  }
  return key.take();
}

EngineChoices::Known& EngineChoices::known(const Region& region) {
  return known_[region_key(region)];
}

const Choice& EngineChoices::select(const Region& region) {
  std::optional<Choice>& choice = known(region).choice;
  if (!choice) choice = ashlar::select(region, table_, device_, options_);
  return *choice;
}

bool EngineChoices::has_engine(const Region& region, bool (*counts)(EngineKind)) const {
  return std::ranges::any_of(table_, [&](const Engine* engine) {
    return counts(engine->kind()) && engine->supports(region, device_);
  });
}

bool EngineChoices::all_store_last(const Region& region) const {
  return std::ranges::all_of(table_, [&](const Engine* engine) {
    return engine->stores_last(region) || !engine->supports(region, device_);
  });
}

bool EngineChoices::has_specialised(const Region& region) {
  std::optional<bool>& answer = known(region).has_specialised;
  if (!answer) answer = has_engine(region, [](EngineKind kind) { return !is_last_resort(kind); });
  return *answer;
}

bool EngineChoices::has_more_than_reference(const Region& region) {
  std::optional<bool>& answer = known(region).has_more_than_reference;
  if (!answer)
    answer = has_engine(region, [](EngineKind kind) { return kind != EngineKind::reference; });
  return *answer;
}

}  // namespace ashlar
