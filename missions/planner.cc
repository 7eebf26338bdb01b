#include "missions/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/clock.h"
#include "base/counted.h"
#include "base/json.h"
#include "missions/margins.h"

namespace crucible {
namespace {

constexpr double kUnknownRoom = 0.1;  // neither a floor nor a peer that is faster is known
constexpr double kLeastRoom = 0.01;   // at its floor: the floor is what is left to challenge
constexpr std::size_t kMostRetries = 8;
constexpr int kMostHalvings = 5;
constexpr int kInVainUntilExplorer = 2, kInVainUntilScout = 4, kLandedUntilSimplifier = 4;

bool Contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

bool Claims(const Entry& entry, const std::string& name) {
  return std::any_of(entry.cases.begin(), entry.cases.end(), [&](const CaseResult& result) {
    return result.name == name && result.role == "claim";
  });
}

// What changed since, less the kernel generation: every merge changes that one, so alone it would
// send each rejection back at once. A brief still names it.
std::vector<ChangedCondition> ReasonsToRetest(const Entry& entry, const Conditions& now) {
  std::vector<ChangedCondition> changed = ChangedSince(entry.conditions, now);
  std::erase_if(changed, [](const ChangedCondition& c) { return c.field == "kernel_generation"; });
  return changed;
}

// The room and the staleness of one case, with the numbers they came from.
struct Score {
  double value = 0;
  double newest_us = 0;  // 0: not measured yet
  int in_vain = 0;       // missions on it that landed nothing since its bar moved
  std::string why;
};

class Planner {
 public:
  explicit Planner(const PlannerInput& input) : in_(input) {
    for (const MissionRow& mission : in_.missions) {
      if (mission.target != in_.target->name) continue;
      const bool mine = mission.campaign == in_.campaign;
      // One that waits for a person (ended, with a merge outcome) holds nothing back.
      const bool works = mission.state == "preparing" || mission.state == "running" ||
                         mission.state == "merging" ||
                         (mission.state == "ended" && mission.merge_outcome.empty());
      if (mine && works) {
        taken_.insert(mission.cases.begin(), mission.cases.end());
        for (const std::string& name : mission.cases)
          for (const std::string& file : FilesOf(name)) editor_of_.emplace(file, mission.id);
      }
      if (!mine) continue;
      if (mission.state != "planned") taken_up_.insert(mission.cases.begin(), mission.cases.end());
      const auto settings = nlohmann::json::parse(mission.settings, nullptr, false);
      if (settings.is_object() && settings.contains("retry") && settings["retry"].is_array())
        for (const auto& key : settings["retry"])
          if (key.is_string()) retried_.insert(key.get<std::string>());
    }
    for (const Entry& entry : in_.entries)
      if (!entry.supersedes.empty()) superseded_.insert(entry.supersedes);
    for (const TargetCase& item : in_.target->cases) scores_.push_back(ScoreOf(item));
    OrderFreeCases();
  }

  std::optional<MissionPlan> Added() {
    for (const MissionRow& mission : in_.missions) {
      if (mission.state != "planned") continue;
      if (!mission.campaign.empty() && mission.campaign != in_.campaign) continue;
      if (!mission.target.empty() && mission.target != in_.target->name) continue;
      std::vector<std::string> cases = mission.cases;
      if (cases.empty())
        for (const TargetCase& item : in_.target->cases) cases.push_back(item.name);
      const auto unknown = std::find_if(cases.begin(), cases.end(), [&](const std::string& name) {
        return in_.target->FindCase(name) == nullptr;
      });
      if (unknown != cases.end()) {
        Note(fmt::format("{} names the unknown case {}", mission.id, *unknown));
        continue;
      }
      const auto busy = std::find_if(cases.begin(), cases.end(), [&](const std::string& name) {
        return taken_.contains(name);
      });
      if (busy != cases.end()) {
        Note(fmt::format("{} waits for {}", mission.id, *busy));
        continue;
      }
      MissionPlan plan;
      plan.flavour = mission.flavour;
      plan.cases = cases;
      plan.goal = mission.goal.empty() ? GoalFor(cases.front()) : mission.goal;
      plan.why = fmt::format("{} was added by a person and waits", mission.id);
      plan.added_mission = mission.id;
      return plan;
    }
    return std::nullopt;
  }

