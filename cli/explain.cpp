#include <fmt/format.h>

#include <ashlar/plan.hpp>
#include <memory>

#include "commands.hpp"
#include "compile_flags.hpp"
#include "files.hpp"

namespace ashlar::cli {

void add_explain_command(CLI::App& app, Action& action) {
  struct Flags : CompileFlags {
    std::string graph;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("explain",
                                         "Show how a graph is cut, which engine runs each region "
                                         "and why; the device need not be present");
  command
      ->add_option("GRAPH", flags->graph,
                   "Graph in JSON (docs/graph-json.md), - for standard input")
      ->required();
  add_compile_flags(*command, *flags);
  command->callback([flags, &action] {
    action = [flags] {
      const Graph graph = read_graph(flags->graph);
      const std::string text =
          ashlar::explain(graph, flags->chosen_device(), flags->chosen_options());
      fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n");
      return kExitOk;
    };
  });
}

}  // namespace ashlar::cli
