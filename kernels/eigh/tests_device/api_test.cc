// eigh_cuda_api_test: promises of crucible/eigh.h beyond the gates, on a GPU.
//
// For one order of every route: results repeat bit for bit, do not depend on the order of the
// batch or a non-finite neighbour; a captured graph replayed on another stream gives the
// same bits; both triangles, column-major and eigenvalues-only agree; n = 0 and batch = 0 are no
// work; overflowing entries end without an error. Outputs and workspace are poisoned before every
// call. Usage: eigh_cuda_api_test [n ...]. Exit 0 passed, 1 failed, 77 no device.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "crucible/eigh.h"
#include "device.h"
#include "families.h"
#include "judge.h"

namespace crucible::eigh::bench {
namespace {

int failures = 0;
void expect(bool good, const std::string& what) {
  if (good) return;
  std::printf("FAILED: %s\n", what.c_str());
  ++failures;
}

struct Result {
  std::vector<float> lambda, q;
  std::vector<int32_t> info;
};
bool same_bits(const float* a, const float* b, size_t count) {
  return std::memcmp(a, b, count * sizeof(float)) == 0;
}

size_t workspace(int64_t batch, int n, int flags) {
  size_t bytes = 0;
  expect(crucible_eigh_workspace(n, batch, flags, &bytes) == CRUCIBLE_EIGH_OK, "workspace query");
  return bytes;
}

enum class Way { kDirect, kGraph };

Result solve(const std::vector<float>& a, int64_t batch, int n, int flags = 0,
             Way way = Way::kDirect) {
  Device<float> input(a.size()), lambda(batch * n), q(a.size());
  Device<int32_t> info(batch);
  Device<char> work(workspace(batch, n, flags));
  input.write(a);
  cudaStream_t stream = nullptr, other = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "create a stream");
  check(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "create a stream");
  check(cudaDeviceSynchronize(), "wait");
  const auto call = [&] {
    const auto status = crucible_eigh(n, batch, input.get(), lambda.get(), q.get(), info.get(),
                                      work.get(), work.size(), flags, stream);
    expect(status == CRUCIBLE_EIGH_OK,
           "solve n " + std::to_string(n) + ": " + crucible_eigh_status_string(status));
  };
  if (way == Way::kDirect) {
    call();
  } else {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin a capture");
    call();
    check(cudaStreamEndCapture(stream, &graph), "end a capture");
    check(cudaGraphInstantiate(&exec, graph, 0), "instantiate a graph");
    for (int replay = 0; replay < 2; ++replay) {
      work.poison();
      q.poison();
      check(cudaDeviceSynchronize(), "wait");
      check(cudaGraphLaunch(exec, other), "replay on another stream");
      check(cudaStreamSynchronize(other), "wait for a replay");
    }
    check(cudaGraphExecDestroy(exec), "destroy a graph");
    check(cudaGraphDestroy(graph), "destroy a graph");
  }
  check(cudaStreamSynchronize(stream), "wait for a solve");
  Result result{lambda.read(), q.read(), info.read()};
  expect(same_bits(input.read().data(), a.data(), a.size()), "the input is unchanged");
  cudaStreamDestroy(stream);
  cudaStreamDestroy(other);
  return result;
}

bool same(const Result& a, const Result& b) {
  return a.info == b.info && same_bits(a.lambda.data(), b.lambda.data(), a.lambda.size()) &&
         same_bits(a.q.data(), b.q.data(), a.q.size());
}
// Matrix i of `a` has the bits of matrix j of `b`.
bool same_matrix(const Result& a, size_t i, const Result& b, size_t j, size_t n) {
  return same_bits(&a.lambda[i * n], &b.lambda[j * n], n) &&
         same_bits(&a.q[i * n * n], &b.q[j * n * n], n * n);
}

std::vector<float> matrices(int64_t batch, int n, const char* family, uint64_t seed) {
  Device<float> a(batch * n * n);
  generate({batch, n, 2, family}, seed, a.get());
  return a.read();
}

bool passes(const std::vector<float>& a, int64_t batch, int n, const Result& result) {
  Device<float> input(a.size()), lambda(result.lambda.size()), q(a.size());
  input.write(a);
  lambda.write(result.lambda);
  q.write(result.q);
  return judge(batch, n, input.get(), lambda.get(), q.get()).passes();
}

void order_of_the_batch(int n, int64_t batch, const std::vector<float>& a, const Result& whole,
                        std::mt19937& random) {
  const size_t square = static_cast<size_t>(n) * n;
  std::vector<size_t> order(batch);
  for (int64_t i = 0; i < batch; ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  std::vector<float> shuffled(a.size());
  for (int64_t i = 0; i < batch; ++i) {
    std::copy_n(&a[order[i] * square], square, &shuffled[i * square]);
  }
  const Result permuted = solve(shuffled, batch, n);
  bool good = true;
  for (int64_t i = 0; i < batch; ++i) good = good && same_matrix(permuted, i, whole, order[i], n);
  expect(good, "n " + std::to_string(n) + ": bits do not depend on the order of the batch");
}

void non_finite_neighbour(int n, int64_t batch, std::vector<float> a, const Result& whole) {
  const size_t square = static_cast<size_t>(n) * n;
  const float bad[2] = {std::numeric_limits<float>::quiet_NaN(),
                        std::numeric_limits<float>::infinity()};
  a[1 * square] = bad[0];
  a[3 * square + square - 1] = bad[1];
  const Result result = solve(a, batch, n);
  bool good = true;
  for (int64_t i = 0; i < batch; ++i) {
    if (i == 1 || i == 3) {
      good = good && result.info[i] == 1 && std::isnan(result.lambda[i * n]) &&
             std::isnan(result.q[i * square + square - 1]);
    } else {
      good = good && result.info[i] == 0 && same_matrix(result, i, whole, i, n);
    }
  }
  expect(good, "n " + std::to_string(n) + ": NaN and Inf stay in their matrices");
}

// A batch larger than the blocks that are resident at once: a block takes several matrices, and
// none of them may see what the one before it left on chip. About a third of the batch is replaced by
// matrices of every unfriendly kind; the others must keep their bits, also with values alone.
void more_than_resident(int n, int64_t batch, std::mt19937& random) {
  const size_t square = static_cast<size_t>(n) * n;
  const std::string at = "n " + std::to_string(n) + " batch " + std::to_string(batch) + ": ";
  const int before = failures;
  std::vector<float> a = matrices(batch, n, "dense", random());
  const Result whole = solve(a, batch, n);
  order_of_the_batch(n, batch, a, whole, random);
  const Result values = solve(a, batch, n, CRUCIBLE_EIGH_VALUES_ONLY);
  const std::vector<float> blocks = matrices(1, n, "bipartite", 1);
  std::vector<bool> bad(batch), finite(batch, true);
  for (int64_t i = 0; i < batch; ++i) {
    float* at_i = &a[i * square];
    bad[i] = random() % 3 == 0;
    if (!bad[i]) continue;
    switch (random() % 4) {
      case 0:
        std::fill_n(at_i, square, std::numeric_limits<float>::max());
        break;
      case 1:
        std::copy_n(blocks.data(), square, at_i);
        break;
      case 2:
        at_i[square / 2 / n * n] = std::numeric_limits<float>::quiet_NaN();
        finite[i] = false;
        break;
      default:
        at_i[square - 1] = -std::numeric_limits<float>::infinity();
        finite[i] = false;
    }
  }
  const Result mixed = solve(a, batch, n);
  const Result mixed_values = solve(a, batch, n, CRUCIBLE_EIGH_VALUES_ONLY);
  bool kept = true, kept_values = true, told = true;
  for (int64_t i = 0; i < batch; ++i) {
    told = told && mixed.info[i] == !finite[i] && mixed_values.info[i] == !finite[i];
    if (bad[i]) continue;
    kept = kept && same_matrix(mixed, i, whole, i, n);
    kept_values = kept_values && same_bits(&mixed_values.lambda[i * n], &values.lambda[i * n], n);
  }
  expect(kept, at + "bad matrices leave the others' bits alone");
  expect(kept_values, at + "bad matrices leave the others' eigenvalues alone");
  expect(told, at + "info is 1 for NaN and Inf, 0 for the rest");
  std::printf("%s n %d, %d matrices, a third of them bad\n", failures == before ? "ok  " : "FAIL",
              n, static_cast<int>(batch));
  std::fflush(stdout);
}

// Matrices of a few blocks of one value each, whose products are as large as they can be, with and
// without vectors: nothing may overflow, and values alone must not be NaN with info 0.
void block_matrices(int n) {
  for (const char* family : {"bipartite", "bipartite_one", "block_sign", "distance"}) {
    const std::string at = "n " + std::to_string(n) + ", " + family + ": ";
    const std::vector<float> a = matrices(2, n, family, 1);
    const Result whole = solve(a, 2, n), values = solve(a, 2, n, CRUCIBLE_EIGH_VALUES_ONLY);
    expect(passes(a, 2, n, whole), at + "the gates");
    expect(whole.info == std::vector<int32_t>(2, 0) && values.info == whole.info, at + "info is 0");
    double worst = 0, largest = 0;
    bool finite = true;
    for (size_t k = 0; k < values.lambda.size(); ++k) {
      finite = finite && std::isfinite(values.lambda[k]);
      worst = std::max<double>(worst, std::fabs(values.lambda[k] - whole.lambda[k]));
      largest = std::max<double>(largest, std::fabs(whole.lambda[k]));
    }
    expect(finite && worst <= 0x1p-11 * largest, at + "eigenvalues alone agree");
  }
}

void other_forms(int n, int64_t batch, const std::vector<float>& a, const Result& whole) {
  const size_t square = static_cast<size_t>(n) * n;
  const std::string at = "n " + std::to_string(n) + ": ";
  std::vector<float> lower = a, upper = a;  // NaN in the half that must not be read
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (size_t k = 0; k < a.size(); ++k) {
    const size_t row = k % square / n, column = k % n;
    if (row < column) lower[k] = nan;
    if (row > column) upper[k] = nan;
  }
  expect(same(solve(lower, batch, n), whole), at + "only the lower triangle is read");
  const Result from_upper = solve(upper, batch, n, CRUCIBLE_EIGH_UPPER);
  expect(same(from_upper, whole), at + "the upper triangle gives the same bits");
  const Result by_columns = solve(upper, batch, n, CRUCIBLE_EIGH_COLUMN_MAJOR);
  bool good = same_bits(by_columns.lambda.data(), whole.lambda.data(), whole.lambda.size());
  for (size_t k = 0; k < a.size() && good; ++k) {
    const size_t row = k % square / n, column = k % n;
    good = by_columns.q[k / square * square + column * n + row] == whole.q[k];
  }
  expect(good, at + "column-major is the transposed answer");
  const Result values = solve(a, batch, n, CRUCIBLE_EIGH_VALUES_ONLY);
  double worst = 0, largest = 0;
  for (size_t k = 0; k < values.lambda.size(); ++k) {
    worst = std::max<double>(worst, std::fabs(values.lambda[k] - whole.lambda[k]));
    largest = std::max<double>(largest, std::fabs(whole.lambda[k]));
  }
  expect(worst <= 16 * std::sqrt(n) * kEps * largest, at + "eigenvalues alone agree");
}

void overflow(int n) {  // ||A|| is past FLT_MAX: no answer is right, but none may fault
  std::vector<float> a(static_cast<size_t>(n) * n * 2, std::numeric_limits<float>::max());
  solve(a, 2, n);
}

void all_of(int n, std::mt19937& random) {
  const int64_t batch = n <= 192 ? 40 : (n <= 512 ? 10 : 6);
  const int before = failures;
  const std::vector<float> a = matrices(batch, n, "mixed", random());
  const Result whole = solve(a, batch, n);
  expect(passes(a, batch, n, whole), "n " + std::to_string(n) + ": the gates");
  for (int again = 0; again < 3; ++again) {
    expect(same(solve(a, batch, n), whole), "n " + std::to_string(n) + ": bits repeat");
  }
  expect(same(solve(a, batch, n, 0, Way::kGraph), whole),
         "n " + std::to_string(n) + ": a graph replayed on another stream");
  order_of_the_batch(n, batch, a, whole, random);
  non_finite_neighbour(n, batch, a, whole);
  other_forms(n, batch, a, whole);
  overflow(n);
  std::printf("%s n %d\n", failures == before ? "ok  " : "FAIL", n);
  std::fflush(stdout);
}

// Many shapes in random order over one small set of routes: nothing may linger between calls.
void mixed_sizes(std::mt19937& random) {
  for (int k = 0; k < 60; ++k) {
    const int n = 1 + static_cast<int>(random() % 300);
    const int64_t batch = 1 + static_cast<int64_t>(random() % (n <= 16 ? 5000 : 40));
    Device<float> a(batch * n * n), lambda(batch * n), q(batch * n * n);
    Device<int32_t> info(batch);
    Device<char> work(workspace(batch, n, 0));
    generate({batch, n, 1, k % 3 == 0 ? "clustered" : "dense"}, random(), a.get());
    crucible_eigh(n, batch, a.get(), lambda.get(), q.get(), info.get(), work.get(), work.size(), 0,
                  nullptr);
    check(cudaDeviceSynchronize(), "solve a mixed size");
    const Verdict v = judge(batch, n, a.get(), lambda.get(), q.get());
    expect(v.passes(), "mixed sizes: " + std::to_string(batch) + " x " + std::to_string(n));
  }
}

void nothing_to_do() {
  expect(crucible_eigh(0, 5, nullptr, nullptr, nullptr, nullptr, nullptr, 0, 0, nullptr) ==
             CRUCIBLE_EIGH_OK,
         "n = 0");
  expect(crucible_eigh(5, 0, nullptr, nullptr, nullptr, nullptr, nullptr, 0, 0, nullptr) ==
             CRUCIBLE_EIGH_OK,
         "batch = 0");
  expect(crucible_eigh(-1, 1, nullptr, nullptr, nullptr, nullptr, nullptr, 0, 0, nullptr) ==
             CRUCIBLE_EIGH_INVALID_ARGUMENT,
         "n < 0 is refused");
}

// The C++ form of the call makes the bits of the C form.
void wrapper_of_cpp() {
  constexpr int kN = 70;
  constexpr int64_t kBatch = 3;
  const std::vector<float> a = matrices(kBatch, kN, "dense", 1);
  Device<float> input(a.size()), lambda(kBatch * kN), q(a.size());
  input.write(a);
  crucible::EighCall call;
  call.n = kN;
  call.batch = kBatch;
  call.a = input.get();
  call.lambda = lambda.get();
  call.q = q.get();
  expect(call.size() == CRUCIBLE_EIGH_OK && call.workspace_bytes == workspace(kBatch, kN, 0),
         "EighCall::size");
  Device<char> work(call.workspace_bytes);
  call.workspace = work.get();
  expect(call.run() == CRUCIBLE_EIGH_OK, "EighCall::run");
  check(cudaDeviceSynchronize(), "wait");
  const Result whole = solve(a, kBatch, kN);
  expect(same_bits(lambda.read().data(), whole.lambda.data(), whole.lambda.size()) &&
             same_bits(q.read().data(), whole.q.data(), whole.q.size()),
         "EighCall gives the bits of crucible_eigh");
}

// A pointer that breaks its alignment is refused; one that is not used is not looked at.
void misaligned_pointers() {
  constexpr int64_t kN = 40, kBatch = 2;
  Device<float> a(kBatch * kN * kN + 4), lambda(kBatch * kN + 4), q(kBatch * kN * kN + 4);
  Device<int32_t> info(kBatch + 4);
  Device<char> work(workspace(kBatch, kN, 0) + 256);
  check(cudaMemset(a.get(), 0, a.size() * sizeof(float)), "clear");
  const auto call = [&](int at_a, int at_lambda, int at_q, int at_info, int at_work, int flags) {
    return crucible_eigh(kN, kBatch, a.get() + at_a, lambda.get() + at_lambda, q.get() + at_q,
                         info.get() + at_info, work.get() + at_work, workspace(kBatch, kN, flags),
                         flags, nullptr);
  };
  constexpr auto kRefused = CRUCIBLE_EIGH_INVALID_ARGUMENT;
  expect(call(1, 0, 0, 0, 0, 0) == kRefused, "a misaligned input is refused");
  expect(call(0, 2, 0, 0, 0, 0) == kRefused, "misaligned eigenvalues are refused");
  expect(call(0, 0, 3, 0, 0, 0) == kRefused, "misaligned vectors are refused");
  expect(call(0, 0, 0, 1, 0, 0) == kRefused, "a misaligned info is refused");
  expect(call(0, 0, 0, 0, 128, 0) == kRefused, "a misaligned workspace is refused");
  expect(call(4, 4, 4, 4, 256, 0) == CRUCIBLE_EIGH_OK, "the next aligned address is taken");
  expect(call(0, 0, 1, 0, 0, CRUCIBLE_EIGH_VALUES_ONLY) == CRUCIBLE_EIGH_OK,
         "values alone: q is ignored");
  check(cudaDeviceSynchronize(), "wait");
}

}  // namespace
}  // namespace crucible::eigh::bench

int main(int count, char** words) {
  using namespace crucible::eigh::bench;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("skipped: no CUDA device on this machine\n");
    return 77;
  }
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  std::vector<int> orders = {1,   2,   3,   7,   13,  16,  31,  32,  33,  65,   100,
                             128, 161, 176, 192, 257, 352, 400, 512, 700, 1024, 1100};
  const bool chosen = count > 1;
  if (chosen) orders.clear();
  for (int k = 1; k < count; ++k) orders.push_back(std::atoi(words[k]));
  nothing_to_do();
  misaligned_pointers();
  wrapper_of_cpp();
  for (const int n : orders) all_of(n, random);
  if (!chosen) {
    mixed_sizes(random);
    for (const int n : {400, 512, 1024, 1100, 1300}) block_matrices(n);
    for (const int n : {100, 256, 384, 400, 512}) more_than_resident(n, 300, random);
    more_than_resident(1100, 20, random);
  }
  std::printf("%d failures\n", failures);
  return failures > 0;
}
