// Every function with null pointers and zeros, then with a first argument that points to a foreign
// object.
#include "cudnn/bad_calls.hpp"

namespace ashlar::cudnn::test {

namespace {

// Large enough for an unchecked read; not an object of the library.
std::uint64_t foreign[64];

template <class T>
constexpr bool kIsObject = std::is_same_v<T, cudnnBackendDescriptor_t>;
// Handles and descriptors are pointers to structs; output parameters point to handles or scalars.
template <class T>
requires std::is_class_v<T> &&
    (!std::is_same_v<T, cudnnFraction_t>)constexpr bool kIsObject<T*> = true;

template <class First, class... Rest>
void add(BadCalls& calls, const std::string& name, cudnnStatus_t (*function)(First, Rest...)) {
  calls.push_back({name + ": nothing", [function] { return function(First{}, Rest{}...); }});
  if constexpr (kIsObject<First>)
    calls.push_back({name + ": foreign", [function] {
                       const auto first = static_cast<First>(static_cast<void*>(foreign));
                       return function(first, Rest{}...);
                     }});
}

}  // namespace

BadCalls bad_null_calls() {
  BadCalls calls;
#define N(function) add(calls, #function, function)
  N(cudnnActivationBackward);
  N(cudnnActivationForward);
  N(cudnnAddTensor);
  N(cudnnBackendCreateDescriptor);
  N(cudnnBackendExecute);
  N(cudnnBackendFinalize);
  N(cudnnBackendGetAttribute);
  N(cudnnBackendInitialize);
  N(cudnnBackendPopulateCudaGraph);
  N(cudnnBackendSetAttribute);
  N(cudnnBackendUpdateCudaGraph);
  N(cudnnBatchNormalizationBackward);
  N(cudnnBatchNormalizationBackwardEx);
  N(cudnnBatchNormalizationForwardInference);
  N(cudnnBatchNormalizationForwardTraining);
  N(cudnnBatchNormalizationForwardTrainingEx);
  N(cudnnBuildRNNDynamic);
  N(cudnnCTCLoss);
  N(cudnnCTCLoss_v8);
  N(cudnnConvolutionBackwardBias);
  N(cudnnConvolutionBackwardData);
  N(cudnnConvolutionBackwardFilter);
  N(cudnnConvolutionBiasActivationForward);
  N(cudnnConvolutionForward);
  N(cudnnCreate);
  N(cudnnCreateActivationDescriptor);
  N(cudnnCreateAttnDescriptor);
  N(cudnnCreateCTCLossDescriptor);
  N(cudnnCreateConvolutionDescriptor);
  N(cudnnCreateDropoutDescriptor);
  N(cudnnCreateFilterDescriptor);
  N(cudnnCreateFusedOpsConstParamPack);
  N(cudnnCreateFusedOpsPlan);
  N(cudnnCreateFusedOpsVariantParamPack);
  N(cudnnCreateLRNDescriptor);
  N(cudnnCreateOpTensorDescriptor);
  N(cudnnCreatePoolingDescriptor);
  N(cudnnCreateRNNDataDescriptor);
  N(cudnnCreateRNNDescriptor);
  N(cudnnCreateReduceTensorDescriptor);
  N(cudnnCreateSeqDataDescriptor);
  N(cudnnCreateSpatialTransformerDescriptor);
  N(cudnnCreateTensorDescriptor);
  N(cudnnCreateTensorTransformDescriptor);
  N(cudnnDeriveBNTensorDescriptor);
  N(cudnnDeriveNormTensorDescriptor);
  N(cudnnDivisiveNormalizationBackward);
  N(cudnnDivisiveNormalizationForward);
  N(cudnnDropoutBackward);
  N(cudnnDropoutForward);
  N(cudnnDropoutGetReserveSpaceSize);
  N(cudnnDropoutGetStatesSize);
  N(cudnnFindConvolutionBackwardDataAlgorithm);
  N(cudnnFindConvolutionBackwardDataAlgorithmEx);
  N(cudnnFindConvolutionBackwardFilterAlgorithm);
  N(cudnnFindConvolutionBackwardFilterAlgorithmEx);
  N(cudnnFindConvolutionForwardAlgorithm);
  N(cudnnFindConvolutionForwardAlgorithmEx);
  N(cudnnFusedOpsExecute);
  N(cudnnGetActivationDescriptor);
  N(cudnnGetActivationDescriptorSwishBeta);
  N(cudnnGetAttnDescriptor);
  N(cudnnGetBatchNormalizationBackwardExWorkspaceSize);
  N(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize);
  N(cudnnGetBatchNormalizationTrainingExReserveSpaceSize);
  N(cudnnGetCTCLossDescriptor);
  N(cudnnGetCTCLossDescriptorEx);
  N(cudnnGetCTCLossDescriptor_v8);
  N(cudnnGetCTCLossDescriptor_v9);
  N(cudnnGetCTCLossWorkspaceSize);
  N(cudnnGetCTCLossWorkspaceSize_v8);
  N(cudnnGetCallback);
  N(cudnnGetConvolution2dDescriptor);
  N(cudnnGetConvolution2dForwardOutputDim);
  N(cudnnGetConvolutionBackwardDataAlgorithmMaxCount);
  N(cudnnGetConvolutionBackwardDataAlgorithm_v7);
  N(cudnnGetConvolutionBackwardDataWorkspaceSize);
  N(cudnnGetConvolutionBackwardFilterAlgorithmMaxCount);
  N(cudnnGetConvolutionBackwardFilterAlgorithm_v7);
  N(cudnnGetConvolutionBackwardFilterWorkspaceSize);
  N(cudnnGetConvolutionForwardAlgorithmMaxCount);
  N(cudnnGetConvolutionForwardAlgorithm_v7);
  N(cudnnGetConvolutionForwardWorkspaceSize);
  N(cudnnGetConvolutionGroupCount);
  N(cudnnGetConvolutionMathType);
  N(cudnnGetConvolutionNdDescriptor);
  N(cudnnGetConvolutionNdForwardOutputDim);
  N(cudnnGetConvolutionReorderType);
  N(cudnnGetDropoutDescriptor);
  N(cudnnGetFilter4dDescriptor);
  N(cudnnGetFilterNdDescriptor);
  N(cudnnGetFilterSizeInBytes);
  N(cudnnGetFoldedConvBackwardDataDescriptors);
  N(cudnnGetFusedOpsConstParamPackAttribute);
  N(cudnnGetFusedOpsVariantParamPackAttribute);
  N(cudnnGetLRNDescriptor);
  N(cudnnGetMultiHeadAttnBuffers);
  N(cudnnGetMultiHeadAttnWeights);
  N(cudnnGetNormalizationBackwardWorkspaceSize);
  N(cudnnGetNormalizationForwardTrainingWorkspaceSize);
  N(cudnnGetNormalizationTrainingReserveSpaceSize);
  N(cudnnGetOpTensorDescriptor);
  N(cudnnGetPooling2dDescriptor);
  N(cudnnGetPooling2dForwardOutputDim);
  N(cudnnGetPoolingNdDescriptor);
  N(cudnnGetPoolingNdForwardOutputDim);
  N(cudnnGetProperty);
  N(cudnnGetRNNDataDescriptor);
  N(cudnnGetRNNDescriptor_v8);
  N(cudnnGetRNNTempSpaceSizes);
  N(cudnnGetRNNWeightParams);
  N(cudnnGetRNNWeightSpaceSize);
  N(cudnnGetReduceTensorDescriptor);
  N(cudnnGetReductionIndicesSize);
  N(cudnnGetReductionWorkspaceSize);
  N(cudnnGetSeqDataDescriptor);
  N(cudnnGetStream);
  N(cudnnGetTensor4dDescriptor);
  N(cudnnGetTensorNdDescriptor);
  N(cudnnGetTensorSizeInBytes);
  N(cudnnGetTensorTransformDescriptor);
  N(cudnnIm2Col);
  N(cudnnInitTransformDest);
  N(cudnnLRNCrossChannelBackward);
  N(cudnnLRNCrossChannelForward);
  N(cudnnMakeFusedOpsPlan);
  N(cudnnMultiHeadAttnBackwardData);
  N(cudnnMultiHeadAttnBackwardWeights);
  N(cudnnMultiHeadAttnForward);
  N(cudnnNormalizationBackward);
  N(cudnnNormalizationForwardInference);
  N(cudnnNormalizationForwardTraining);
  N(cudnnOpTensor);
  N(cudnnPoolingBackward);
  N(cudnnPoolingForward);
  N(cudnnQueryRuntimeError);
  N(cudnnRNNBackwardData_v8);
  N(cudnnRNNBackwardWeights_v8);
  N(cudnnRNNForward);
  N(cudnnRNNGetClip_v8);
  N(cudnnRNNGetClip_v9);
  N(cudnnRNNSetClip_v8);
  N(cudnnRNNSetClip_v9);
  N(cudnnReduceTensor);
  N(cudnnReorderFilterAndBias);
  N(cudnnRestoreDropoutDescriptor);
  N(cudnnScaleTensor);
  N(cudnnSetActivationDescriptor);
  N(cudnnSetActivationDescriptorSwishBeta);
  N(cudnnSetAttnDescriptor);
  N(cudnnSetCTCLossDescriptor);
  N(cudnnSetCTCLossDescriptorEx);
  N(cudnnSetCTCLossDescriptor_v8);
  N(cudnnSetCTCLossDescriptor_v9);
  N(cudnnSetConvolution2dDescriptor);
  N(cudnnSetConvolutionGroupCount);
  N(cudnnSetConvolutionMathType);
  N(cudnnSetConvolutionNdDescriptor);
  N(cudnnSetConvolutionReorderType);
  N(cudnnSetDropoutDescriptor);
  N(cudnnSetFilter4dDescriptor);
  N(cudnnSetFilterNdDescriptor);
  N(cudnnSetFusedOpsConstParamPackAttribute);
  N(cudnnSetFusedOpsVariantParamPackAttribute);
  N(cudnnSetLRNDescriptor);
  N(cudnnSetOpTensorDescriptor);
  N(cudnnSetPooling2dDescriptor);
  N(cudnnSetPoolingNdDescriptor);
  N(cudnnSetRNNDataDescriptor);
  N(cudnnSetRNNDescriptor_v8);
  N(cudnnSetReduceTensorDescriptor);
  N(cudnnSetSeqDataDescriptor);
  N(cudnnSetSpatialTransformerNdDescriptor);
  N(cudnnSetStream);
  N(cudnnSetTensor);
  N(cudnnSetTensor4dDescriptor);
  N(cudnnSetTensor4dDescriptorEx);
  N(cudnnSetTensorNdDescriptor);
  N(cudnnSetTensorNdDescriptorEx);
  N(cudnnSetTensorTransformDescriptor);
  N(cudnnSoftmaxBackward);
  N(cudnnSoftmaxForward);
  N(cudnnSpatialTfGridGeneratorBackward);
  N(cudnnSpatialTfGridGeneratorForward);
  N(cudnnSpatialTfSamplerBackward);
  N(cudnnSpatialTfSamplerForward);
  N(cudnnTransformFilter);
  N(cudnnTransformTensor);
  N(cudnnTransformTensorEx);
#undef N
  return calls;
}

}  // namespace ashlar::cudnn::test
