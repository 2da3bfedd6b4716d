// `ashlar doctor`: what it finds on this machine, on an emulated GPU and in broken set-ups.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/process.hpp"
#include "doctor/facts.hpp"
#include "doctor/process_libraries.hpp"

namespace ashlar::cli_test {

namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

using Environment = std::vector<std::string>;

struct Visit {
  Outcome run;
  json report;
  std::vector<std::string> problems, notes;  // kinds
};

// Each visit has an empty cache, unless the environment names one.
Visit visit(Environment environment) {
  static int count = 0;
  environment.insert(environment.begin(), "ASHLAR_CACHE=" + scratch_folder("doctor_cache") + "/" +
                                              std::to_string(count++));
  Visit result;
  result.run = ashlar({"doctor", "--json"}, environment);
  result.report = json::parse(result.run.output, nullptr, false);
  EXPECT_FALSE(result.report.is_discarded()) << result.run.output << result.run.errors;
  if (result.report.is_discarded()) return result;
  for (const json& finding : result.report["findings"])
    (finding["severity"] == "problem" ? result.problems : result.notes)
        .push_back(finding["kind"].get<std::string>());
  EXPECT_EQ(result.report["healthy"], result.problems.empty());
  EXPECT_EQ(result.run.exit_code, result.problems.empty() ? 0 : 1) << result.run.errors;
  return result;
}

Environment emulated(const std::string& options = "devices=1") {
  const std::string folder = ASHLAR_EMULATOR_FOLDER;
  return {"LD_LIBRARY_PATH=" + folder, "ASHLAR_NVRTC=" + folder + "/libnvrtc.so",
          "ASHLAR_CUBLASLT=off", "EMULATED_CUDA=" + options};
}

// A folder with a libcudnn.so.9 made from a text in C++.
std::string fake_cudnn(const std::string& folder_name, const std::string& text) {
  const std::string folder = scratch_folder(folder_name);
  write_text(folder + "/fake.cpp", text);
  const std::string command = std::string(ASHLAR_COMPILER) +
                              " -shared -fPIC -Wl,-soname,libcudnn.so.9 -o '" + folder +
                              "/libcudnn.so.9' '" + folder + "/fake.cpp'";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  return folder;
}
std::string fake_version(int version) {
  return "extern \"C\" unsigned long cudnnGetVersion() { return " + std::to_string(version) + "; }";
}

TEST(Doctor, TellsAboutThisMachine) {
  const Visit seen = visit({});
  for (const char* field :
       {"gpus", "driver", "libraries", "cache", "bundles", "trials", "findings"})
    EXPECT_TRUE(seen.report.contains(field)) << field;
  EXPECT_EQ(seen.report["libraries"].size(), 4);
  for (const json& trial : seen.report["trials"]) EXPECT_EQ(trial["ok"], true) << trial;
  EXPECT_THAT(ashlar({"doctor"}, {"ASHLAR_CACHE=" + scratch_folder("doctor_text")}).output,
              HasSubstr("healthy\n"));
}

TEST(Doctor, RunsAKernelOnAGpu) {
  const Visit seen = visit(emulated());
  ASSERT_EQ(seen.report["gpus"].size(), 1) << seen.report;
  EXPECT_EQ(seen.report["gpus"][0]["compute_capability"], "9.0");
  // Nothing may start the driver before the children that use it: it does not survive a fork.
  EXPECT_EQ(seen.report["libraries"][0]["copies"][0]["place"], "LD_LIBRARY_PATH");
  ASSERT_EQ(seen.report["trials"].size(), 2);
  for (const json& trial : seen.report["trials"]) {
    EXPECT_EQ(trial["device"], "cuda:0");
    EXPECT_EQ(trial["ok"], true) << trial;
  }
}

TEST(Doctor, MissesNvrtcWhereThereIsAGpu) {
  Environment environment = emulated();
  environment.emplace_back("ASHLAR_NVRTC=/nowhere/libnvrtc.so");
  const Visit seen = visit(environment);
  EXPECT_THAT(seen.problems, Contains("no-nvrtc"));
  EXPECT_EQ(seen.report["libraries"][1]["path"], "");
}

TEST(Doctor, ComparesDriverCompilerAndCapability) {
  EXPECT_THAT(visit(emulated("version=11000")).problems, Contains("driver-unusable"));
  EXPECT_THAT(visit(emulated("start_error=999")).problems, Contains("driver-unusable"));
  EXPECT_THAT(visit(emulated("capability=70")).problems, Contains("gpu-too-old"));

  cli::Facts facts;
  facts.opened = {{"libcuda", true, "", "/lib/libcuda.so.1", 12040},
                  {"libnvrtc", true, "", "/lib/libnvrtc.so.13", 13000}};
  EXPECT_EQ(cli::judge(facts).at(0).kind, "nvrtc-newer-than-driver");
  facts.opened[1].version = 12040;
  EXPECT_TRUE(cli::judge(facts).empty());
  facts.gpus.resize(1);
  facts.gpus[0].compute_capability = 120;
  EXPECT_EQ(cli::judge(facts).at(0).kind, "nvrtc-too-old");
}

TEST(Doctor, AMissingDriverIsAProblemOnlyBesideAGpu) {
  cli::Facts facts;
  facts.opened = {{"libcuda", false, "no NVIDIA driver: libcuda.so.1: not found", "", 0}};
  EXPECT_TRUE(cli::is_healthy(cli::judge(facts)));
  EXPECT_EQ(cli::judge(facts).at(0).kind, "no-driver");
  facts.has_nvidia_hardware = true;
  EXPECT_FALSE(cli::is_healthy(cli::judge(facts)));
  EXPECT_EQ(cli::judge(facts).at(0).kind, "no-driver");
  EXPECT_NE(cli::judge(facts).at(0).fix, "");
}

TEST(Doctor, TwoPartsOfADriverMustBeOfOneVersion) {
  cli::Facts facts;
  facts.kernel_driver = "580.82.07";
  facts.copies = {{{"libcuda", "/lib/libcuda.so.1", "/lib/libcuda.so.570.10.01", "", false, true},
                   {"570.10.01", "", ""}}};
  EXPECT_EQ(cli::judge(facts).at(0).kind, "driver-mismatch");
  facts.kernel_driver = "570.10.01";
  EXPECT_TRUE(cli::judge(facts).empty());
}

TEST(Doctor, TwoCopiesOnTheLoaderPath) {
  const std::string first = fake_cudnn("cudnn_a", fake_version(91900));
  const std::string second = fake_cudnn("cudnn_b", fake_version(90100));
  const Visit seen = visit({"LD_LIBRARY_PATH=" + first + ":" + second});
  EXPECT_THAT(seen.problems, Contains("two-copies"));
  EXPECT_EQ(seen.report["libraries"][3]["path"], first + "/libcudnn.so.9");
  EXPECT_EQ(seen.report["libraries"][3]["copies"][0]["version"], "9.19.0");
  EXPECT_EQ(seen.report["libraries"][3]["copies"][0]["maker"], "NVIDIA");
  EXPECT_EQ(seen.report["libraries"][3]["copies"][1]["version"], "9.1.0");
  EXPECT_EQ(seen.report["libraries"][3]["copies"][1]["place"], "LD_LIBRARY_PATH");
}

TEST(Doctor, KnowsAshlarsOwnLibrary) {
  const std::string folder =
      fake_cudnn("cudnn_own", fake_version(91900) +
                                  "extern \"C\" { extern const int ashlar_cudnn_marker; "
                                  "const int ashlar_cudnn_marker = 1; }");
  const Visit seen = visit({"LD_LIBRARY_PATH=" + folder});
  EXPECT_EQ(seen.report["libraries"][3]["copies"][0]["maker"], "Ashlar");
}

TEST(Doctor, AWrongLibraryIsPreloaded) {
  const std::string other = fake_cudnn("cudnn_preload", "int nothing() { return 0; }");
  // A program under the address sanitizer would not start.
  const std::string start_anyway = "ASAN_OPTIONS=verify_asan_link_order=0";
  EXPECT_THAT(visit({"LD_PRELOAD=" + other + "/libcudnn.so.9", start_anyway}).problems,
              Contains("wrong-preload"));
}

TEST(Doctor, SurvivesALibraryThatDoesNot) {
  const std::string folder =
      fake_cudnn("cudnn_crash",
                 "#include <cstdlib>\n__attribute__((constructor)) void die() { std::abort(); }");
  const Visit seen = visit({"LD_LIBRARY_PATH=" + folder});
  EXPECT_THAT(seen.problems, Contains("broken-library"));
  EXPECT_THAT(seen.report["libraries"][3]["copies"][0]["trouble"].get<std::string>(),
              HasSubstr("signal 6"));
}

TEST(Doctor, ACacheThatCannotBeWritten) {
  const std::string file = scratch_folder("doctor_files") + "/file";
  write_text(file, "no folder");
  const Visit seen = visit({"ASHLAR_CACHE=" + file + "/cache"});
  EXPECT_THAT(seen.problems, Contains("cache-unusable"));
}

TEST(Doctor, ACacheThatOthersMayWrite) {
  const std::string folder = scratch_folder("doctor_open/cubin");
  std::filesystem::permissions(folder, std::filesystem::perms::all);
  const Visit seen = visit({"ASHLAR_CACHE=" + scratch_folder("doctor_open")});
  ASSERT_THAT(seen.problems, Contains("cache-unusable"));
  EXPECT_THAT(seen.report.dump(), HasSubstr("chmod 700 '" + folder + "'"));
}

TEST(Doctor, DamagedEntriesOfTheCache) {
  const std::string folder = scratch_folder("doctor_damaged");
  const std::string name = folder + "/cubin/0123456789abcdef0123456789abcdef";
  std::filesystem::create_directory(folder + "/cubin");
  std::filesystem::permissions(folder + "/cubin", std::filesystem::perms::owner_all);
  EXPECT_THAT(visit({"ASHLAR_CACHE=" + folder}).problems, Not(Contains("cache-damaged")));
  write_text(name, "ashlar cache entry 2\n3 4 0000000000000000\nkeybyte");
  const Visit seen = visit({"ASHLAR_CACHE=" + folder});
  EXPECT_THAT(seen.problems, Contains("cache-damaged"));
  EXPECT_EQ(seen.report["cache"]["damaged"], json::array({name}));
}

TEST(Doctor, AFileThatIsNoBundle) {
  const std::string bundle = scratch_folder("doctor_files") + "/no.bundle";
  write_text(bundle, "nothing of the kind");
  EXPECT_THAT(visit({"ASHLAR_BUNDLE=" + bundle}).problems, Contains("bundle-unusable"));
}

TEST(Doctor, KernelsOfAFolder) {
  const std::string folder = scratch_folder("doctor_kernels");
  write_text(folder + "/pointwise.cuh", "no kernel");
  Environment environment = emulated();
  environment.push_back("ASHLAR_KERNELS=" + folder);
  const Visit seen = visit(environment);
  EXPECT_EQ(seen.report["kernel_folder"], folder);
  EXPECT_THAT(seen.problems, Contains("kernel-fails"));
  EXPECT_THAT(seen.report["findings"].dump(), HasSubstr("other-kernels"));
  EXPECT_THAT(visit({}).report["findings"].dump(), Not(HasSubstr("other-kernels")));
}

// A process that has opened these files, until the end of the scope.
class Patient {
 public:
  explicit Patient(const std::vector<std::string>& files) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    process_ = fork();
    if (process_ == 0) {
      for (const std::string& file : files)
        if (dlopen(file.c_str(), RTLD_NOW) == nullptr) _exit(1);
      if (write(ends[1], "!", 1) != 1) _exit(1);
      for (;;) pause();
    }
    close(ends[1]);
    char ready = 0;
    EXPECT_EQ(read(ends[0], &ready, 1), 1);
    close(ends[0]);
  }
  ~Patient() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  Patient(const Patient&) = delete;
  Patient& operator=(const Patient&) = delete;
  Outcome examine() const {
    return ashlar({"doctor", "--json", "--pid", std::to_string(process_)});
  }

