// Parsing of untrusted JSON, and JsonReader.
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "graph/json.hpp"

namespace ashlar {

namespace {

std::string shorten(const Json& value) {
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  if (value.is_object()) return "an object";
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

// Parser callback with limits for untrusted text: nesting depth, members per object (lookup is
// linear), no duplicate keys.
struct JsonBounds {
  static constexpr int kMaxDepth = 64;
  static constexpr std::size_t kMaxMembers = 4096;
  std::vector<std::vector<std::string>> members;  // of the objects that are open

  bool operator()(int depth, Json::parse_event_t event, const Json& value) {
    if (depth > kMaxDepth)
      fail(ErrorCode::parse, "JSON: nesting: got more than {} levels, expected fewer", kMaxDepth);
    if (event == Json::parse_event_t::object_start) members.emplace_back();
    if (event == Json::parse_event_t::object_end) members.pop_back();
    if (event != Json::parse_event_t::key) return true;
    const auto key = value.get<std::string>();
    auto& keys = members.back();
    if (std::find(keys.begin(), keys.end(), key) != keys.end())
      fail(ErrorCode::parse, "JSON: member {}: got it twice in one object, expected it once",
           shorten(value));
    if (keys.size() == kMaxMembers)
      fail(ErrorCode::parse, "JSON: object: got more than {} members, expected fewer", kMaxMembers);
    keys.push_back(key);
    return true;
  }
};

}  // namespace

Json parse_json(std::string_view text) {
  if (text.size() > kMaxJsonBytes)
    fail(ErrorCode::parse, "JSON: got {} bytes, expected at most {}", text.size(), kMaxJsonBytes);
  JsonBounds bounds;
  try {
    return Json::parse(text, std::ref(bounds));
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorCode::parse, "JSON: {}", error.what());
  }
}

bool JsonReader::has(const char* key) const {
  require_object();
  return value_.contains(key);
}

JsonReader JsonReader::at(const char* key) const {
  require_object();
  const auto member = value_.find(key);
  if (member == value_.end())
    fail(ErrorCode::parse, "{}: got no member '{}', expected one",
         path_.empty() ? "the document" : path_, key);
  return {*member, path_.empty() ? key : path_ + "." + key};
}

JsonReader JsonReader::operator[](std::size_t index) const {
  return {value_[index], fmt::format("{}[{}]", path_, index)};
}

std::size_t JsonReader::size() const {
  require_array();
  return value_.size();
}

void JsonReader::reject(std::string_view expected) const {
  fail(ErrorCode::parse, "{}: got {}, expected {}", path_.empty() ? "the document" : path_,
       shorten(value_), expected);
}

void JsonReader::require_object() const {
  if (!value_.is_object()) reject("an object");
}

void JsonReader::require_array() const {
  if (!value_.is_array()) reject("an array");
}

void JsonReader::require_known(std::initializer_list<std::string_view> known) const {
  require_object();
  for (const auto& member : value_.items()) {
    if (std::find(known.begin(), known.end(), member.key()) != known.end()) continue;
    std::string names;
    for (std::string_view name : known) names += (names.empty() ? "" : ", ") + std::string(name);
    fail(ErrorCode::parse, "{}: got unknown member '{}', expected one of: {}",
         path_.empty() ? "the document" : path_, member.key(), names);
  }
}

std::string JsonReader::string() const {
  if (!value_.is_string()) reject("a string");
  return value_.get<std::string>();
}

std::int64_t JsonReader::integer() const {
  if (value_.is_number_unsigned() &&
      value_.get<std::uint64_t>() >
          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    reject("an integer of at most 63 bits");
  if (!value_.is_number_integer()) reject("an integer");
  return value_.get<std::int64_t>();
}

double JsonReader::number() const {
  if (value_.is_string()) {
    const std::string text = value_.get<std::string>();
    if (text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "-inf") return -std::numeric_limits<double>::infinity();
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  }
  if (!value_.is_number()) reject("a number, \"inf\", \"-inf\" or \"nan\"");
  return value_.get<double>();
}

bool JsonReader::boolean() const {
  if (!value_.is_boolean()) reject("true or false");
  return value_.get<bool>();
}

Json number_to_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  // Integral values print without a fraction, except -0, which would lose its sign.
  if (value == 0.0 && std::signbit(value)) return value;
  if (value == std::floor(value) && std::fabs(value) < 1e15)
    return static_cast<std::int64_t>(value);
  return value;
}

}  // namespace ashlar
