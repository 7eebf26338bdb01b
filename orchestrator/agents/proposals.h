// proposals.h: which configuration the built-in proposer tries next. Pure: no clock, disk, process.
//
// Coordinate moves first: every knob's `first` value (the file's prior) once, in the file's order;
// then the knob with the best payoff so far, in the direction that paid, nearest value first. A
// knob rests after two rejections against the same incumbent. A move that a constraint refuses is
// repaired by turning one more knob where that makes it valid (and is then its own proposal, for
// both knobs). When single moves are used up, pairs of the knobs that came closest, because some
// changes pay only together. Moves that looked like gains and drowned in the noise come next,
// together: what cannot be told one by one may be told of their sum. A configuration is never
// proposed twice, nor one that the log already rejected under today's conditions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/agents/knobs.h"

namespace crucible {

struct Proposal {
  Configuration configuration;      // complete
  std::vector<std::string> turned;  // the knobs that differ from the incumbent
  std::string hypothesis;
  bool repaired = false;
  std::string refused;  // not empty: statically invalid, and why; never built
};

class ProposalSearch {
 public:
  // `scope`: the cases of the mission; knobs that cannot move them are left alone.
  // `rejected`: ScopedText of configurations not to be tried again.
  ProposalSearch(KnobSpace space, Configuration incumbent, const std::vector<std::string>& scope,
                 std::set<std::string> rejected);

  // The next one, or nothing when the space around the incumbent is used up.
  Result<std::optional<Proposal>> Next();

  // What came of the last proposal: `ratio` after/before on the claimed cases, when measured.
  void Accepted(const Proposal& proposal, double ratio);
  void Rejected(const Proposal& proposal, std::optional<double> ratio);
  // … where the measurement could not tell: as Rejected, but a gain by its looks is not forgotten.
  void Undecided(const Proposal& proposal, std::optional<double> ratio);
  // The same of an earlier mission's move: `knobs` came out at `ratio`, undecided.
  void Recall(const Configuration& knobs, double ratio);

  // Makes these knobs of a configuration the next proposal (a retest), unless they are held by then.
  void TryFirst(const Configuration& configuration);

  const Configuration& incumbent() const { return incumbent_; }
  // Canonical text over the knobs in scope only: what identifies a trial of these cases.
  std::string ScopedText(const Configuration& configuration) const;

 private:
  struct History {
    double payoff = 0;     // sum of log gains of kept moves
    int rejections = 0;    // against the present incumbent
    int direction = 0;     // of the last kept move
    double closest = 1e9;  // best ratio seen against the present incumbent
  };

  std::vector<std::int64_t> Order(const Knob& knob) const;
  Result<std::optional<Proposal>> Single(const Knob& knob);
  Result<std::optional<Proposal>> Pair();
  Result<std::optional<Proposal>> Together();
  Result<std::optional<Proposal>> Consider(Configuration configuration,
                                           std::vector<std::string> turned, bool may_repair);
  Result<std::optional<Proposal>> Repair(const Configuration& configuration,
                                         const std::string& turned);
  std::string Hypothesis(const Configuration& configuration,
                         const std::vector<std::string>& turned) const;

  KnobSpace space_;          // every knob, for constraints
  std::vector<Knob> scope_;  // those that may be turned
  Configuration incumbent_;
  std::set<std::string> seen_;
  std::map<std::string, History> history_;
  std::vector<Configuration> first_;   // retests: the knobs to turn
  Configuration leaning_;              // undecided moves that looked like gains
  std::set<std::string> tried_first_;  // knobs whose prior had its turn
};

}  // namespace crucible
