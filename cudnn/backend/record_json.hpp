// Records as JSON: what a saved plan knows about the graph it runs.
#pragma once

#include <string>

#include "backend/record.hpp"

namespace ashlar::cudnn {

// The record and all that it refers to. Handles and other pointers are left out.
std::string record_to_json(const RecordRef& record);

// Records are finalized as a client would do. Throws Failure(BAD_PARAM) for text of another form.
RecordRef record_from_json(const std::string& text);

}  // namespace ashlar::cudnn
