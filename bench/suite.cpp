#include "suite.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace ashlar::bench {

namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void fail(const std::string& place, const std::string& sentence) {
  throw Error(ErrorCode::parse, fmt::format("{}: {}", place, sentence));
}

// Parses JSON and rejects duplicate keys.
Json parse(const std::string& name, std::string_view text) {
  std::vector<std::set<std::string>> members;
  const Json::parser_callback_t watch = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) members.emplace_back();
    if (event == Json::parse_event_t::object_end) members.pop_back();
    if (event == Json::parse_event_t::key &&
        !members.back().insert(value.get<std::string>()).second)
      fail(name,
           fmt::format("the member '{}' appears twice in one object", value.get<std::string>()));
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::exception& error) {
    fail(name, fmt::format("not JSON: {}", error.what()));
  }
}

void require_object(const Json& json, const std::string& place) {
  if (!json.is_object()) fail(place, fmt::format("got {}, expected an object", json.dump()));
}

const Json& member(const Json& json, const std::string& key, const std::string& place) {
  const auto found = json.find(key);
  if (found == json.end()) fail(place, fmt::format("the member '{}' is missing", key));
  return *found;
}

std::string text_of(const Json& json, const std::string& place) {
  if (!json.is_string() || json.get_ref<const std::string&>().empty())
    fail(place, fmt::format("got {}, expected a nonempty string", json.dump()));
  return json.get<std::string>();
}

double number_of(const Json& json, const std::string& place) {
  if (!json.is_number()) fail(place, fmt::format("got {}, expected a number", json.dump()));
  return json.get<double>();
}

bool boolean_of(const Json& json, const std::string& place) {
  if (!json.is_boolean()) fail(place, fmt::format("got {}, expected true or false", json.dump()));
  return json.get<bool>();
}

void allow_members(const Json& json, const std::set<std::string>& known, const std::string& place) {
  for (const auto& [key, value] : json.items())
    if (!known.contains(key))
      fail(place,
           fmt::format("unknown member '{}', expected one of {}", key, fmt::join(known, ", ")));
}

Target read_target(const Json& json, const std::string& place) {
  require_object(json, place);
  allow_members(json,
                {"speed", "worst", "share", "least_share", "row_share", "row_copy_share", "naive",
                 "overhead", "apart"},
                place);
  const auto value = [&](const char* key) -> std::optional<double> {
    if (!json.contains(key)) return std::nullopt;
    return number_of(json.at(key), place + "." + key);
  };
  return {value("speed"),       value("worst"),     value("share"),
          value("least_share"), value("row_share"), value("row_copy_share"),
          value("naive"),       value("overhead"),  value("apart")};
}

// Members of a case that are not parameters of its graph.
const std::set<std::string> kCaseMembers = {"name",  "graph",      "alone", "prepare",
                                            "naive", "check",      "apart", "quick",
                                            "tf32",  "peer_fails", "far",   "back_to_back"};

// Replaces every string "$name" by the parameter of that name.
class Filler {
 public:
  Filler(const Json& parameters, std::string place)
      : parameters_(parameters), place_(std::move(place)) {}

  Json fill(const Json& json) {
    if (json.is_string()) {
      const auto& text = json.get_ref<const std::string&>();
      return text.starts_with("$") ? parameter(text.substr(1)) : json;
    }
    if (!json.is_structured()) return json;
    Json filled = json;
    for (Json& part : filled) part = fill(part);
    return filled;
  }
  const std::set<std::string>& used() const { return used_; }

 private:
  const Json& parameter(const std::string& name) {
    const auto found = parameters_.find(name);
    if (found == parameters_.end() || kCaseMembers.contains(name))
      fail(place_, fmt::format("the graph's parameter '{}' is missing", name));
    used_.insert(name);
    return *found;
  }
  const Json& parameters_;
  const std::string place_;
  std::set<std::string> used_;
};

class Reader {
 public:
  Reader(const std::string& name, std::string_view text)
      : name_(name), document_(parse(name, text)) {}

  Suite read() {
    require_object(document_, name_);
    allow_members(
        document_,
        {"format", "version", "title", "target", "limit", "graphs", "defaults", "each", "cases"},
        name_);
    if (const Json format = member(document_, "format", name_); format != "ashlar-suite")
      fail(name_ + ".format", fmt::format("got {}, expected \"ashlar-suite\"", format.dump()));
    if (const Json version = member(document_, "version", name_); version != 1)
      fail(name_ + ".version", fmt::format("got {}, expected 1", version.dump()));
    require_object(member(document_, "graphs", name_), name_ + ".graphs");
    for (const char* optional : {"defaults", "each", "target"})
      if (document_.contains(optional)) require_object(document_[optional], name_ + "." + optional);

    Suite suite;
    suite.name = name_;
    suite.title = text_of(member(document_, "title", name_), name_ + ".title");
    suite.bound_by = text_of(member(document_, "limit", name_), name_ + ".limit");
    if (document_.contains("target"))
      suite.target = read_target(document_["target"], name_ + ".target");
    read_cases(suite);
    return suite;
  }

