// wasteful_fixture.h: the transpose example with a kernel that does far more than it must, so that
// every gain is large and certain on a machine that is busy with other things.
#pragma once

#include "tests/e2e/campaign_fixture.h"

namespace crucible {

// Whole passes over the matrix, each writing the same result: the first is enough.
inline constexpr char kWastefulKernel[] =
    R"(// transpose.cc: out[j][i] = in[i][j] for n x n floats, row-major, in passes.
#include "tuning.h"

extern "C" int transpose(const float* in, float* out, int n) {
  const int passes = n > 180 ? kLargePasses : kPasses;

  for (int pass = 0; pass < passes; ++pass)
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j)
        out[static_cast<long>(j) * n + i] = in[static_cast<long>(i) * n + j];

  return 0;
}
)";
inline constexpr char kKernelFile[] = "examples/transpose/transpose.cc";
inline constexpr char kTuningFile[] = "examples/transpose/tuning.h";

// Two knobs, one for each of two cases, say how often the kernel goes over the matrix: a proposer
// halves the time with each step.
class WastefulFixture : public CampaignFixture {
 protected:
  void SetUp() override {
    CampaignFixture::SetUp();
    // A decision this clear comes early: the limits are for a machine that has no time.
    MakeTargetQuick("40s");
    const std::string target = "examples/transpose/target.toml";
    Replace(target, "screen = \"1s\"", "screen = \"20s\"");
    Replace(target, "ratchet_time = \"1s\"",
            "ratchet_time = \"20s\"\nratchet = 0.25\nratchet_short = 0.25");
    Replace(target, "\"n300\"\nparams = { n = 300 }", "\"n120\"\nparams = { n = 120 }");
    Replace(target, "\"n500\"\nparams = { n = 500 }", "\"n190\"\nparams = { n = 190 }");
    Replace("examples/transpose/harness.py", "16 << 20", "1 << 20");
    Write(kKernelFile, kWastefulKernel);
    std::string tuning = "#pragma once\n", knobs;
    for (const auto& [name, constant, on] :
         {std::tuple{"small", "kPasses", "n120"}, std::tuple{"large", "kLargePasses", "n190"}}) {
      tuning += fmt::format("inline constexpr int {} = 128;\n", constant);
      knobs += fmt::format(
          "[[knob]]\nname = \"{}\"\nfile = \"{}\"\nconstant = \"{}\"\ncases = [\"{}\"]\n"
          "values = [1, 2, 4, 8, 16, 32, 64, 128]\n"
          "mechanism = \"how often the matrix is gone over\"\n\n",
          name, kTuningFile, constant, on);
    }
    Write(kTuningFile, tuning);
    Write("examples/transpose/knobs.toml", knobs);
    Commit("Go over the matrix far too often");
  }
};

}  // namespace crucible
