// campaign_command.cc: crucible campaign launch | status | pause | resume | stop | note
#include <fmt/format.h>
#include <fmt/ostream.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "base/clock.h"
#include "base/counted.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/paths.h"
#include "base/printable.h"
#include "base/process_identity.h"
#include "base/subprocess.h"
#include "checks/target.h"
#include "missions/campaign_file.h"
#include "orchestrator/campaign.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/table.h"
#include "orchestrator/spend.h"
#include "results_log/store.h"

namespace crucible {
namespace {

using nlohmann::json;

constexpr int kDetachTries = 300;  // a tenth of a second each

Progress ProgressTo(std::ostream& err) {
  const std::int64_t start = SystemClock().MonotonicNs();
  return [&err, start](const std::string& line) {
    const std::int64_t ms = (SystemClock().MonotonicNs() - start) / 1'000'000;
    fmt::print(err, "{:>4}:{:02} {}\n", ms / 60'000, ms / 1000 % 60, line);
    err.flush();
  };
}

void PrintSummary(const CampaignSummary& summary, bool as_json, std::ostream& out) {
  if (as_json) {
    out << JsonText({{"name", summary.name},
                     {"state", summary.state},
                     {"missions", summary.missions},
                     {"landed", summary.landed},
                     {"crashed", summary.crashed},
                     {"experiments", summary.experiments},
                     {"why", summary.why}},
                    2)
        << "\n";
    return;
  }
  fmt::print(out, "campaign {} {}: {}, {}, {} landed ({})\n", summary.name, summary.state,
             Counted(summary.missions, "mission"),
             Counted(summary.experiments, "log entry", "log entries"),
             Counted(summary.landed, "merge"), summary.why);
}

int RunToEnd(Result<Campaign> campaign, bool as_json, std::ostream& out, std::ostream& err) {
  if (!campaign) return Report(campaign.error(), err);
  const auto summary = campaign->Run();
  if (!summary) return Report(summary.error(), err);
  PrintSummary(*summary, as_json, out);
  if (summary->state == "interrupted") return 130;
  // Nothing was tried: a script must not take that for a campaign that found nothing.
  if (summary->missions == 0 || summary->crashed < summary->missions) return 0;
  return Report(
      Error{ErrorKind::kUnavailable,
            fmt::format(
                "run campaign {}: {} crashed; `crucible mission show` says why", summary->name,
                summary->missions == 1 ? "its only mission"
                                       : fmt::format("all {} missions", summary->missions))},
      err);
}

// The process that has the campaign; pid 0 when there is none.
ProcessIdentity OwnerOf(const Workspace& workspace, const std::string& name) {
  auto store = Store::OpenReadOnly(workspace.LogFile());
  if (!store) return {};
  const auto row = store->FindCampaign(name);
  if (!row || !*row) return {};
  const ProcessIdentity owner = ProcessIdentityFromText((*row)->owner);
  return IsAlive(owner) ? owner : ProcessIdentity{};
}

// The same command in a process of its own that survives the terminal.
int Detach(const Words& words, const Workspace& workspace, const std::string& name,
           std::ostream& out, std::ostream& err) {
  // Refused here: a second process would tell it in the log of the one that runs.
  if (const ProcessIdentity owner = OwnerOf(workspace, name); owner.pid != 0)
    return Report(Error{ErrorKind::kConflict,
                        fmt::format("{} {}: it is running in process {}; see `crucible campaign "
                                    "status {}`, or stop it first",
                                    words.front(), name, owner.pid, name)},
                  err);
  SubprocessSpec spec;
  spec.argv = {"setsid", (workspace.programs / "crucible").string(), "campaign"};
  spec.argv.insert(spec.argv.end(), words.begin(), words.end());
  spec.out = spec.err = Stdio::kFile;
  spec.log_path = workspace.home / ("campaign-" + name + ".log");
  spec.die_with_parent = false;
  spec.new_process_group = false;  // setsid of a group's leader would fork, and its end say nothing
  std::error_code ignored;
  const bool was_there = std::filesystem::exists(workspace.home, ignored);
  if (const auto made = PrepareHome(workspace); !made) return Report(made.error(), err);
  auto child = Subprocess::Start(spec);
  if (!child) return Report(child.error(), err);
  // Until the log says that it runs, so that a mistake in the files is told here.
  auto ended = child->Wait(std::chrono::milliseconds(100));
  for (int i = 0; !ended && i < kDetachTries && OwnerOf(workspace, name).pid != child->pid(); ++i)
    ended = child->Wait(std::chrono::milliseconds(100));
  if (ended && !ended->ok()) {
    const std::string said = ReadFile(spec.log_path).value_or("");
    const std::size_t error = said.rfind("crucible: ");
    err << (error != std::string::npos
                ? said.substr(error)
                : fmt::format("crucible: {} {}: it ended with {}; see {}\n", words.front(), name,
                              ended->Describe(), spec.log_path.string()));
    // A launch that was refused leaves nothing, as in the foreground.
    if (!was_there && !std::filesystem::exists(workspace.LogFile(), ignored))
      (void)RemoveTree(workspace.home);
    return ended->ShellCode();
  }
  fmt::print(out, "campaign {} runs in process {}; its progress is in {}\n", name, child->pid(),
             spec.log_path.string());
  out.flush();
  // The child outlives this process: leave without ending it.
  ::_exit(0);
}

int Launch(const std::string& file_name, bool detach, bool as_json, std::ostream& out,
           std::ostream& err) {
  const auto workspace = FindWorkspace();
  if (!workspace) return Report(workspace.error(), err);
  const auto file = LoadCampaignFile(file_name);
  if (!file) return Report(file.error(), err);
  if (detach) return Detach({"launch", file->file.string()}, *workspace, file->name, out, err);
  const auto here = CurrentFolder();
  if (!here) return Report(here.error(), err);
  return RunToEnd(Campaign::Launch(*file, *here, *workspace, ProgressTo(err)), as_json, out, err);
}

Result<std::string> OnlyCampaign(Store* store, const std::string& name) {
  if (!name.empty()) return name;
  CRUCIBLE_ASSIGN(const std::vector<CampaignRow> rows, store->Campaigns());
  if (rows.empty())
    return Fail(ErrorKind::kNotFound, "find", "campaign", "the log has none",
                "`crucible campaign launch FILE` starts one");
  return rows.front().name;
}

// For writing, but never made by it: a remark on nothing is a mistake.
Result<Store> OpenKnownLog(const Workspace& workspace) {
  CRUCIBLE_TRY(Store::OpenReadOnly(workspace.LogFile()));
  return Store::Open(workspace.LogFile());
}

bool HasOwner(const CampaignRow& row) { return IsAlive(ProcessIdentityFromText(row.owner)); }

json SpendJson(const Spend& spend) {
  return {{"turns", spend.turns},
          {"tokens", spend.tokens},
          {"usd", spend.usd},
          {"device_seconds", spend.device_seconds}};
}

json MissionJson(const Workspace& workspace, const MissionRow& mission) {
  return {{"spend", SpendJson(SpendIn(SpendNow(workspace, mission)))},
          {"id", mission.id},
          {"flavour", mission.flavour},
          {"cases", mission.cases},
          {"goal", mission.goal},
          {"state", mission.state},
          {"outcome", mission.outcome},
          {"merge", mission.merge_outcome},
          {"merge_commit", mission.merge_commit}};
}

// What a person asks first: what became of the commit, or why there is none.
std::string CameOf(const MissionRow& mission) {
  const bool merged = !mission.merge_outcome.empty() && mission.merge_outcome != "nothing_to_merge";
  return merged ? mission.merge_outcome : mission.outcome;
}

int Status(const std::string& name, bool as_json, std::ostream& out, std::ostream& err) {
  const auto workspace = FindWorkspace();
  if (!workspace) return Report(workspace.error(), err);
  auto store = Store::OpenReadOnly(workspace->LogFile());
  if (!store) return Report(store.error(), err);
  const auto chosen = OnlyCampaign(&*store, name);
  if (!chosen) return Report(chosen.error(), err);
  const auto row = store->FindCampaign(*chosen);
  if (!row) return Report(row.error(), err);
  if (!*row) return Report(NoSuchCampaign("show", *chosen), err);
  const auto missions = store->Missions(*chosen);
  if (!missions) return Report(missions.error(), err);
  const bool alive = HasOwner(**row);
  const std::string state =
      (*row)->state == "running" && !alive ? "killed (resume it)" : (*row)->state;
  const auto spent = SpendOf(&*store, *workspace, *chosen);  // as of now, of running ones too
  if (!spent) return Report(spent.error(), err);
  if (as_json) {
    json list = json::array();
    for (const MissionRow& mission : *missions) list.push_back(MissionJson(*workspace, mission));
    out << JsonText({{"name", *chosen},
                     {"target", (*row)->target},
                     {"state", state},
                     {"alive", alive},
                     {"message", (*row)->message},
                     {"spend", SpendJson(*spent)},
                     {"missions", list}},
                    2)
        << "\n";
    return 0;
  }
  const std::int64_t since = (*row)->started_ms, now = SystemClock().UnixMs();
  const std::string when = alive ? "for " + FormatDuration(now - since)
                           : (*row)->ended_ms
                               ? "after " + FormatDuration(*(*row)->ended_ms - since)
                               : fmt::format("begun {} ago", FormatDuration(now - since));
  fmt::print(out, "campaign {} on {}: {}, {}\n", *chosen, (*row)->target, state, when);
  const bool killed = !alive && ((*row)->state == "running" || (*row)->state == "stopping");
  if (!(*row)->message.empty())
    fmt::print(out, "  {}{}\n", killed ? "last told: " : "", (*row)->message);
  if (!spent->empty()) fmt::print(out, "  spent so far: {}\n", ToText(*spent));
  std::vector<std::vector<std::string>> table = {
      {"mission", "flavour", "cases", "state", "came of it", "entries", "spent", "goal"}};
  for (const MissionRow& mission : *missions) {
    EntryFilter own;
    own.campaign = *chosen;
    own.mission = mission.id;
    const auto entries = store->QueryEntries(own);
    if (!entries) return Report(entries.error(), err);
    table.push_back({mission.id, mission.flavour, fmt::format("{}", fmt::join(mission.cases, ",")),
                     mission.state, CameOf(mission), std::to_string(entries->size()),
                     ToText(SpendIn(SpendNow(*workspace, mission))), mission.goal});
  }
  out << TableText(table, 2);
  return 0;
}

// pause and stop: the running orchestrator sees the state; a dead one needs none.
int Control(const std::string& name, const std::string& to, bool as_json, std::ostream& out,
            std::ostream& err) {
  const auto workspace = FindWorkspace();
  if (!workspace) return Report(workspace.error(), err);
  auto store = OpenKnownLog(*workspace);
  if (!store) return Report(store.error(), err);
  const auto chosen = OnlyCampaign(&*store, name);
  if (!chosen) return Report(chosen.error(), err);
  const auto row = store->FindCampaign(*chosen);
  if (!row) return Report(row.error(), err);
  if (!*row) return Report(NoSuchCampaign(to == "paused" ? "pause" : "stop", *chosen), err);
  if ((*row)->state == to && HasOwner(**row)) {
    if (as_json)
      out << JsonText({{"name", *chosen}, {"state", to}}, 2) << "\n";
    else
      fmt::print(out, "campaign {} is {} already\n", *chosen,
                 to == "paused" ? "pausing" : "stopping");
    return 0;
  }
  auto moved = store->MoveCampaign(*chosen, "running", to);
  if (moved && !*moved && to == "stopping") moved = store->MoveCampaign(*chosen, "paused", to);
  if (!moved) return Report(moved.error(), err);
  if (!*moved)
    return Report(Error{ErrorKind::kConflict,
                        fmt::format("{} {}: it is not running; `crucible "
                                    "campaign status {}` says what it is",
                                    to == "paused" ? "pause" : "stop", *chosen, *chosen)},
                  err);
  if (as_json)
    out << JsonText({{"name", *chosen}, {"state", to}}, 2) << "\n";
  else
    fmt::print(out, "campaign {} is {}\n", *chosen,
               to == "paused" ? "pausing: running missions end, none begins" : "stopping");
  return 0;
}

int Note(const std::string& name, const std::string& text, const std::vector<std::string>& cases,
         bool as_json, std::ostream& out, std::ostream& err) {
  if (text.find_first_not_of(" \t\n") == std::string::npos)
    return Report(Error{ErrorKind::kUsage, "note: the remark is empty; write what is to be known"},
                  err);
  const auto workspace = FindWorkspace();
  if (!workspace) return Report(workspace.error(), err);
  auto store = OpenKnownLog(*workspace);
  if (!store) return Report(store.error(), err);
  const auto chosen = OnlyCampaign(&*store, name);
  if (!chosen) return Report(chosen.error(), err);
  const auto row = store->FindCampaign(*chosen);
  if (!row) return Report(row.error(), err);
  if (!*row) return Report(NoSuchCampaign("note on", *chosen), err);
  // A remark on a case that there is not would be read by nobody.
  const auto target = LoadTarget(workspace->Campaign(*chosen) / "target.toml");
  if (!target && !cases.empty()) return Report(target.error(), err);
  if (target)
    if (const auto known = SelectCases(*target, cases); !known) return Report(known.error(), err);
  Entry entry;
  entry.key = "note." + RandomHex(8);
  entry.kind = EntryKind::kNote;
  entry.time_ms = SystemClock().UnixMs();
  entry.campaign = *chosen;
  entry.target = (*row)->target;
  entry.author = UserAuthor();
  entry.mechanism = "note";
  entry.summary = ValidUtf8(text);
  for (const std::string& item : cases)
    entry.cases.push_back({.name = item, .role = "claim", .verdict = "note"});
  const auto id = store->AddEntry(entry);
  if (!id) return Report(id.error(), err);
  if (as_json)
    out << JsonText({{"id", *id}, {"key", entry.key}}, 2) << "\n";
  else
    fmt::print(out, "noted as e{}: the next briefs carry it\n", *id);
  return 0;
}

}  // namespace

int CampaignCommand(const Words& words, std::ostream& out, std::ostream& err) {
  CLI::App app("Run a campaign and steer it", "crucible campaign");
  app.require_subcommand(1);
  std::string file, name, text;
  std::vector<std::string> cases;
  bool detach = false, as_json = false;
  CLI::App* launch = app.add_subcommand("launch", "Start the campaign of a file and follow it");
  launch->add_option("FILE", file, "Campaign file (TOML)")->required();
  launch->add_flag("--detach", detach, "Run in the background; progress goes to a log file");
  CLI::App* resume = app.add_subcommand(
      "resume", "Take up a paused, stopped, interrupted or killed campaign where the log says");
  resume->add_flag("--detach", detach, "Run in the background; progress goes to a log file");
  CLI::App* status = app.add_subcommand("status", "Show a campaign and its missions");
  CLI::App* pause = app.add_subcommand("pause", "Let running missions end and begin no more");
  CLI::App* stop = app.add_subcommand("stop", "End now; what was kept stays in the log");
  CLI::App* note = app.add_subcommand("note", "Add a remark that the next briefs carry");
  note->add_option("TEXT", text, "The remark")->required();
  note->add_option("--case", cases, "Cases it is about (repeatable)");
  note->add_option("--campaign", name, "Campaign (default: the newest)");
  for (CLI::App* command : {resume, status, pause, stop})
    command->add_option("NAME", name, "Campaign (default: the newest)");
  for (CLI::App* command : {launch, resume, status, pause, stop, note})
    command->add_flag("--json", as_json, "Print the result as JSON");
  int code = 0;
  if (!ParseWords(&app, words, out, err, &code)) return code;
  if (launch->parsed()) return Launch(file, detach, as_json, out, err);
  if (status->parsed()) return Status(name, as_json, out, err);
  if (pause->parsed()) return Control(name, "paused", as_json, out, err);
  if (stop->parsed()) return Control(name, "stopping", as_json, out, err);
  if (note->parsed()) return Note(name, text, cases, as_json, out, err);
  const auto workspace = FindWorkspace();
  if (!workspace) return Report(workspace.error(), err);
  auto store = Store::OpenReadOnly(workspace->LogFile());
  if (!store) return Report(store.error(), err);
  const auto chosen = OnlyCampaign(&*store, name);
  if (!chosen) return Report(chosen.error(), err);
  const auto row = store->FindCampaign(*chosen);
  if (!row) return Report(row.error(), err);
  if (!*row) return Report(NoSuchCampaign("resume", *chosen), err);
  if (detach) return Detach({"resume", *chosen}, *workspace, *chosen, out, err);
  const auto here = CurrentFolder();
  if (!here) return Report(here.error(), err);
  return RunToEnd(Campaign::Resume(*chosen, *here, *workspace, ProgressTo(err)), as_json, out, err);
}

}  // namespace crucible
