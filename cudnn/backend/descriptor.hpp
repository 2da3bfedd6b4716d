// cudnnBackendDescriptor_t: a mutable draft until finalize, then an immutable record.
#pragma once

#include <memory>
#include <mutex>

#include "backend/record.hpp"

namespace ashlar::cudnn {

// The contents of a descriptor. They are a separate object so that a call in one thread survives a
// destroy in another. The mutex guards the members; a record never changes.
struct Contents {
  std::mutex mutex = {};
  Record draft = {};      // until finalize; `draft.type` is constant and needs no lock
  RecordRef record = {};  // from then on
};

struct Descriptor {
  static constexpr const char* kTypeName = "cudnnBackendDescriptor_t";
  std::shared_ptr<Contents> contents;
};

// Throws Failure for a pointer that is null, foreign or destroyed.
std::shared_ptr<Contents> contents_of(cudnnBackendDescriptor_t descriptor, const char* parameter);

// The record of a finalized descriptor. Throws Failure(NOT_FINALIZED) before finalize, and
// Failure(DESCRIPTOR_TYPE) for the wrong type.
RecordRef finalized(cudnnBackendDescriptor_t descriptor, const char* parameter);
RecordRef finalized(cudnnBackendDescriptor_t descriptor, cudnnBackendDescriptorType_t type,
                    const char* parameter);

}  // namespace ashlar::cudnn
