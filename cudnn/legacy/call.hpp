// Call: how a legacy call runs. It builds a small graph, takes the plan from the cache and binds
// pointers by name.
//
//   Call call(handle, "softmax_forward");
//   call.key(mode).key(x_spec).key(y_spec).blend(alpha, beta, y_spec.dtype);
//   call.compile([&](Graph& graph) {
//     call.output(graph, "y", graph.softmax(add_input(graph, "x", x_spec)), y_spec);
//   });
//   call.bind("x", x).bind("y", y).run();
#pragma once

#include <cudnn.h>

#include <array>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "core/guarded.hpp"
#include "core/handle.hpp"
#include "core/objects.hpp"
#include "core/plan_cache.hpp"
#include "core/tensor_spec.hpp"

namespace ashlar::cudnn {

class Call {
 public:
  // Throws Failure for an invalid handle.
  Call(cudnnHandle_t handle, std::string_view name);

  // Adds to the plan key: everything the plan depends on except pointers and the values of alpha
  // and beta.
  template <class T>
  Call& key(const T& value) {
    if constexpr (requires(PlanKey & whole) { add_to_key(whole, value); })
      add_to_key(key_, value);
    else
      key_.add(value);
    return *this;
  }
  // result = alpha * operation + beta * result. alpha and beta point to double for f64 data, else
  // to float; null means 1 and 0. With beta == 0 the old contents are not read, so that NaN does
  // not propagate. A call with two pairs (gradients of data and of parameters) numbers them by
  // `pair`.
  Call& blend(const void* alpha, const void* beta, DType data, int pair = 0);

  // Builds and compiles the graph unless the cache has its plan. Without options the plan uses no
  // caller workspace; it owns its scratch memory.
  Call& compile(const std::function<void(Graph&)>& build);
  Call& compile(const std::function<void(Graph&)>& build, const CompileOptions& options);

  // For use in `build`: makes `value` the output `name`, blended if blend() was called.
  void output(Graph& graph, const std::string& name, Value value, const TensorSpec& spec,
              int pair = 0);

  // Binds a pointer by tensor name, after compile(). The old contents of a blended output are bound
  // with it.
  Call& bind(std::string_view name, BoundPointer pointer);
  std::int64_t workspace_size() const { return plan_->workspace_size(); }
  const Plan& plan() const { return *plan_; }
  const Device& device() const { return context_.device; }
  void* stream() const { return context_.stream; }
  // `bytes` is the size of the caller's workspace; throws Failure(SIZE_INSUFFICIENT) when the plan
  // needs more.
  void run(void* workspace = nullptr, std::size_t bytes = 0);

 private:
  // A blend scalar in both types that a graph may read.
  struct BlendScalar {
    double value = 0.0;
    float value_f32 = 0.0F;
    const void* as(DType type) const {
      return type == f64 ? static_cast<const void*>(&value) : &value_f32;
    }
  };
  struct Blend {
    BlendScalar alpha = {1.0, 1.0F}, beta = {};
    DType type = f32;
    const char *alpha_name, *beta_name;
  };

  cudnnContext& context_;
  PlanKey key_;
  std::array<Blend, 2> blends_ = {Blend{.alpha_name = "alpha", .beta_name = "beta"},
                                  Blend{.alpha_name = "alpha.1", .beta_name = "beta.1"}};
  std::shared_ptr<const Plan> plan_;
  std::optional<Binding> binding_;
};

}  // namespace ashlar::cudnn
