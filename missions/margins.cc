#include "missions/margins.h"

#include <algorithm>
#include <map>
#include <utility>

namespace crucible {
namespace {

constexpr double kThinned = 2;  // times the least residual; a seed's luck alone moves it less

}  // namespace

std::optional<ThinnedMargin> ThinnedMarginOf(const std::vector<Entry>& entries,
                                             const std::vector<MissionRow>& missions,
                                             const std::string& target,
                                             const std::string& campaign) {
  std::map<std::string, std::pair<double, std::string>> least;  // by gate, with the entry's key
  const Entry* newest = nullptr;
  for (const Entry& entry : entries) {
    if (entry.target != target || !entry.landed || entry.margins.empty()) continue;
    if (newest != nullptr)
      for (const auto& [gate, value] : newest->margins)
        if (value > 0 && (!least.contains(gate) || value < least[gate].first))
          least[gate] = {value, newest->key};
    newest = &entry;
  }
  if (newest == nullptr) return std::nullopt;
  const bool settled =
      std::any_of(missions.begin(), missions.end(), [&](const MissionRow& mission) {
        return mission.target == target && mission.campaign == campaign &&
               mission.flavour == "precision" && mission.planned_ms >= newest->time_ms;
      });
  if (settled) return std::nullopt;
  std::optional<ThinnedMargin> worst;
  for (const auto& [gate, value] : newest->margins) {
    const auto before = least.find(gate);
    if (before == least.end() || value < kThinned * before->second.first) continue;
    if (worst && value / before->second.first <= worst->newest / worst->least) continue;
    worst = {gate, before->second.first, value, before->second.second, newest->key, {}};
  }
  if (!worst) return std::nullopt;
  for (const CaseResult& result : newest->cases)
    if (result.role == "claim") worst->claimed.push_back(result.name);
  return worst;
}

}  // namespace crucible
