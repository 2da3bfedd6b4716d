// Records as JSON: the graph and the configuration in a saved plan.
#pragma once

#include <string>

#include "backend/record.hpp"

namespace ashlar::cudnn {

// The record and all records it refers to. Handles and other pointers are skipped.
std::string record_to_json(const RecordRef& record);

// Finalizes every record. Throws Failure(BAD_PARAM) for malformed text.
RecordRef record_from_json(const std::string& text);

}  // namespace ashlar::cudnn
