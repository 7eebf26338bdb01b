// read_tools.cc: read_file and list_files.
#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/json.h"
#include "orchestrator/agents/tools/bounded.h"
#include "orchestrator/agents/tools/tool_lists.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Kind = Argument::Kind;

constexpr std::int64_t kDefaultLines = 400;
constexpr std::size_t kLongestLine = 2000;
constexpr std::uintmax_t kLargestFile = std::uintmax_t{64} << 20;
constexpr int kDefaultDepth = 3;

Result<ToolAnswer> Read(Session* session, const json& arguments) {
  const std::string path = arguments.at("path");
  CRUCIBLE_ASSIGN(const ConfinedPath place, PathToRead(session->ReadRoots(), path));
  std::error_code ignored;
  if (!fs::is_regular_file(place.file, ignored))
    return Fail(ErrorKind::kUsage, "read", path, "it is not an ordinary file",
                "list_files lists a folder");
  if (fs::file_size(place.file, ignored) > kLargestFile)
    return Fail(ErrorKind::kUsage, "read", path, "it is larger than 64 MiB", "search it instead");
  CRUCIBLE_ASSIGN(const std::string text, ReadFile(place.file));
  if (text.find('\0') != std::string::npos)
    return Fail(ErrorKind::kUsage, "read", path,
                fmt::format("it is binary ({} bytes)", text.size()), "");
  const std::int64_t first = arguments.value("offset", std::int64_t{1});
  const std::int64_t count = arguments.value("lines", kDefaultLines);
  const std::size_t budget = session->context.limits.answer_bytes;
  std::string shown;
  std::int64_t line = 0, last = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (++line >= first) {
      if (line >= first + count) break;
      const std::string row = fmt::format(
          "{}\t{}\n", line, Shorten(std::string_view(text).substr(at, end - at), kLongestLine));
      if (last > 0 && shown.size() + row.size() > budget) break;
      shown += row;
      last = line;
    }
    at = end + 1;
  }
  if (text.empty()) return Say(place.shown + " is empty\n");
  if (last == 0)
    return Fail(ErrorKind::kUsage, "read", path, fmt::format("it has {} lines", line),
                "give an offset within them");
  if (at < text.size())
    shown += fmt::format("[{} more bytes in {}: go on with offset {}]\n", text.size() - at,
                         place.shown, last + 1);
  return Say(std::move(shown));
}

struct Listing {
  const Session* session;
  fs::path worktree;
  int depth;
  std::string text;
  int left_out = 0;
};

void List(const fs::path& folder, int level, Listing* listing) {
  std::vector<fs::directory_entry> items;
  std::error_code ignored;
  for (auto item = fs::directory_iterator(folder, ignored);
       !ignored && item != fs::directory_iterator(); item.increment(ignored))
    if (item->path().filename() != ".git") items.push_back(*item);
  std::sort(items.begin(), items.end());
  for (const fs::directory_entry& item : items) {
    if (listing->text.size() > listing->session->context.limits.answer_bytes) {
      ++listing->left_out;
      continue;
    }
    const std::string relative = item.path().lexically_relative(listing->worktree).string();
    if (item.is_symlink(ignored)) {
      listing->text +=
          fmt::format("{} -> {}\n", relative, fs::read_symlink(item.path(), ignored).string());
    } else if (item.is_directory(ignored)) {
      listing->text += relative + "/\n";
      if (level < listing->depth) List(item.path(), level + 1, listing);
    } else {
      listing->text +=
          fmt::format("{}  {} bytes{}\n", relative, item.file_size(ignored),
                      IsEditable(listing->session->target(), relative) ? "  editable" : "");
    }
  }
}

Result<ToolAnswer> ListFiles(Session* session, const json& arguments) {
  const std::string path = arguments.value("path", std::string("."));
  CRUCIBLE_ASSIGN(const ConfinedPath place, PathToRead(session->ReadRoots(), path));
  std::error_code ignored;
  if (!fs::is_directory(place.file, ignored))
    return Fail(ErrorKind::kUsage, "list", path, "it is no folder", "read_file reads a file");
  Listing listing{session, fs::weakly_canonical(session->order().worktree),
                  static_cast<int>(arguments.value("depth", std::int64_t{kDefaultDepth})), "", 0};
  List(place.file, 1, &listing);
  if (listing.text.empty()) return Say("(empty)\n");
  if (listing.left_out > 0)
    listing.text += fmt::format(
        "[{} more at these levels in {}: list a folder below it, or give "
        "a smaller depth]\n",
        listing.left_out, place.shown);
  return Say(ValidUtf8(listing.text));
}

}  // namespace

void AddReadTools(const SharedSession& session, ToolSet* tools) {
  tools->push_back(MakeFunctionTool(
      {"read_file",
       "Read a file of the worktree, or an output file that an answer named. Each line comes with "
       "its number and a tab, which are not part of the file.",
       {{.name = "path", .help = "relative to the worktree", .required = true},
        {.name = "offset", .kind = Kind::kInteger, .help = "first line, from 1", .least = 1},
        {.name = "lines",
         .kind = Kind::kInteger,
         .help = "how many lines (default 400)",
         .least = 1,
         .most = 5000}},
       [session](const json& arguments) { return Read(session.get(), arguments); }}));
  tools->push_back(MakeFunctionTool(
      {"list_files",
       "List the files below a folder of the worktree with their sizes; those that the mission may "
       "change are marked.",
       {{.name = "path", .help = "the folder (default: the worktree's root)"},
        {.name = "depth",
         .kind = Kind::kInteger,
         .help = "levels of folders (default 3)",
         .least = 1,
         .most = 20}},
       [session](const json& arguments) { return ListFiles(session.get(), arguments); }}));
}

}  // namespace crucible
