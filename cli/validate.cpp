#include <fmt/format.h>

#include <memory>

#include "commands.hpp"
#include "files.hpp"

namespace ashlar::cli {

namespace {

constexpr const char* kGraphHelp = "Graph in JSON (docs/graph-json.md), - for standard input";

int validate(const std::string& path) {
  const Graph graph = read_graph(path);
  fmt::print("{}: valid, {} nodes, {} tensors, hash {:016x}\n", graph.name(), graph.nodes().size(),
             graph.tensors().size(), graph.structural_hash());
  return kExitOk;
}

int print(const std::string& path, bool json) {
  const Graph graph = read_graph(path);
  const std::string text = json ? graph.to_json() : graph.to_text();
  fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n");
  return kExitOk;
}

}  // namespace

void add_validate_command(CLI::App& app, Action& action) {
  auto path = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("validate", "Check a graph and say what is wrong with it");
  command->add_option("GRAPH", *path, kGraphHelp)->required();
  command->callback([path, &action] { action = [path] { return validate(*path); }; });
}

void add_print_command(CLI::App& app, Action& action) {
  auto path = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("print", "Print a graph with all that was inferred, as text or JSON");
  command->add_option("GRAPH", *path, kGraphHelp)->required();
  command->add_flag("--json", *json, "JSON instead of text");
  command->callback([=, &action] { action = [=] { return print(*path, *json); }; });
}

}  // namespace ashlar::cli
