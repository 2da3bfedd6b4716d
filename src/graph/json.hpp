// JSON parsing with bounds and error messages, shared by graphs and plans. Included by .cpp files
// only.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/fail.hpp"

namespace ashlar {

using Json = nlohmann::ordered_json;

inline constexpr std::size_t kMaxJsonBytes = std::size_t{64} << 20;

// Parses untrusted text within size and nesting limits; throws Error(parse).
Json parse_json(std::string_view text);

// A JSON value with its path; a wrong type or value throws Error(parse) with the path:
// "nodes[3].attributes.padding: got ..., expected ...".
class JsonReader {
 public:
  JsonReader(const Json& value, std::string path) : value_(value), path_(std::move(path)) {}

  bool has(const char* key) const;
  JsonReader at(const char* key) const;  // throws when absent
  JsonReader operator[](std::size_t index) const;
  std::size_t size() const;  // of an array
  const Json& json() const { return value_; }
  const std::string& path() const { return path_; }

  std::string string() const;
  std::int64_t integer() const;
  double number() const;  // also "inf", "-inf", "nan"
  bool boolean() const;
  void require_object() const;
  void require_array() const;
  // Rejects members that are not in `known`.
  void require_known(std::initializer_list<std::string_view> known) const;
  [[noreturn]] void reject(std::string_view expected) const;

 private:
  const Json& value_;
  std::string path_;
};

Json number_to_json(double value);

}  // namespace ashlar
