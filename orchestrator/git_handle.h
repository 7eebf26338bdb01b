// git_handle.h: the one owner of a libgit2 object: moves, never copies, pointer-sized.
#pragma once

#include <utility>

namespace crucible {

template <class T, void (*Free)(T*)>
class GitHandle {
 public:
  GitHandle() = default;
  explicit GitHandle(T* object) : object_(object) {}
  GitHandle(GitHandle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  GitHandle& operator=(GitHandle&& other) noexcept {
    if (this != &other) {
      Reset();
      object_ = std::exchange(other.object_, nullptr);
    }
    return *this;
  }
  GitHandle(const GitHandle&) = delete;
  GitHandle& operator=(const GitHandle&) = delete;
  ~GitHandle() { Reset(); }

  T* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  // For libgit2's `T** out` parameters; what was held before is freed first.
  T** Out() {
    Reset();
    return &object_;
  }
  T* Release() { return std::exchange(object_, nullptr); }
  void Reset() {
    if (object_ != nullptr) Free(std::exchange(object_, nullptr));
  }

 private:
  T* object_ = nullptr;
};

}  // namespace crucible
