// generate.cu: builds the matrices of families.h. Not tuned: FP64, one block a matrix.
#include <map>
#include <numeric>

#include "device.h"
#include "entries.cuh"
#include "families.h"

namespace crucible::eigh::bench {
namespace {

constexpr int kThreads = 512;

struct Batch {
  double* work;          // [batch][n][n], symmetric
  double* vectors;       // [batch][2][n]
  const int64_t* index;  // which matrix of the whole batch each one is
  int n;
  uint64_t seed;
};

__device__ double block_sum(double value, double* scratch) {
  for (int offset = 16; offset; offset >>= 1) value += __shfl_xor_sync(~0u, value, offset);
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0;
  for (int k = 0; k < kThreads / 32; ++k) value += scratch[k];
  return value;
}

__global__ void __launch_bounds__(kThreads) fill_kernel(Batch b, Formula f) {
  const int64_t matrix = blockIdx.x;
  const Random random(b.seed, b.index[matrix]);
  double* a = b.work + matrix * b.n * b.n;
  for (int i = blockIdx.y; i < b.n; i += gridDim.y) {
    for (int j = threadIdx.x; j <= i; j += kThreads) {
      double value = 0;
      if (f.kind < Kind::kSpectrum) {
        value = symmetric(f, i, j, b.n, random);
      } else if (f.kind < Kind::kPsd) {
        value = i == j ? eigenvalue(f, i, b.n, random) : 0;
      } else {
        for (int k = 0; k < b.n; ++k) {
          const double x = factor(f, i, k, b.n, random);
          if (x != 0) value += x * factor(f, j, k, b.n, random);
        }
      }
      a[static_cast<int64_t>(i) * b.n + j] = a[static_cast<int64_t>(j) * b.n + i] = value;
    }
  }
}

// A <- H A H for reflections H of Gaussian vectors on coordinates k .. n-1, k = n-2 .. 0. With
// `diagonal` only the trailing square is touched, the rest of A is zero then.
__global__ void __launch_bounds__(kThreads) conjugate_kernel(Batch b, bool diagonal) {
  __shared__ double scratch[kThreads / 32];
  const int64_t matrix = blockIdx.x;
  const Random random(b.seed ^ 0x5bd1e995, b.index[matrix]);
  const int n = b.n, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  double* a = b.work + matrix * n * n;
  double *v = b.vectors + matrix * 2 * n, *w = v + n;
  for (int k = n - 2; k >= 0; --k) {
    const int first = diagonal ? k : 0;
    double norm = 0;
    for (int i = k + threadIdx.x; i < n; i += kThreads) {
      v[i] = random.normal(k, i);
      norm += v[i] * v[i];
    }
    for (int i = first + threadIdx.x; i < k; i += kThreads) v[i] = 0;
    norm = block_sum(norm, scratch);
    const double head = random.normal(k, k), shift = copysign(sqrt(norm), head);
    const double tau = 1 / (norm + fabs(head * shift));  // 2 / (v^T v) after the shift
    __syncthreads();
    if (threadIdx.x == 0) v[k] += shift;
    __syncthreads();
    for (int i = first + warp; i < n; i += kThreads / 32) {
      double sum = 0;
      for (int j = k + lane; j < n; j += 32) sum += a[static_cast<int64_t>(i) * n + j] * v[j];
      for (int offset = 16; offset; offset >>= 1) sum += __shfl_xor_sync(~0u, sum, offset);
      if (lane == 0) w[i] = tau * sum;
    }
    __syncthreads();
    double dot = 0;
    for (int i = k + threadIdx.x; i < n; i += kThreads) dot += w[i] * v[i];
    dot = block_sum(dot, scratch) * tau / 2;
    for (int i = first + threadIdx.x; i < n; i += kThreads) w[i] -= dot * v[i];
    __syncthreads();
    for (int i = first + warp; i < n; i += kThreads / 32) {
      for (int j = first + lane; j < n; j += 32) {
        a[static_cast<int64_t>(i) * n + j] -= v[i] * w[j] + w[i] * v[j];
      }
    }
    __syncthreads();
  }
}

__global__ void __launch_bounds__(kThreads) round_kernel(Batch b, Formula f, float* out) {
  const int64_t matrix = blockIdx.x;
  const Random random(b.seed, b.index[matrix]);
  const double* a = b.work + matrix * b.n * b.n;
  float* to = out + b.index[matrix] * b.n * b.n;
  const int width = f.cut_band ? 1 + static_cast<int>(random.bits(3, 5) % max(1, b.n - 1)) : b.n;
  for (int i = blockIdx.y; i < b.n; i += gridDim.y) {
    for (int j = threadIdx.x; j < b.n; j += kThreads) {
      const double value =
          (a[static_cast<int64_t>(i) * b.n + j] + a[static_cast<int64_t>(j) * b.n + i]) / 2 *
          f.scale;
      to[static_cast<int64_t>(i) * b.n + j] = abs(i - j) <= width ? static_cast<float>(value) : 0;
    }
  }
}

constexpr double kHigh = 1.8446743e19, kLow = 1.0842022e-19;  // sqrt of FLT_MAX, FLT_MIN

const std::map<std::string, Formula>& formulas() {
  static const std::map<std::string, Formula> table = [] {
    std::map<std::string, Formula> t = {{"zero", {Kind::kZero}},
                                        {"multiple_of_identity", {Kind::kMultiple}},
                                        {"diagonal", {Kind::kDiagonal}},
                                        {"diagonal_shuffled", {Kind::kDiagonalShuffled}},
                                        {"dense", {Kind::kDense}},
                                        {"rowscale", {Kind::kRowScale}},
                                        {"band", {Kind::kBand}},
                                        {"arrow_last", {Kind::kArrowLast}},
                                        {"arrow_first", {Kind::kArrowFirst}},
                                        {"wilkinson", {Kind::kWilkinson}},
                                        {"glued_wilkinson", {Kind::kGlued}},
                                        {"one_two_one", {Kind::kOneTwoOne}},
                                        {"one_two_one_conjugated", {Kind::kOneTwoOne, true}},
                                        {"clement", {Kind::kClement}},
                                        {"hilbert", {Kind::kHilbert}},
                                        {"min_ij", {Kind::kMinIj}},
                                        {"graded_down", {Kind::kGradedDown}},
                                        {"graded_up", {Kind::kGradedUp}},
                                        {"ones_tiny_diagonal", {Kind::kOnesTiny}},
                                        {"near_identity", {Kind::kNearIdentity}},
                                        {"legendre", {Kind::kLegendre}},
                                        {"laguerre", {Kind::kLaguerre}},
                                        {"hermite", {Kind::kHermite}},
                                        {"block_diagonal", {Kind::kBlocks}},
                                        {"plus_minus", {Kind::kPlusMinus}},
                                        {"block_sign", {Kind::kBlockSign}},
                                        {"distance", {Kind::kDistance}},
                                        {"tiny_tails", {Kind::kTinyTails}},
                                        {"zero_tails", {Kind::kZeroTails}},
                                        {"hadamard", {Kind::kHadamard}},
                                        {"float_max", {Kind::kFloatMax}},
                                        {"spectrum", {Kind::kSpectrum, true}},
                                        {"rankdef", {Kind::kRankDef, true}},
                                        {"nearrank", {Kind::kNearRank, true}},
                                        {"repeated", {Kind::kRepeated, true}},
                                        {"clustered", {Kind::kClustered, true}},
                                        {"near_one", {Kind::kNearOne, true}},
                                        {"psd", {Kind::kPsd}},
                                        {"kahan", {Kind::kKahan}},
                                        {"rank_one", {Kind::kRankOne}},
                                        {"few_samples", {Kind::kFewSamples}},
                                        {"lapack_zero", {Kind::kZero}},
                                        {"lapack_identity", {Kind::kIdentity}}};
    t["toeplitz_0.5"] = {Kind::kToeplitz, false, false, false, 1, 0.5};
    t["toeplitz_0.9"] = {Kind::kToeplitz, false, false, false, 1, 0.9};
    t["toeplitz_0.999"] = {Kind::kToeplitz, false, false, false, 1, 0.999};
    t["bipartite"] = {Kind::kBipartite, false, false, false, 1, 0.999};
    t["bipartite_one"] = {Kind::kBipartite, false, false, false, 1, 1};
    t["subnormal"] = {Kind::kDense, false, false, false, 1e-40};
    for (const auto& [suffix, scale] :
         {std::pair{"", 1.0}, std::pair{"_high", kHigh}, std::pair{"_low", kLow}}) {
      for (const auto& [name, kind] :
           {std::pair{"even", Kind::kEven}, std::pair{"geometric", Kind::kGeometric},
            std::pair{"clustered", Kind::kOneLarge}}) {
        const std::string tail = std::string(name) + suffix;
        t["lapack_diag_" + tail] = {kind, false, true, false, scale};
        t["lapack_dense_" + tail] = {kind, true, true, false, scale};
        t["lapack_band_" + tail] = {kind, true, true, true, scale};
      }
      t[std::string("lapack_random") + suffix] = {Kind::kUniform, false, false, false, scale};
    }
    return t;
  }();
  return table;
}

void generate_part(const std::string& family, const Case& c, uint64_t seed,
                   const std::vector<int64_t>& all, float* a) {
  const auto found = formulas().find(family);
  if (found == formulas().end()) {
    std::fprintf(stderr, "make matrices: no family is called '%s'\n", family.c_str());
    std::exit(2);
  }
  Formula f = found->second;
  if (f.cond == 0) f.cond = c.cond;
  const size_t square = static_cast<size_t>(c.n) * c.n;
  const size_t step = std::max<size_t>(1, (size_t{6} << 30) / (square * sizeof(double)));
  for (size_t first = 0; first < all.size(); first += step) {
    const std::vector<int64_t> part(all.begin() + first,
                                    all.begin() + std::min(all.size(), first + step));
    Device<double> work(part.size() * square), vectors(part.size() * 2 * c.n);
    Device<int64_t> index(part.size());
    index.write(part);
    const Batch b{work.get(), vectors.get(), index.get(), c.n, seed};
    const dim3 grid(static_cast<unsigned>(part.size()), std::min(c.n, 64));
    fill_kernel<<<grid, kThreads>>>(b, f);
    if (f.conjugate) conjugate_kernel<<<grid.x, kThreads>>>(b, f.kind >= Kind::kSpectrum);
    round_kernel<<<grid, kThreads>>>(b, f, a);
    check(cudaDeviceSynchronize(), "make matrices");
  }
}

// Weights of "mixed": dense 6, psd 2, the others 1.
constexpr const char* kMixed[] = {"dense",    "dense",    "dense",     "dense", "dense",
                                  "dense",    "spectrum", "psd",       "psd",   "rankdef",
                                  "nearrank", "repeated", "clustered", "band",  "rowscale"};
constexpr int kMixedCount = sizeof(kMixed) / sizeof(kMixed[0]);

}  // namespace

void generate(const Case& c, uint64_t seed, float* a) {
  std::map<std::string, std::vector<int64_t>> parts;
  if (c.family == "mixed") {
    for (int64_t b = 0; b < c.batch; ++b) {
      const int pick = static_cast<int>(Random(seed, b).bits(1, 2) % kMixedCount);
      parts[b == 0 ? "dense" : kMixed[pick]].push_back(b);
    }
    if (parts.size() == 1 && c.batch > 1) {  // at least one other than dense
      parts["dense"].pop_back();
      parts["psd"].push_back(c.batch - 1);
    }
  } else {
    parts[c.family].resize(c.batch);
    std::iota(parts[c.family].begin(), parts[c.family].end(), 0);
  }
  for (const auto& [family, members] : parts) {
    if (!members.empty()) generate_part(family, c, seed, members, a);
  }
}

}  // namespace crucible::eigh::bench
