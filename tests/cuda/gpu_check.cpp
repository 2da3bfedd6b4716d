#include "cuda/gpu_check.hpp"

#include <algorithm>
#include <ashlar/memory.hpp>
#include <cstring>

#include "api/backends.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kMargin = 256;  // guard zone before and after each tensor
constexpr std::byte kPaint{0xA5};

// The tensors of a graph on the GPU, each at least `offset` bytes past its guard zone, at a
// multiple of its element size.
class Copies {
 public:
  Copies(const support::BoundMemory& host, const Device& device, std::int64_t offset)
      : host_(host), offset_(offset) {
    for (std::size_t i = 0; i < host.bound().size(); ++i) {
      const std::int64_t start = start_of(i), bytes = start + byte_size(tensor(i)) + kMargin;
      memory_.emplace_back(device, bytes);
      std::vector<std::byte> painted(static_cast<std::size_t>(bytes), kPaint);
      std::memcpy(painted.data() + start, host.pointers()[i],
                  static_cast<std::size_t>(byte_size(tensor(i))));
      memory_.back().upload(painted.data(), bytes);
      // Scalars stay on the host.
      pointers_.push_back(tensor(i).kind == TensorKind::scalar
                              ? host.pointers()[i]
                              : static_cast<std::byte*>(memory_.back().data()) + start);
    }
  }
  std::span<void* const> pointers() const { return pointers_; }

  // Downloads everything; false when a guard zone was overwritten.
  bool download() {
    bool whole = true;
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(memory_[i].bytes()));
      memory_[i].download(bytes.data(), memory_[i].bytes());
      const auto first = bytes.begin() + start_of(i), last = first + byte_size(tensor(i));
      const auto is_paint = [](std::byte b) { return b == kPaint; };
      whole = whole && std::all_of(bytes.begin(), first, is_paint) &&
              std::all_of(last, bytes.end(), is_paint);
      std::memcpy(host_.pointers()[i], &*first, static_cast<std::size_t>(last - first));
    }
    return whole;
  }

 private:
  const Tensor& tensor(std::size_t i) const { return host_.graph().tensor(host_.bound()[i]); }
  std::int64_t start_of(std::size_t i) const {
    const std::int64_t size = std::max<std::int64_t>(bit_width(tensor(i).dtype) / 8, 1);
    return kMargin + (offset_ + size - 1) / size * size;
  }
  const support::BoundMemory& host_;
  std::int64_t offset_;
  std::vector<Memory> memory_;
  std::vector<void*> pointers_;
};

std::vector<SavedChoice> choices_for(const Graph& graph, std::string_view engine,
                                     const Device& device, const CompileOptions& options) {
  const auto outline = build_plan(graph, device.props(), options, nullptr, false);
  std::vector<SavedChoice> choices;
  int taken = 0;
  for (const PlanData::Step& step : outline->steps) {
    choices.push_back({std::string(step.choice.engine->id()), step.choice.config.knobs});
    for (const Engine* candidate : backend_for(DeviceKind::cuda).engines())
      if (candidate->id() == engine && candidate->supports(step.region, device.props())) {
        choices.back() = {std::string(engine),
                          candidate->configs(step.region, device.props())[0].knobs};
        ++taken;
      }
  }
  EXPECT_GT(taken, 0) << engine << " supports no region of\n" << outline->explain();
  return choices;
}

}  // namespace

void expect_agrees(const Graph& graph, std::string_view engine, const GpuRunOptions& run) {
  const Device device = Device::named("cuda:0");
  CompileOptions options = run.options;
  options.guard = true;
  const auto choices = choices_for(graph, engine, device, options);
  const auto plan = build_plan(graph, device.props(), options, &choices, true);

  support::BoundMemory memory(graph);
  support::fill_inputs(memory, 5, run.fill);
  const Memory workspace(device, std::max<std::int64_t>(plan->workspace_bytes, 1));
  std::vector<std::byte> first;
  for (int time = 0; time < 2; ++time) {
    memory.paint_outputs();
    Copies copies(memory, device, run.offset);
    plan->run(copies.pointers(), workspace.data(), nullptr);
    EXPECT_TRUE(copies.download()) << "a tensor was overrun\n" << plan->explain();
    if (time == 0) first = memory.output_bytes();
  }
  EXPECT_EQ(memory.damage(), "") << plan->explain();
  if (plan->notes.deterministic) {
    EXPECT_EQ(memory.output_bytes(), first) << "two runs differ";
  }
  for (const Expected& expected : evaluate_reference(graph, memory.readable(), plan->notes)) {
    const Comparison comparison =
        expected.compare(graph.tensor(expected.tensor), memory.data(expected.tensor));
    EXPECT_TRUE(comparison.ok) << comparison.summary << "\n" << plan->explain();
  }
}

}  // namespace ashlar::cuda
