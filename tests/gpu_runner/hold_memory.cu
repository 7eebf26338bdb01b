// A job that holds memory of the GPU and keeps it busy, for real_gpu.sh.
//   hold_memory GIGABYTES SECONDS [NAME]
#include <chrono>
#include <cstdio>
#include <cstdlib>

__global__ void Work(float* x, std::size_t n) {
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < n;
       i += gridDim.x * std::size_t(blockDim.x)) {
    float value = x[i];
    for (int k = 0; k < 64; ++k) value = value * 1.0001f + 0.5f;
    x[i] = value;
  }
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const double gigabytes = std::atof(argv[1]), seconds = std::atof(argv[2]);
  const auto n = static_cast<std::size_t>(gigabytes * 1e9 / sizeof(float));
  float* x = nullptr;
  if (cudaMalloc(&x, n * sizeof(float)) != cudaSuccess) return std::puts("no memory"), 1;
  cudaMemset(x, 0, n * sizeof(float));
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  int launches = 0;
  while (std::chrono::duration<double>(Clock::now() - start).count() < seconds) {
    Work<<<1320, 256>>>(x, n);
    if (cudaDeviceSynchronize() != cudaSuccess) return std::puts("failed"), 1;
    ++launches;
  }
  std::printf("%s: %d launches over %.1f GB\n", argc > 3 ? argv[3] : "hold", launches, gigabytes);
}
