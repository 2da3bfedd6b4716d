// What the handles of the emulated driver point to.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "block_runner.hpp"
#include "cuda/driver/graph_api.hpp"

namespace ashlar::cuda {

struct ContextObject {
  DeviceOrdinal device;
};
struct LibraryObject {
  void* handle;
  int file;  // it was opened from
  const emulated::Image* image;
  emulated::ClusterState* cluster;  // null: an older shim's
  emulated::TensorState* tensor;    // the same
  std::vector<KernelHandle> kernels;
};
struct KernelObject {
  LibraryHandle library;
  const emulated::Kernel* kernel;
  std::string name;
  int dynamic_shared_bytes;  // allowed
};
// One operation of a stream; run at once, or by a graph as often as it is launched.
struct GraphNodeObject {
  GraphNodeType type;
  KernelNode kernel = {};
  bool is_cooperative = false;                    // an attribute of the kernel's node
  unsigned cluster = 1;                           // blocks of the kernel, along x
  std::vector<std::vector<char>> arguments = {};  // of the kernel, copied
  std::vector<void*> argument_pointers = {};      // what a caller who asks is given
  CopyNode copy = {};
  FillNode fill = {};
  HostNode host = {};
  std::function<Result()> other = {};  // for types that the library has no name for
  std::vector<GraphNodeHandle> after = {};
  GraphHandle graph = nullptr;
};
struct GraphObject {
  std::vector<std::unique_ptr<GraphNodeObject>> nodes;
};
struct GraphExecObject {
  std::vector<GraphNodeObject> nodes;
};
struct StreamObject {
  ContextHandle context;
  GraphHandle capture;  // null: operations run
  bool is_broken;       // the capture: something was done that cannot be captured
};
struct EventObject {
  std::chrono::steady_clock::time_point time;
  bool is_recorded;
};

}  // namespace ashlar::cuda

namespace emulated {

using namespace ashlar::cuda;

constexpr int kMaxSharedBytes = 227 << 10;
constexpr auto kInvalidContext = static_cast<Result>(201);
constexpr auto kInvalidHandle = static_cast<Result>(400);
constexpr auto kCooperativeTooLarge = static_cast<Result>(720);
constexpr auto kNotSupported = static_cast<Result>(801);
constexpr auto kCaptureInvalidated = static_cast<Result>(901);

// Current in this thread; null: none.
ContextHandle current_context();
// Puts an operation into a stream.
Result submit(StreamHandle stream, GraphNodeObject operation);
constexpr auto kOtherNode = static_cast<GraphNodeType>(7);
// Does it, now.
Result perform(const GraphNodeObject& operation);
Result launch(const GraphNodeObject& operation);  // of a kernel
void take_arguments(GraphNodeObject& operation);  // of a kernel: copies what they point to
// For what no capture may see: breaks those that go on, and is refused.
bool refuse_while_capturing();

// An exported function has the type that the library calls it by.
#define EMULATES(function, member) \
  static_assert(std::is_same_v<decltype(&function), decltype(DriverApi::member)>)
#define EMULATES_FOR_GRAPHS(function, member) \
  static_assert(std::is_same_v<decltype(&function), decltype(GraphApi::member)>)

}  // namespace emulated
