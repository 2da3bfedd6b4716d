// Reports of graphs as one self-contained HTML page, which is also well-formed XML: no scripts, no
// resources of others, light and dark.
#pragma once

#include <span>
#include <string>

#include "../graph_report.hpp"

namespace ashlar::cli::html {

std::string explain_page(std::span<const GraphReport> reports);

}  // namespace ashlar::cli::html
