// The probe never refuses what the gates accept, and sees what a cheat would hand in.
#include "checks/eigh/probe.h"

#include <gtest/gtest.h>

#include <cmath>

#include "checks/eigh/families.h"
#include "checks/eigh/variant.h"

extern "C" void dsyev_(const char* job, const char* uplo, const int* n, double* a, const int* lda,
                       double* w, double* work, const int* lwork, int* info);

namespace crucible::eigh {
namespace {

constexpr std::uint64_t kSeed = 4711;

struct Solved {
  std::int64_t n;
  std::vector<float> a, l, q;
  Problem problem() const { return {n, a.data(), l.data(), q.data()}; }
};

Solved Solve(const char* kind, std::int64_t n, std::uint64_t seed) {
  Solved solved{n, GenerateBatch({"", kind, 1, n, 1}, seed, 1), {}, {}};
  const int order = static_cast<int>(n), work_size = 64 * order;
  std::vector<double> v(solved.a.begin(), solved.a.end()), w(n), work(work_size);
  int info = -1;
  dsyev_("V", "L", &order, v.data(), &order, w.data(), work.data(), &work_size, &info);
  EXPECT_EQ(info, 0);
  solved.l.assign(w.begin(), w.end());
  solved.q.resize(n * n);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) solved.q[i * n + j] = static_cast<float>(v[j * n + i]);
  return solved;
}

TEST(Probe, NeverRefusesWhatTheGatesAccept) {
  int near_limit = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Solved solved = Solve(seed % 2 == 0 ? "dense" : "clustered", 24, seed);
    Random random(MixKey(kSeed, seed));
    // Noise of a size around what the gates just accept.
    const double noise = std::pow(10.0, random.Uniform(-6, -3));
    for (float& value : solved.q) value += static_cast<float>(noise * random.Uniform(-1, 1));
    const Verdict verdict = JudgeMatrix(solved.problem());
    if (!verdict.pass) continue;
    near_limit += verdict.margins.orthogonal > .2 * kOrthogonalLimit;
    for (std::uint64_t draw = 0; draw < 20; ++draw)
      ASSERT_EQ(ProbeMatrix(solved.problem(), random.Stream(draw)), "") << "seed " << seed;
  }
  EXPECT_GT(near_limit, 3);  // the case that matters was met
}

TEST(Probe, SeesGrossErrorsWithEveryDrawOfSigns) {
  for (std::uint64_t draw = 0; draw < 30; ++draw) {
    const Random signs(MixKey(kSeed, draw));
    Solved solved = Solve("dense", 33, kSeed);
    ASSERT_EQ(ProbeMatrix(solved.problem(), signs), "");
    Solved swapped = solved;  // two vectors exchanged, their eigenvalues not
    for (std::int64_t i = 0; i < 33; ++i) std::swap(swapped.q[i * 33 + 3], swapped.q[i * 33 + 30]);
    EXPECT_NE(ProbeMatrix(swapped.problem(), signs), "");
    Solved stale = solved;  // the answer of another matrix
    stale.a = Solve("dense", 33, kSeed + 1).a;
    EXPECT_NE(ProbeMatrix(stale.problem(), signs), "");
    Solved longer = solved;
    for (float& value : longer.q) value *= 1.01f;
    EXPECT_NE(ProbeMatrix(longer.problem(), signs), "");
  }
}

TEST(Probe, SeesErrorsTenTimesOverTheLimitInMostDraws) {
  int seen = 0, value_seen = 0;
  for (std::uint64_t draw = 0; draw < 100; ++draw) {
    Solved solved = Solve("dense", 33, draw);
    Random random(MixKey(kSeed, draw));
    for (float& value : solved.q) value += static_cast<float>(1e-3 * random.Uniform(-1, 1));
    EXPECT_FALSE(JudgeMatrix(solved.problem()).pass);
    seen += !ProbeMatrix(solved.problem(), random.Stream(1)).empty();
    Solved one_value = Solve("dense", 33, draw);
    one_value.l[32] *= 1.1f;
    value_seen += !ProbeMatrix(one_value.problem(), random.Stream(2)).empty();
  }
  EXPECT_GT(seen, 90);
  EXPECT_GT(value_seen, 90);
}

TEST(Probe, ZeroMatrixMustBeExact) {
  Solved zero = Solve("lapack_zero", 8, kSeed);
  EXPECT_EQ(ProbeMatrix(zero.problem(), Random(1)), "");
  zero.l[7] = 1e-30f;
  EXPECT_NE(ProbeMatrix(zero.problem(), Random(1)), "");
}

TEST(Variant, KeepsTheSpectrumUpToAPowerOfTwoAndRepeatsNoContents) {
  const std::int64_t n = 17, batch = 3;
  const std::vector<float> base = GenerateBatch({"", "dense", batch, n, 1}, kSeed, 1);
  std::vector<float> first, second;
  MakeVariant(batch, n, base, Random(1), &first);
  MakeVariant(batch, n, base, Random(2), &second);
  EXPECT_NE(first, base);
  EXPECT_NE(first, second);
  const auto frobenius = [&](const std::vector<float>& x) {
    double sum = 0;
    for (const float value : x) sum += static_cast<double>(value) * value;
    return std::sqrt(sum);
  };
  const double ratio = frobenius(first) / frobenius(base);
  EXPECT_TRUE(std::abs(ratio - .5) < 1e-12 || std::abs(ratio - 1) < 1e-12 ||
              std::abs(ratio - 2) < 1e-12)
      << ratio;
}

}  // namespace
}  // namespace crucible::eigh
