#include "orchestrator/agents/cli/cli_profile.h"

namespace crucible {
namespace {

const std::vector<CliProfile>& Profiles() {
  static const std::vector<CliProfile> profiles = {
      {.name = "claude",
       .argv = {"claude", "-p", "--output-format", "stream-json", "--verbose"},
       .format = CliFormat::kClaude,
       .model_flag = {"--model"},
       .when_sandboxed = {"--dangerously-skip-permissions"},
       .when_unsandboxed = {"--permission-mode", "acceptEdits"},
       .key_variables = {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"},
       .says_when_done = true},
      {.name = "codex",
       .argv = {"codex", "exec", "--json"},
       .format = CliFormat::kCodex,
       .model_flag = {"--model"},
       .when_sandboxed = {"--dangerously-bypass-approvals-and-sandbox", "-"},
       .when_unsandboxed = {"--sandbox", "workspace-write", "-"},
       .key_variables = {"OPENAI_API_KEY", "CODEX_API_KEY"},
       .says_when_done = true},
      {.name = "opencode",
       .argv = {"opencode", "run", "--format", "json"},
       .format = CliFormat::kOpencode,
       .model_flag = {"--model"},
       .key_variables = {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY",
                         "OPENROUTER_API_KEY"}},
      {.name = "gemini",
       .argv = {"gemini", "-o", "stream-json"},
       .format = CliFormat::kGemini,
       .model_flag = {"-m"},
       .when_sandboxed = {"--approval-mode", "yolo", "-p", "Carry out the mission given above."},
       .when_unsandboxed = {"--approval-mode", "auto_edit", "-p",
                            "Carry out the mission given above."},
       .key_variables = {"GEMINI_API_KEY", "GOOGLE_API_KEY"},
       .says_when_done = true},
  };
  return profiles;
}

}  // namespace

Result<CliProfile> FindCliProfile(const std::string& name) {
  std::string known;
  for (const CliProfile& profile : Profiles()) {
    if (profile.name == name) return profile;
    known += (known.empty() ? "" : ", ") + profile.name;
  }
  return Fail(ErrorKind::kNotFound, "find agent program", name, "there is no profile for it",
              "use one of " + known + ", or give a whole command");
}

CliProfile CommandProfile(std::vector<std::string> argv) {
  CliProfile profile;
  profile.name = argv.empty() ? "" : argv.front();
  profile.argv = std::move(argv);
  return profile;
}

}  // namespace crucible
