#include "orchestrator/agents/proposals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace crucible {
namespace {

constexpr int kRejectionsUntilRest = 2;
// A single move this close to even may still pay together with another one.
constexpr double kNearMiss = 1.05;
// An undecided move looks like a gain from here on.
constexpr double kLooksLikeAGain = 0.97;

bool MovesOneOf(const Knob& knob, const std::vector<std::string>& cases) {
  if (knob.cases.empty() || cases.empty()) return true;
  return std::any_of(cases.begin(), cases.end(), [&](const std::string& name) {
    return std::find(knob.cases.begin(), knob.cases.end(), name) != knob.cases.end();
  });
}

}  // namespace

ProposalSearch::ProposalSearch(KnobSpace space, Configuration incumbent,
                               const std::vector<std::string>& scope,
                               std::set<std::string> rejected)
    : space_(std::move(space)), incumbent_(std::move(incumbent)), seen_(std::move(rejected)) {
  for (const Knob& knob : space_.knobs)
    if (MovesOneOf(knob, scope)) scope_.push_back(knob);
  seen_.insert(ScopedText(incumbent_));
}

std::string ProposalSearch::ScopedText(const Configuration& configuration) const {
  Configuration scoped;
  for (const Knob& knob : scope_) {
    const auto found = configuration.find(knob.name);
    if (found != configuration.end()) scoped.insert(*found);
  }
  return CanonicalText(scoped);
}

void ProposalSearch::TryFirst(const Configuration& configuration) {
  Configuration known;
  for (const auto& [name, value] : configuration)
    if (incumbent_.contains(name)) known[name] = value;
  first_.push_back(std::move(known));
}

// The values of a knob in the order they should be tried: the neighbour in the direction that paid
// (upwards at first), the neighbour on the other side, then farther ones alternately.
std::vector<std::int64_t> ProposalSearch::Order(const Knob& knob) const {
  const std::int64_t now = incumbent_.at(knob.name);
  std::vector<std::int64_t> up, down;
  for (const std::int64_t value : knob.values) {
    if (value > now) up.push_back(value);
    if (value < now) down.insert(down.begin(), value);
  }
  const auto found = history_.find(knob.name);
  const bool downwards = found != history_.end() && found->second.direction < 0;
  std::vector<std::int64_t>& first = downwards ? down : up;
  std::vector<std::int64_t>& second = downwards ? up : down;
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i < first.size()) order.push_back(first[i]);
    if (i < second.size()) order.push_back(second[i]);
  }
  return order;
}

std::string ProposalSearch::Hypothesis(const Configuration& configuration,
                                       const std::vector<std::string>& turned) const {
  std::vector<std::string> parts;
  for (const std::string& name : turned)
    parts.push_back(fmt::format("{} {} -> {}: {}", name, incumbent_.at(name),
                                configuration.at(name), space_.Find(name)->mechanism));
  return fmt::format("{}", fmt::join(parts, "; and "));
}

Result<std::optional<Proposal>> ProposalSearch::Consider(Configuration configuration,
                                                         std::vector<std::string> turned,
                                                         bool may_repair) {
  if (seen_.contains(ScopedText(configuration))) return std::optional<Proposal>();
  CRUCIBLE_ASSIGN(const std::string refused, WhyInvalid(space_, configuration));
  if (!refused.empty() && may_repair) {
    CRUCIBLE_ASSIGN(auto repaired, Repair(configuration, turned.front()));
    if (repaired) return repaired;
  }
  seen_.insert(ScopedText(configuration));
  Proposal proposal;
  proposal.hypothesis = Hypothesis(configuration, turned);
  proposal.configuration = std::move(configuration);
  proposal.turned = std::move(turned);
  proposal.refused = refused;
  return std::optional(std::move(proposal));
}

Result<std::optional<Proposal>> ProposalSearch::Repair(const Configuration& configuration,
                                                       const std::string& turned) {
  for (const Knob& other : scope_) {
    if (other.name == turned) continue;
    for (const std::int64_t value : Order(other)) {
      Configuration repaired = configuration;
      repaired[other.name] = value;
      if (seen_.contains(ScopedText(repaired))) continue;
      CRUCIBLE_ASSIGN(const std::string refused, WhyInvalid(space_, repaired));
      if (!refused.empty()) continue;
      seen_.insert(ScopedText(repaired));
      Proposal proposal;
      proposal.turned = {turned, other.name};
      proposal.hypothesis = Hypothesis(repaired, proposal.turned);
      proposal.configuration = std::move(repaired);
      proposal.repaired = true;
      return std::optional(std::move(proposal));
    }
  }
  return std::optional<Proposal>();
}

Result<std::optional<Proposal>> ProposalSearch::Single(const Knob& knob) {
  for (const std::int64_t value : Order(knob)) {
    Configuration configuration = incumbent_;
    configuration[knob.name] = value;
    CRUCIBLE_ASSIGN(auto proposal, Consider(std::move(configuration), {knob.name}, true));
    if (proposal) return proposal;
  }
  return std::optional<Proposal>();
}

