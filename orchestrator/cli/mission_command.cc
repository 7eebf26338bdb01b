// mission_command.cc: crucible mission list | show | add | approve
#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/printable.h"
#include "base/process_identity.h"
#include "checks/target.h"
#include "missions/campaign_file.h"
#include "orchestrator/agents/mission_folder.h"
#include "orchestrator/agents/model_settings.h"
#include "orchestrator/agents/tools/tool_context.h"
#include "orchestrator/campaign.h"
#include "orchestrator/cli/attach.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/table.h"
#include "orchestrator/integrate.h"
#include "orchestrator/spend.h"
#include "results_log/store.h"

namespace crucible {
namespace {

using nlohmann::json;

json AsJson(const Workspace& workspace, const MissionRow& row) {
  return {{"id", row.id},
          {"campaign", row.campaign},
          {"target", row.target},
          {"flavour", row.flavour},
          {"goal", row.goal},
          {"cases", row.cases},
          {"state", row.state},
          {"outcome", row.outcome},
          {"merge_outcome", row.merge_outcome},
          {"base_commit", row.base_commit},
          {"best_commit", row.best_commit},
          {"merge_commit", row.merge_commit},
          {"report", row.report},
          {"settings", json::parse(row.settings, nullptr, false)},
          {"spend", SpendNow(workspace, row)}};
}

int List(Store* store, const Workspace& workspace, const std::string& campaign, bool as_json,
         std::ostream& out, std::ostream& err) {
  if (!campaign.empty()) {
    const auto known = store->FindCampaign(campaign);
    if (!known) return Report(known.error(), err);
    if (!*known) return Report(NoSuchCampaign("list missions of", campaign), err);
  }
  const auto rows = store->Missions(campaign);
  if (!rows) return Report(rows.error(), err);
  if (as_json) {
    json list = json::array();
    for (const MissionRow& row : *rows) list.push_back(AsJson(workspace, row));
    out << JsonText(list, 2) << "\n";
    return 0;
  }
  std::vector<std::vector<std::string>> table = {
      {"mission", "campaign", "flavour", "cases", "state", "outcome", "merge", "spent"}};
  for (const MissionRow& row : *rows)
    table.push_back({row.id, row.campaign, row.flavour,
                     fmt::format("{}", fmt::join(row.cases, ",")), row.state, row.outcome,
                     row.merge_outcome, ToText(SpendIn(SpendNow(workspace, row)))});
  out << (table.size() > 1 ? TableText(table) : "no missions yet\n");
  return 0;
}

Error NoSuchMission(const std::string& action, const std::string& id) {
  return {ErrorKind::kNotFound,
          fmt::format("{} mission {}: the log has no such mission; `crucible mission list` shows "
                      "them",
                      action, id)};
}

// One field a line; those that are not known yet are left out.
std::string FieldsText(const Workspace& workspace, const MissionRow& row) {
  std::string text;
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, std::string>>{
           {"mission", row.id},
           {"campaign", row.campaign},
           {"target", row.target},
           {"flavour", row.flavour},
           {"cases", fmt::format("{}", fmt::join(row.cases, ", "))},
           {"goal", row.goal},
           {"state", row.state},
           {"outcome", row.outcome},
           {"merge", row.merge_outcome},
           {"base", row.base_commit},
           {"best commit", row.best_commit},
           {"merge commit", row.merge_commit},
           {"spent", ToText(SpendIn(SpendNow(workspace, row)))}})
    if (!value.empty()) text += fmt::format("{:<12}  {}\n", name, Printable(value));
  return text;
}

int Show(Store* store, const Workspace& workspace, const std::string& id, bool as_json,
         std::ostream& out, std::ostream& err) {
  const auto row = store->FindMission(id);
  if (!row) return Report(row.error(), err);
  if (!*row) return Report(NoSuchMission("show", id), err);
  if (as_json) {
    out << JsonText(AsJson(workspace, **row), 2) << "\n";
    return 0;
  }
  out << FieldsText(workspace, **row);
  if (!(*row)->report.empty()) fmt::print(out, "\nReport:\n{}\n", Printable((*row)->report));
  if (const auto text = ReadFile(workspace.Mission(id) / "mission.md"))
    fmt::print(out, "\n{}", Printable(*text));
  return 0;
}

// What the campaign's own missions are: the proposer turns knobs, all others work on the kernel.
std::string UsualFlavour(const CampaignFile& campaign) {
  return campaign.agent.kind == "proposer" ? "proposer" : "kernel";
}

// Who would carry it out; an error where no model of the campaign takes such missions.
Result<> SomebodyTakes(const CampaignFile& campaign, const std::string& flavour) {
  if (campaign.agent.kind != "llm") return {};
  CRUCIBLE_TRY(ModelFor(campaign.agent.models, flavour, 0));
  return {};
}

int Add(Store* store, const Workspace& workspace, MissionRow row, bool as_json, std::ostream& out,
        std::ostream& err) {
  row.goal = ValidUtf8(row.goal);
  if (row.goal.find_first_not_of(" \t\n") == std::string::npos)
    return Report(Error{ErrorKind::kUsage, "add mission: --goal is empty; say what to do"}, err);
  for (auto name = row.cases.begin(); name != row.cases.end(); ++name)
    if (std::find(row.cases.begin(), name, *name) != name)
      return Report(Error{ErrorKind::kUsage, fmt::format("add mission: --case {} is there twice; "
                                                         "name each case once",
                                                         *name)},
                    err);
  const auto campaigns = store->Campaigns();
  if (!campaigns) return Report(campaigns.error(), err);
  if (row.campaign.empty() && !campaigns->empty()) row.campaign = campaigns->front().name;
  bool runs = false;
  for (const CampaignRow& campaign : *campaigns)
    if (campaign.name == row.campaign) {
      row.target = campaign.target;
      runs = IsAlive(ProcessIdentityFromText(campaign.owner));
    }
  if (row.target.empty())
    return Report(
        Error{ErrorKind::kUsage,
              row.campaign.empty()
                  ? "add mission: the log has no campaign; `crucible campaign launch FILE` first"
                  : "add mission: the log has no campaign " + row.campaign +
                        "; `crucible campaign status` shows the newest"},
        err);
  const auto target = LoadTarget(workspace.Campaign(row.campaign) / "target.toml");
  if (!target) return Report(target.error(), err);
  for (const std::string& name : row.cases)
    if (target->FindCase(name) == nullptr) {
      std::vector<std::string> known;
      for (const TargetCase& item : target->cases) known.push_back(item.name);
      return Report(
          Error{ErrorKind::kUsage, fmt::format("add mission: target {} has no case {}; it has {}",
                                               target->name, name, fmt::join(known, ", "))},
          err);
    }
  const auto campaign = LoadCampaignFile(workspace.Campaign(row.campaign) / "campaign.toml");
  if (!campaign) return Report(campaign.error(), err);
  if (row.flavour.empty()) row.flavour = UsualFlavour(*campaign);
  if (const auto taken = SomebodyTakes(*campaign, row.flavour); !taken)
    return Report(taken.error(), err);
  row.state = "planned";
  row.planned_ms = SystemClock().UnixMs();
  row.settings = JsonText({{"added_by", UserAuthor()}});
  const auto id = store->AddMission(row);
  if (!id) return Report(id.error(), err);
  if (as_json) {
    row.id = *id;
    out << JsonText(AsJson(workspace, row), 2) << "\n";
    return 0;
  }
  fmt::print(out, "{} added ({}): the campaign takes it before its own choices{}\n", *id,
             row.flavour,
             runs ? ""
                  : fmt::format("; it is not running, `crucible campaign resume {}` goes on",
                                row.campaign));
  return 0;
}

int Approve(Store* store, const Workspace& workspace, const std::string& id, bool as_json,
            std::ostream& out, std::ostream& err) {
  const auto row = store->FindMission(id);
  if (!row) return Report(row.error(), err);
  if (!*row) return Report(NoSuchMission("approve", id), err);
  const auto order = ReadMissionOrder(workspace.Mission(id) / "mission.json");
  if (!order) return Report(order.error(), err);
  DropSecretsFromEnvironment();  // what is built and judged is an agent's
  const auto result = Integrate(*order, true);
  if (!result) return Report(result.error(), err);
  if (as_json)
    out << JsonText({{"id", id}, {"outcome", result->outcome}, {"text", result->text}}, 2) << "\n";
  else
    fmt::print(out, "{}: {}: {}\n", id, result->outcome, result->text);
  return result->outcome == "landed" ? 0 : 1;
}

}  // namespace

