#include "checks/eigh/families.h"

#include <bit>
#include <cmath>

#include "checks/eigh/parallel.h"

namespace crucible::eigh {
namespace {

std::uint64_t MatrixKey(const EighCase& c, std::uint64_t seed, std::int64_t index) {
  // Not the kind: nan_inf must give the very matrices of the family it poisons.
  return MixKey(seed, static_cast<std::uint64_t>(index), static_cast<std::uint64_t>(c.n));
}

}  // namespace

const std::vector<Family>& Families() {
  static const std::vector<Family> families = [] {
    std::vector<Family> all;
    for (const auto& table : {BenchmarkFamilies(), LapackFamilies(), StructuredFamilies(),
                              TridiagonalFamilies(), ExtremeFamilies()})
      all.insert(all.end(), table.begin(), table.end());
    return all;
  }();
  return families;
}

const Family* FindFamily(std::string_view name) {
  for (const Family& family : Families())
    if (family.name == name) return &family;
  for (const std::string_view suffix : {"_spectrum", "_symmetric"})
    if (name.starts_with("lapack_") && name.ends_with(suffix))
      return FindFamily(name.substr(0, name.size() - suffix.size()));
  return nullptr;
}

Square GenerateMatrix(const EighCase& parameters, std::uint64_t seed, std::int64_t index) {
  const Family* family = FindFamily(parameters.kind);
  CRUCIBLE_CHECK(family != nullptr, "the case was parsed");
  FamilyInput input{parameters.n, parameters.cond, Random(MatrixKey(parameters, seed, index)), seed,
                    index};
  if (family->finite || index == PoisonedIndex(parameters, seed)) return family->make(input);
  return FindFamily("dense")->make(input);
}

std::vector<float> GenerateBatch(const EighCase& parameters, std::uint64_t seed, int threads) {
  const std::int64_t n = parameters.n;
  std::vector<float> out(static_cast<std::size_t>(parameters.batch * n * n));
  const SingleThreadedBlas single;
  ParallelFor(parameters.batch, threads, [&](std::int64_t index) {
    const Square matrix = GenerateMatrix(parameters, seed, index);
    float* to = out.data() + index * n * n;
    for (std::int64_t i = 0; i < n * n; ++i) to[i] = static_cast<float>(matrix.data()[i]);
  });
  return out;
}

std::int64_t PoisonedIndex(const EighCase& parameters, std::uint64_t seed) {
  return Random(MixKey(seed, 0x6e616e)).Below(parameters.batch);
}

}  // namespace crucible::eigh
