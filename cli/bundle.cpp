#include <fmt/format.h>

#include <ashlar/bundle.hpp>
#include <map>
#include <memory>

#include "commands.hpp"
#include "compile_flags.hpp"
#include "files.hpp"
#include "progress.hpp"
#include "sources.hpp"

namespace ashlar::cli {

namespace {

struct BundleFlags : CompileFlags {
  std::vector<std::string> sources;
  std::string architecture, out, list;
};

int list_bundle(const std::string& path) {
  const BundleContents contents = read_bundle(path);
  struct Total {
    int count = 0;
    std::int64_t bytes = 0;
  };
  std::map<std::string, Total> by_name;
  for (const BundleContents::Kernel& kernel : contents.kernels) {
    ++by_name[kernel.name].count;
    by_name[kernel.name].bytes += kernel.bytes;
  }
  fmt::print("{}: for {}, by Ashlar {}; {} kernels, {:.1f} KB, undamaged\n", path,
             contents.architecture, contents.version, contents.kernels.size(),
             static_cast<double>(contents.file_bytes) / 1e3);
  for (const auto& [name, total] : by_name)
    fmt::print("  {:<32} {:>5} of {:>9.1f} KB\n", name, total.count,
               static_cast<double>(total.bytes) / 1e3);
  return kExitOk;
}

int make_bundle(const BundleFlags& flags) {
  BundleBuilder builder = flags.device.empty() ? BundleBuilder(flags.architecture)
                                               : BundleBuilder(Device::named(flags.device));
  const std::string out =
      flags.out.empty() ? fmt::format("ashlar_{}.bundle", builder.architecture()) : flags.out;
  Progress progress;
  int graphs = 0;
  for (const std::string& source : flags.sources)
    for (const bench::SuiteGraph& one : graphs_of(source)) {
      progress.stage(fmt::format("planning {}", one.name));
      builder.add(Graph::from_json(one.graph), flags.chosen_options());
      ++graphs;
    }
  const std::string file = builder.build([&](int done, int all) {
    progress.stage(fmt::format("compiled {} of {} kernels", done, all));
  });
  progress.pause();
  write_file(out, file);
  fmt::print("{}: {} kernels of {} graphs for {}, {:.1f} KB\n", out, builder.kernel_count(), graphs,
             builder.architecture(), static_cast<double>(file.size()) / 1e3);
  if (const int without = builder.regions_without_kernel(); without > 0)
    fmt::print("{} regions have no kernel: the CPU runs them\n", without);
  return kExitOk;
}

}  // namespace

void add_bundle_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<BundleFlags>();
  CLI::App* command = app.add_subcommand(
      "bundle",
      "Compile the kernels of graphs into one file for a kind of GPU, which need not be present; "
      "where ASHLAR_BUNDLE names the file, nothing is compiled at run time");
  auto* list =
      command->add_option("--list", flags->list, "Check a kernel bundle and list its contents")
          ->type_name("FILE");
  auto* sources =
      command->add_option("SUITE|GRAPH.json", flags->sources,
                          "Suites (ashlar bench --device h200 --list) and graphs in JSON");
  auto* arch =
      command->add_option("--arch", flags->architecture, "Architecture: sm_90a, sm_80, ...")
          ->type_name("NAME");
  command->add_option("--out", flags->out, "File to write (default: ashlar_ARCH.bundle)")
      ->type_name("FILE");
  add_compile_flags(*command, *flags);
  list->excludes(sources);
  command->callback([flags, arch, sources, &action] {
    if (flags->list.empty()) {
      if (sources->empty()) throw CLI::RequiredError("SUITE|GRAPH.json");
      if (arch->empty() == flags->device.empty())
        throw CLI::RequiredError("either --arch or --device");
    }
    action = [flags] {
      return flags->list.empty() ? make_bundle(*flags) : list_bundle(flags->list);
    };
  });
}

}  // namespace ashlar::cli