  // Rejections (losses and nulls) one of whose conditions is different today.
  std::optional<MissionPlan> Retest() {
    return FromEntries(
        [&](const Entry& entry) {
          return (entry.kind == EntryKind::kLoss || entry.kind == EntryKind::kNull) &&
                 !ReasonsToRetest(entry, in_.now).empty();
        },
        [&](const std::string& name, const std::vector<const Entry*>& entries) {
          const ChangedCondition first = ReasonsToRetest(*entries.front(), in_.now).front();
          return std::pair(
              fmt::format("Measure again what was rejected on {} under other conditions", name),
              fmt::format("{} of {} up for a retest; {}: {} -> {}",
                          Counted(entries.size(), "rejection"), name, first.field, first.then,
                          first.now));
        });
  }

  std::optional<MissionPlan> Requeued() {
    return FromEntries([](const Entry& entry) { return entry.kind == EntryKind::kInconclusive; },
                       [](const std::string& name, const std::vector<const Entry*>& entries) {
                         return std::pair(
                             fmt::format("Measure again what stayed inconclusive on {}", name),
                             fmt::format("{} of {} re-queued",
                                         Counted(entries.size(), "inconclusive experiment"), name));
                       });
  }

  // Every case has its turn before one has a second.
  std::optional<MissionPlan> NotTakenUp() {
    std::vector<std::size_t> order = free_;
    std::erase_if(order, [&](std::size_t index) {
      return taken_up_.contains(in_.target->cases[index].name);
    });
    return Best(order);
  }

  // Merges that each passed, and together came closer to a gate.
  std::optional<MissionPlan> Thinned() const {
    const auto thinned = ThinnedMarginOf(in_.entries, in_.missions, in_.target->name, in_.campaign);
    if (!thinned) return std::nullopt;
    for (const std::string& name : thinned->claimed) {
      if (!IsFree(name) || in_.target->FindCase(name) == nullptr) continue;
      MissionPlan plan;
      plan.flavour = "precision";
      plan.cases = {name};
      plan.goal = fmt::format("Widen the margin of the gate {} on {} without losing speed",
                              thinned->gate, name);
      plan.why = fmt::format(
          "merges used up accuracy: worst scaled residual of {}: {:.3g} -> {:.3g} "
          "({} -> {})",
          thinned->gate, thinned->least, thinned->newest, thinned->least_key, thinned->newest_key);
      return plan;
    }
    return std::nullopt;
  }

  std::optional<MissionPlan> MostPromising() { return Best(free_); }

  std::string WhyNot() const {
    std::string text =
        fmt::format("every case of {} is being worked on",
                    in_.only.empty() ? in_.target->name : "the campaign file's list");
    if (in_.target->cases.empty()) text = fmt::format("{} has no cases", in_.target->name);
    return notes_.empty() ? text : text + "; " + notes_;
  }

 private:
  bool IsFree(const std::string& name) const {
    return !taken_.contains(name) && (in_.only.empty() || Contains(in_.only, name));
  }

  void Note(const std::string& note) { notes_ += (notes_.empty() ? "" : "; ") + note; }

  // Empty: the campaign's usual one.
  std::string FlavourFor(const Score& score) const {
    int landed = 0;  // since the last simplifier
    for (const MissionRow& mission : in_.missions) {
      if (mission.target != in_.target->name || mission.campaign != in_.campaign) continue;
      if (mission.flavour == "simplifier") landed = 0;
      landed += mission.merge_outcome == "landed" && mission.flavour != "simplifier";
    }
    if (landed >= kLandedUntilSimplifier) return "simplifier";
    if (score.in_vain >= kInVainUntilScout) return "scout";
    if (score.in_vain >= kInVainUntilExplorer) return "explorer";
    return "";
  }

