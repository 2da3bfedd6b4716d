// The objects behind the handles of the emulated driver.
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
  int file;  // descriptor it was opened from
  const emulated::Image* image;
  emulated::ClusterState* cluster;  // null: compiled with an older shim
  emulated::TensorState* tensor;    // the same
  std::vector<KernelHandle> kernels;
};
struct KernelObject {
  LibraryHandle library;
  const emulated::Kernel* kernel;
  std::string name;
  int dynamic_shared_bytes;  // opt-in limit
};
// One stream operation; runs immediately, or on every launch of its graph.
struct GraphNodeObject {
  GraphNodeType type;
  KernelNode kernel = {};
  bool is_cooperative = false;                    // launch attribute
  unsigned cluster = 1;                           // cluster size along x
  std::vector<std::vector<char>> arguments = {};  // copies of the kernel arguments
  std::vector<void*> argument_pointers = {};      // returned by cuGraphKernelNodeGetParams
  CopyNode copy = {};
  FillNode fill = {};
  HostNode host = {};
  std::function<Result()> other = {};  // for other node types
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
  GraphHandle capture;  // null: not capturing
  bool is_broken;       // the capture was invalidated
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

// The current context of this thread; null: none.
ContextHandle current_context();
// Enqueues an operation into a stream.
Result submit(StreamHandle stream, GraphNodeObject operation);
constexpr auto kOtherNode = static_cast<GraphNodeType>(7);
// Executes an operation.
Result perform(const GraphNodeObject& operation);
Result launch(const GraphNodeObject& operation);  // of a kernel
void take_arguments(GraphNodeObject& operation);  // kernel nodes: copies the arguments
// For operations that are illegal during capture: invalidates active captures and returns true.
bool refuse_while_capturing();

// Checks that an exported function has the type that the library expects.
#define EMULATES(function, member) \
  static_assert(std::is_same_v<decltype(&function), decltype(DriverApi::member)>)
#define EMULATES_FOR_GRAPHS(function, member) \
  static_assert(std::is_same_v<decltype(&function), decltype(GraphApi::member)>)

}  // namespace emulated
