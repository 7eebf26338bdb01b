// search_tool.cc: search, by grep: a pattern that explodes costs its time limit and no more.
#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/subprocess.h"
#include "orchestrator/agents/tools/bounded.h"
#include "orchestrator/agents/tools/tool_lists.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Kind = Argument::Kind;

constexpr std::int64_t kDefaultMatches = 100;
constexpr std::size_t kLongestLine = 300;
constexpr std::size_t kMostOutput = std::size_t{4} << 20;

struct Hits {
  std::string text;
  std::int64_t shown = 0, all = 0;
};

Hits Collect(const std::string& output, std::int64_t most, std::size_t most_bytes) {
  Hits hits;
  for (std::size_t at = 0; at < output.size();) {
    const std::size_t end = std::min(output.find('\n', at), output.size());
    std::string line = Shorten(std::string_view(output).substr(at, end - at), kLongestLine);
    if (line.rfind("./", 0) == 0) line.erase(0, 2);
    at = end + 1;
    if (line == "--") {
      if (hits.shown == hits.all) hits.text += "--\n";
      continue;
    }
    ++hits.all;
    if (hits.all > most || hits.text.size() + line.size() > most_bytes) continue;
    hits.text += line + "\n";
    ++hits.shown;
  }
  return hits;
}

Result<ToolAnswer> Search(Session* session, const json& arguments) {
  const std::string path = arguments.value("path", std::string("."));
  CRUCIBLE_ASSIGN(const ConfinedPath place, PathToRead({session->order().worktree}, path));
  const std::string pattern = arguments.at("pattern");
  SubprocessSpec spec;
  spec.argv = {"grep", "-rnIE", "--exclude-dir=.git"};
  if (arguments.value("ignore_case", false)) spec.argv.push_back("-i");
  if (arguments.contains("files"))
    spec.argv.push_back("--include=" + arguments["files"].get<std::string>());
  if (arguments.contains("context"))
    spec.argv.push_back(fmt::format("-C{}", arguments["context"].get<std::int64_t>()));
  spec.argv.insert(spec.argv.end(),
                   {"-e", pattern, "--", place.shown == "." ? "." : "./" + place.shown});
  spec.directory = session->order().worktree;
  spec.environment = {{"LC_ALL", "C.UTF-8"}, {"GREP_OPTIONS", ""}};
  CRUCIBLE_ASSIGN(
      const Captured run,
      RunCaptured(std::move(spec), std::chrono::milliseconds(session->context.limits.search_ms), {},
                  kMostOutput));
  if (run.timed_out)
    return Fail(ErrorKind::kTimeout, "search", pattern,
                fmt::format("it took longer than {} ms", session->context.limits.search_ms),
                "use a simpler pattern, or name a folder or files");
  if (run.status.ShellCode() > 1)
    return Fail(ErrorKind::kUsage, "search", pattern, Shorten(run.err, kLongestLine),
                "the pattern is an extended regular expression");
  Hits hits = Collect(run.out, arguments.value("most", kDefaultMatches),
                      session->context.limits.answer_bytes);
  if (hits.all == 0) return Say(fmt::format("no line matches in {}\n", place.shown));
  if (hits.all > hits.shown)
    hits.text += fmt::format(
        "[{}{} more lines in {}: narrow the pattern, the folder or the "
        "files]\n",
        run.truncated ? "at least " : "", hits.all - hits.shown, place.shown);
  return Say(std::move(hits.text));
}

}  // namespace

void AddSearchTool(const SharedSession& session, ToolSet* tools) {
  tools->push_back(MakeFunctionTool(
      {"search",
       "Search the worktree's text files for an extended regular expression (grep -E); answers "
       "FILE:LINE:TEXT.",
       {{.name = "pattern", .help = "extended regular expression", .required = true},
        {.name = "path", .help = "file or folder (default: the whole worktree)"},
        {.name = "files", .help = "only files of this name pattern, like *.cc"},
        {.name = "ignore_case", .kind = Kind::kFlag, .help = "letters of either case"},
        {.name = "context",
         .kind = Kind::kInteger,
         .help = "lines around each match",
         .least = 0,
         .most = 10},
        {.name = "most",
         .kind = Kind::kInteger,
         .help = "most lines shown (default 100)",
         .least = 1,
         .most = 1000}},
       [session](const json& arguments) { return Search(session.get(), arguments); }}));
}

}  // namespace crucible
