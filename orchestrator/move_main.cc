// move_main.cc: the compare-and-swap of main, and what follows it, finished even after a kill.
//
// A move is written down before it begins (from, to, the checkouts that were clean and will follow)
// and the note is taken away at its end. So a note that is found tells of a killed move: which
// checkouts looked clean, which locks are its own. One process moves main at a time, by flock(2) on
// the git directory itself, which leaves no file and ends with the process.
#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <sstream>

#include "base/fd.h"
#include "base/files.h"
#include "orchestrator/follow_main.h"

namespace crucible {
namespace fs = std::filesystem;

namespace {

constexpr char kNote[] = "crucible-move";

struct Intent {
  MainMove move;
  std::vector<std::string> followers;  // names of checkouts; "" is the main one
};

Result<UniqueFd> LockMoves(const fs::path& common) {
  UniqueFd folder(::open(common.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  bool locked = false;
  while (folder.valid() && !locked) {
    locked = ::flock(folder.get(), LOCK_EX) == 0;
    if (!locked && errno != EINTR) break;
  }
  if (!locked)
    return Fail(ErrorKind::kIo, "lock", common.string(), std::strerror(errno),
                "check that it is readable and on a local disk");
  return folder;
}

Result<> WriteIntent(const fs::path& common, const Intent& intent) {
  std::string text = "from " + intent.move.from + "\nto " + intent.move.to + "\n";
  for (const std::string& name : intent.followers) text += "checkout " + name + "\n";
  return WriteFileAtomically(common / kNote, text);
}

std::optional<Intent> ReadIntent(const fs::path& common) {
  const auto text = ReadFile(common / kNote);
  if (!text) return std::nullopt;
  Intent intent;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("from ")) intent.move.from = line.substr(5);
    if (line.starts_with("to ")) intent.move.to = line.substr(3);
    if (line.starts_with("checkout ")) intent.followers.push_back(line.substr(9));
  }
  return intent;
}

// The note, and what a kill while it was written left beside it.
Result<> RemoveIntent(const fs::path& common) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator it(common, error), end; !error && it != end; it.increment(error))
    if (it->path().filename().string().starts_with(kNote)) found.push_back(it->path());
  for (const fs::path& path : found) CRUCIBLE_TRY(RemoveTree(path));
  return {};
}

// main.lock is of the killed move when it holds (the beginning of) what that move wrote.
void RemoveOwnRefLock(const fs::path& common, const std::string& ref,
                      const std::vector<Checkout>& checkouts, const MainMove& move) {
  const fs::path lock = common / (ref + ".lock");
  const auto text = ReadFile(lock);
  if (!text || !(move.to + "\n").starts_with(*text)) return;
  if (text->empty())
    for (const Checkout& checkout : checkouts)
      if (GitRunsIn(checkout.directory)) return;
  std::error_code ignored;
  fs::remove(lock, ignored);
}

std::string LeftAlone(const Checkout& checkout, const std::string& why, const MainMove& move) {
  return checkout.directory.string() + ": " + why + ", so " + FollowByHand(move) + "\n";
}

}  // namespace

Result<> Repository::FinishMove(std::string* note) {
  CRUCIBLE_ASSIGN(const UniqueFd lock, LockMoves(impl_->common));
  return impl_->FinishMove(note);
}

Result<> Repository::Impl::FinishMove(std::string* note) {
  const std::optional<Intent> intent = ReadIntent(common);
  if (!intent) return RemoveIntent(common);
  const MainMove& move = intent->move;
  RemoveOwnRefLock(common, MainRef(), Checkouts(common, bare), move);
  git_oid tip;
  if (const int code = git_reference_name_to_id(&tip, repository.get(), MainRef().c_str());
      code < 0)
    return GitFail("read branch", main_branch, code);
  std::string notes;
  if (ToHex(tip) == move.to) {
    for (const Checkout& checkout : CheckoutsOf(common, bare, MainRef())) {
      if (std::find(intent->followers.begin(), intent->followers.end(), checkout.name) ==
          intent->followers.end())
        continue;
      const auto opened = OpenWorktreeAt(common, checkout.directory);
      const auto why = opened ? FinishFollowing(checkout, opened->get(), move)
                              : Result<std::string>(tl::unexpected(opened.error()));
      if (!why || !why->empty()) notes += LeftAlone(checkout, why ? *why : why.error().text, move);
    }
  }
  CRUCIBLE_TRY(RemoveIntent(common));
  if (note != nullptr) *note = notes;
  return {};
}

Result<> Repository::MoveMain(const std::string& expected, const std::string& commit,
                              std::string* note) {
  git_repository* repository = impl_->repository.get();
  CRUCIBLE_ASSIGN(GitCommit from, FindCommit(repository, expected));
  CRUCIBLE_ASSIGN(GitCommit to, FindCommit(repository, commit));
  CRUCIBLE_ASSIGN(const UniqueFd lock, LockMoves(impl_->common));
  std::string notes;
  CRUCIBLE_TRY(impl_->FinishMove(&notes));
  // Cleanness is judged before main moves: afterwards every checkout of it looks changed.
  Intent intent{{ToHex(*git_commit_id(from.get())), ToHex(*git_commit_id(to.get()))}, {}};
  std::vector<std::pair<Checkout, GitRepository>> followers;
  for (const Checkout& checkout : CheckoutsOf(impl_->common, impl_->bare, impl_->MainRef())) {
    CRUCIBLE_ASSIGN(GitRepository opened, OpenWorktreeAt(impl_->common, checkout.directory));
    CRUCIBLE_ASSIGN(std::vector<ChangedPath> changed, StatusOf(opened.get(), true));
    if (changed.empty()) {
      intent.followers.push_back(checkout.name);
      followers.emplace_back(checkout, std::move(opened));
    } else {
      const std::string more = changed.size() > 1 ? ", …" : "";
      notes += LeftAlone(checkout, "uncommitted changes (" + changed.front().path + more + ")",
                         intent.move);
    }
  }
  CRUCIBLE_TRY(WriteIntent(impl_->common, intent));
  GitReference moved;
  const int code = git_reference_create_matching(moved.Out(), repository, impl_->MainRef().c_str(),
                                                 git_commit_id(to.get()), /*force=*/1,
                                                 git_commit_id(from.get()), "crucible: merge");
  if (code < 0) {
    const auto failure = impl_->WhyNotMoved(code, expected, commit);
    CRUCIBLE_TRY(RemoveIntent(impl_->common));
    return failure;
  }
  for (const auto& [checkout, opened] : followers)
    if (const auto followed = FollowFiles(opened.get(), intent.move); !followed)
      notes += LeftAlone(checkout, followed.error().text, intent.move);
  CRUCIBLE_TRY(RemoveIntent(impl_->common));
  if (note != nullptr) *note = notes;
  return {};
}

tl::unexpected<Error> Repository::Impl::WhyNotMoved(int code, const std::string& expected,
                                                    const std::string& commit) const {
  const std::string action = "move " + main_branch + " to";
  if (code == GIT_EMODIFIED || code == GIT_ENOTFOUND)
    return Fail(ErrorKind::kConflict, action, commit, "it is no longer at " + expected,
                "merge again onto its new tip");
  if (code == GIT_ELOCKED)
    return GitFail(action, commit, code,
                   "another git holds the branch; if none runs, remove " +
                       (common / (MainRef() + ".lock")).string());
  return GitFail(action, commit, code);
}

}  // namespace crucible
