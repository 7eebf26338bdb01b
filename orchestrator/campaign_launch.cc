// campaign_launch.cc: how a campaign begins, and how one that stopped is taken up.
#include <fmt/format.h>

#include <regex>

#include "base/clock.h"
#include "base/counted.h"
#include "base/file_lock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/process_identity.h"
#include "orchestrator/agents/agent_ready.h"
#include "orchestrator/agents/knobs.h"
#include "orchestrator/campaign_impl.h"

namespace crucible {
namespace {

using nlohmann::json;

constexpr std::int64_t kLeastFreeBytes = std::int64_t{512} << 20;

std::string IdOf(const CampaignRow& row) {
  const json settings = json::parse(row.settings, nullptr, false);
  return settings.is_object() ? settings.value("id", std::string("0")) : "0";
}

// The folder itself, or the nearest one above it that is there.
std::filesystem::path NearestFolder(std::filesystem::path folder) {
  std::error_code ignored;
  while (!std::filesystem::exists(folder, ignored) && folder.has_relative_path())
    folder = folder.parent_path();
  return folder;
}

// Looks only, but for a move of main that a killed run left half done.
Result<> CheckPlace(const Workspace& workspace, Repository* repository) {
  std::string note;
  CRUCIBLE_TRY(repository->FinishMove(&note));
  CRUCIBLE_ASSIGN(const std::vector<std::string> dirty, repository->DirtyPathsOfMain());
  if (!dirty.empty())
    return Fail(ErrorKind::kUsage, "launch in", repository->common_directory().string(),
                fmt::format("main is checked out with {}, e.g. {}",
                            Counted(dirty.size(), "uncommitted change"), dirty.front()),
                note.empty() ? "commit or stash them, since merges move main"
                             : "a merge was cut off: " + note);
  CRUCIBLE_ASSIGN(const std::int64_t free, FreeBytes(NearestFolder(workspace.home)));
  if (free < kLeastFreeBytes)
    return Fail(ErrorKind::kIo, "launch in", workspace.home.string(),
                fmt::format("only {} MiB are free on that disk", free >> 20),
                fmt::format("free at least {} MiB", kLeastFreeBytes >> 20));
  return {};
}

// What the proposer turns, as it will find it: a mistake in there would crash every mission.
Result<> CheckKnobs(const Target& target, Repository* repository) {
  if (target.knobs_file.empty())
    return Fail(ErrorKind::kUsage, "launch the proposer on", target.name,
                "the target names no knobs file",
                "add [knobs] file = … to " + target.file.string());
  CRUCIBLE_ASSIGN(const std::string tip, repository->MainTip());
  const auto read = [&](const std::string& file) -> Result<std::string> {
    auto text = repository->ReadFileAt(tip, file);
    if (text || text.error().kind != ErrorKind::kNotFound) return text;
    return Fail(
        ErrorKind::kUsage, "read knobs of", target.name,
        fmt::format("{} at {} has no file {}", repository->main_branch(), tip.substr(0, 12), file),
        fmt::format("commit it there, or correct {}",
                    file == target.knobs_file ? target.file.string() : target.knobs_file));
  };
  CRUCIBLE_ASSIGN(const std::string text, read(target.knobs_file));
  CRUCIBLE_ASSIGN(const KnobSpace space, ParseKnobs(text, target.knobs_file));
  CRUCIBLE_TRY(ReadConfiguration(space, read));
  return {};
}

// The campaign's own copies: a later edit of the user's files changes nothing that runs.
Result<> Freeze(const CampaignFile& file, const Workspace& workspace) {
  const std::filesystem::path folder = workspace.Campaign(file.name);
  CRUCIBLE_ASSIGN(const std::string campaign, ReadFile(file.file));
  CRUCIBLE_ASSIGN(const std::string target, ReadFile(file.target));
  CRUCIBLE_TRY(RemoveTree(folder));  // of a launch that was killed here
  // The copy names the frozen target beside it, so that it is a whole campaign file of its own.
  static const std::regex kTargetLine("(^|\n)target[ \t]*=[^\n]*");
  CRUCIBLE_TRY(
      WriteFileAtomically(folder / "campaign.toml",
                          std::regex_replace(campaign, kTargetLine, "$1target = \"target.toml\"",
                                             std::regex_constants::format_first_only)));
  return WriteFileAtomically(folder / "target.toml", target);
}

// One process has a campaign at a time. Held from before the first look at its row until the process
// ends, so that of two that launch or resume it at once exactly one goes on.
Result<FileLock> TakeCampaign(const std::string& action, const std::string& name,
                              const Workspace& workspace) {
  CRUCIBLE_ASSIGN(auto lock, FileLock::TryTake(workspace.CampaignLock(name)));
  if (!lock)
    return Fail(ErrorKind::kConflict, action, name, "another process runs it or just begins to",
                fmt::format("see `crucible campaign status {}`, or stop it first", name));
  return std::move(*lock);
}

}  // namespace

Error NoSuchCampaign(const std::string& action, const std::string& name) {
  return {ErrorKind::kNotFound, fmt::format("{} campaign {}: the log has no such campaign; "
                                            "`crucible campaign status` shows the newest",
                                            action, name)};
}

Result<Campaign> Campaign::Launch(const CampaignFile& file, const std::filesystem::path& repository,
                                  const Workspace& workspace, Progress progress) {
  CRUCIBLE_ASSIGN(Target target, LoadTarget(file.target));
  for (const std::string& name : file.cases)
    if (target.FindCase(name) == nullptr)
      return Fail(
          ErrorKind::kUsage, "launch", file.name,
          fmt::format("its cases name {}, which target {} does not have", name, target.name),
          "look at the [[case]] tables of " + file.target.string());
  CRUCIBLE_ASSIGN(Repository opened, Repository::Open(repository, file.branch));
  CRUCIBLE_TRY(CheckPlace(workspace, &opened));
  if (file.agent.kind == "proposer") CRUCIBLE_TRY(CheckKnobs(target, &opened));
  CRUCIBLE_TRY(AgentsReady(file.agent, file.planner));
  CRUCIBLE_TRY(PrepareHome(workspace));
  CRUCIBLE_ASSIGN(Store store, Store::Open(workspace.LogFile()));
  CRUCIBLE_ASSIGN(FileLock owned, TakeCampaign("launch", file.name, workspace));
  CRUCIBLE_ASSIGN(const auto known, store.FindCampaign(file.name));
  // One that was killed before it had done anything is launched anew.
  if (known && (IsAlive(ProcessIdentityFromText(known->owner)) ||
                Impl::Begun(&store, file.name, IdOf(*known))))
    return Fail(
        ErrorKind::kConflict, "launch", file.name,
        fmt::format("a campaign of that name is there, state {}", known->state),
        fmt::format("`crucible campaign resume {}`, or give this one another name", file.name));
  CRUCIBLE_ASSIGN(const std::string tip, opened.MainTip());
  CampaignRow row;
  row.name = file.name;
  row.target = target.name;
  row.file = (workspace.Campaign(file.name) / "campaign.toml").string();
  const std::uint64_t seed = file.seed != 0 ? file.seed : std::stoull(RandomHex(7), nullptr, 16);
  row.settings = JsonText({{"id", RandomHex(4)}, {"seed", seed}, {"source", file.file.string()}});
  row.state = "interrupted";  // until the loop owns it
  row.started_ms = SystemClock().UnixMs();
  row.deadline_ms = row.started_ms + file.wall_ms;
  row.base_commit = tip;
  const auto begin = [&]() -> Result<Campaign> {
    CRUCIBLE_TRY(Freeze(file, workspace));
    CRUCIBLE_TRY(store.PutCampaign(row));
    return Impl::Open(file.name, repository, workspace, std::move(progress), std::move(owned));
  };
  auto campaign = begin();
  if (campaign) {
    campaign->impl_->fresh = true;
  } else {
    (void)store.RemoveCampaign(file.name);
    (void)RemoveTree(workspace.Campaign(file.name));
    // Let go with what had begun; nobody else's when it can be had at once.
    if (auto lock = FileLock::TryTake(workspace.CampaignLock(file.name)); lock && *lock)
      FileLock::Remove(std::move(**lock), workspace.CampaignLock(file.name));
  }
  return campaign;
}

Result<Campaign> Campaign::Resume(const std::string& name, const std::filesystem::path& repository,
                                  const Workspace& workspace, Progress progress) {
  // Neither a log nor a lock is made by looking for one.
  CRUCIBLE_ASSIGN(Store store, Store::OpenReadOnly(workspace.LogFile()));
  CRUCIBLE_ASSIGN(const auto row, store.FindCampaign(name));
  if (!row) return tl::unexpected(NoSuchCampaign("resume", name));
  CRUCIBLE_ASSIGN(FileLock owned, TakeCampaign("resume", name, workspace));
  return Impl::Open(name, repository, workspace, std::move(progress), std::move(owned));
}

Result<Campaign> Campaign::Impl::Open(const std::string& name,
                                      const std::filesystem::path& repository,
                                      const Workspace& workspace, Progress progress,
                                      FileLock owned) {
  CRUCIBLE_ASSIGN(Store store, Store::Open(workspace.LogFile()));
  CRUCIBLE_ASSIGN(const auto row, store.FindCampaign(name));
  if (!row) return tl::unexpected(NoSuchCampaign("resume", name));
  if (const ProcessIdentity owner = ProcessIdentityFromText(row->owner); IsAlive(owner))
    return Fail(ErrorKind::kConflict, "resume", name,
                fmt::format("it is running in process {}", owner.pid),
                "`crucible campaign status`, or stop it first");
  CRUCIBLE_ASSIGN(CampaignFile file, LoadCampaignFile(workspace.Campaign(name) / "campaign.toml"));
  file.target = workspace.Campaign(name) / "target.toml";
  CRUCIBLE_ASSIGN(Target target, LoadTarget(file.target));
  CRUCIBLE_TRY(AgentsReady(file.agent, file.planner));  // the key may not be set in this shell
  CRUCIBLE_ASSIGN(Repository opened, Repository::Open(repository, file.branch));
  auto impl = std::make_unique<Impl>(
      Impl{std::move(file), std::move(target), workspace, std::move(opened), std::move(store), *row,
           std::move(progress), RandomHex(8), IdOf(*row), std::move(owned)});
  return Campaign(std::move(impl));
}

}  // namespace crucible
