// edit_tools.cc: edit_file and write_file: the mission's own files alone, and never half written.
#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/json.h"
#include "orchestrator/agents/tools/tool_lists.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Kind = Argument::Kind;

// Written beside and renamed over, with the rights that the old one had.
Result<> Write(const fs::path& file, const std::string& text) {
  std::error_code missing, ignored;
  const fs::file_status before = fs::status(file, missing);
  CRUCIBLE_TRY(WriteFileAtomically(file, text));
  if (fs::is_regular_file(before)) fs::permissions(file, before.permissions(), ignored);
  return {};
}

Result<> SmallEnough(const Session& session, const std::string& path, const std::string& text) {
  const std::size_t most = session.context.limits.file_bytes;
  if (text.size() <= most) return {};
  return Fail(ErrorKind::kUsage, "write", path,
              fmt::format("{} bytes are more than the {} a file may have", text.size(), most),
              "write less");
}

std::vector<std::size_t> Places(const std::string& text, const std::string& part) {
  std::vector<std::size_t> places;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    places.push_back(at);
  return places;
}

std::int64_t LineOf(const std::string& text, std::size_t at) {
  return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
}

std::string WithoutBlanks(const std::string& text) {
  std::string kept;
  for (const char c : text)
    if (c != ' ' && c != '\t' && c != '\r') kept.push_back(c);
  return kept;
}

// Why the old text is not there: what models get wrong most is the white space.
std::string NotFoundBecause(const std::string& text, const std::string& old_text) {
  if (WithoutBlanks(text).find(WithoutBlanks(old_text)) != std::string::npos)
    return "old_text is there with other blanks or tabs only";
  return "old_text does not occur in it";
}

Result<ToolAnswer> Edit(Session* session, const json& arguments) {
  const std::string path = arguments.at("path");
  const std::string old_text = arguments.at("old_text"), new_text = arguments.at("new_text");
  CRUCIBLE_ASSIGN(const ConfinedPath place,
                  PathToWrite(session->order().worktree, session->target(), path));
  if (old_text.empty())
    return Fail(ErrorKind::kUsage, "edit", path, "old_text is empty",
                "write_file writes a whole file");
  if (old_text == new_text)
    return Fail(ErrorKind::kUsage, "edit", path, "old_text and new_text are the same", "");
  std::error_code ignored;
  if (const auto bytes = fs::file_size(place.file, ignored);
      !ignored && bytes > session->context.limits.file_bytes)
    return Fail(
        ErrorKind::kUsage, "edit", path,
        fmt::format("it has {} bytes, more than {}", bytes, session->context.limits.file_bytes),
        "an edited file is a source a person can read");
  CRUCIBLE_ASSIGN(std::string text, ReadFile(place.file));
  const std::vector<std::size_t> places = Places(text, old_text);
  if (places.empty())
    return Fail(ErrorKind::kUsage, "edit", path, NotFoundBecause(text, old_text),
                "read the lines again and give them as they are, without their numbers");
  if (places.size() > 1) {
    std::vector<std::int64_t> lines;
    for (const std::size_t at : places)
      if (lines.size() < 10) lines.push_back(LineOf(text, at));
    return Fail(ErrorKind::kUsage, "edit", path,
                fmt::format("old_text occurs {} times (lines {}{})", places.size(),
                            fmt::join(lines, ", "), places.size() > lines.size() ? ", …" : ""),
                "give more of the lines around it, so that it is unique");
  }
  const std::int64_t line = LineOf(text, places[0]);
  text.replace(places[0], old_text.size(), new_text);
  CRUCIBLE_TRY(SmallEnough(*session, path, text));
  CRUCIBLE_TRY(Write(place.file, text));
  return Say(fmt::format("edited {} at line {}\n", place.shown, line));
}

Result<ToolAnswer> WriteWhole(Session* session, const json& arguments) {
  const std::string path = arguments.at("path"), text = arguments.at("content");
  CRUCIBLE_ASSIGN(const ConfinedPath place,
                  PathToWrite(session->order().worktree, session->target(), path));
  CRUCIBLE_TRY(SmallEnough(*session, path, text));
  std::error_code ignored;
  const bool existed = fs::exists(place.file, ignored);
  CRUCIBLE_TRY(Write(place.file, text));
  return Say(
      fmt::format("{} {} ({} bytes)\n", existed ? "replaced" : "wrote", place.shown, text.size()));
}

}  // namespace

void AddEditTools(const SharedSession& session, ToolSet* tools) {
  const std::string editable = "The mission may change " + EditableText(session->target()) + ".";
  tools->push_back(MakeFunctionTool(
      {"edit_file",
       "Replace one passage of a file: old_text must occur exactly once, byte for byte. " +
           editable,
       {{.name = "path", .help = "relative to the worktree", .required = true},
        {.name = "old_text", .help = "what is there now, unique", .required = true},
        {.name = "new_text", .help = "what is to be there", .required = true}},
       [session](const json& arguments) { return Edit(session.get(), arguments); }}));
  tools->push_back(MakeFunctionTool(
      {"write_file",
       "Write a whole file, new or in place of the old one. " + editable,
       {{.name = "path", .help = "relative to the worktree", .required = true},
        {.name = "content", .help = "the file's whole text", .required = true}},
       [session](const json& arguments) { return WriteWhole(session.get(), arguments); }}));
}

}  // namespace crucible
