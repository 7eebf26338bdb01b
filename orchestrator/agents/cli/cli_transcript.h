// cli_transcript.h: what an agent did, written as it happens: one JSON object a line, one write()
// each, so that a killed orchestrator leaves whole lines. Holds no key: known ones are scrubbed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace crucible {

class CliTranscript {
 public:
  // An empty path: a transcript that writes nothing.
  static Result<CliTranscript> Open(const std::filesystem::path& path, std::int64_t max_bytes,
                                    std::vector<std::string> secrets, Clock& clock);

  // A line that the agent printed on `stream` ("out" or "err"): as JSON where it is, else a string.
  Result<> Line(const std::string& stream, const std::string& line, bool cut);
  // A row of our own, `fields` a JSON object's text; written even when the transcript is full.
  Result<> Row(const std::string& kind, const std::string& fields);

  std::string Scrub(std::string text) const;

 private:
  Result<> Write(const std::string& kind, const std::string& fields);

  std::filesystem::path path_;
  UniqueFd file_;
  std::int64_t left_bytes_ = 0;
  bool full_ = false;
  std::vector<std::string> secrets_;
  Clock* clock_ = nullptr;
};

}  // namespace crucible
