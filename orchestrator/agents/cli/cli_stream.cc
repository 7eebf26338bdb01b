#include "orchestrator/agents/cli/cli_stream.h"

#include <algorithm>

#include "orchestrator/agents/llm/wire_json.h"

namespace crucible {

using Kind = CliEvent::Kind;

namespace {

std::string Shortened(std::string text, std::size_t longest) {
  if (text.size() > longest) text.resize(longest);
  return text;
}

// A tool call in a few words: what it runs or opens, else its arguments.
std::string ToolWords(const std::string& name, const Json& input) {
  std::string what;
  for (const char* field : {"command", "file_path", "filePath", "path", "pattern"}) {
    what = StringOf(input, field);
    if (!what.empty()) break;
  }
  if (what.empty() && input.is_object() && !input.empty()) what = Dump(input);
  constexpr std::size_t kLongest = 300;
  return Shortened(what.empty() ? name : name + ": " + what, kLongest);
}

std::string ErrorWords(const Json& error) {
  if (error.is_string()) return error.get<std::string>();
  if (const std::string words = StringOf(error, "message"); !words.empty()) return words;
  if (const std::string words = StringOf(Member(error, "data"), "message"); !words.empty())
    return words;
  return error.is_object() ? Shortened(Dump(error), 300) : "an error without words";
}

}  // namespace

// One line of each program. A struct, so that the header needs no JSON.
struct CliReader {
  CliTotals& totals;
  std::set<std::string>& messages;
  bool& speaking;
  std::vector<CliEvent> events;

  void Text(const std::string& text) {
    if (text.empty()) return;
    totals.last_text = Shortened(text, CliStream::kLongestText);
    events.push_back({Kind::kText, text});
  }
  void Tool(const std::string& name, const Json& input) {
    events.push_back({Kind::kToolUse, ToolWords(name, input)});
  }
  void Used() {
    totals.usage_known = true;
    events.push_back({Kind::kUsage, ""});
  }
  void Result(const std::string& text) {
    totals.has_result = true;
    events.push_back({Kind::kResult, text});
  }
  void Error(const std::string& text, bool for_good) {
    totals.error = Shortened(text, 1000);
    totals.is_error = totals.is_error || for_good;
    events.push_back({Kind::kError, totals.error});
  }

