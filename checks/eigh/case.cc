#include "checks/eigh/case.h"

#include <fmt/format.h>

#include "base/json.h"
#include "checks/harness/protocol_server.h"

namespace crucible::eigh {
namespace {

tl::unexpected<Error> Refuse(std::string_view what, std::string_view cause,
                             std::string_view next_step) {
  return Fail(ErrorKind::kUsage, "read case", what, cause, next_step);
}

std::string KnownFamilies() {
  std::string names;
  for (const Family& family : Families())
    names.append(names.empty() ? "" : " ").append(family.name);
  return names;
}

}  // namespace

Result<EighCase> ParseCase(const nlohmann::json& request) {
  const auto found = request.find("case");
  if (found == request.end() || !found->is_object())
    return Refuse("\"case\"", "it is missing or no object", "give at least {\"n\":32}");
  const nlohmann::json& object = *found;
  EighCase parsed;
  for (const auto& [key, value] : object.items()) {
    if (key == "name" || key == "kind") {
      if (!value.is_string())
        return Refuse(fmt::format("\"{}\"", key), "it is no string", "quote it");
      (key == "name" ? parsed.name : parsed.kind) = value.get<std::string>();
    } else if (key == "cond") {
      if (!value.is_number() || !(value.get<double>() >= 0) || value.get<double>() > kLargestCond)
        return Refuse("\"cond\"", fmt::format("it is {}", value.dump().substr(0, 80)),
                      fmt::format("want decades from 0 to {}", kLargestCond));
      parsed.cond = value.get<double>();
    } else if (key != "n" && key != "batch") {
      return Refuse(fmt::format("\"{}\"", key), "no such field",
                    "there are name, kind, n, batch, cond");
    }
  }
  CRUCIBLE_ASSIGN(parsed.n, IntegerField(object, "n", 1, kLargestN));
  CRUCIBLE_ASSIGN(parsed.batch, IntegerField(object, "batch", 1, kLargestBatch, 1));
  if (parsed.batch * parsed.n * parsed.n > kLargestEntries)
    return Refuse(
        parsed.name,
        fmt::format("{} matrices of order {} are more than 1 GiB", parsed.batch, parsed.n),
        "take a smaller batch");
  if (FindFamily(parsed.kind) == nullptr)
    return Refuse(fmt::format("\"kind\":\"{}\"", parsed.kind), "no such family",
                  "there are " + KnownFamilies());
  if (parsed.name.empty())
    parsed.name = fmt::format("{} n={} batch={}", parsed.kind, parsed.n, parsed.batch);
  return parsed;
}

}  // namespace crucible::eigh
