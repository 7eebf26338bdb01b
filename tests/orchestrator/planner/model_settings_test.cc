// Which of a campaign's models takes a mission.
#include "orchestrator/agents/model_settings.h"

#include <gtest/gtest.h>

#include <map>

namespace crucible {
namespace {

CampaignModel Model(const std::string& name, double weight, std::vector<std::string> flavours) {
  CampaignModel model;
  model.name = name;
  model.weight = weight;
  model.flavours = std::move(flavours);
  return model;
}

TEST(ModelFor, ChoosesByWeightAmongThoseThatTakeTheFlavour) {
  const std::vector<CampaignModel> models = {Model("cheap", 3, {}), Model("dear", 1, {"kernel"}),
                                             Model("reader", 100, {"scout"})};
  std::map<std::string, int> taken;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    const auto model = ModelFor(models, "kernel", seed);
    ASSERT_TRUE(model);
    ++taken[model->name];
    EXPECT_EQ(ModelFor(models, "kernel", seed)->name, model->name) << "the same for the same seed";
  }
  EXPECT_EQ(taken["reader"], 0);
  EXPECT_NEAR(taken["dear"] / 4000.0, 0.25, 0.04);
  EXPECT_EQ(ModelFor({Model("reader", 1, {"scout"})}, "kernel", 1).error().kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace crucible
