#include "orchestrator/agents/cli/cli_transcript.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/files.h"
#include "orchestrator/agents/llm/api_key.h"
#include "orchestrator/agents/llm/wire_json.h"

namespace crucible {

Result<CliTranscript> CliTranscript::Open(const std::filesystem::path& path, std::int64_t max_bytes,
                                          std::vector<std::string> secrets, Clock& clock) {
  CliTranscript transcript;
  transcript.path_ = path;
  transcript.left_bytes_ = max_bytes;
  transcript.secrets_ = std::move(secrets);
  transcript.clock_ = &clock;
  if (path.empty()) return transcript;
  if (path.has_parent_path()) CRUCIBLE_TRY(MakeDirectories(path.parent_path()));
  transcript.file_ =
      UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!transcript.file_.valid())
    return Fail(ErrorKind::kIo, "open transcript", path.string(), std::strerror(errno),
                "check that its folder can be written");
  return transcript;
}

std::string CliTranscript::Scrub(std::string text) const {
  return ScrubAll(std::move(text), secrets_);
}

Result<> CliTranscript::Line(const std::string& stream, const std::string& line, bool cut) {
  if (!file_.valid() || full_) return {};
  left_bytes_ -= static_cast<std::int64_t>(line.size());
  if (left_bytes_ < 0) {
    full_ = true;
    return Write("full", R"({"note":"later lines are left out"})");
  }
  Json fields;
  Json parsed = cut ? Json() : ParseJson(line);
  fields["line"] = parsed.is_object() ? std::move(parsed) : Json(line);
  if (cut) fields["cut"] = true;
  return Write(stream, Dump(fields));
}

Result<> CliTranscript::Row(const std::string& kind, const std::string& fields) {
  if (!file_.valid()) return {};
  return Write(kind, fields);
}

Result<> CliTranscript::Write(const std::string& kind, const std::string& fields) {
  const std::string head = Dump({{"t", FormatUtc(clock_->UnixMs())}, {"kind", kind}});
  const std::string row = Scrub(head.substr(0, head.size() - 1) + "," + fields.substr(1)) + "\n";
  std::size_t done = 0;
  while (done < row.size()) {
    const ssize_t count = ::write(file_.get(), row.data() + done, row.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      return Fail(ErrorKind::kIo, "write transcript", path_.string(), std::strerror(errno),
                  "free some space, then resume");
    done += static_cast<std::size_t>(count);
  }
  return {};
}

}  // namespace crucible
