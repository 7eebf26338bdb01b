#include "orchestrator/agents/loop/transcript.h"

#include "base/files.h"
#include "base/json.h"
#include "orchestrator/agents/tools/bounded.h"

namespace crucible {
namespace {

constexpr std::size_t kShortestSecret = 6;  // shorter ones would eat ordinary words

}  // namespace

Transcript::Transcript(std::filesystem::path file, std::vector<std::string> secrets, Clock* clock)
    : file_(std::move(file)), secrets_(std::move(secrets)), clock_(clock) {
  std::erase_if(secrets_,
                [](const std::string& secret) { return secret.size() < kShortestSecret; });
}

std::string Transcript::Clean(const std::string& text) const {
  std::string clean = ValidUtf8(text);
  for (const std::string& secret : secrets_)
    for (std::size_t at = clean.find(secret); at != std::string::npos; at = clean.find(secret, at))
      clean.replace(at, secret.size(), "[secret]");
  return clean;
}

void Transcript::CleanAll(nlohmann::json* value) const {
  if (value->is_string()) {
    *value = Clean(value->get<std::string>());
  } else if (value->is_structured()) {
    for (nlohmann::json& item : *value) CleanAll(&item);
  }
}

Result<> Transcript::Write(const std::string& kind, nlohmann::json fields) {
  if (file_.empty()) return {};
  CleanAll(&fields);
  fields["time"] = FormatUtc(clock_->UnixMs());
  fields["kind"] = kind;
  return AppendLine(file_, JsonText(fields));
}

}  // namespace crucible
