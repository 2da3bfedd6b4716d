// libcudnn (NVIDIA's, or another with its ABI), loaded from a path.
#pragma once

#include <ashlar/device.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "names.hpp"

namespace ashlar::bench::cudnn {

using Status = int;  // 0: success
using Handle = struct HandleObject*;
using LegacyTensor = struct LegacyTensorObject*;
using LegacyPooling = struct LegacyPoolingObject*;
using LegacyActivation = struct LegacyActivationObject*;
using LegacyDropout = struct LegacyDropoutObject*;

// One pointer per function. The legacy ones are null for a library that has only the graph API.
struct Functions {
  std::size_t (*version)() = nullptr;  // 91900 for 9.19.0
  const char* (*error_string)(Status status) = nullptr;
  void (*last_error)(char* text, std::size_t bytes) = nullptr;
  Status (*create)(Handle* handle) = nullptr;
  Status (*destroy)(Handle handle) = nullptr;

  Status (*create_descriptor)(DescriptorType type, void** descriptor) = nullptr;
  Status (*destroy_descriptor)(void* descriptor) = nullptr;
  Status (*finalize)(void* descriptor) = nullptr;
  Status (*set_attribute)(void* descriptor, Attribute name, ValueType type, std::int64_t count,
                          const void* elements) = nullptr;
  Status (*get_attribute)(void* descriptor, Attribute name, ValueType type, std::int64_t wanted,
                          std::int64_t* count, void* elements) = nullptr;
  Status (*execute)(Handle handle, void* plan, void* variant_pack) = nullptr;

  Status (*create_tensor)(LegacyTensor* tensor) = nullptr;
  Status (*destroy_tensor)(LegacyTensor tensor) = nullptr;
  Status (*set_tensor)(LegacyTensor tensor, DataType type, int rank, const int* dims,
                       const int* strides) = nullptr;
  Status (*transform)(Handle handle, const void* alpha, LegacyTensor x_form, const void* x,
                      const void* beta, LegacyTensor y_form, void* y) = nullptr;

  Status (*softmax_forward)(Handle handle, int algorithm, int mode, const void* alpha,
                            LegacyTensor x_form, const void* x, const void* beta,
                            LegacyTensor y_form, void* y) = nullptr;
  Status (*softmax_backward)(Handle handle, int algorithm, int mode, const void* alpha,
                             LegacyTensor y_form, const void* y, LegacyTensor dy_form,
                             const void* dy, const void* beta, LegacyTensor dx_form,
                             void* dx) = nullptr;

  Status (*create_pooling)(LegacyPooling* pooling) = nullptr;
  Status (*destroy_pooling)(LegacyPooling pooling) = nullptr;
  Status (*set_pooling)(LegacyPooling pooling, int mode, NanPropagation nan, int axes,
                        const int* window, const int* padding, const int* stride) = nullptr;
  Status (*pooling_forward)(Handle handle, LegacyPooling pooling, const void* alpha,
                            LegacyTensor x_form, const void* x, const void* beta,
                            LegacyTensor y_form, void* y) = nullptr;
  Status (*pooling_backward)(Handle handle, LegacyPooling pooling, const void* alpha,
                             LegacyTensor y_form, const void* y, LegacyTensor dy_form,
                             const void* dy, LegacyTensor x_form, const void* x, const void* beta,
                             LegacyTensor dx_form, void* dx) = nullptr;

  Status (*create_activation)(LegacyActivation* activation) = nullptr;
  Status (*destroy_activation)(LegacyActivation activation) = nullptr;
  Status (*set_activation)(LegacyActivation activation, int mode, NanPropagation nan,
                           double coefficient) = nullptr;

  Status (*batch_norm_forward_workspace)(Handle handle, int mode, int operations,
                                         LegacyTensor x_form, LegacyTensor z_form,
                                         LegacyTensor y_form, LegacyTensor channel_form,
                                         LegacyActivation activation, std::size_t* bytes) = nullptr;
  Status (*batch_norm_backward_workspace)(Handle handle, int mode, int operations,
                                          LegacyTensor x_form, LegacyTensor y_form,
                                          LegacyTensor dy_form, LegacyTensor dz_form,
                                          LegacyTensor dx_form, LegacyTensor channel_form,
                                          LegacyActivation activation,
                                          std::size_t* bytes) = nullptr;
  Status (*batch_norm_reserve)(Handle handle, int mode, int operations, LegacyActivation activation,
                               LegacyTensor x_form, std::size_t* bytes) = nullptr;
  Status (*batch_norm_forward)(Handle handle, int mode, int operations, const void* alpha,
                               const void* beta, LegacyTensor x_form, const void* x,
                               LegacyTensor z_form, const void* z, LegacyTensor y_form, void* y,
                               LegacyTensor channel_form, const void* scale, const void* bias,
                               double momentum, void* running_mean, void* running_variance,
                               double epsilon, void* saved_mean, void* saved_inv_variance,
                               LegacyActivation activation, void* workspace,
                               std::size_t workspace_bytes, void* reserve,
                               std::size_t reserve_bytes) = nullptr;
  Status (*batch_norm_backward)(Handle handle, int mode, int operations, const void* alpha_data,
                                const void* beta_data, const void* alpha_parameters,
                                const void* beta_parameters, LegacyTensor x_form, const void* x,
                                LegacyTensor y_form, const void* y, LegacyTensor dy_form,
                                const void* dy, LegacyTensor dz_form, void* dz,
                                LegacyTensor dx_form, void* dx, LegacyTensor channel_form,
                                const void* scale, const void* bias, void* dscale, void* dbias,
                                double epsilon, const void* saved_mean,
                                const void* saved_inv_variance, LegacyActivation activation,
                                void* workspace, std::size_t workspace_bytes, void* reserve,
                                std::size_t reserve_bytes) = nullptr;

  Status (*create_dropout)(LegacyDropout* dropout) = nullptr;
  Status (*destroy_dropout)(LegacyDropout dropout) = nullptr;
  Status (*dropout_state_bytes)(Handle handle, std::size_t* bytes) = nullptr;
  Status (*dropout_reserve_bytes)(LegacyTensor x_form, std::size_t* bytes) = nullptr;
  Status (*set_dropout)(LegacyDropout dropout, Handle handle, float probability, void* states,
                        std::size_t bytes, unsigned long long seed) = nullptr;
  Status (*dropout_forward)(Handle handle, LegacyDropout dropout, LegacyTensor x_form,
                            const void* x, LegacyTensor y_form, void* y, void* reserve,
                            std::size_t bytes) = nullptr;
};

// The library's reason for refusing a call or a graph; the peer tries the next plan.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The library with one handle, on the default stream.
class Library {
 public:
  // Throws Error(io) if it cannot be opened, Error(device) if creating a handle fails.
  Library(const std::string& path, const Device& device);
  Library(const Functions& functions, const Device& device);  // for tests: functions in the program
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const Functions& call() const { return functions_; }
  Handle handle() const { return handle_; }
  const Device& device() const { return device_; }
  std::string version() const;  // "cuDNN 9.19.0"
  // Throws Refused with the library's message.
  void check(Status status, const char* what) const;

 private:
  void start();
  struct Close {
    void operator()(void* opened) const;
  };
  std::unique_ptr<void, Close> opened_;
  Functions functions_;
  Device device_;
  Handle handle_ = nullptr;
};

}  // namespace ashlar::bench::cudnn