 private:
  void read_cases(Suite& suite) {
    const Json cases = member(document_, "cases", name_);
    if (!cases.is_array() || cases.empty())
      fail(name_ + ".cases", "expected an array of at least one case");
    std::set<std::string> names, used;
    const Json defaults = document_.value("defaults", Json::object());
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const std::string place = fmt::format("{}.cases[{}]", name_, i);
      require_object(cases[i], place);
      text_of(member(cases[i], "name", place), place + ".name");
      for (const Json& variant : variants_of(cases[i])) {
        Json parameters = defaults;
        parameters.update(variant);
        suite.cases.push_back(read_case(parameters, place, used));
        const std::string& name = suite.cases.back().name;
        if (!names.insert(name).second) fail(place, fmt::format("duplicate case '{}'", name));
      }
      for (const auto& [key, value] : cases[i].items())
        if (!kCaseMembers.contains(key) && !used.contains(key))
          fail(place, fmt::format("the graph does not use the parameter '{}'", key));
    }
    for (const auto& [key, value] : defaults.items())
      if (!kCaseMembers.contains(key) && !used.contains(key))
        fail(name_ + ".defaults", fmt::format("no case uses the parameter '{}'", key));
  }

  // One case per combination of the values in `each`, named after them; parameters that the case
  // sets itself are not varied.
  std::vector<Json> variants_of(const Json& one) const {
    std::vector<Json> variants = {one};
    const Json each = document_.value("each", Json::object());
    for (const auto& [key, values] : each.items()) {
      if (!values.is_array() || values.empty())
        fail(fmt::format("{}.each.{}", name_, key), "expected an array of at least one value");
      if (one.contains(key)) continue;
      std::vector<Json> more;
      for (const Json& variant : variants)
        for (const Json& value : values) {
          Json next = variant;
          next[key] = value;
          next["name"] = fmt::format("{}_{}", variant["name"].get<std::string>(),
                                     value.is_string() ? value.get<std::string>()
                                                       : fmt::format("{}{}", key, value.dump()));
          more.push_back(std::move(next));
        }
      variants = std::move(more);
    }
    return variants;
  }

  Case read_case(const Json& parameters, const std::string& place, std::set<std::string>& used) {
    Case result;
    result.name = parameters["name"].get<std::string>();
    const std::string here = fmt::format("{} ({})", place, result.name);
    for (const char c : result.name)
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-' && c != '.')
        fail(here, "a name may contain letters, digits, '_', '-' and '.'");
    const std::string graph = text_of(member(parameters, "graph", here), here + ".graph");
    result.problem = read_problem(graph, parameters, here, used);
    if (parameters.contains("alone"))
      result.alone =
          read_problem(text_of(parameters["alone"], here + ".alone"), parameters, here, used);
    if (parameters.contains("prepare"))
      result.prepare =
          read_problem(text_of(parameters["prepare"], here + ".prepare"), parameters, here, used);
    if (parameters.contains("apart")) {
      const Json& parts = parameters["apart"];
      if (!parts.is_array() || parts.size() < 2)
        fail(here + ".apart", "expected an array of at least two graphs");
      for (const Json& part : parts)
        result.apart.push_back(
            read_problem(text_of(part, here + ".apart"), parameters, here, used));
    }
    if (parameters.contains("far")) result.far = number_of(parameters["far"], here + ".far");
    if (parameters.contains("peer_fails"))
      result.peer_fails = text_of(parameters["peer_fails"], here + ".peer_fails");
    if (parameters.contains("quick"))
      result.quick = boolean_of(parameters["quick"], here + ".quick");
    if (parameters.contains("check")) {
      require_object(parameters["check"], here + ".check");
      Json smaller = parameters;
      smaller.update(parameters["check"]);
      result.check = read_problem(graph, smaller, here, used);
      if (parameters.contains("prepare"))
        result.check_prepare =
            read_problem(text_of(parameters["prepare"], here + ".prepare"), smaller, here, used);
    }
    if (parameters.contains("naive")) {
      require_object(parameters["naive"], here + ".naive");
      Json smaller = parameters;
      smaller.update(parameters["naive"]);
      result.naive = read_problem(graph, smaller, here, used);
    }
    return result;
  }

  Problem read_problem(const std::string& graph, const Json& parameters, const std::string& place,
                       std::set<std::string>& used) {
    const Json& graphs = document_["graphs"];
    if (!graphs.contains(graph)) fail(place, fmt::format("no graph '{}' in graphs", graph));
    const std::string here = fmt::format("{}.graphs.{}", name_, graph);
    const Json& form = graphs[graph];
    require_object(form, here);
    allow_members(form, {"tensors", "nodes", "constants", "ranges"}, here);

    Filler filler(parameters, place);
    Problem problem;
    const Json whole = {{"format", "ashlar-graph"},
                        {"version", 1},
                        {"name", parameters["name"]},
                        {"tensors", filler.fill(member(form, "tensors", here))},
                        {"nodes", filler.fill(member(form, "nodes", here))}};
    problem.graph = whole.dump();
    if (parameters.contains("tf32")) problem.tf32 = boolean_of(parameters["tf32"], place + ".tf32");
    if (parameters.contains("back_to_back"))
      problem.back_to_back = boolean_of(parameters["back_to_back"], place + ".back_to_back");
    used.insert(filler.used().begin(), filler.used().end());
    for (const Json& name : form.value("constants", Json::array()))
      problem.constants.push_back(text_of(name, here + ".constants"));
    const Json ranges = form.value("ranges", Json::object());
    for (const auto& [name, range] : ranges.items()) {
      const std::string range_place = here + ".ranges." + name;
      if (!range.is_array() || range.size() != 2)
        fail(range_place, fmt::format("got {}, expected [low, high]", range.dump()));
      problem.ranges[name] = {number_of(range[0], range_place), number_of(range[1], range_place)};
    }
    return problem;
  }

  const std::string name_;
  const Json document_;
};

}  // namespace

Suite read_suite(const std::string& name, std::string_view text) {
  return Reader(name, text).read();
}

}  // namespace ashlar::bench
