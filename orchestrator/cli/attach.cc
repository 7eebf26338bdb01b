#include "orchestrator/cli/attach.h"

#include <fmt/format.h>

#include <fstream>
#include <ostream>

#include "base/json.h"

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
  if (text.size() <= kMostBytes) return text;
  std::size_t end = kMostBytes;  // never within a UTF-8 character
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return fmt::format("{} … ({} bytes more)", text.substr(0, end), text.size() - end);
}

bool Runs(const MissionRow& mission) {
  return mission.state == "planned" || mission.state == "preparing" || mission.state == "running";
}

}  // namespace

std::string TranscriptText(const std::string& text) {
  const json row = json::parse(text, nullptr, false);
  if (!row.is_object()) return text + "\n";
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
  if (kind == "retry") return "~ " + Text(row, "what") + "\n";
  if (kind == "user") return "== mission ==\n" + Short(Text(row, "text")) + "\n";
  if (kind == "start") return "== " + Text(row, "model") + " ==\n";
  if (kind == "end") return "== ended: " + Text(row, "detail") + " ==\n";
  if (kind == "out" || kind == "err") return Short(Text(row, "line")) + "\n";
  return Short(text) + "\n";
}

Result<> Attach(Store* store, const Workspace& workspace, const std::string& id, bool follow,
                const std::function<bool()>& interrupted, std::ostream& out, Clock& clock) {
  const std::filesystem::path file = workspace.Mission(id) / "transcript.jsonl";
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
           unfinished.erase(0, end + 1))
        out << TranscriptText(unfinished.substr(0, end));
      out.flush();
    }
    if (over && at == 0)
      return Fail(ErrorKind::kNotFound, "attach to mission", id,
                  "its agent left no transcript (the proposer writes none)",
                  "see " + (workspace.Mission(id) / "agent.log").string());
    if (over || !follow || interrupted()) return {};
    clock.SleepFor(kLookEvery);
  }
}

}  // namespace crucible
