// Shared by the implementation of ashlar.h: handles, the exception guard of every entry point,
// argument checks.
#pragma once

#include <ashlar/ashlar.h>

#include <ashlar/ashlar.hpp>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>

#include "base/fail.hpp"

struct ashlar_graph {
  ashlar::Graph graph;
};
struct ashlar_node {
  ashlar::Node node;
  std::optional<ashlar::DType> compute;  // chosen from the operands when absent
};
struct ashlar_plan {
  ashlar::Plan plan;
};

namespace ashlar::capi {

// Stores the message for ashlar_last_error. Never fails: a long message is truncated.
void remember_error(const char* sentence) noexcept;

// Runs the body of an entry point; no exception leaves it.
template <class Body>
ashlar_status guard(Body&& body) noexcept {
  try {
    body();
    return ASHLAR_OK;
  } catch (const Error& error) {
    remember_error(error.what());
    return static_cast<ashlar_status>(static_cast<int>(error.code()) + 1);
  } catch (const std::bad_alloc&) {
    remember_error("memory is exhausted");
    return ASHLAR_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    remember_error(error.what());
    return ASHLAR_INTERNAL;
  } catch (...) {
    remember_error("an exception of unknown type");
    return ASHLAR_INTERNAL;
  }
}

// Dereferences the pointer; null is an error that names the argument.
template <class T>
T& require(T* pointer, const char* argument) {
  if (!pointer) fail(ErrorCode::invalid_argument, "{}: got a null pointer", argument);
  return *pointer;
}

std::string_view require_text(const char* text, const char* argument);

// An array and its size; the array may be null only if the size is 0.
template <class T>
std::span<T> require_array(T* values, std::int64_t count, const char* argument) {
  if (count < 0)
    fail(ErrorCode::invalid_argument, "{}: got {} values, expected 0 or more", argument, count);
  if (!values && count > 0)
    fail(ErrorCode::invalid_argument, "{}: got a null pointer for {} values", argument, count);
  return {values, static_cast<std::size_t>(count)};
}

// Copies text to the caller by the rules at the head of ashlar.h.
void copy_text(std::string_view text, char* buffer, std::size_t capacity, std::size_t* needed);

// The element at an index that the caller gives.
template <class Rows>
const auto& row_at(const Rows& rows, std::int32_t index) {
  if (index < 0 || std::cmp_greater_equal(index, rows.size()))
    fail(ErrorCode::invalid_argument, "index: got {}, expected 0 to {}", index,
         static_cast<std::int64_t>(rows.size()) - 1);
  return rows[static_cast<std::size_t>(index)];
}

// Structs that grow: callers compiled against another version pass another size, and only the
// common prefix is read or written. A struct that has grown specialises its size in the first
// version.
template <class Struct>
inline constexpr std::size_t kFirstSize = sizeof(Struct);

template <class Struct>
void init_sized(Struct* target) {
  if (!target) return;
  *target = {};
  target->size = sizeof(Struct);
}
template <class Struct>
void require_size(const Struct& given) {
  if (given.size < kFirstSize<Struct>)
    fail(ErrorCode::invalid_argument,
         "size of the struct: got {}, expected {}; call its _init function first", given.size,
         sizeof(Struct));
}
// The caller's struct over the defaults.
template <class Struct>
Struct read_sized(const Struct& given, Struct defaults) {
  require_size(given);
  std::memcpy(static_cast<void*>(&defaults), &given, std::min(given.size, sizeof(Struct)));
  return defaults;
}
template <class Struct>
void write_sized(Struct& target, Struct result) {
  require_size(target);
  result.size = target.size;
  std::memcpy(static_cast<void*>(&target), &result, std::min(target.size, sizeof(Struct)));
}

DType dtype_from_c(ashlar_dtype dtype);
Device device_from_c(const char* name);
// Strings of the result point into `tensor`.
ashlar_tensor tensor_to_c(const Tensor& tensor);
ashlar_plan_notes notes_to_c(const PlanNotes& notes);

struct Request {
  Device device;
  CompileOptions options;
};
Request request_from_c(const ashlar_compile_options* given);  // null: the defaults

}  // namespace ashlar::capi