  void Claude(const Json& line);
  void Codex(const Json& line);
  void Opencode(const Json& line);
  void Gemini(const Json& line);
};

void CliReader::Claude(const Json& line) {
  const std::string type = StringOf(line, "type");
  if (type == "assistant") {
    const Json& message = Member(line, "message");
    // Each block of a message comes as its own line, with the usage of the whole message.
    if (messages.insert(StringOf(message, "id")).second) {
      ++totals.turns;
      Usage usage;
      if (ReadUsage(Member(message, "usage"), &usage)) {
        totals.usage += usage;
        Used();
      }
    }
    for (const Json& block : Member(message, "content")) {
      if (StringOf(block, "type") == "text") Text(StringOf(block, "text"));
      if (StringOf(block, "type") == "tool_use")
        Tool(StringOf(block, "name"), Member(block, "input"));
    }
  } else if (type == "result") {
    Usage usage;
    if (ReadUsage(Member(line, "usage"), &usage)) {
      totals.usage = usage;
      Used();
    }
    if (const auto turns = CountOf(line, "num_turns")) totals.turns = static_cast<int>(*turns);
    const Json& usd = Member(line, "total_cost_usd");
    if (usd.is_number()) totals.usd = usd.get<double>();
    const std::string subtype = StringOf(line, "subtype");
    totals.out_of_turns = subtype == "error_max_turns";
    const std::string text = StringOf(line, "result");
    if (Member(line, "is_error") == Json(true) || subtype.starts_with("error"))
      Error(text.empty() ? subtype : text, true);
    else if (!text.empty())
      totals.last_text = Shortened(text, CliStream::kLongestText);
    Result(text);
  }
}

void CliReader::Codex(const Json& line) {
  const std::string type = StringOf(line, "type");
  if (type == "item.completed" || type == "item.started") {
    const Json& item = Member(line, "item");
    const std::string kind = StringOf(item, "type");
    if (kind == "reasoning" || kind == "todo_list") return;
    if (kind == "error") {
      Error(StringOf(item, "message"), false);
    } else if (kind == "agent_message") {
      if (type == "item.completed") {
        ++totals.turns;
        Text(StringOf(item, "text"));
      }
    } else if (type == "item.started" || messages.insert(StringOf(item, "id")).second) {
      // Some tools tell their start and end, some only their end.
      if (type == "item.started" && !messages.insert(StringOf(item, "id")).second) return;
      ++totals.turns;
      Tool(kind, item);
    }
  } else if (type == "turn.completed" || type == "turn.failed") {
    const Json& usage = Member(line, "usage");
    if (const auto input = CountOf(usage, "input_tokens")) {
      const std::int64_t cached =
          std::min(CountOf(usage, "cached_input_tokens").value_or(0), *input);
      totals.usage +=
          Usage{*input - cached, CountOf(usage, "output_tokens").value_or(0), cached, 0};
      Used();
    }
    if (type == "turn.failed") Error(ErrorWords(Member(line, "error")), true);
    Result(totals.last_text);
  } else if (type == "error") {
    Error(ErrorWords(line), false);  // it tries again by itself; turn.failed is for good
  }
}

void CliReader::Opencode(const Json& line) {
  const std::string type = StringOf(line, "type");
  const Json& part = Member(line, "part");
  if (type == "text") {
    Text(StringOf(part, "text"));
  } else if (type == "tool_use") {
    Tool(StringOf(part, "tool"), Member(Member(part, "state"), "input"));
  } else if (type == "step_start") {
    ++totals.turns;
    totals.has_result = false;
  } else if (type == "step_finish") {
    const Json& tokens = Member(part, "tokens");
    const Json& cache = Member(tokens, "cache");
    if (tokens.is_object()) {
      // The tokens of reasoning are billed as output.
      totals.usage +=
          Usage{CountOf(tokens, "input").value_or(0),
                CountOf(tokens, "output").value_or(0) + CountOf(tokens, "reasoning").value_or(0),
                CountOf(cache, "read").value_or(0), CountOf(cache, "write").value_or(0)};
      Used();
    }
    const Json& cost = Member(part, "cost");
    if (cost.is_number()) totals.usd = totals.usd.value_or(0) + cost.get<double>();
    if (StringOf(part, "reason") == "stop") Result(totals.last_text);
  } else if (type == "error") {
    Error(ErrorWords(line.contains("error") ? Member(line, "error") : line), true);
  }
}

void CliReader::Gemini(const Json& line) {
  const std::string type = StringOf(line, "type");
  const bool words = type == "message" && StringOf(line, "role") == "assistant";
  if (words) {
    if (!speaking) {
      ++totals.turns;
      totals.last_text.clear();
    }
    const std::string piece = StringOf(line, "content");
    if (Member(line, "delta") != Json(true)) totals.last_text.clear();
    totals.last_text = Shortened(totals.last_text + piece, CliStream::kLongestText);
    if (!piece.empty()) events.push_back({Kind::kText, piece});
  } else if (type == "tool_use") {
    if (!speaking) ++totals.turns;
    Tool(StringOf(line, "tool_name"), Member(line, "parameters"));
  } else if (type == "error") {
    Error(ErrorWords(line), false);
  } else if (type == "result") {
    const Json& stats = Member(line, "stats");
    if (const auto input = CountOf(stats, "input_tokens")) {
      const std::int64_t cached = std::min(CountOf(stats, "cached").value_or(0), *input);
      totals.usage = {*input - cached, CountOf(stats, "output_tokens").value_or(0), cached, 0};
      Used();
    }
    if (StringOf(line, "status") != "success") Error(ErrorWords(Member(line, "error")), true);
    Result(totals.last_text);
  }
  speaking = words;
}

std::vector<CliEvent> CliStream::Read(const std::string& line) {
  CliReader reader{totals_, messages_, speaking_, {}};
  if (format_ == CliFormat::kPlain) {
    reader.Text(line);
    return std::move(reader.events);
  }
  const Json json = ParseJson(line);
  if (json.is_object()) {
    switch (format_) {
      case CliFormat::kClaude:
        reader.Claude(json);
        break;
      case CliFormat::kCodex:
        reader.Codex(json);
        break;
      case CliFormat::kOpencode:
        reader.Opencode(json);
        break;
      case CliFormat::kGemini:
        reader.Gemini(json);
        break;
      case CliFormat::kPlain:
        break;
    }
  }
  if (reader.events.empty()) reader.events.push_back({Kind::kOther, Shortened(line, 300)});
  return std::move(reader.events);
}

void LineSplitter::Feed(std::string_view bytes, const OnLine& on_line) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    const std::size_t room = max_bytes_ - line_.size();
    line_.append(piece.substr(0, room));
    cut_ = cut_ || piece.size() > room;
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    if (line_.ends_with('\r')) line_.pop_back();
    on_line(line_, cut_);
    line_.clear();
    cut_ = false;
  }
}

void LineSplitter::Finish(const OnLine& on_line) {
  if (!line_.empty()) on_line(line_, cut_);
  line_.clear();
  cut_ = false;
}

}  // namespace crucible
