#include "library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <ashlar/error.hpp>
#include <string_view>

namespace ashlar::bench::cudnn {

namespace {

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

void find_graph_functions(void* library, Functions& f, const std::string& path) {
  const bool all = find(library, "cudnnGetVersion", f.version) &&
                   find(library, "cudnnGetErrorString", f.error_string) &&
                   find(library, "cudnnGetLastErrorString", f.last_error) &&
                   find(library, "cudnnCreate", f.create) &&
                   find(library, "cudnnDestroy", f.destroy) &&
                   find(library, "cudnnBackendCreateDescriptor", f.create_descriptor) &&
                   find(library, "cudnnBackendDestroyDescriptor", f.destroy_descriptor) &&
                   find(library, "cudnnBackendFinalize", f.finalize) &&
                   find(library, "cudnnBackendSetAttribute", f.set_attribute) &&
                   find(library, "cudnnBackendGetAttribute", f.get_attribute) &&
                   find(library, "cudnnBackendExecute", f.execute);
  if (!all)
    throw Error(ErrorCode::io, fmt::format("{} is not cuDNN 9: it lacks backend functions", path));
}

void find_legacy_functions(void* library, Functions& f) {
  find(library, "cudnnCreateTensorDescriptor", f.create_tensor);
  find(library, "cudnnDestroyTensorDescriptor", f.destroy_tensor);
  find(library, "cudnnSetTensorNdDescriptor", f.set_tensor);
  find(library, "cudnnTransformTensor", f.transform);
  find(library, "cudnnSoftmaxForward", f.softmax_forward);
  find(library, "cudnnSoftmaxBackward", f.softmax_backward);
  find(library, "cudnnCreatePoolingDescriptor", f.create_pooling);
  find(library, "cudnnDestroyPoolingDescriptor", f.destroy_pooling);
  find(library, "cudnnSetPoolingNdDescriptor", f.set_pooling);
  find(library, "cudnnPoolingForward", f.pooling_forward);
  find(library, "cudnnPoolingBackward", f.pooling_backward);
  find(library, "cudnnCreateActivationDescriptor", f.create_activation);
  find(library, "cudnnDestroyActivationDescriptor", f.destroy_activation);
  find(library, "cudnnSetActivationDescriptor", f.set_activation);
  find(library, "cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize",
       f.batch_norm_forward_workspace);
  find(library, "cudnnGetBatchNormalizationBackwardExWorkspaceSize",
       f.batch_norm_backward_workspace);
  find(library, "cudnnGetBatchNormalizationTrainingExReserveSpaceSize", f.batch_norm_reserve);
  find(library, "cudnnBatchNormalizationForwardTrainingEx", f.batch_norm_forward);
  find(library, "cudnnBatchNormalizationBackwardEx", f.batch_norm_backward);
  find(library, "cudnnCreateDropoutDescriptor", f.create_dropout);
  find(library, "cudnnDestroyDropoutDescriptor", f.destroy_dropout);
  find(library, "cudnnDropoutGetStatesSize", f.dropout_state_bytes);
  find(library, "cudnnDropoutGetReserveSpaceSize", f.dropout_reserve_bytes);
  find(library, "cudnnSetDropoutDescriptor", f.set_dropout);
  find(library, "cudnnDropoutForward", f.dropout_forward);
}

// cudnnGetLastErrorString returns several messages in unspecified order; one line has the reason.
std::string first_line(std::string_view text) {
  while (!text.empty() && (text.front() == '\n' || text.front() == ' ')) text.remove_prefix(1);
  return std::string(text.substr(0, text.find('\n')));
}

}  // namespace

void Library::Close::operator()(void* opened) const { dlclose(opened); }

Library::Library(const std::string& path, const Device& device) : device_(device) {
  opened_.reset(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!opened_) throw Error(ErrorCode::io, fmt::format("the peer cannot be opened: {}", dlerror()));
  find_graph_functions(opened_.get(), functions_, path);
  find_legacy_functions(opened_.get(), functions_);
  start();
}

Library::Library(const Functions& functions, const Device& device)
    : functions_(functions), device_(device) {
  start();
}

void Library::start() {
  if (const Status status = functions_.create(&handle_); status != 0)
    throw Error(ErrorCode::device,
                fmt::format("{}: cudnnCreate: {}", version(), functions_.error_string(status)));
}

Library::~Library() { functions_.destroy(handle_); }

std::string Library::version() const {
  const std::size_t number = functions_.version();
  return fmt::format("cuDNN {}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

void Library::check(Status status, const char* what) const {
  if (status == 0) return;
  std::array<char, 4096> text{};
  functions_.last_error(text.data(), text.size());
  const std::string reason = first_line(text.data());
  throw Refused(fmt::format("{}: {}{}{}", what, functions_.error_string(status),
                            reason.empty() ? "" : ": ", reason));
}

}  // namespace ashlar::bench::cudnn
