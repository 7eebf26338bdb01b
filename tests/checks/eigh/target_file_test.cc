// missions/targets/eigh_cpu.toml says only what the harness understands, and checks every family.
#include <gtest/gtest.h>

#include <set>

#include "base/json.h"
#include "checks/eigh/case.h"
#include "checks/target.h"

namespace crucible::eigh {
namespace {

Result<Target> Load() { return LoadTarget(CRUCIBLE_SOURCE_DIR "/missions/targets/eigh_cpu.toml"); }

Result<EighCase> Parse(const std::string& params) {
  return ParseCase({{"case", nlohmann::json::parse(params)}});
}

TEST(EighCpuTarget, EveryCaseAndCheckIsUnderstood) {
  const auto target = Load();
  ASSERT_TRUE(target.has_value()) << target.error().text;
  EXPECT_GE(target->cases.size(), 3u);
  for (const TargetCase& measured : target->cases) {
    const auto parsed = Parse(measured.params);
    EXPECT_TRUE(parsed.has_value()) << parsed.error().text;
    EXPECT_GT(measured.floor_us.value_or(0), 0) << measured.name;
  }
  for (const CheckCase& check : target->checks) {
    const auto parsed = Parse(check.params);
    EXPECT_TRUE(parsed.has_value()) << check.name << ": " << parsed.error().text;
  }
}

TEST(EighCpuTarget, FullCheckCoversEveryFamilyAndTheQuickOneStaysSmall) {
  const auto target = Load();
  ASSERT_TRUE(target.has_value()) << target.error().text;
  std::set<std::string> checked;
  int quick = 0;
  for (const CheckCase& check : target->checks) {
    const auto parsed = Parse(check.params);
    ASSERT_TRUE(parsed.has_value());
    checked.insert(parsed->kind);
    quick += check.level == CheckLevel::kQuick;
  }
  for (const Family& family : Families())
    EXPECT_TRUE(checked.contains(std::string(family.name))) << family.name;
  EXPECT_GT(quick, 10);
  EXPECT_LT(quick, 60);
}

TEST(EighCpuTarget, ProtectsWhatAKernelMustNotChange) {
  const auto target = Load();
  ASSERT_TRUE(target.has_value()) << target.error().text;
  EXPECT_TRUE(IsEditable(*target, "kernels/eigh/cpu/eigh_cpu.cc"));
  for (const char* path : {"kernels/eigh/cpu/eigh_cpu.h", "kernels/eigh/cpu/knobs.toml",
                           "kernels/eigh/cpu/peers/lapack.cc", "checks/eigh/gates.cc",
                           "missions/targets/eigh_cpu.toml"})
    EXPECT_FALSE(IsEditable(*target, path)) << path;
}

}  // namespace
}  // namespace crucible::eigh