  std::optional<MissionPlan> Best(const std::vector<std::size_t>& order) const {
    if (order.empty()) return std::nullopt;
    const std::size_t best = order.front();
    MissionPlan plan;
    plan.cases = {in_.target->cases[best].name};
    plan.flavour = FlavourFor(scores_[best]);
    plan.goal = GoalFor(plan.cases.front());
    plan.why = fmt::format("{} has the largest score: {}", plan.cases.front(), scores_[best].why);
    if (order.size() > 1)
      plan.why += fmt::format("; next is {} with {:.3g}", in_.target->cases[order[1]].name,
                              scores_[order[1]].value);
    plan.why += held_back_;
    return plan;
  }

  const std::set<std::string>& FilesOf(const std::string& name) const {
    static const std::set<std::string> kNone;
    const auto found = in_.files_of_case.find(name);
    return found == in_.files_of_case.end() ? kNone : found->second;
  }

  // "FILE, as m3 does" of a file that a running mission edits as well, "" where there is none.
  std::string SharedFile(const std::string& name) const {
    for (const std::string& file : FilesOf(name))
      if (const auto editor = editor_of_.find(file); editor != editor_of_.end())
        return fmt::format("{}, as {} does", file, editor->second);
    return "";
  }

  // Those nobody works on, the largest score first, ties in the file's order; without those that
  // share a file with a running mission, as long as others are there.
  void OrderFreeCases() {
    for (std::size_t i = 0; i < scores_.size(); ++i)
      if (IsFree(in_.target->cases[i].name)) free_.push_back(i);
    std::stable_sort(free_.begin(), free_.end(), [&](std::size_t a, std::size_t b) {
      return scores_[a].value > scores_[b].value;
    });
    std::vector<std::size_t> apart = free_;
    std::erase_if(apart,
                  [&](std::size_t i) { return !SharedFile(in_.target->cases[i].name).empty(); });
    if (apart.empty() || apart.size() == free_.size()) return;
    for (const std::size_t index : free_) {
      const std::string& name = in_.target->cases[index].name;
      if (const std::string shared = SharedFile(name); !shared.empty())
        held_back_ += fmt::format("; {} waits: it edits {}", name, shared);
    }
    free_ = std::move(apart);
  }

  std::string GoalFor(const std::string& name) const {
    const TargetCase* item = in_.target->FindCase(name);
    const auto index = static_cast<std::size_t>(item - in_.target->cases.data());
    const double newest_us = scores_[index].newest_us;
    std::string goal = "Make " + name + " faster";
    if (newest_us > 0) goal += fmt::format(" than {}", FormatMicroseconds(newest_us));
    if (item->floor_us) goal += fmt::format(" (floor {})", FormatMicroseconds(*item->floor_us));
    return goal + " without slowing any other case";
  }

  template <class Wanted, class Words>
  std::optional<MissionPlan> FromEntries(Wanted wanted, Words words) const {
    for (const std::size_t index : free_) {
      const std::string& name = in_.target->cases[index].name;
      std::vector<const Entry*> found;
      for (std::size_t i = 0; i < in_.entries.size() && found.size() < kMostRetries; ++i)
        if (Claims(in_.entries[i], name) && wanted(in_.entries[i]) && StillStands(i))
          found.push_back(&in_.entries[i]);
      if (found.empty()) continue;
      MissionPlan plan;
      plan.cases = {name};
      std::tie(plan.goal, plan.why) = words(name, found);
      for (const Entry* entry : found) plan.retry.push_back(entry->key);
      return plan;
    }
    return std::nullopt;
  }

  // Not superseded, not conflated, not tried again by a mission of this campaign, and the newest
  // word on its change: a later measurement of the same change replaces it.
  bool StillStands(std::size_t index) const {
    const Entry& entry = in_.entries[index];
    if (entry.conflated || superseded_.contains(entry.key) || retried_.contains(entry.key))
      return false;
    if (entry.change.empty() || entry.change == "{}") return true;
    const auto same = [&](const Entry& later) {
      return later.change == entry.change && later.kind != EntryKind::kNote &&
             std::any_of(entry.cases.begin(), entry.cases.end(), [&](const CaseResult& result) {
               return result.role == "claim" && Claims(later, result.name);
             });
    };
    return std::none_of(in_.entries.begin() + static_cast<std::ptrdiff_t>(index) + 1,
                        in_.entries.end(), same);
  }

