#include "checks/eigh/gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "checks/eigh/spectra.h"

namespace crucible::eigh {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A = c I with the answer L = c, Q = I: every residual of a change to it is known by hand.
struct Answer {
  explicit Answer(std::int64_t order, float c = 1)
      : n(order), a(order * order, 0), l(order, c), q(order * order, 0) {
    for (std::int64_t i = 0; i < n; ++i) a[i * n + i] = c, q[i * n + i] = 1;
  }
  Verdict Judge() const { return JudgeMatrix({n, a.data(), l.data(), q.data()}); }
  double Unit() const { return static_cast<double>(n) * kEps; }

  std::int64_t n;
  std::vector<float> a, l, q;
};

TEST(Gates, ExactAnswerHasZeroMargins) {
  for (const std::int64_t n : {1, 2, 33}) {
    const Verdict verdict = Answer(n, 3).Judge();
    EXPECT_TRUE(verdict.pass) << verdict.reason;
    EXPECT_EQ(verdict.margins.eigen, 0);
    EXPECT_EQ(verdict.margins.orthogonal, 0);
    EXPECT_EQ(verdict.margins.reconstruction, 0);
  }
}

TEST(Gates, MarginsAreTheResidualsInUnitsOfNEpsNorm) {
  Answer answer(4, 2);
  answer.l[3] = 2 + 0x1p-12f;  // residual 2^-12 in one column; norm1(A) = 2
  const Verdict verdict = answer.Judge();
  EXPECT_DOUBLE_EQ(verdict.margins.eigen, 0x1p-12 / (answer.Unit() * 2));
  EXPECT_DOUBLE_EQ(verdict.margins.reconstruction, 0x1p-12 / (answer.Unit() * 2));
  EXPECT_EQ(verdict.margins.orthogonal, 0);
}

TEST(Gates, EigenEquationFailsJustAboveItsLimit) {
  for (const auto& [factor, pass] : {std::pair{.99, true}, std::pair{1.01, false}}) {
    Answer answer(4);
    answer.l[3] = static_cast<float>(1 + factor * kEigenLimit * answer.Unit());
    const Verdict verdict = answer.Judge();
    EXPECT_EQ(verdict.pass, pass) << verdict.reason;
    EXPECT_THAT(verdict.reason, StartsWith(pass ? "" : "eigen equation"));
  }
}

TEST(Gates, OrthogonalityFailsJustAboveItsLimitAndIsTheFirstToSeeALongVector) {
  for (const auto& [factor, pass] : {std::pair{.99, true}, std::pair{1.01, false}}) {
    // Lengthened by x with L = c / (1 + x)^2: A Q = Q L is off by 2 x, the reconstruction by none.
    Answer answer(16);
    const double x = .5 * factor * kOrthogonalLimit * answer.Unit();
    answer.q[0] = static_cast<float>(1 + x);
    const Verdict verdict = answer.Judge();
    EXPECT_EQ(verdict.pass, pass) << verdict.reason;
    EXPECT_THAT(verdict.reason, StartsWith(pass ? "" : "orthogonality"));
  }
}

TEST(Gates, ReconstructionCatchesARepeatedVector) {
  Answer answer(3);
  for (std::int64_t i = 0; i < 3; ++i) answer.q[i * 3 + 2] = answer.q[i * 3];
  const Verdict verdict = answer.Judge();
  EXPECT_FALSE(verdict.pass);
  EXPECT_EQ(verdict.margins.eigen, 0);  // each pair alone is right
  EXPECT_GT(verdict.margins.reconstruction, kReconstructionLimit);
  EXPECT_GT(verdict.margins.orthogonal, kOrthogonalLimit);
}

TEST(Gates, AscendingToleratesRoundingOnlyRelativeToTheLargestEigenvalue) {
  for (const auto& [factor, pass] : {std::pair{.99, true}, std::pair{1.01, false}}) {
    Answer answer(2);  // max(1, max|L|) is 1
    answer.l[1] = static_cast<float>(1 - factor * kAscendingLimit * answer.Unit());
    answer.a[3] = answer.l[1];
    const Verdict verdict = answer.Judge();
    EXPECT_EQ(verdict.pass, pass) << verdict.reason;
    EXPECT_THAT(verdict.reason, StartsWith(pass ? "" : "ascending"));
  }
}

TEST(Gates, ZeroMatrixMustBeExact) {
  Answer answer(5, 0);
  EXPECT_TRUE(answer.Judge().pass);
  answer.l[4] = 1e-38f;
  const Verdict verdict = answer.Judge();
  EXPECT_FALSE(verdict.pass);
  EXPECT_THAT(verdict.reason, HasSubstr("limit 0"));
}

TEST(Gates, OrthogonalityOfAZeroMatrixKeepsItsOwnLimit) {
  Answer answer(5, 0);
  answer.q[0] = static_cast<float>(1 + .4 * kOrthogonalLimit * answer.Unit());
  EXPECT_TRUE(answer.Judge().pass);
  answer.q[0] = static_cast<float>(1 + .6 * kOrthogonalLimit * answer.Unit());
  EXPECT_FALSE(answer.Judge().pass);
}

TEST(Gates, NotFiniteIsToldFromNeverWritten) {
  Answer answer(3);
  answer.q[4] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(answer.Judge().reason, HasSubstr("1 of 9 entries of the eigenvector matrix are NaN"));
  answer = Answer(3);
  answer.l[0] = std::bit_cast<float>(kUnwrittenBits);
  EXPECT_THAT(answer.Judge().reason, HasSubstr("1 of 3 eigenvalues were never written"));
}

struct Batch {
  std::vector<float> a, l, q;
};
Batch ThreeOf(const Answer& good) {
  Batch batch;
  for (int b = 0; b < 3; ++b) {
    batch.a.insert(batch.a.end(), good.a.begin(), good.a.end());
    batch.l.insert(batch.l.end(), good.l.begin(), good.l.end());
    batch.q.insert(batch.q.end(), good.q.begin(), good.q.end());
  }
  return batch;
}

TEST(Gates, BatchNamesTheFirstBadMatrixSkipsOneAndWantsInfoZero) {
  const Answer good(2);
  Batch three = ThreeOf(good);
  std::vector<float>&a = three.a, &l = three.l, &q = three.q;
  std::vector<std::int32_t> info(3, 0);
  const auto judge = [&](std::optional<std::int64_t> skip = std::nullopt) {
    return JudgeBatch(3, 2, a.data(), l.data(), q.data(), info.data(), 2, skip);
  };
  EXPECT_TRUE(judge().pass);
  l[5] = NAN;
  EXPECT_THAT(judge().reason, StartsWith("matrix 2 of 3: finite"));
  EXPECT_TRUE(judge(2).pass);
  info[1] = 4;
  EXPECT_THAT(judge().reason, StartsWith("matrix 1 of 3: info is 4"));
}

TEST(Gates, BatchNamesTheWorstMatrixOfEachGateAndNotTheOneLeftOut) {
  const Answer good(2);
  Batch three = ThreeOf(good);
  std::vector<float>&a = three.a, &l = three.l, &q = three.q;
  const std::vector<std::int32_t> info(3, 0);
  l[2] += 1e-6f;                                                    // matrix 1: another eigenvalue
  q[8] += static_cast<float>(.1 * kOrthogonalLimit * good.Unit());  // matrix 2: a longer vector
  const auto judge = [&](std::optional<std::int64_t> skip = std::nullopt) {
    return JudgeBatch(3, 2, a.data(), l.data(), q.data(), info.data(), 2, skip);
  };
  EXPECT_EQ(judge().worst.orthogonal, 2);
  EXPECT_EQ(judge().worst.ascending, 1);
  EXPECT_EQ(judge(2).worst.eigen, 1);
  EXPECT_EQ(judge(1).worst.ascending, 0);  // all alike: the first
  EXPECT_EQ(judge(2).worst.orthogonal, 0);
}

TEST(Gates, EntriesNearTheEndsOfTheRangeAreJudgedWithoutOverflow) {
  for (const float c : {3e38f, 1e-38f, 1e-44f}) {
    Answer answer(4, c);
    EXPECT_TRUE(answer.Judge().pass) << c;
    answer.l[0] = 0;
    EXPECT_FALSE(answer.Judge().pass) << c;
  }
}

}  // namespace
}  // namespace crucible::eigh
