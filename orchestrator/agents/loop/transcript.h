// transcript.h: a mission's conversation as JSON Lines, each line whole on disk before the next
// step.
//
// {"time": "…Z", "kind": "start|assistant|call|answer|user|retry|restart|end", …}. Secrets that the
// caller knows are replaced in every text, also in what goes back to the model.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace crucible {

class Transcript {
 public:
  // An empty file writes nothing.
  Transcript(std::filesystem::path file, std::vector<std::string> secrets, Clock* clock);

  // kIo when the line cannot be written: a mission does not go on unseen.
  Result<> Write(const std::string& kind, nlohmann::json fields);
  // Without the secrets, and valid UTF-8.
  std::string Clean(const std::string& text) const;

 private:
  void CleanAll(nlohmann::json* value) const;

  std::filesystem::path file_;
  std::vector<std::string> secrets_;
  Clock* clock_;
};

}  // namespace crucible
