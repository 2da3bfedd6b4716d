// A program's descriptor: a draft that attributes go into until finalize, then a fixed record.
#pragma once

#include <memory>
#include <mutex>

#include "backend/record.hpp"

namespace ashlar::cudnn {

// What a descriptor has, apart from the descriptor so that a call in one thread outlasts a destroy
// in another. Members are touched under the mutex; a record, once made, never changes.
struct Contents {
  std::mutex mutex = {};
  Record draft = {};      // until finalize; its type never changes and needs no lock
  RecordRef record = {};  // from then on
};

struct Descriptor {
  static constexpr const char* kTypeName = "cudnnBackendDescriptor_t";
  std::shared_ptr<Contents> contents;
};

// Throws Failure for a pointer that is null, no descriptor, or destroyed.
std::shared_ptr<Contents> contents_of(cudnnBackendDescriptor_t descriptor, const char* parameter);

// The record of a finalized descriptor; throws Failure(NOT_FINALIZED) for any other, and
// Failure(DESCRIPTOR_TYPE) for one of another type.
RecordRef finalized(cudnnBackendDescriptor_t descriptor, const char* parameter);
RecordRef finalized(cudnnBackendDescriptor_t descriptor, cudnnBackendDescriptorType_t type,
                    const char* parameter);

}  // namespace ashlar::cudnn
