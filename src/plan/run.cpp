// The run path: no allocation, hashing, formatting, locking or environment access, except to report
// a failure in guard mode.
#include <algorithm>
#include <array>

#include "plan/plan_data.hpp"

namespace ashlar {

namespace {

constexpr std::byte kGuardPattern{0xA5};

// In bytes, a power of two. Complex numbers are aligned as their parts.
std::uintptr_t alignment_of(DType dtype) {
  const int bits = is_complex(dtype) ? bit_width(dtype) / 2 : bit_width(dtype);
  return static_cast<std::uintptr_t>(std::max(bits / 8, 1));
}

// Writes guard bytes on the device and checks them, in stream order.
class GuardWriter {
 public:
  GuardWriter(const Backend& backend, const DeviceProps& device, void* stream)
      : backend_(backend), device_(device), stream_(stream) {}
  void paint(std::byte* guard) const {
    backend_.fill(device_, guard, kGuardPattern, kGuardBytes, stream_);
  }
  bool is_intact(const std::byte* guard) const {
    std::array<std::byte, kGuardBytes> bytes;
    backend_.download(device_, bytes.data(), guard, kGuardBytes, stream_);
    return std::all_of(bytes.begin(), bytes.end(),
                       [](std::byte value) { return value == kGuardPattern; });
  }

 private:
  const Backend& backend_;
  const DeviceProps& device_;
  void* stream_;
};

}  // namespace

void PlanData::run(std::span<void* const> pointers, void* workspace, void* stream,
                   const Marks* marks) const {
  if (pointers.size() != bound.size())
    fail(ErrorCode::invalid_argument, "run: got {} pointers, expected {}, one per bound tensor",
         pointers.size(), bound.size());
  for (std::size_t i = 0; i < pointers.size(); ++i) {
    const Tensor& tensor = graph.tensor(bound[i]);
    const std::uintptr_t alignment = alignment_of(tensor.dtype);
    if ((reinterpret_cast<std::uintptr_t>(pointers[i]) & (alignment - 1)) != 0)
      fail(ErrorCode::invalid_argument,
           "run: pointer of '{}': got an address that is not a multiple of {}, the alignment of {}",
           tensor.name, alignment, to_string(tensor.dtype));
    if (!pointers[i] && byte_size(tensor) > 0)
      fail(ErrorCode::invalid_argument, "run: pointer of '{}': got null, expected {} bytes",
           tensor.name, byte_size(tensor));
  }
  if (arena) {
    const Arena::Lease lease(*arena, stream);
    return run_steps(pointers, lease.memory(), stream, marks);
  }
  if (workspace_bytes > 0 && !workspace)
    fail(ErrorCode::invalid_argument, "run: workspace: got null, expected {} bytes",
         workspace_bytes);
  if (reinterpret_cast<std::uintptr_t>(workspace) % kWorkspaceAlignment != 0)
    fail(ErrorCode::invalid_argument,
         "run: workspace: got an address that is not a multiple of {}, expected one that is",
         kWorkspaceAlignment);
  run_steps(pointers, static_cast<std::byte*>(workspace), stream, marks);
}

std::vector<double> PlanData::region_seconds(std::span<void* const> pointers, void* workspace,
                                             void* stream) const {
  Marks marks;
  for (std::size_t i = 0; i <= steps.size(); ++i) marks.push_back(backend->marker(device));
  run(pointers, workspace, stream, &marks);
  std::vector<double> seconds;
  for (std::size_t i = 0; i < steps.size(); ++i)
    seconds.push_back(marks[i + 1]->seconds_since(*marks[i]));
  return seconds;
}

void PlanData::run_steps(std::span<void* const> pointers, std::byte* workspace, void* stream,
                         const Marks* marks) const {
  KernelContext context(locations, pointers, workspace, stream);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    context.set_scratch(workspace + steps[i].scratch_offset);
    if (marks) (*marks)[i]->record(stream);
    if (options.guard)
      run_guarded(static_cast<int>(i), context, workspace);
    else
      steps[i].kernel->run(context);
  }
  if (marks) marks->back()->record(stream);
}

void PlanData::run_guarded(int index, KernelContext& context, std::byte* workspace) const {
  const Step& step = steps[static_cast<std::size_t>(index)];
  const GuardWriter writer(*backend, device, context.stream());
  std::byte* scratch = workspace + step.scratch_offset;
  const auto reservations = step.kernel->scratch_layout().reservations();
  const auto after = [](const ScratchLayout::Reservation& reservation) {
    return reservation.offset + (reservation.bytes + kGuardBytes - 1) / kGuardBytes * kGuardBytes;
  };
  for (const auto& reservation : reservations) {
    writer.paint(scratch + reservation.offset - kGuardBytes);
    writer.paint(scratch + after(reservation));
  }
  for (const Guard& guard : guards)
    if (guard.first_step == index) writer.paint(workspace + guard.offset);

  step.kernel->run(context);

  for (const auto& reservation : reservations)
    if (!writer.is_intact(scratch + reservation.offset - kGuardBytes) ||
        !writer.is_intact(scratch + after(reservation)))
      fail(ErrorCode::internal, "guard: {} wrote outside its scratch '{}'",
           step.choice.engine->id(), reservation.name);
  for (const Guard& guard : guards)
    if (guard.first_step <= index && index <= guard.last_step &&
        !writer.is_intact(workspace + guard.offset))
      fail(ErrorCode::internal, "guard: {} wrote outside {}", step.choice.engine->id(),
           guard.owner);
}

}  // namespace ashlar