 private:
  pid_t process_ = -1;
};

TEST(DoctorOfAProcess, TellsWhatIsLoaded) {
  const std::string first = fake_cudnn("cudnn_c", fake_version(91900)) + "/libcudnn.so.9";
  const std::string second = fake_cudnn("cudnn_d", fake_version(90100)) + "/libcudnn.so.9";
  const Outcome one = Patient({first}).examine();
  EXPECT_EQ(one.exit_code, 0) << one.output << one.errors;
  EXPECT_EQ(json::parse(one.output)["libraries"][0]["path"], first);
  const Outcome two = Patient({first, second}).examine();
  EXPECT_EQ(two.exit_code, 1) << two.output << two.errors;
  EXPECT_THAT(two.output, HasSubstr("two copies of libcudnn are mapped"));
}

TEST(DoctorOfAProcess, WithoutAnyOfTheLibraries) {
  const Outcome run = ashlar({"doctor", "--pid", std::to_string(getpid())});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.output, HasSubstr("no libraries"));
}

TEST(DoctorOfAProcess, ThatIsNotThere) {
  const Outcome run = ashlar({"doctor", "--pid", "999999999"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.errors, "ashlar: there is no process 999999999\n");
  EXPECT_EQ(ashlar({"doctor", "--pid", "-3"}).exit_code, 2);
}

TEST(DoctorOfAProcess, ReadsVersionsInNames) {
  const auto found = cli::mapped_libraries(
      "7f00-7f01 r-xp 00000000 08:01 7  /opt/a b/libcudnn.so.9.19.0\n"
      "7f01-7f02 r--p 00001000 08:01 7  /opt/a b/libcudnn.so.9.19.0\n"
      "7f02-7f03 r-xp 00000000 08:01 8  /opt/c/libcudnn_graph.so.9.1.0 (deleted)\n"
      "7f03-7f04 r-xp 00000000 08:01 9  /lib/libc.so.6\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].path, "/opt/a b/libcudnn.so.9.19.0");
  EXPECT_EQ(found[0].version, "9.19.0");
  EXPECT_EQ(found[1].name, "libcudnn_graph");
  EXPECT_EQ(found[1].version, "9.1.0");
  EXPECT_EQ(cli::judge_mapped(found).at(0).kind, "mixed-cudnn");
}

}  // namespace

}  // namespace ashlar::cli_test
