// knobs.h: what the built-in proposer may turn, and which combinations make no sense.
//
// A knobs file (docs/target_protocol.md) names integer constants in source files, the values they
// may take, what each changes physically, and constraints that refuse a combination before any
// build. Where the same knobs exist once per class of sizes, the file lists them once, with the
// classes; knob K of class C is called "C.K". A configuration is every knob's value; its canonical
// text identifies it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace crucible {

struct Knob {
  std::string name;                  // "small.panel_width"
  std::string file;                  // relative to the root
  std::string constant;              // "kPanelWidth"
  std::vector<std::int64_t> values;  // allowed, ascending
  std::vector<std::string> cases;    // the cases it can move; empty: all
  std::string mechanism;
  std::optional<std::int64_t> first;  // the value to try first: a prior, not a result
};

struct Constraint {
  std::string expression;  // as in the file
  bool required = false;   // true: must hold; false: refused where it holds
  std::string reason;
  std::string prefix;                             // of its names: "small." in a class, else empty
  std::map<std::string, std::int64_t> constants;  // of the class: "n_max"
};

struct KnobSpace {
  std::vector<Knob> knobs;
  std::vector<Constraint> constraints;

  const Knob* Find(const std::string& name) const;
};

using Configuration = std::map<std::string, std::int64_t>;

Result<KnobSpace> ParseKnobs(const std::string& toml, const std::string& file_name);

// "a=1 b=8": the same for the same values, whatever the order they were set in.
std::string CanonicalText(const Configuration& configuration);

// The constants' values in the files, each of which `read` is asked for once by its path in the
// repository. An absent or repeated constant is kUsage.
using FileReader = std::function<Result<std::string>(const std::string& file)>;
Result<Configuration> ReadConfiguration(const KnobSpace& space, const FileReader& read);
// The same of the files under `root`.
Result<Configuration> ReadConfiguration(const KnobSpace& space, const std::filesystem::path& root);

// Rewrites the constants that differ, file by file, each atomically.
Result<> WriteConfiguration(const KnobSpace& space, const std::filesystem::path& root,
                            const Configuration& configuration);

// Why this combination is refused; empty when it is valid. An unknown value counts as invalid.
Result<std::string> WhyInvalid(const KnobSpace& space, const Configuration& configuration);

}  // namespace crucible
