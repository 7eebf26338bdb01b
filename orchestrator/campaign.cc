#include "orchestrator/campaign.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "base/clock.h"
#include "base/counted.h"
#include "base/files.h"
#include "base/process_identity.h"
#include "missions/states.h"
#include "orchestrator/campaign_impl.h"
#include "orchestrator/integrate.h"
#include "orchestrator/prove_harness.h"

namespace crucible {
namespace {

constexpr std::int64_t kPollMs = 100;
constexpr std::int64_t kStatusEveryMs = 10'000;
constexpr std::int64_t kSpendEveryMs = 2'000;
constexpr std::int64_t kStopLookEveryMs = 1'000;
constexpr int kRunnersEndMs = 5'000;

volatile sig_atomic_t g_interrupts = 0;
void OnInterrupt(int) { g_interrupts = g_interrupts + 1; }

// The gpu_run processes of a run complete their rows on SIGTERM; on SIGKILL nobody knows when their
// jobs ended.
void EndRunners(const std::string& run_nonce) {
  const std::int64_t deadline_ns = SystemClock().MonotonicNs() + kRunnersEndMs * 1'000'000LL;
  std::vector<ProcessIdentity> runners;
  for (const pid_t pid : ProcessesWithEnvironment("CRUCIBLE_RUN", run_nonce)) {
    std::error_code ignored;
    const auto program = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), ignored);
    if (program.filename() != "gpu_run") continue;
    runners.push_back(IdentityOf(pid));
    ::kill(pid, SIGTERM);
  }
  for (const ProcessIdentity& runner : runners)
    while (IsAlive(runner) && SystemClock().MonotonicNs() < deadline_ns)
      SystemClock().SleepFor(std::chrono::milliseconds(20));
}

std::string RunNonceName(const std::string& campaign) { return "run:" + campaign; }

}  // namespace

