// Programmatic dependent launch: back-to-back GEMMs, each reading the previous result, give the
// same bits as with a synchronisation after each.
#include <array>
#include <ashlar/plan.hpp>
#include <map>

#include "captured_run.hpp"
#include "engine_agrees.hpp"
#include "gpu_check.hpp"
#include "support/test_device.hpp"

namespace ashlar::cuda {
namespace {

struct Chain {
  std::int64_t rows;         // rows of x
  DType weights = bf16;      // i4: with block scales over 128 elements
  bool never_change = true;  // false: the weights of every GEMM are written just before it
};

// y = tanh(x w), as wide as x: the input of the next layer.
Graph product(const Chain& chain, std::int64_t depth) {
  Graph graph;
  const Value x = graph.input("x", {chain.rows, depth}, bf16);
  Value w = graph.input("w", {depth, depth}, chain.weights, Layout(Dims{1, depth}));
  if (chain.weights == i4) {
    constexpr std::int64_t kBlock = 128;
    const Value scale = graph.input("scale", {depth / kBlock, depth}, bf16);
    BlockScaleDequantize op;
    op.block_size = {kBlock, 1};
    w = graph.apply(op, {{BlockScaleDequantize::x, w}, {BlockScaleDequantize::scale, scale}},
                    {BlockScaleDequantize::y}, {.dtype = bf16});
  }
  const Value sum = graph.matmul(x, w, {.dtype = f32});
  graph.output("y", graph.pointwise(PointwiseMode::tanh_fwd, std::array{sum}), {.dtype = bf16});
  return graph;
}

class GpuDependentLaunch : public GpuTest {
 protected:
  static constexpr int kLayers = 12;

  void expect_same_as_synchronised(const Chain& chain) {
    SCOPED_TRACE(testing::Message() << chain.rows << " rows, " << to_string(chain.weights));
    const std::int64_t depth = is_emulated_gpu() ? 256 : 1024;
    const Device device = Device::named("cuda:0");
    const Graph graph = product(chain, depth);
    // x, weights and scales of every layer.
    std::vector<std::map<std::string, Memory>> layers(kLayers + 1);
    for (int i = 0; i <= kLayers; ++i) {
      support::BoundMemory host(graph);
      support::fill_inputs(host, static_cast<std::uint64_t>(i + 3));
      for (const TensorId id : host.bound()) {
        const Tensor& tensor = graph.tensor(id);
        if (tensor.kind != TensorKind::input) continue;
        Memory memory(device, byte_size(tensor));
        memory.upload(host.data(id), memory.bytes());
        layers[static_cast<std::size_t>(i)].emplace(tensor.name, std::move(memory));
      }
    }
    const std::int64_t bytes = layers[0].at("w").bytes();
    const Memory current(device, bytes);
    CompileOptions options{.engine = "cuda.gemm_skinny"};
    if (chain.never_change) options.constants = {{"w", layers[0].at("w").data()}};
    const Plan plan = compile(graph, device, options), write = compile(copy_of(bytes), device);
    const Memory workspace(device, std::max<std::int64_t>(plan.workspace_size(), 8));

    const auto run_all = [&](bool pauses, void* stream = nullptr) {
      for (std::size_t i = 0; i < kLayers; ++i) {
        void* weights = layers[chain.never_change ? 0 : i].at("w").data();
        if (!chain.never_change) {
          void* const both[] = {weights, current.data()};
          write.run(both, nullptr, stream);
          weights = current.data();
        }
        if (pauses) device.synchronize();
        std::vector<void*> pointers;
        for (const TensorId id : graph.bound_tensors()) {
          const std::string& name = graph.tensor(id).name;
          pointers.push_back(name == "w"   ? weights
                             : name == "y" ? layers[i + 1].at("x").data()
                                           : layers[i].at(name).data());
        }
        plan.run(pointers, workspace.data(), stream);
        if (pauses) device.synchronize();
      }
    };
    const auto result = [&] {
      const Memory& last = layers[kLayers].at("x");
      std::vector<std::byte> bytes_of(static_cast<std::size_t>(last.bytes()));
      last.download(bytes_of.data(), last.bytes());
      return bytes_of;
    };
    run_all(true);
    const std::vector<std::byte> expected = result();
    const Stream stream;
    const Executable captured(stream, [&] { run_all(false, stream.handle()); });
    for (int again = 0; again < (is_emulated_gpu() ? 1 : 20); ++again) {
      run_all(false);
      ASSERT_TRUE(result() == expected) << "time " << again;
      captured.launch(stream);
      ASSERT_TRUE(result() == expected) << "as a captured graph, time " << again;
    }
  }

 private:
  static Graph copy_of(std::int64_t bytes) {
    Graph graph;
    const Value from = graph.input("from", {bytes}, u8);
    graph.output("to", graph.pointwise(PointwiseMode::identity, std::array{from}), {.dtype = u8});
    return graph;
  }
};

TEST_F(GpuDependentLaunch, GemvKernels) {
  for (const bool never_change : {true, false}) {
    expect_same_as_synchronised({.rows = 4, .never_change = never_change});
    expect_same_as_synchronised({.rows = 2, .weights = e4m3, .never_change = never_change});
  }
}

TEST_F(GpuDependentLaunch, WarpgroupKernels) {
  for (const bool never_change : {true, false}) {
    expect_same_as_synchronised({.rows = 24, .never_change = never_change});
    expect_same_as_synchronised({.rows = 16, .weights = e4m3, .never_change = never_change});
    expect_same_as_synchronised({.rows = 16, .weights = i4, .never_change = never_change});
  }
}

}  // namespace
}  // namespace ashlar::cuda
