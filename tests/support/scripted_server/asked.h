// asked.h: what a request of either wire format asks, in one form.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace crucible {

struct Asked {
  bool anthropic = false;
  bool stream = false;
  std::string model;
  std::string first_user_text;            // tells one mission from another
  std::vector<std::string> tool_results;  // all of the history, in order
  int assistant_messages = 0;             // how far the conversation has come
  std::vector<std::string> parameters;    // names of the body's fields
  std::size_t bytes = 0;
};

Result<Asked> ReadAsked(bool anthropic, const std::string& body);

}  // namespace crucible
