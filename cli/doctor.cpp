#include <fmt/format.h>

#include <memory>

#include "commands.hpp"
#include "doctor/facts.hpp"
#include "doctor/process_libraries.hpp"

namespace ashlar::cli {

namespace {

int examine_machine(bool as_json) {
  const Facts facts = gather_facts();
  const std::vector<Finding> findings = judge(facts);
  fmt::print("{}", as_json ? facts_json(facts, findings) : facts_text(facts, findings));
  return is_healthy(findings) ? kExitOk : kExitCheckFailed;
}

int examine_process(long process, bool as_json) {
  const std::vector<MappedLibrary> libraries = libraries_of_process(process);
  const std::vector<Finding> findings = judge_mapped(libraries);
  fmt::print("{}", as_json ? mapped_json(process, libraries, findings)
                           : mapped_text(process, libraries, findings));
  return is_healthy(findings) ? kExitOk : kExitCheckFailed;
}

}  // namespace

void add_doctor_command(CLI::App& app, Action& action) {
  auto process = std::make_shared<long>(0);
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "doctor",
      "Find out why CUDA, cuDNN or Ashlar do not work here: GPUs, driver, every copy of the "
      "libraries, cache, a small kernel and a small convolution; exit code 1: not healthy");
  auto* pid = command->add_option("--pid", *process, "Tell what a running process has loaded")
                  ->type_name("N")
                  ->check(CLI::PositiveNumber);
  command->add_flag("--json", *as_json, "Print JSON");
  command->callback([=, &action] {
    action = [=] {
      return pid->empty() ? examine_machine(*as_json) : examine_process(*process, *as_json);
    };
  });
}

}  // namespace ashlar::cli
