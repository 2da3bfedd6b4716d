#include "bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ashlar/error.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#ifndef ASHLAR_NO_OPENMP
#include <omp.h>
#endif

#include "report.hpp"
#include "suite.hpp"

namespace ashlar::bench {

namespace {

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file)
    throw Error(ErrorCode::io, fmt::format("{} cannot be written: {}", path, std::strerror(errno)));
}

std::vector<Suite> chosen_suites(const Request& request) {
  std::vector<Suite> suites = choose_suites(request.suites);
  for (Suite& suite : suites)
    std::erase_if(suite.cases, [&](const Case& one) {
      return one.name.find(request.filter) == std::string::npos;
    });
  std::erase_if(suites, [](const Suite& suite) { return suite.cases.empty(); });
  if (suites.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("no case has '{}' in its name; --list prints them", request.filter));
  return suites;
}

void list(const std::vector<Suite>& suites, const Listener& listener) {
  for (const Suite& suite : suites) {
    listener.print(fmt::format("{}: {}\n", suite.name, suite.title));
    for (const Case& one : suite.cases) listener.print(fmt::format("  {}\n", one.name));
  }
}

MeasureOptions options_of(const Request& request) {
  if (request.layout != "user" && request.layout != "best" && request.layout != "both")
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--layout: got {}, expected user, best or both", request.layout));
  return {.seconds = request.seconds.value_or(request.quick ? 0.1 : 1.0),
          .least = request.quick ? 3 : 7,
          .seed = request.seed,
          .oracle = request.oracle,
          .naive = !request.quick,
          .user_layout = request.layout != "best",
          .best_layout = request.layout != "user"};
}

}  // namespace

bool run(const Request& request, const Listener& listener) {
  const std::vector<Suite> suites = chosen_suites(request);
  const MeasureOptions options = options_of(request);
  if (request.list) {
    list(suites, listener);
    return true;
  }
#ifndef ASHLAR_NO_OPENMP
  if (request.threads > 0) omp_set_num_threads(request.threads);
#endif
  if (!request.record.empty()) std::filesystem::create_directories(request.record);

  std::size_t total = 0, done = 0;
  for (const Suite& suite : suites) total += suite.cases.size();
  const Setting setting = setting_here(request.commit, request.seed);
  listener.print(table_head(setting));
  std::vector<SuiteResult> results;
  bool right = true;
  for (const Suite& suite : suites) {
    SuiteResult& result =
        results.emplace_back(SuiteResult{suite.name, suite.title, suite.limit, suite.target, {}});
    listener.print(suite_head(result));
    for (const Case& one : suite.cases) {
      ++done;
      result.measurements.push_back(measure(one, options, [&](const std::string& what) {
        listener.progress(
            fmt::format("[{}/{}] {} {}: {}", done, total, suite.name, one.name, what));
      }));
      right = right && result.measurements.back().ok;
      listener.print(table_row(result.measurements.back()));
    }
    listener.print(suite_foot(result));
    if (!request.record.empty())
      write_file((std::filesystem::path(request.record) / (suite.name + ".json")).string(),
                 to_json(setting, {&result, 1}));
  }
  if (!request.json.empty()) write_file(request.json, to_json(setting, results));
  if (!request.html.empty()) write_file(request.html, to_html(setting, results));
  return right;
}

}  // namespace ashlar::bench
