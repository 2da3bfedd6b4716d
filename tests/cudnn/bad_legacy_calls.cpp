// Bad legacy calls: inconsistent tensors, and parameters out of range.
#include <array>

#include "cudnn/bad_calls.hpp"

namespace ashlar::cudnn::test {

namespace {

// Memory for the calls. A bad call is rejected before it reads any of it.
std::array<float, 4096> memory;
void* const kData = memory.data();
const float kOne = 1.0F, kZero = 0.0F;

template <class T, cudnnStatus_t (*kCreate)(T*), cudnnStatus_t (*kDestroy)(T)>
struct Object {
  T object = nullptr;
  Object() { kCreate(&object); }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  ~Object() { kDestroy(object); }
  operator T() const { return object; }  // NOLINT: short to write
};
using Handle = Object<cudnnHandle_t, cudnnCreate, cudnnDestroy>;
using TensorBase =
    Object<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;
using FilterBase =
    Object<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor>;
using ConvolutionBase = Object<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor,
                               cudnnDestroyConvolutionDescriptor>;
using PoolingBase =
    Object<cudnnPoolingDescriptor_t, cudnnCreatePoolingDescriptor, cudnnDestroyPoolingDescriptor>;
using ActivationBase = Object<cudnnActivationDescriptor_t, cudnnCreateActivationDescriptor,
                              cudnnDestroyActivationDescriptor>;
using OpTensorBase = Object<cudnnOpTensorDescriptor_t, cudnnCreateOpTensorDescriptor,
                            cudnnDestroyOpTensorDescriptor>;
using ReduceBase = Object<cudnnReduceTensorDescriptor_t, cudnnCreateReduceTensorDescriptor,
                          cudnnDestroyReduceTensorDescriptor>;
using Dropout =
    Object<cudnnDropoutDescriptor_t, cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor>;
using Lrn = Object<cudnnLRNDescriptor_t, cudnnCreateLRNDescriptor, cudnnDestroyLRNDescriptor>;
using Rnn = Object<cudnnRNNDescriptor_t, cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor>;
using RnnData =
    Object<cudnnRNNDataDescriptor_t, cudnnCreateRNNDataDescriptor, cudnnDestroyRNNDataDescriptor>;
using Ctc =
    Object<cudnnCTCLossDescriptor_t, cudnnCreateCTCLossDescriptor, cudnnDestroyCTCLossDescriptor>;
using Transformer =
    Object<cudnnSpatialTransformerDescriptor_t, cudnnCreateSpatialTransformerDescriptor,
           cudnnDestroySpatialTransformerDescriptor>;

struct Tensor : TensorBase {
  Tensor(int n, int c, int h, int w, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    cudnnSetTensor4dDescriptor(object, CUDNN_TENSOR_NCHW, type, n, c, h, w);
  }
};
struct Filter : FilterBase {
  Filter(int k, int c, int h, int w) {
    cudnnSetFilter4dDescriptor(object, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, k, c, h, w);
  }
};
struct Convolution : ConvolutionBase {
  Convolution() {
    cudnnSetConvolution2dDescriptor(object, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                    CUDNN_DATA_FLOAT);
  }
};
struct Pooling : PoolingBase {
  Pooling() {
    cudnnSetPooling2dDescriptor(object, CUDNN_POOLING_MAX, CUDNN_NOT_PROPAGATE_NAN, 2, 2, 0, 0, 2,
                                2);
  }
};
struct Activation : ActivationBase {
  Activation() {
    cudnnSetActivationDescriptor(object, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0.0);
  }
};
struct OpTensor : OpTensorBase {
  OpTensor() {
    cudnnSetOpTensorDescriptor(object, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT,
                               CUDNN_NOT_PROPAGATE_NAN);
  }
};
struct Reduce : ReduceBase {
  Reduce() {
    cudnnSetReduceTensorDescriptor(object, CUDNN_REDUCE_TENSOR_ADD, CUDNN_DATA_FLOAT,
                                   CUDNN_NOT_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_NO_INDICES,
                                   CUDNN_32BIT_INDICES);
  }
};

cudnnStatus_t convolve(const Tensor& x, const Filter& w, const Tensor& y) {
  return cudnnConvolutionForward(Handle(), &kOne, x, kData, w, kData, Convolution(),
                                 CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &kZero, y,
                                 kData);
}
cudnnStatus_t activate(const Tensor& x, const Tensor& y) {
  return cudnnActivationForward(Handle(), Activation(), &kOne, x, kData, &kZero, y, kData);
}
cudnnStatus_t softmax(const Tensor& x, const Tensor& y) {
  return cudnnSoftmaxForward(Handle(), CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &kOne, x,
                             kData, &kZero, y, kData);
}
cudnnStatus_t pool(const Tensor& x, const Tensor& y) {
  return cudnnPoolingForward(Handle(), Pooling(), &kOne, x, kData, &kZero, y, kData);
}
cudnnStatus_t add_tensors(const Tensor& a, const Tensor& b, const Tensor& c) {
  return cudnnOpTensor(Handle(), OpTensor(), &kOne, a, kData, &kOne, b, kData, &kZero, c, kData);
}
cudnnStatus_t reduce(const Tensor& a, const Tensor& c) {
  return cudnnReduceTensor(Handle(), Reduce(), nullptr, 0, kData, sizeof(memory), &kOne, a, kData,
                           &kZero, c, kData);
}
cudnnStatus_t batch_norm(const Tensor& x, const Tensor& y, const Tensor& parameters,
                         double epsilon) {
  return cudnnBatchNormalizationForwardInference(Handle(), CUDNN_BATCHNORM_SPATIAL, &kOne, &kZero,
                                                 x, kData, y, kData, parameters, kData, kData,
                                                 kData, kData, epsilon);
}
cudnnStatus_t set_rnn(int input, int hidden, int projected, int layers) {
  return cudnnSetRNNDescriptor_v8(Rnn(), CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS,
                                  CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT,
                                  CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH, input, hidden, projected,
                                  layers, nullptr, 0);
}
cudnnStatus_t set_rnn_data(int steps, int batch, int size, const std::array<int, 2>& lengths) {
  return cudnnSetRNNDataDescriptor(RnnData(), CUDNN_DATA_FLOAT,
                                   CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, steps, batch, size,
                                   lengths.data(), nullptr);
}

BadCalls descriptor_calls() {
  static const int huge[] = {1 << 30, 1 << 30, 1 << 30, 1 << 30}, small[] = {2, 3, 4, 5},
                   ones[] = {1, 1, 1, 1}, zero[] = {2, 0, 4, 5}, minus[] = {-1, -1, -1, -1};
  static int dims[8], strides[8], rank;
  static cudnnDataType_t type;
  return {
      {"tensor 4d: extent 0",
       [] {
         return cudnnSetTensor4dDescriptor(TensorBase(), CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 0,
                                           2, 2);
       }},
      {"tensor 4d: extent -1",
       [] {
         return cudnnSetTensor4dDescriptor(TensorBase(), CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 1, 2,
                                           -1, 2);
       }},
      {"tensor nd: rank 0",
       [] { return cudnnSetTensorNdDescriptor(TensorBase(), CUDNN_DATA_FLOAT, 0, small, ones); }},
      {"tensor nd: rank 9",
       [] { return cudnnSetTensorNdDescriptor(TensorBase(), CUDNN_DATA_FLOAT, 9, small, ones); }},
      {"tensor nd: extent 0",
       [] { return cudnnSetTensorNdDescriptor(TensorBase(), CUDNN_DATA_FLOAT, 4, zero, ones); }},
      {"tensor nd: no strides",
       [] {
         return cudnnSetTensorNdDescriptor(TensorBase(), CUDNN_DATA_FLOAT, 4, small, nullptr);
       }},
      {"tensor nd: more elements than can be counted",
       [] {
         return cudnnSetTensorNdDescriptorEx(TensorBase(), CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 4,
                                             huge);
       }},
      {"get tensor nd: capacity -1",
       [] {
         return cudnnGetTensorNdDescriptor(Tensor(1, 2, 3, 4), -1, &type, &rank, dims, strides);
       }},
      {"filter 4d: extent 0",
       [] {
         return cudnnSetFilter4dDescriptor(FilterBase(), CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, 0,
                                           3, 3);
       }},
      {"filter nd: rank 9",
       [] {
         return cudnnSetFilterNdDescriptor(FilterBase(), CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 9,
                                           small);
       }},
      {"convolution 2d: stride 0",
       [] {
         return cudnnSetConvolution2dDescriptor(ConvolutionBase(), 0, 0, 0, 1, 1, 1,
                                                CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT);
       }},
      {"convolution 2d: padding -1",
       [] {
         return cudnnSetConvolution2dDescriptor(ConvolutionBase(), -1, 0, 1, 1, 1, 1,
                                                CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT);
       }},
      {"convolution nd: dilation -1",
       [] {
         return cudnnSetConvolutionNdDescriptor(ConvolutionBase(), 2, ones, ones, minus,
                                                CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT);
       }},
      {"convolution: 0 groups", [] { return cudnnSetConvolutionGroupCount(Convolution(), 0); }},
      {"pooling 2d: window 0",
       [] {
         return cudnnSetPooling2dDescriptor(PoolingBase(), CUDNN_POOLING_MAX,
                                            CUDNN_NOT_PROPAGATE_NAN, 0, 2, 0, 0, 1, 1);
       }},
      {"pooling 2d: stride 0",
       [] {
         return cudnnSetPooling2dDescriptor(PoolingBase(), CUDNN_POOLING_MAX,
                                            CUDNN_NOT_PROPAGATE_NAN, 2, 2, 0, 0, 0, 1);
       }},
      {"lrn: 0 channels", [] { return cudnnSetLRNDescriptor(Lrn(), 0, 1e-4, 0.75, 2.0); }},
      {"lrn: 17 channels", [] { return cudnnSetLRNDescriptor(Lrn(), 17, 1e-4, 0.75, 2.0); }},
      {"lrn: k 0", [] { return cudnnSetLRNDescriptor(Lrn(), 5, 1e-4, 0.75, 0.0); }},
      {"dropout: probability 2",
       [] {
         return cudnnSetDropoutDescriptor(Dropout(), Handle(), 2.0F, kData, sizeof(memory), 1);
       }},
      {"dropout: states too small",
       [] { return cudnnSetDropoutDescriptor(Dropout(), Handle(), 0.5F, kData, 1, 1); }},
      {"transformer: rank 1",
       [] {
         return cudnnSetSpatialTransformerNdDescriptor(Transformer(), CUDNN_SAMPLER_BILINEAR,
                                                       CUDNN_DATA_FLOAT, 1, small);
       }},
      {"ctc: maximum label length -1",
       [] {
         return cudnnSetCTCLossDescriptor_v9(Ctc(), CUDNN_DATA_FLOAT,
                                             CUDNN_LOSS_NORMALIZATION_SOFTMAX,
                                             CUDNN_CTC_ZERO_OOB_GRADIENTS, -1);
       }},
      {"rnn: input 0", [] { return set_rnn(0, 4, 4, 1); }},
      {"rnn: hidden 0", [] { return set_rnn(4, 0, 0, 1); }},
      {"rnn: projection larger than hidden", [] { return set_rnn(4, 4, 8, 1); }},
      {"rnn: 0 layers", [] { return set_rnn(4, 4, 4, 0); }},
      {"rnn data: 0 steps",
       [] {
         return set_rnn_data(0, 2, 4, {1, 1});
       }},
      {"rnn data: batch 0",
       [] {
         return set_rnn_data(3, 0, 4, {1, 1});
       }},
      {"rnn data: a length past the end",
       [] {
         return set_rnn_data(3, 2, 4, {4, 1});
       }},
      {"rnn data: a length below 0",
       [] {
         return set_rnn_data(3, 2, 4, {3, -1});
       }},
  };
}

}  // namespace

BadCalls bad_legacy_calls() {
  BadCalls calls = descriptor_calls();
  const BadCalls others = {
      {"convolution forward: channels",
       [] {
         return convolve({1, 3, 8, 8}, {4, 2, 3, 3}, {1, 4, 8, 8});
       }},
      {"convolution forward: y",
       [] {
         return convolve({1, 3, 8, 8}, {4, 3, 3, 3}, {1, 4, 9, 8});
       }},
      {"convolution forward: batch",
       [] {
         return convolve({2, 3, 8, 8}, {4, 3, 3, 3}, {1, 4, 8, 8});
       }},
      {"convolution forward: a tensor that was not set",
       [] {
         return cudnnConvolutionForward(Handle(), &kOne, TensorBase(), kData, Filter(4, 3, 3, 3),
                                        kData, Convolution(),
                                        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0,
                                        &kZero, Tensor(1, 4, 8, 8), kData);
       }},
      {"convolution forward: no data",
       [] {
         return cudnnConvolutionForward(Handle(), &kOne, Tensor(1, 3, 8, 8), nullptr,
                                        Filter(4, 3, 3, 3), kData, Convolution(),
                                        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0,
                                        &kZero, Tensor(1, 4, 8, 8), kData);
       }},
      {"convolution forward: no alpha",
       [] {
         return cudnnConvolutionForward(Handle(), nullptr, Tensor(1, 3, 8, 8), kData,
                                        Filter(4, 3, 3, 3), kData, Convolution(),
                                        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0,
                                        &kZero, Tensor(1, 4, 8, 8), kData);
       }},
      {"convolution output: channels",
       [] {
         int n = 0, c = 0, h = 0, w = 0;
         return cudnnGetConvolution2dForwardOutputDim(Convolution(), Tensor(1, 3, 8, 8),
                                                      Filter(4, 2, 3, 3), &n, &c, &h, &w);
       }},
      {"backward bias: channels",
       [] {
         return cudnnConvolutionBackwardBias(Handle(), &kOne, Tensor(2, 4, 8, 8), kData, &kZero,
                                             Tensor(1, 3, 1, 1), kData);
       }},
      {"activation: shapes",
       [] {
         return activate({2, 3, 4, 4}, {2, 3, 4, 5});
       }},
      {"softmax: shapes",
       [] {
         return softmax({2, 3, 4, 4}, {2, 4, 4, 4});
       }},
      {"pooling: shapes",
       [] {
         return pool({2, 3, 8, 8}, {2, 3, 5, 4});
       }},
      {"pooling: channels",
       [] {
         return pool({2, 3, 8, 8}, {2, 2, 4, 4});
       }},
      {"op tensor: b does not broadcast",
       [] {
         return add_tensors({2, 3, 4, 4}, {2, 2, 4, 4}, {2, 3, 4, 4});
       }},
      {"op tensor: c",
       [] {
         return add_tensors({2, 3, 4, 4}, {1, 3, 1, 1}, {2, 3, 4, 5});
       }},
      {"add tensor: shapes",
       [] {
         return cudnnAddTensor(Handle(), &kOne, Tensor(1, 2, 1, 1), kData, &kOne,
                               Tensor(2, 3, 4, 4), kData);
       }},
      {"reduce: shapes",
       [] {
         return reduce({2, 3, 4, 4}, {2, 2, 1, 1});
       }},
      {"transform: shapes",
       [] {
         return cudnnTransformTensor(Handle(), &kOne, Tensor(2, 3, 4, 4), kData, &kZero,
                                     Tensor(2, 3, 4, 2), kData);
       }},
      {"batch norm: y",
       [] {
         return batch_norm({2, 3, 4, 4}, {2, 3, 4, 5}, {1, 3, 1, 1}, 1e-5);
       }},
      {"batch norm: parameters",
       [] {
         return batch_norm({2, 3, 4, 4}, {2, 3, 4, 4}, {1, 4, 1, 1}, 1e-5);
       }},
      {"batch norm: epsilon -1",
       [] {
         return batch_norm({2, 3, 4, 4}, {2, 3, 4, 4}, {1, 3, 1, 1}, -1.0);
       }},
  };
  calls.insert(calls.end(), others.begin(), others.end());
  return calls;
}

}  // namespace ashlar::cudnn::test
