// The attribute table, and cudnnBackendSetAttribute() and cudnnBackendGetAttribute().
#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "backend/attribute_table.hpp"
#include "backend/descriptor.hpp"
#include "backend/finalize.hpp"
#include "cudnn/scoped_descriptor.hpp"

namespace ashlar::cudnn {

namespace {

using test::last_error;
using test::ScopedDescriptor;
using test::tensor;

TEST(CudnnAttributeTable, HasEveryAttributeOnce) {
  std::set<int> names;
  std::set<int> owners;
  for (const AttributeRow& row : attribute_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.text;
    owners.insert(row.owner);
    EXPECT_EQ(find_attribute(row.name), &row);
    EXPECT_LE(row.count.min, row.count.max) << row.text;
    const bool is_descriptor = row.elements.accepts(CUDNN_TYPE_BACKEND_DESCRIPTOR);
    EXPECT_EQ(is_descriptor, row.elements.descriptors != 0) << row.text;
    // Attribute names start with the name of their descriptor type.
    EXPECT_EQ(std::string(row.text).rfind("CUDNN_ATTR_", 0), 0U);
  }
  EXPECT_EQ(names.size(), 293U);
  EXPECT_EQ(owners.size(), 44U);
  EXPECT_EQ(find_attribute(-1), nullptr);
  EXPECT_EQ(find_attribute(10), nullptr);
  EXPECT_EQ(find_attribute(1 << 20), nullptr);
}

// Every attribute rejects other element types, other descriptors, wrong counts and null.
TEST(CudnnAttributes, MisuseOfEveryAttributeIsRejected) {
  const std::vector<char> room(4096, 0);
  for (const AttributeRow& row : attribute_rows()) {
    const ScopedDescriptor own(row.owner);
    const auto set = [&](const ScopedDescriptor& on, int type, std::int64_t count,
                         const void* elements) {
      return cudnnBackendSetAttribute(on, row.name, static_cast<cudnnBackendAttributeType_t>(type),
                                      count, elements);
    };
    if (row.access == Access::get_only) {
      EXPECT_EQ(set(own, row.elements.type, 1, room.data()), CUDNN_STATUS_BAD_PARAM) << row.text;
      EXPECT_EQ(cudnnBackendGetAttribute(own, row.name, row.elements.type, 0, nullptr, nullptr),
                CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED)
          << row.text;
      continue;
    }
    for (int type = CUDNN_TYPE_HANDLE; type <= CUDNN_TYPE_MOE_GROUPED_MATMUL_MODE; ++type)
      if (!row.elements.accepts(type)) {
        EXPECT_EQ(set(own, type, 1, room.data()), CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE)
            << row.text;
        EXPECT_EQ(
            cudnnBackendGetAttribute(own, row.name, static_cast<cudnnBackendAttributeType_t>(type),
                                     0, nullptr, nullptr),
            CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE)
            << row.text;
      }
    EXPECT_EQ(set(own, row.elements.type, -1, room.data()), CUDNN_STATUS_BAD_PARAM) << row.text;
    EXPECT_EQ(set(own, row.elements.type, row.count.max + 1, room.data()),
              CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND)
        << row.text;
    if (row.count.min > 0) {
      EXPECT_EQ(set(own, row.elements.type, 0, room.data()),
                CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT)
          << row.text;
    }
    EXPECT_EQ(set(own, row.elements.type, row.count.min + (row.count.min == 0), nullptr),
              CUDNN_STATUS_BAD_PARAM_NULL_POINTER)
        << row.text;
    const auto other_type = row.owner == CUDNN_BACKEND_TENSOR_DESCRIPTOR
                                ? CUDNN_BACKEND_MATMUL_DESCRIPTOR
                                : CUDNN_BACKEND_TENSOR_DESCRIPTOR;
    const ScopedDescriptor other(other_type);
    EXPECT_EQ(set(other, row.elements.type, 1, room.data()), CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE)
        << row.text;
    // Enumerations, descriptors and handles are validated.
    if (element_size(row.elements.type) == 4 && !is_value_of(row.elements.type, 1 << 20)) {
      const std::int32_t none = 1 << 20;
      EXPECT_EQ(set(own, row.elements.type, 1, &none), CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND)
          << row.text;
    }
    if (row.elements.descriptors != 0 || row.elements.type == CUDNN_TYPE_HANDLE) {
      EXPECT_EQ(set(own, row.elements.type, 1, room.data()), CUDNN_STATUS_BAD_PARAM_NULL_POINTER)
          << row.text;
      const void* foreign = &room;
      EXPECT_EQ(set(own, row.elements.type, 1, &foreign), CUDNN_STATUS_BAD_PARAM) << row.text;
    }
    if (row.elements.descriptors != 0) {
      const ScopedDescriptor knob(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
      const cudnnBackendDescriptor_t element = knob;
      EXPECT_EQ(set(own, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &element),
                CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED)
          << row.text;
    }
  }
}

TEST(CudnnAttributes, GetReturnsWhatWasSet) {
  const ScopedDescriptor x = tensor(7, {2, 3, 4}, CUDNN_DATA_HALF);
  std::int64_t count = 0, dims[8] = {};
  ASSERT_EQ(
      cudnnBackendGetAttribute(x, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 8, &count, dims),
      CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(count, 3);
  EXPECT_EQ(dims[2], 4);
  // A small capacity: writes the elements that fit and returns the total count.
  dims[1] = -5;
  ASSERT_EQ(
      cudnnBackendGetAttribute(x, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 1, &count, dims),
      CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(count, 3);
  EXPECT_EQ(dims[1], -5);
  // Only the count; and no count.
  count = 0;
  EXPECT_EQ(cudnnBackendGetAttribute(x, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 0, &count,
                                     nullptr),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(count, 3);
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  EXPECT_EQ(cudnnBackendGetAttribute(x, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1,
                                     nullptr, &type),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(type, CUDNN_DATA_HALF);
  // An attribute that is not set has its default.
  bool is_virtual = true;
  EXPECT_EQ(cudnnBackendGetAttribute(x, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &count,
                                     &is_virtual),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(count, 1);
  EXPECT_FALSE(is_virtual);
}

TEST(CudnnAttributes, DescriptorsAreReadIntoTheCallersDescriptors) {
  ScopedDescriptor x = tensor(7, {2, 3});
  const ScopedDescriptor y = tensor(8, {3, 2});
  const ScopedDescriptor reshape = ScopedDescriptor(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
                                                    {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x},
                                                     {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y}})
                                       .done();
  x = ScopedDescriptor(CUDNN_BACKEND_MATMUL_DESCRIPTOR);  // the operation keeps the tensor
  const ScopedDescriptor mine(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  cudnnBackendDescriptor_t out = mine;
  std::int64_t count = 0, uid = 0;
  ASSERT_EQ(cudnnBackendGetAttribute(reshape, CUDNN_ATTR_OPERATION_RESHAPE_XDESC,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &out),
            CUDNN_STATUS_SUCCESS)
      << last_error();
  EXPECT_EQ(count, 1);
  ASSERT_EQ(cudnnBackendGetAttribute(mine, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1,
                                     nullptr, &uid),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(uid, 7);
  out = x;  // of another type
  EXPECT_EQ(cudnnBackendGetAttribute(reshape, CUDNN_ATTR_OPERATION_RESHAPE_XDESC,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &out),
            CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE);
}

TEST(CudnnAttributes, FloatAndDoubleAreInterchangeable) {
  const ScopedDescriptor op(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                            {{CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, 0.25}});
  float narrow = 0;
  double wide = 0;
  EXPECT_EQ(cudnnBackendGetAttribute(op, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_TYPE_FLOAT, 1,
                                     nullptr, &narrow),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnBackendGetAttribute(op, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_TYPE_DOUBLE,
                                     1, nullptr, &wide),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(narrow, 0.25F);
  EXPECT_EQ(wide, 0.25);
}

TEST(CudnnAttributes, InitializeEmptiesADescriptor) {
  const ScopedDescriptor x = tensor(1, {4});
  EXPECT_EQ(x.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, std::int64_t{2}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(cudnnBackendInitialize(x), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(x.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, std::int64_t{2}), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(x.finalize(), CUDNN_STATUS_BAD_PARAM);  // without dims
}

// Computed attributes come from the object that finalize built.
TEST(CudnnAttributes, ComputedAttributesComeFromFinalize) {
  struct Notes : Finished {
    std::optional<AttributeValue> computed(cudnnBackendAttributeName_t name) const override {
      if (name != CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) return {};
      return std::vector<std::int64_t>{CUDNN_NUMERICAL_NOTE_WINOGRAD};
    }
  };
  const ScopedDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  Record record{CUDNN_BACKEND_ENGINE_DESCRIPTOR};
  record.finished = std::make_shared<const Notes>();
  contents_of(engine, "engine")->record = std::make_shared<const Record>(std::move(record));
  std::int64_t count = 0;
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  ASSERT_EQ(
      cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                               CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes),
      CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(notes[0], CUDNN_NUMERICAL_NOTE_WINOGRAD);
  EXPECT_EQ(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                     CUDNN_TYPE_BEHAVIOR_NOTE, 5, &count, notes),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(count, 0);
}

TEST(CudnnDescriptors, ThreadsWithSeparateDescriptorsAreIndependent) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (std::int64_t i = 0; i < 200; ++i) {
        const ScopedDescriptor x = tensor(t * 1000 + i, {i + 1, 3});
        std::int64_t dims[2] = {};
        ASSERT_EQ(cudnnBackendGetAttribute(x, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 2,
                                           nullptr, dims),
                  CUDNN_STATUS_SUCCESS);
        ASSERT_EQ(dims[0], i + 1);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

// Two threads that set, finalize and destroy the same descriptor get statuses, in any interleaving.
TEST(CudnnDescriptors, OneDescriptorInTwoThreadsReturnsStatuses) {
  for (int round = 0; round < 100; ++round) {
    cudnnBackendDescriptor_t x = nullptr;
    ASSERT_EQ(cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &x),
              CUDNN_STATUS_SUCCESS);
    const auto use = [x] {
      const std::int64_t dims[] = {2, 3}, strides[] = {3, 1}, uid = 1;
      const cudnnDataType_t type = CUDNN_DATA_FLOAT;
      std::int64_t read[2] = {};
      cudnnBackendSetAttribute(x, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 2, dims);
      cudnnBackendSetAttribute(x, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 2, strides);
      cudnnBackendSetAttribute(x, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
      cudnnBackendSetAttribute(x, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
      cudnnBackendFinalize(x);
      cudnnBackendGetAttribute(x, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 2, nullptr, read);
      return cudnnBackendDestroyDescriptor(x);
    };
    cudnnStatus_t first = CUDNN_STATUS_SUCCESS, second = CUDNN_STATUS_SUCCESS;
    std::thread one([&] { first = use(); });
    std::thread two([&] { second = use(); });
    one.join();
    two.join();
    // Exactly one destroy succeeded.
    EXPECT_NE(first == CUDNN_STATUS_SUCCESS, second == CUDNN_STATUS_SUCCESS);
  }
}

}  // namespace

}  // namespace ashlar::cudnn