Result<std::optional<Proposal>> ProposalSearch::Pair() {
  std::vector<const Knob*> near;
  for (const Knob& knob : scope_)
    if (history_[knob.name].closest <= kNearMiss) near.push_back(&knob);
  std::sort(near.begin(), near.end(), [&](const Knob* a, const Knob* b) {
    return history_[a->name].closest < history_[b->name].closest;
  });
  for (std::size_t i = 0; i < near.size(); ++i) {
    for (std::size_t j = i + 1; j < near.size(); ++j) {
      for (const std::int64_t a : Order(*near[i])) {
        for (const std::int64_t b : Order(*near[j])) {
          Configuration configuration = incumbent_;
          configuration[near[i]->name] = a;
          configuration[near[j]->name] = b;
          CRUCIBLE_ASSIGN(const std::string refused, WhyInvalid(space_, configuration));
          if (!refused.empty()) continue;
          CRUCIBLE_ASSIGN(auto proposal, Consider(std::move(configuration),
                                                  {near[i]->name, near[j]->name}, false));
          if (proposal) return proposal;
        }
      }
    }
  }
  return std::optional<Proposal>();
}

Result<std::optional<Proposal>> ProposalSearch::Together() {
  Configuration configuration = incumbent_;
  std::vector<std::string> turned;
  for (const auto& [name, value] : leaning_) {
    if (incumbent_.at(name) == value) continue;
    configuration[name] = value;
    turned.push_back(name);
  }
  if (turned.size() < 2) return std::optional<Proposal>();
  CRUCIBLE_ASSIGN(const std::string refused, WhyInvalid(space_, configuration));
  if (!refused.empty()) return std::optional<Proposal>();
  return Consider(std::move(configuration), std::move(turned), false);
}

Result<std::optional<Proposal>> ProposalSearch::Next() {
  CRUCIBLE_ASSIGN(auto together, Together());
  if (together) return together;
  while (!first_.empty()) {
    // Onto what is held by now.
    Configuration configuration = incumbent_;
    std::vector<std::string> turned;
    for (const auto& [name, value] : first_.front()) {
      if (incumbent_.at(name) != value) turned.push_back(name);
      configuration[name] = value;
    }
    first_.erase(first_.begin());
    if (turned.empty()) continue;
    seen_.erase(ScopedText(configuration));
    return Consider(std::move(configuration), std::move(turned), false);
  }
  // The prior of every knob once, in the file's order, before any knob is turned further.
  for (const Knob& knob : scope_) {
    if (!knob.first || incumbent_.at(knob.name) == *knob.first ||
        !tried_first_.insert(knob.name).second)
      continue;
    Configuration configuration = incumbent_;
    configuration[knob.name] = *knob.first;
    CRUCIBLE_ASSIGN(auto proposal, Consider(std::move(configuration), {knob.name}, true));
    if (proposal) return proposal;
  }
  std::vector<const Knob*> order;
  for (const Knob& knob : scope_) order.push_back(&knob);
  std::stable_sort(order.begin(), order.end(), [&](const Knob* a, const Knob* b) {
    return history_[a->name].payoff > history_[b->name].payoff;
  });
  for (const Knob* knob : order) {
    if (history_[knob->name].rejections >= kRejectionsUntilRest) continue;
    CRUCIBLE_ASSIGN(auto proposal, Single(*knob));
    if (proposal) return proposal;
  }
  return Pair();
}

void ProposalSearch::Accepted(const Proposal& proposal, double ratio) {
  for (auto& [name, history] : history_) {
    history.rejections = 0;
    history.closest = 1e9;
  }
  for (const std::string& name : proposal.turned) {
    History& history = history_[name];
    history.payoff += -std::log(ratio) / static_cast<double>(proposal.turned.size());
    history.direction = proposal.configuration.at(name) > incumbent_.at(name) ? 1 : -1;
  }
  incumbent_ = proposal.configuration;
  leaning_.clear();
}

void ProposalSearch::Rejected(const Proposal& proposal, std::optional<double> ratio) {
  for (const std::string& name : proposal.turned) {
    History& history = history_[name];
    // A pair says little about each of its knobs, and a refused one nothing.
    if (proposal.turned.size() == 1 && proposal.refused.empty()) ++history.rejections;
    if (ratio && proposal.turned.size() == 1) history.closest = std::min(history.closest, *ratio);
  }
  // A sum that was told not to gain says the same of its parts.
  if (proposal.turned.size() > 1)
    for (const std::string& name : proposal.turned) leaning_.erase(name);
}

void ProposalSearch::Undecided(const Proposal& proposal, std::optional<double> ratio) {
  Configuration leaning = leaning_;
  Rejected(proposal, ratio);
  leaning_ = std::move(leaning);
  Configuration turned;
  for (const std::string& name : proposal.turned) turned[name] = proposal.configuration.at(name);
  if (ratio) Recall(turned, *ratio);
}

void ProposalSearch::Recall(const Configuration& knobs, double ratio) {
  if (ratio > kLooksLikeAGain) return;
  for (const auto& [name, value] : knobs)
    if (incumbent_.contains(name)) leaning_[name] = value;
}

}  // namespace crucible
