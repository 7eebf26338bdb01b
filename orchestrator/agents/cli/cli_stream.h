// cli_stream.h: reads what a command-line agent prints, line by line. Pure: no process, no clock.
//
// Each program has its own JSON Lines; a CliStream turns them into events and keeps the totals. A
// line that is no JSON, or of a type that is not known, is an event of kind kOther and changes
// nothing: these programs print notices, and their formats grow.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/agents/llm/message.h"

namespace crucible {

enum class CliFormat {
  kClaude,    // claude -p --output-format stream-json --verbose
  kCodex,     // codex exec --json
  kOpencode,  // opencode run --format json
  kGemini,    // gemini -o stream-json
  kPlain,     // any command: a line is a text
};

struct CliEvent {
  enum class Kind { kText, kToolUse, kUsage, kResult, kError, kOther };
  Kind kind = Kind::kOther;
  std::string text;  // kText, kResult, kError: the words; kToolUse: the tool and what it is to do
};

struct CliTotals {
  int turns = 0;  // of the model, as far as the stream shows them
  Usage usage;
  bool usage_known = false;
  std::optional<double> usd;  // where the program tells it
  std::string last_text;      // of the model, cut to kLongestText
  bool has_result = false;    // the program said that it is done
  bool is_error = false;      // and that it failed, or that something went wrong for good
  bool out_of_turns = false;  // because of a limit of its own
  std::string error;
};

class CliStream {
 public:
  static constexpr std::size_t kLongestText = 16 << 10;

  explicit CliStream(CliFormat format) : format_(format) {}
  std::vector<CliEvent> Read(const std::string& line);
  const CliTotals& totals() const { return totals_; }

 private:
  friend struct CliReader;  // the formats, in cli_stream.cc

  CliFormat format_;
  CliTotals totals_;
  std::set<std::string> messages_;  // Claude's: a message comes in several lines
  bool speaking_ = false;           // Gemini's: words come in pieces
};

// Cuts bytes into lines of at most `max_bytes`; what a longer line has beyond that is dropped, so
// that a flood without line ends fills no memory.
class LineSplitter {
 public:
  explicit LineSplitter(std::size_t max_bytes) : max_bytes_(max_bytes) {}
  using OnLine = std::function<void(const std::string& line, bool cut)>;
  void Feed(std::string_view bytes, const OnLine& on_line);
  // The last line, where no line end came.
  void Finish(const OnLine& on_line);

 private:
  std::size_t max_bytes_;
  std::string line_;
  bool cut_ = false;
};

}  // namespace crucible