Campaign::Campaign(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Campaign::Campaign(Campaign&&) noexcept = default;
Campaign& Campaign::operator=(Campaign&&) noexcept = default;
Campaign::~Campaign() = default;

Result<CampaignSummary> Campaign::Run() { return impl_->Run(); }

Result<CampaignSummary> Campaign::Impl::Run() {
  auto summary = Loop();
  if (!summary) Abandon(summary.error());
  return summary;
}

Result<CampaignSummary> Campaign::Impl::Loop() {
  struct sigaction action {};
  action.sa_handler = OnInterrupt;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  g_interrupts = 0;

  TakeKeys();
  // What an earlier run told is not told again.
  CRUCIBLE_ASSIGN(const std::vector<crucible::Event> told, store.Events(row.name, 0));
  if (!told.empty()) last_event = told.back().id;
  CRUCIBLE_TRY(Recover());  // needs the previous run's nonce, so it comes first
  CRUCIBLE_TRY(store.SetMeta(RunNonceName(row.name), run_nonce));
  row.state = "running";
  row.owner = ToText(OwnIdentity());
  row.ended_ms.reset();
  if (row.deadline_ms && *row.deadline_ms < SystemClock().UnixMs())
    row.deadline_ms = SystemClock().UnixMs() + file.wall_ms;
  {
    CRUCIBLE_ASSIGN(const FileLock turn, FileLock::Take(workspace.OwnersLock()));
    CRUCIBLE_TRY(store.PutCampaign(row));
  }
  Event("", "campaign",
        fmt::format("campaign {} on {} runs, {}", row.name, target.name,
                    Counted(file.agents, "agent")));
  auto ready = ProveFirst();
  if (ready) ready = MeasureFirst();
  if (!ready && !StopAsked()) return tl::unexpected(ready.error());
  for (;;) {
    bool stop_now = false;
    CRUCIBLE_TRY(FollowControl(&stop_now));
    if (stop_now) break;
    CRUCIBLE_TRY(ReapAgents());
    CRUCIBLE_TRY(Merge());
    if (!draining) CRUCIBLE_TRY(StartMissions());
    ShowEvents();
    ShowStatus();
    if (draining && agents.empty() && !merge && merge_queue.empty()) break;
    SystemClock().SleepFor(std::chrono::milliseconds(kPollMs));
  }
  std::string state = "finished";
  CRUCIBLE_ASSIGN(const auto now, store.FindCampaign(row.name));
  if (now && now->state == "paused") state = "paused";
  if (now && now->state == "stopping") state = "stopped";
  if (g_interrupts > 0) state = "interrupted";
  CRUCIBLE_ASSIGN(const std::vector<MissionRow> missions, store.Missions(row.name));
  CampaignSummary summary{row.name, state};
  summary.why = why_draining;
  for (const MissionRow& mission : missions) {
    ++summary.missions;
    summary.crashed += mission.outcome == "crashed";
    summary.landed += mission.merge_outcome == "landed";
    summary.experiments += ExperimentsOf(mission.id);
  }
  // A courtesy to the reader: what was kept stays kept when it fails.
  if (state == "finished" && summary.landed > 0)
    if (const auto measured = MeasureLast(); !measured)
      Event("", "campaign", "main was not measured beside its peers: " + measured.error().text);
  CRUCIBLE_TRY(End(state, why_draining));
  return summary;
}

// Nothing is judged by a harness that lets a cheating kernel through.
Result<> Campaign::Impl::ProveFirst() {
  CRUCIBLE_ASSIGN(const std::string tip, repository.MainTip());
  CRUCIBLE_TRY(store.SetCampaignPhase(row.name, "measuring", "running the cheating kernels"));
  if (progress && !target.exploits.empty())
    progress("proving the harness: does it catch the target's cheating kernels?");
  return ProveHarness(Baseline(), &store, tip,
                      [this](const std::string& text) { Event("", "campaign", text); });
}

// The first point of every bar, before anything changes.
Result<> Campaign::Impl::MeasureFirst() {
  CRUCIBLE_ASSIGN(const std::string tip, repository.MainTip());
  const std::string key = fmt::format("{}.start", id);
  const auto known = store.FindEntry(key);
  if (known) return {};
  CRUCIBLE_TRY(store.SetCampaignPhase(row.name, "measuring", "building and measuring main"));
  if (progress) progress("building main and measuring it, its peers and today's conditions");
  return MeasureMain(Baseline(), &store, tip, key, row.name, MeasureFor::kFirstPoints);
}

// What was kept, beside the peers in one run: the numbers of the first and of a merge were taken
// minutes apart, and the machine may have drifted between them.
Result<> Campaign::Impl::MeasureLast() {
  CRUCIBLE_ASSIGN(const std::string tip, repository.MainTip());
  if (target.peers.empty() || g_interrupts > 0) return {};
  CRUCIBLE_TRY(store.SetCampaignPhase(row.name, "measuring", "main beside its peers"));
  if (progress) progress("measuring what was kept beside the peers");
  return MeasureMain(Baseline(), &store, tip, fmt::format("{}.end.{}", id, tip.substr(0, 12)),
                     row.name, MeasureFor::kBesidePeers);
}

void Campaign::Impl::Drain(const std::string& why, Cause cause) {
  if (draining && (cause != Cause::kPerson || why == why_draining)) return;
  draining = true;
  why_draining = why;
  Event("", "campaign", "no new missions: " + why);
}

// They end as at a budget of their own: with what they kept, and their words on it.
void Campaign::Impl::TellAgentsToEnd(const std::string& why) {
  for (auto& [mission, agent] : agents) {
    if (!agent.stopped_for.empty()) continue;
    agent.stopped_for = why;
    agent.deadline_ms = std::min(agent.deadline_ms, SystemClock().UnixMs() + kAgentGraceMs);
    Event(mission, "mission", fmt::format("{} is told to end: {}", mission, why));
    agent.process.Signal(SIGTERM);
  }
}

bool Campaign::Impl::StopAsked() {
  if (g_interrupts > 0) return true;
  const std::int64_t now_ms = SystemClock().UnixMs();
  if (stop_asked || now_ms - last_stop_look_ms < kStopLookEveryMs) return stop_asked;
  last_stop_look_ms = now_ms;
  const auto now = store.FindCampaign(row.name);
  stop_asked = now && *now && (*now)->state == "stopping";
  return stop_asked;
}

Result<> Campaign::Impl::FollowControl(bool* stop_now) {
  if (g_interrupts > 0) {
    Drain("interrupted by a signal; `crucible campaign resume` takes it up", Cause::kPerson);
    *stop_now = true;
    return {};
  }
  CRUCIBLE_ASSIGN(const auto now, store.FindCampaign(row.name));
  if (now && now->state == "paused")
    Drain("paused by a person; running missions end", Cause::kPerson);
  if (now && now->state == "stopping") {
    Drain("stopped by a person", Cause::kPerson);
    *stop_now = true;
  }
  if (row.deadline_ms && SystemClock().UnixMs() >= *row.deadline_ms)
    Drain("the campaign's wall time is used up");
  CRUCIBLE_ASSIGN(const std::vector<MissionRow> missions, store.Missions(row.name));
  const auto begun = std::count_if(missions.begin(), missions.end(), [](const MissionRow& mission) {
    return mission.state != "planned";
  });
  // One that a person added is begun beyond that number.
  const bool added_waits = begun < std::ssize(missions);
  if (file.missions > 0 && begun >= file.missions && !added_waits) Drain(kAllStarted);
  if (const std::int64_t ms = SystemClock().UnixMs(); ms - last_spend_ms >= kSpendEveryMs) {
    last_spend_ms = ms;
    CRUCIBLE_ASSIGN(spent, SpendOf(&store, workspace, row.name));
    if (const std::string used_up = UsedUp(file, spent); !used_up.empty()) {
      Drain(used_up);
      TellAgentsToEnd("the campaign's budget: " + used_up);
    }
  }
  if (file.idle_missions > 0 && idle_missions >= file.idle_missions)
    Drain(fmt::format("{} in a row landed nothing", Counted(idle_missions, "mission")));
  return {};
}

Result<> Campaign::Impl::StartMissions() {
  while (static_cast<int>(agents.size()) < file.agents && !draining) {
    CRUCIBLE_ASSIGN(const bool started, StartOne());
    if (!started) break;
    bool ignored = false;
    CRUCIBLE_TRY(FollowControl(&ignored));
  }
  return {};
}

Result<> Campaign::Impl::ReapAgents() {
  const std::int64_t now = SystemClock().UnixMs();
  for (auto item = agents.begin(); item != agents.end();) {
    RunningAgent& agent = item->second;
    if (now > agent.deadline_ms && !agent.killed) {
      agent.killed = true;
      if (agent.stopped_for.empty()) agent.stopped_for = "the mission's time limit";
      Event(agent.mission, "mission", fmt::format("{} ran past its time: ended", agent.mission));
      agent.process.Signal(SIGKILL);
    }
    if (agent.process.running()) {
      ++item;
      continue;
    }
    CRUCIBLE_TRY(EndAgent(&agent));
    item = agents.erase(item);
  }
  return {};
}

// The merge queue is serial: one integration process at a time.
Result<> Campaign::Impl::Merge() {
  if (merge) {
    if (merge->process.running()) return {};
    const std::string mission = merge->mission;
    const auto status = merge->process.Wait();
    merge.reset();
    CRUCIBLE_ASSIGN(auto ended, store.FindMission(mission));
    // It may have died between the move of main and the word of it in the log.
    if (ended && ended->state == "merging") {
      CRUCIBLE_ASSIGN(const MissionOrder order,
                      ReadMissionOrder(workspace.Mission(mission) / "mission.json"));
      CRUCIBLE_TRY(FinishInterruptedLanding(order));
      CRUCIBLE_ASSIGN(ended, store.FindMission(mission));
    }
    if (ended &&
        (ended->state == "merging" || (ended->state == "ended" && ended->merge_outcome.empty()))) {
      // The integration broke before a verdict: the commit stays in the row, nothing reached main.
      MoveState(mission, &ended->state, "done");
      ended->merge_outcome = "crashed";
      ended->merge_commit.clear();
      CRUCIBLE_TRY(store.PutMission(*ended));
      Event(mission, "merge",
            fmt::format("{}: the integration ended with {} before a verdict; see {}", mission,
                        status ? status->Describe() : status.error().text,
                        (workspace.Mission(mission) / "merge.log").string()));
    }
    if (ended && ended->merge_outcome == "landed")
      idle_missions = 0;
    else
      ++idle_missions;
    if (ended) CRUCIBLE_TRY(CleanUp(*ended));
  }
  if (merge_queue.empty()) return {};
  const std::string mission = merge_queue.front();
  merge_queue.erase(merge_queue.begin());
  SubprocessSpec spec;
  spec.argv = {(workspace.programs / "crucible").string(), "integrate",
               (workspace.Mission(mission) / "mission.json").string()};
  spec.environment = workspace.Environment(mission, run_nonce);
  spec.out = spec.err = Stdio::kFile;
  spec.log_path = workspace.Mission(mission) / "merge.log";
  CRUCIBLE_ASSIGN(Subprocess process, Subprocess::Start(spec));
  merge.emplace(RunningMerge{mission, std::move(process)});
  return {};
}

Result<> Campaign::Impl::End(const std::string& state, const std::string& why) {
  // Nobody begins another job; those that run are ended by their own runner, which says so.
  for (auto& [mission, agent] : agents) agent.process.Signal(SIGSTOP);
  if (merge) merge->process.Signal(SIGSTOP);
  if (!agents.empty() || merge) EndRunners(run_nonce);
  for (auto& [mission, agent] : agents) {
    agent.stopped_with_campaign = agent.process.running();
    agent.process.Signal(SIGKILL);
    (void)agent.process.Wait();
    CRUCIBLE_TRY(EndAgent(&agent));
  }
  agents.clear();
  asking.reset();  // its process ends with it
  if (merge) {
    merge->process.Signal(SIGKILL);
    (void)merge->process.Wait();
    merge.reset();
  }
  CRUCIBLE_TRY(Recover());  // what was cut off ends as after a kill: same code, same guarantees
  CRUCIBLE_TRY(SweepLeftovers());
  row.state = state;
  row.owner.clear();
  row.ended_ms = SystemClock().UnixMs();
  row.phase = state;
  row.message = why;
  CRUCIBLE_TRY(store.PutCampaign(row));
  Event("", "campaign", fmt::format("campaign {} {}: {}", row.name, state, why));
  ShowEvents();
  return {};
}

void Campaign::Impl::Event(const std::string& mission, const std::string& kind,
                           const std::string& text) {
  (void)store.AddEvent(row.name, mission, kind, text);
}

// Everything that any process of the campaign reported since the last look.
void Campaign::Impl::ShowEvents() {
  const auto events = store.Events(row.name, last_event);
  if (!events) return;
  for (const crucible::Event& event : *events) {
    last_event = std::max(last_event, event.id);
    if (progress) progress(fmt::format("[{}] {}", event.kind, event.text));
  }
}

void Campaign::Impl::ShowStatus() {
  const std::int64_t now = SystemClock().UnixMs();
  if (now - last_status_ms < kStatusEveryMs) return;
  last_status_ms = now;
  std::vector<std::string> running;
  for (const auto& [mission, agent] : agents) running.push_back(mission);
  std::string left = "no new missions";
  if (!draining && row.deadline_ms)
    left = fmt::format("{} left for new missions",
                       FormatDuration(std::max<std::int64_t>(0, *row.deadline_ms - now)));
  const std::string text =
      fmt::format("agents: {}; merging: {}; {} queued; {}{}",
                  running.empty() ? "none" : fmt::format("{}", fmt::join(running, ", ")),
                  merge ? merge->mission : "nothing", merge_queue.size(), left,
                  spent.usd > 0 || spent.tokens > 0 ? "; spent " + ToText(spent) : "");
  (void)store.SetCampaignPhase(row.name, draining ? "ending" : "running", text);
  if (progress) progress(text);
}

}  // namespace crucible
