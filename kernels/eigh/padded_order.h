// padded_order.h: the orders the divide and conquer and the back-transform are built for.
#pragma once

namespace crucible::eigh {

constexpr int padded_order(int n) { return n <= 512 ? 512 : (n <= 1024 ? 1024 : 2048); }

}  // namespace crucible::eigh
