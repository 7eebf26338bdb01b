#include "orchestrator/cli/log_command.h"

#include <CLI/CLI.hpp>
#include <ostream>

#include "orchestrator/cli/command.h"
#include "orchestrator/cli/log_options.h"

namespace crucible {
namespace {

void Filters(CLI::App* sub, LogOptions* options) {
  sub->add_option("--case", options->cases, "a case; repeatable: any of them");
  sub->add_option("--target", options->target, "entries of this target");
}

void Declare(CLI::App* app, LogOptions* o, std::vector<std::pair<CLI::App*, LogAction>>* actions) {
  app->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, LogAction action) {
    CLI::App* sub = app->add_subcommand(name, help);
    sub->add_option("--log", o->log, "the log's file (default: the repository's)");
    sub->add_flag("--json", o->as_json, "print JSON");
    actions->emplace_back(sub, action);
    return sub;
  };
  CLI::App* sub = add("add", "add an entry by hand", AddToLog);
  sub->add_option("--kind", o->kind, "win, loss, null, inconclusive, refused, crashed, note, floor")
      ->required();
  sub->add_option("--case", o->cases, "a case it applies to; repeatable");
  sub->add_option("--target", o->entry.target, "the target it applies to");
  sub->add_option("--campaign", o->entry.campaign, "the campaign it belongs to");
  sub->add_option("--mission", o->entry.mission, "the mission it belongs to");
  sub->add_option("--mechanism", o->entry.mechanism, "what changes physically, short");
  sub->add_option("--hypothesis", o->entry.hypothesis, "what was expected, and why");
  sub->add_option("--summary", o->entry.summary, "what happened, with the numbers");
  sub->add_option("--reason", o->entry.reason,
                  "why it was decided so; a floor: what it is computed from");
  sub->add_option("--before", o->before_us, "time before, microseconds")->check(NumberAboveZero);
  sub->add_option("--after", o->after_us, "time after, microseconds; a floor's time")
      ->check(NumberAboveZero);
  sub->add_option("--condition", o->conditions, "FIELD=VALUE it was measured under; repeatable");
  sub->add_option("--evidence", o->evidence,
                  "KIND=REF: commit, base_commit, merge_commit, job, url, or a file that is there: "
                  "report, profile, file; repeatable");
  sub->add_option("--supersedes", o->entry.supersedes, "the entry that this one replaces");
  sub->add_option("--author", o->entry.author, "who says so (default: user:NAME)");
  sub->add_flag("--landed", o->entry.landed, "its commit is on main");
  sub->add_flag("--conflated", o->entry.conflated, "it changed several things at once");

  sub = add("show", "show one entry whole", ShowOfLog);
  sub->add_option("ID", o->id, "e12, 12, or a key (its first 6 characters do)")->required();

  sub = add("query", "list entries, newest first", QueryLog);
  Filters(sub, o);
  sub->add_option("--kind", o->kinds, "a kind; repeatable: any of them");
  sub->add_option("--mechanism", o->mechanism, "exactly this mechanism");
  sub->add_option("--mission", o->mission, "of this mission");
  sub->add_option("--campaign", o->campaign, "of this campaign");
  sub->add_option("--author", o->author, "of this author");
  sub->add_option("--text", o->text, "a word of mechanism, hypothesis, summary or reason");
  sub->add_option("--limit", o->limit, "at most so many (default: 20, with --json all; 0: all)")
      ->check(NumberFromZero);
  sub->add_flag("--superseded", o->superseded, "also those that another entry replaced");

  sub = add("export", "write the log as JSON Lines", ExportLog);
  sub->add_option("FILE", o->file, "where to (default: stdout)");
  sub->add_flag("--events", o->events, "the campaign's events too");

  sub = add("import", "read JSON Lines: all of them or none", ImportToLog);
  sub->add_option("FILE", o->files, "what to read")->required();

  sub = add("retest", "list rejections whose conditions changed", RetestsOfLog);
  Filters(sub, o);
  sub->add_option("--now", o->now, "FIELD=VALUE that holds today; repeatable");

  sub = add("split", "split an entry that changed several things", SplitInLog);
  sub->add_option("ID", o->id, "the entry")->required();
  sub->add_option("--part", o->parts, "KIND:MECHANISM[:SUMMARY]; at least twice")->required();
  sub->add_option("--author", o->entry.author, "who says so (default: user:NAME)");

  sub = add("records", "first, best and newest time of every case", RecordsOfLog);
  sub->add_option("--target", o->target, "of this target");
}

}  // namespace

int LogCommand(const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  CLI::App app("crucible log: what was tried, what came of it, under which conditions",
               "crucible log");
  LogOptions options;
  std::vector<std::pair<CLI::App*, LogAction>> actions;
  Declare(&app, &options, &actions);
  int code = 0;
  if (!ParseWords(&app, words, out, err, &code)) return code;
  for (const auto& [sub, action] : actions) {
    if (!sub->parsed()) continue;
    const Result<int> done = action(options, out, err);
    return done ? *done : Report(done.error(), err);
  }
  return 2;
}

}  // namespace crucible
