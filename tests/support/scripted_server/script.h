// script.h: keeps the place of every conversation and says which step is due.
//
// A turn is found by how many assistant messages the request's history has, so that a mission which
// was killed and asks again gets the same answer; a fault happens `times` times for each mission.
// A mission is known by its first user message. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "tests/support/scripted_server/asked.h"
#include "tests/support/scripted_server/scenario.h"

namespace crucible {

class Script {
 public:
  explicit Script(Scenario scenario) : scenario_(std::move(scenario)) {}

  struct Due {
    ScriptStep step;  // with its values filled in
    std::string id;   // names conversation, mission and turn: "c0m1t2"
  };
  // kNotFound: no conversation for this mission, or its script is over; kUsage: a capture found
  // nothing.
  Result<Due> Next(const Asked& asked);

  const Scenario& scenario() const { return scenario_; }

 private:
  struct Mission {
    std::size_t conversation = 0;
    std::size_t number = 0;             // among those of its conversation
    int turns = 0;                      // served so far
    std::map<std::size_t, int> faults;  // served so far, by step
  };
  Result<Mission*> Find(const Asked& asked);

  const Scenario scenario_;
  std::mutex mutex_;
  std::map<std::string, Mission> missions_;     // by first user message
  std::map<std::size_t, std::size_t> holders_;  // missions of each conversation
};

// `text` with each ${name} replaced by what its capture finds, in the tool results from the last to
// the first, then in the first user message; "$${" stands for "${".
Result<std::string> FillIn(const std::string& text,
                           const std::map<std::string, std::string>& captures, const Asked& asked);

}  // namespace crucible
