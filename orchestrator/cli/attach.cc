#include "orchestrator/cli/attach.h"

#include <fmt/format.h>

#include <fstream>
#include <ostream>

#include "base/json.h"
#include "base/printable.h"
#include "orchestrator/agents/cli/cli_profile.h"

namespace crucible {
namespace {

using nlohmann::json;

constexpr std::size_t kMostBytes = 600;  // of one text
constexpr auto kLookEvery = std::chrono::milliseconds(200);

std::string Text(const json& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string Short(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.size() <= kMostBytes) return Printable(text);
  std::size_t end = kMostBytes;  // never within a UTF-8 character
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return fmt::format("{} … ({} bytes more)", Printable(text.substr(0, end)), text.size() - end);
}

// A row that is no object (nobody of crucible writes one) is still told as one.
std::string AsJson(const std::string& text) {
  const json row = json::parse(text, nullptr, false);
  return JsonText(row.is_object() ? row : json{{"kind", "text"}, {"text", ValidUtf8(text)}}) + "\n";
}

bool Runs(const MissionRow& mission) {
  return mission.state == "planned" || mission.state == "preparing" || mission.state == "running";
}

}  // namespace

std::string TranscriptView::Start(const json& row) {
  const std::string program = Text(row, "program");
  if (program.empty()) return "== " + Text(row, "model") + " ==\n";
  const auto profile = FindCliProfile(program);
  stream_.emplace(profile ? profile->format : CliFormat::kPlain);
  return "== " + program + " ==\n";
}

// What a command-line agent printed: its words and calls where its format is known, else the line.
std::string TranscriptView::Printed(const json& row, bool is_out) {
  const auto line = row.find("line");
  if (line == row.end()) return "";
  const std::string text = line->is_string() ? line->get<std::string>() : JsonText(*line);
  if (!is_out) return "! " + Short(text) + "\n";
  if (!stream_) return Short(text) + "\n";
  std::string said;
  for (const CliEvent& event : stream_->Read(text)) {
    if (event.kind == CliEvent::Kind::kText) said += Short(event.text) + "\n";
    if (event.kind == CliEvent::Kind::kToolUse) said += "> " + Short(event.text) + "\n";
    if (event.kind == CliEvent::Kind::kError) said += "! " + Short(event.text) + "\n";
    // A notice, and no event of a kind that says nothing to a reader.
    if (event.kind == CliEvent::Kind::kOther && line->is_string()) said += Short(text) + "\n";
  }
  return said;
}

std::string TranscriptView::Show(const std::string& text) {
  const json row = json::parse(text, nullptr, false);
  if (!row.is_object()) return Short(text) + "\n";
  const std::string kind = Text(row, "kind");
  if (kind == "assistant") {
    std::string said = fmt::format("-- turn {}", row.value("turn", 0));
    if (row.contains("usd") && row["usd"].is_number() && row["usd"].get<double>() > 0)
      said += fmt::format(", {:.4f} USD", row["usd"].get<double>());
    return said + "\n" + (Text(row, "text").empty() ? "" : Short(Text(row, "text")) + "\n");
  }
  if (kind == "call")
    return fmt::format("> {} {}\n", Text(row, "tool"), Short(Text(row, "arguments")));
  if (kind == "answer")
    return fmt::format("{} {}\n", row.value("error", false) ? "!" : "<", Short(Text(row, "text")));
  if (kind == "retry") return "~ " + Short(Text(row, "what")) + "\n";
  if (kind == "user") return "== mission ==\n" + Short(Text(row, "text")) + "\n";
  if (kind == "start") return Start(row);
  if (kind == "end") {
    const std::string detail = Text(row, "detail");
    return "== ended: " + Short(detail.empty() ? Text(row, "outcome") : detail) + " ==\n";
  }
  if (kind == "out" || kind == "err") return Printed(row, kind == "out");
  return Short(text) + "\n";
}

Result<> Attach(Store* store, const Workspace& workspace, const std::string& id,
                const AttachOptions& options, const std::function<bool()>& interrupted,
                std::ostream& out, Clock& clock) {
  const std::filesystem::path file = workspace.Mission(id) / "transcript.jsonl";
  TranscriptView view;
  std::string unfinished;
  std::streamoff at = 0;
  for (;;) {
    CRUCIBLE_ASSIGN(const auto mission, store->FindMission(id));
    if (!mission)
      return Fail(ErrorKind::kNotFound, "attach to mission", id, "the log has no such mission",
                  "`crucible mission list` shows them");
    // Asked before reading: what was written before the end is read after it.
    const bool over = !Runs(*mission);
    std::ifstream in(file, std::ios::binary);
    if (in) {
      in.seekg(at);
      std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
      at += static_cast<std::streamoff>(text.size());
      unfinished += text;
      for (std::size_t end; (end = unfinished.find('\n')) != std::string::npos;
           unfinished.erase(0, end + 1)) {
        const std::string row = unfinished.substr(0, end);
        out << (options.as_json ? AsJson(row) : view.Show(row));
      }
      out.flush();
    }
    if (over && at == 0)
      return Fail(ErrorKind::kNotFound, "attach to mission", id,
                  "its agent left no transcript (the proposer writes none)",
                  "see " + (workspace.Mission(id) / "agent.log").string());
    if (over || !options.follow || interrupted()) return {};
    clock.SleepFor(kLookEvery);
  }
}

}  // namespace crucible