int MissionCommand(const Words& words, std::ostream& out, std::ostream& err) {
  CLI::App app("List, show and add missions", "crucible mission");
  app.require_subcommand(1);
  bool as_json = false;
  std::string id;
  MissionRow row;
  CLI::App* list = app.add_subcommand("list", "All missions, oldest first");
  list->add_option("--campaign", row.campaign, "Only of this campaign");
  CLI::App* show = app.add_subcommand("show", "One mission: state, report, text and brief");
  show->add_option("ID", id, "Mission, e.g. m3")->required();
  CLI::App* add = app.add_subcommand("add", "Add a mission that goes before the planner's own");
  add->add_option("--case", row.cases, "Case to improve (repeatable)")->required();
  add->add_option("--goal", row.goal, "What to do, in a sentence")->required();
  add->add_option("--flavour", row.flavour,
                  "kernel, explorer, precision, simplifier, scout, proposer (default: the "
                  "campaign's usual: proposer for kind proposer, else kernel)")
      ->check(
          CLI::IsMember({"kernel", "explorer", "precision", "simplifier", "scout", "proposer"}));
  add->add_option("--campaign", row.campaign, "Campaign (default: the newest)");
  CLI::App* approve = app.add_subcommand(
      "approve", "Merge what waits for a person; it is judged again on today's main");
  approve->add_option("ID", id, "Mission, e.g. m3")->required();
  AttachOptions attach_options;
  bool no_follow = false;
  CLI::App* attach = app.add_subcommand("attach", "Follow the transcript of a mission's agent");
  attach->add_option("ID", id, "Mission, e.g. m3")->required();
  attach->add_flag("--no-follow", no_follow, "Print what is there and return");
  attach->add_flag("--json", attach_options.as_json, "Print the rows whole, a JSON object a line");
  for (CLI::App* command : {list, show, add, approve})
    command->add_flag("--json", as_json, "Print JSON");
  int code = 0;
  if (!ParseWords(&app, words, out, err, &code)) return code;
  const auto workspace = FindWorkspace();
  if (!workspace) return Report(workspace.error(), err);
  auto store = Store::OpenReadOnly(workspace->LogFile());
  if (store && add->parsed()) store = Store::Open(workspace->LogFile());
  if (!store) return Report(store.error(), err);
  if (list->parsed()) return List(&*store, *workspace, row.campaign, as_json, out, err);
  if (show->parsed()) return Show(&*store, *workspace, id, as_json, out, err);
  if (add->parsed()) return Add(&*store, *workspace, row, as_json, out, err);
  if (attach->parsed()) {
    attach_options.follow = !no_follow;
    const auto attached = Attach(
        &*store, *workspace, id, attach_options, [] { return false; }, out, SystemClock());
    return attached ? 0 : Report(attached.error(), err);
  }
  return Approve(&*store, *workspace, id, as_json, out, err);
}

}  // namespace crucible
