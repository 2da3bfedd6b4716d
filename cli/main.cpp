// The `ashlar` command.
#include <fmt/format.h>

#include <ashlar/error.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>

#include "commands.hpp"

namespace ashlar::cli {

namespace {

int exit_code_of(ErrorCode code) {
  return code == ErrorCode::internal || code == ErrorCode::device ? kExitInternal : kExitBadInput;
}

int report(const std::string& sentence, int exit_code) {
  std::fputs(fmt::format("ashlar: {}\n", sentence).c_str(), stderr);
  return exit_code;
}

int guarded(const Action& action) {
  try {
    const int code = action();
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      return report(fmt::format("standard output cannot be written: {}", std::strerror(errno)),
                    kExitBadInput);
    return code;
  } catch (const Error& error) {
    return report(error.what(), exit_code_of(error.code()));
  } catch (const std::bad_alloc&) {
    return report("there is not enough memory for this graph", kExitBadInput);
  } catch (const std::system_error& error) {
    return report(error.what(), kExitBadInput);
  } catch (const std::exception& error) {
    return report(fmt::format("internal error: {}", error.what()), kExitInternal);
  } catch (...) {
    return report("internal error of an unknown kind", kExitInternal);
  }
}

int main_command(int argc, char** argv) {
  CLI::App app(
      "Ashlar: deep-learning primitives. Describes, explains, runs and checks graphs of "
      "operations.",
      "ashlar");
  app.require_subcommand(0, 1);  // none is reported below, after mistyped ones
  app.footer(
      "Exit codes: 0 done, 1 a check failed, 2 bad input or usage, 3 internal error.\n"
      "ASHLAR_LOG=off|error|info|explain|debug sets what the library says on stderr.\n"
      "ASHLAR_TARGET=avx512|avx2|sse4|ssse3|portable limits the instructions the CPU engines use.\n"
      "ASHLAR_CACHE, ASHLAR_BUNDLE, ASHLAR_NVRTC, ASHLAR_CUBLASLT, ASHLAR_KERNELS: see "
      "docs/jit.md.");
  Action action;
  add_run_command(app, action);
  add_explain_command(app, action);
  add_validate_command(app, action);
  add_print_command(app, action);
  add_engines_command(app, action);
  add_bench_command(app, action);
  add_bundle_command(app, action);
  add_tune_command(app, action);
  add_doctor_command(app, action);
  add_version_command(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return report(fmt::format("{} (see ashlar --help)", error.what()), kExitBadInput);
  }
  if (!action) return report("a subcommand is required (see ashlar --help)", kExitBadInput);
  return action();
}

}  // namespace

}  // namespace ashlar::cli

int main(int argc, char** argv) {
  return ashlar::cli::guarded([&] { return ashlar::cli::main_command(argc, argv); });
}
