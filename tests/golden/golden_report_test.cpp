// The list of golden cases: how far the CPU's engines are from PyTorch, in units of the bound.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ashlar/check.hpp>
#include <cmath>
#include <map>

#include "base/element.hpp"
#include "golden/golden_file.hpp"
#include "golden/run_case.hpp"
#include "graph/op_traits.hpp"

namespace ashlar {
namespace {

struct Worst {
  double error = 0.0, bound = 0.0, ratio = 0.0;
  std::int64_t elements = 0;
};

// Largest |ours - PyTorch's| / bound over all outputs of a case. The bound is the oracle's, and
// PyTorch is allowed the same error as we are.
Worst worst_of(const golden::File& file) {
  golden::Memory memory(file);
  const std::vector<Expected> expected = evaluate_reference(file.graph, memory.readable());
  golden::run_case(file, memory, {});
  Worst worst;
  for (const Expected& result : expected)
    for (std::size_t i = 0; i < file.bound.size(); ++i) {
      if (file.bound[i] != result.tensor) continue;
      const Tensor& tensor = file.graph.tensor(result.tensor);
      for (std::size_t element = 0; element < result.values.size(); ++element) {
        const double golden = round_to(tensor.dtype, file.values[i][element]);
        const double bound = 2.0 * result.bounds[element];
        if (!std::isfinite(golden) || !std::isfinite(bound)) continue;
        const double ours = read_element(tensor, memory.at(i), static_cast<std::int64_t>(element));
        const double error = std::fabs(ours - golden);
        const double ratio = error == 0.0 ? 0.0 : error / bound;
        ++worst.elements;
        if (ratio > worst.ratio) worst = {error, bound, ratio, worst.elements};
      }
    }
  return worst;
}

TEST(Goldens, AreListedWithWorstErrorOverBound) {
  struct Page {
    std::vector<std::string> lines;
    double worst_ratio = 0.0;
    std::string worst_case = "all";
  };
  std::map<std::string, Page> pages;
  for (const std::string& name : golden::case_names()) {
    const golden::File file = golden::load(name);
    const Worst worst = worst_of(file);
    EXPECT_GT(worst.elements, 0) << name << " compares nothing";
    EXPECT_LE(worst.ratio, 1.0) << name << ": error " << worst.error << ", bound " << worst.bound;
    Page& page = pages[std::string(traits_of(file.graph.nodes().back().op).doc_page)];
    page.lines.push_back(fmt::format("  {:<44} {:.3f} of the bound ({} elements)", name,
                                     worst.ratio, worst.elements));
    if (worst.ratio <= page.worst_ratio) continue;
    page.worst_ratio = worst.ratio;
    page.worst_case = name;
  }
  for (const auto& [name, page] : pages)
    fmt::print(
        "{}\nsummary: {} golden cases of {} against PyTorch, worst error {:.3f} of the bound, in "
        "{}\n",
        fmt::join(page.lines, "\n"), page.lines.size(), name, page.worst_ratio, page.worst_case);
}

}  // namespace
}  // namespace ashlar
