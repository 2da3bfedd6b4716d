// The regions of a plan as a table.
#pragma once

#include <string>

#include "../graph_report.hpp"

namespace ashlar::cli::html {

// A region as the page shows it: measured where there is a measurement, else estimated.
struct RegionFacts {
  double seconds = 0;
  Roofline roofline;
  double share() const { return seconds > 0 ? roofline.seconds() / seconds : 0; }
};
RegionFacts facts_of(const GraphReport& report, std::size_t region);

// "148 us", with the unit as typography has it.
std::string time_text(double seconds);
// A bar and "45 %".
std::string share_markup(double share);

// `id` of the graph: rows have ids id + "-r1", ...
std::string region_table(const GraphReport& report, const std::string& id);

}  // namespace ashlar::cli::html
