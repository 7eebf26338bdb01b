// device.h: device memory and error checks of the benchmark programs; errors end the program.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace crucible::eigh::bench {

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(2);
}

// Owned device memory, poisoned with NaN bytes.
template <typename T>
class Device {
 public:
  Device() = default;
  explicit Device(size_t count) : count_(count) {
    check(cudaMalloc(&data_, std::max<size_t>(count, 1) * sizeof(T)), "allocate device memory");
    poison();
  }
  ~Device() { cudaFree(data_); }
  Device(Device&& other) noexcept : data_(other.data_), count_(other.count_) {
    other.data_ = nullptr;
    other.count_ = 0;
  }
  Device& operator=(Device&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  void poison() { check(cudaMemset(data_, 0xff, count_ * sizeof(T)), "poison device memory"); }
  T* get() const { return static_cast<T*>(data_); }
  size_t size() const { return count_; }
  std::vector<T> read() const {
    std::vector<T> host(count_);
    check(cudaMemcpy(host.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), "read");
    return host;
  }
  void write(const std::vector<T>& host) {
    check(cudaMemcpy(data_, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice), "write");
  }

 private:
  void* data_ = nullptr;
  size_t count_ = 0;
};

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "create an event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream = nullptr) { check(cudaEventRecord(event_, stream), "record"); }
  // Milliseconds since `begin`; waits for this event.
  double since(const Event& begin) const {
    float ms = 0;
    check(cudaEventSynchronize(event_), "wait for an event");
    check(cudaEventElapsedTime(&ms, begin.event_, event_), "read an event");
    return ms;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace crucible::eigh::bench
