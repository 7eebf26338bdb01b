// case.h: the "case" object of a request, read and validated.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "checks/eigh/families.h"

namespace crucible::eigh {

inline constexpr std::int64_t kLargestN = 8192;
inline constexpr std::int64_t kLargestBatch = 65536;
inline constexpr std::int64_t kLargestEntries = 1 << 28;  // batch n^2: 1 GiB of FP32
inline constexpr double kLargestCond = 30;

// {"name":…, "kind":"dense", "n":32, "batch":20, "cond":1}: n is required. An unknown field, family
// or size is kUsage and says what there is.
Result<EighCase> ParseCase(const nlohmann::json& request);

}  // namespace crucible::eigh