  Score ScoreOf(const TargetCase& item) const {
    Score score;
    std::optional<double> floor_us = item.floor_us;
    std::map<std::string, double> peers;
    std::int64_t moved_ms = 0;
    for (const Point& point : in_.points) {
      if (point.case_name != item.name || point.target != in_.target->name) continue;
      if (point.kind == "main") score.newest_us = point.median_us;
      if (point.kind == "main" && point.record) moved_ms = point.time_ms;
      if (point.kind == "floor" && !item.floor_us) floor_us = point.median_us;
      if (point.kind == "peer") peers[point.name] = point.median_us;
    }
    double room = kUnknownRoom;
    std::string room_text = "no floor or faster peer known";
    if (score.newest_us > 0 && floor_us && *floor_us > 0) {
      room = std::max(kLeastRoom, std::log(score.newest_us / *floor_us));
      room_text = fmt::format("ln({} / floor {})", FormatMicroseconds(score.newest_us),
                              FormatMicroseconds(*floor_us));
    } else if (score.newest_us > 0 && !peers.empty()) {
      const auto best =
          std::min_element(peers.begin(), peers.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      if (best->second > 0 && best->second < score.newest_us) {
        room = std::log(score.newest_us / best->second);
        room_text = fmt::format("ln({} / {} {})", FormatMicroseconds(score.newest_us), best->first,
                                FormatMicroseconds(best->second));
      }
    }
    int ended = 0, in_vain = 0;
    for (const MissionRow& mission : in_.missions) {
      if (mission.target != in_.target->name || !mission.ended_ms || *mission.ended_ms <= moved_ms)
        continue;
      ++ended;
      const bool landed = mission.merge_outcome == "landed";
      in_vain += mission.state == "done" && !landed && Contains(mission.cases, item.name);
    }
    score.in_vain = in_vain;
    const int halvings = std::min(in_vain, kMostHalvings);
    score.value = room * (1 + ended) * std::pow(0.5, halvings);
    score.why = fmt::format("{:.3g} = room {:.3g} ({}) x staleness {}", score.value, room,
                            room_text, 1 + ended);
    if (halvings > 0)
      score.why +=
          ", halved " + Counted(halvings, "time") + " for missions on it that landed nothing";
    return score;
  }

  const PlannerInput& in_;
  std::set<std::string> taken_, taken_up_, retried_, superseded_;
  std::map<std::string, std::string> editor_of_;  // file -> the mission that edits it now
  std::vector<Score> scores_;                     // in the order of the target's cases
  std::vector<std::size_t> free_;                 // indices of cases that can be given out
  std::string held_back_;
  std::string notes_;
};

}  // namespace

std::optional<MissionPlan> PlanNext(const PlannerInput& input, const std::string& default_flavour,
                                    std::string* why_not) {
  CRUCIBLE_CHECK(input.target != nullptr, "a plan is made for a target");
  Planner planner(input);
  std::optional<MissionPlan> plan = planner.Added();
  if (!plan) plan = planner.Retest();
  if (!plan) plan = planner.NotTakenUp();
  if (!plan && default_flavour != "proposer") plan = planner.Thinned();
  if (!plan) plan = planner.Requeued();
  if (!plan) plan = planner.MostPromising();
  // The proposer turns knobs and nothing else; a person's mission keeps the person's word.
  const bool proposes = default_flavour == "proposer" && plan && plan->added_mission.empty();
  if (plan && (plan->flavour.empty() || proposes)) plan->flavour = default_flavour;
  if (!plan && why_not != nullptr) *why_not = planner.WhyNot();
  return plan;
}

}  // namespace crucible
