// token.h: proof that a call is made inside a running job, so that it need not wait for itself.
//
// CRUCIBLE_GPU_TOKEN is "DEVICE:NONCE:HOLDER_PID:START_TICKS", several joined by commas. An
// environment can be copied, forged or outlive its job, so a token alone opens nothing: see
// Validate.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpu_runner/device_folder.h"

namespace crucible {

inline constexpr char kTokenVariable[] = "CRUCIBLE_GPU_TOKEN";
inline constexpr char kNonceVariable[] = "CRUCIBLE_JOB_NONCE";
inline constexpr char kJobVariable[] = "CRUCIBLE_JOB_ID";

struct Token {
  std::string device, nonce;
  pid_t holder = 0;
  std::uint64_t start_ticks = 0;
};

std::string ToText(const std::vector<Token>& tokens);
std::vector<Token> ParseTokens(std::string_view text);  // malformed ones are left out

// Empty when the token is good: the record has its nonce and holder, the holder lives (pid, start
// time, boot id), the device is locked, and the caller descends from the holder. Else the reason.
std::string WhyInvalid(const Token& token, const DeviceFolder& folder);

}  // namespace crucible
