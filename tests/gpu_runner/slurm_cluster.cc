#include "tests/gpu_runner/slurm_cluster.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/process_identity.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

constexpr char kPath[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr char kMark[] = "CRUCIBLE_TEST_CLUSTER";  // by it every process of a cluster is found
constexpr int kUpTries = 600, kUpEveryMs = 50;

// A port that was free a moment ago.
int FreePort() {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd.get(), any, size) != 0 || ::getsockname(fd.get(), any, &size) != 0) return 0;
  return ::ntohs(address.sin_port);
}

std::string SlurmConf(const std::string& host, const std::string& b) {
  const unsigned cpus = std::max(1u, std::thread::hardware_concurrency());
  return fmt::format(
      "ClusterName=one\nSlurmctldHost={0}(127.0.0.1)\nAuthType=auth/munge\n"
      "AuthInfo=socket={1}/munge/sock\nCredType=cred/munge\nSlurmUser=root\nSlurmdUser=root\n"
      "SlurmctldPort={2}\nSlurmdPort={3}\nSlurmctldPidFile={1}/ctld/pid\nSlurmdPidFile={1}/d/pid\n"
      "StateSaveLocation={1}/ctld\nSlurmdSpoolDir={1}/d\nSlurmctldLogFile={1}/log/slurmctld\n"
      "SlurmdLogFile={1}/log/slurmd\nCommunicationParameters=NoCtldInAddrAny,NoInAddrAny\n"
      "MpiDefault=none\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n"
      "SwitchType=switch/none\nSchedulerType=sched/backfill\nSelectType=select/cons_tres\n"
      "SelectTypeParameters=CR_Core\nReturnToService=2\nKillWait=2\nInactiveLimit=0\n"
      "MinJobAge=300\nJobAcctGatherType=jobacct_gather/none\n"
      "AccountingStorageType=accounting_storage/none\nGresTypes=gpu\n"
      "NodeName={0} NodeAddr=127.0.0.1 CPUs={4} RealMemory=500 Gres=gpu:1 State=UNKNOWN\n"
      "PartitionName=gpu Nodes={0} Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES\n"
      "Prolog={1}/share/prolog.sh\nEpilog={1}/share/epilog.sh\nPrologFlags=Alloc\n"
      "SchedulerParameters=batch_sched_delay=0,sched_min_interval=0\n",
      host, b, FreePort(), FreePort(), cpus);
}

}  // namespace

std::string SlurmCluster::WhyNot() {
  if (::geteuid() != 0) return "Slurm's daemons need root here";
  for (const char* name : {"munged", "slurmctld", "slurmd", "srun", "salloc", "scancel"}) {
    bool found = false;
    for (const char* folder : {"/usr/sbin/", "/usr/bin/"})
      found = found || ::access((std::string(folder) + name).c_str(), X_OK) == 0;
    if (!found)
      return std::string("there is no ") + name +
             ": install slurm-wlm slurm-wlm-basic-plugins munge";
  }
  return "";
}

Result<std::unique_ptr<SlurmCluster>> SlurmCluster::Start() {
  CRUCIBLE_ASSIGN(const fs::path folder, MakeTemporaryDirectory("slurm_test"));
  std::unique_ptr<SlurmCluster> cluster(new SlurmCluster(folder));
  CRUCIBLE_TRY(cluster->Configure());
  for (const char* name : {"munged", "slurmctld", "slurmd"})
    CRUCIBLE_TRY(cluster->StartDaemon(name));
  for (int i = 0; i < kUpTries; ++i) {
    if (cluster->IsUp()) return cluster;
    SystemClock().SleepFor(std::chrono::milliseconds(kUpEveryMs));
  }
  return Fail(ErrorKind::kUnavailable, "start Slurm in", folder.string(),
              "no idle node after 30 s: " + cluster->Logs());
}

Result<> SlurmCluster::Configure() {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  host_ = std::string(host).substr(0, std::string(host).find('.'));
  ::chmod(folder_.c_str(), 0711);  // munge wants its socket reachable by every user
  for (const char* name : {"munge", "ctld", "d", "log", "dev", "share"})
    CRUCIBLE_TRY(MakeDirectories(folder_ / name));
  ::chmod((folder_ / "munge").c_str(), 0711);
  CRUCIBLE_TRY(WriteFileAtomically(folder_ / "munge" / "key", RandomHex(512)));
  ::chmod((folder_ / "munge" / "key").c_str(), 0400);
  const std::string b = folder_.string();
  CRUCIBLE_TRY(WriteFileAtomically(folder_ / "slurm.conf", SlurmConf(host_, b)));
  if (::mknod((b + "/dev/nvidia0").c_str(), S_IFCHR | 0666, ::makedev(1, 3)) != 0)
    CRUCIBLE_TRY(WriteFileAtomically(b + "/dev/nvidia0", ""));  // its existence is all that counts
  CRUCIBLE_TRY(WriteFileAtomically(
      folder_ / "gres.conf",
      fmt::format("AutoDetect=off\nNodeName={} Name=gpu File={}/dev/nvidia0\n", host_, b)));
  for (const char* name : {"prolog.sh", "epilog.sh", "clocks.sh"})
    fs::copy_file(fs::path(CRUCIBLE_SOURCE_DIR) / "share/slurm" / name, folder_ / "share" / name);
  CRUCIBLE_TRY(WriteFileAtomically(folder_ / "share" / "settings.sh",
                                   "SM_CLOCK_MHZ=1500\nNVIDIA_SMI=" + b + "/share/smi\n"));
  CRUCIBLE_TRY(WriteFileAtomically(folder_ / "share" / "smi",
                                   "#!/bin/sh\necho \"$@\" >>" + b + "/smi.calls\n"));
  fs::permissions(folder_ / "share" / "smi", fs::perms::owner_all);
  environment_ = {{"SLURM_CONF", b + "/slurm.conf"}, {"PATH", kPath}, {kMark, b}};
  return {};
}

Result<> SlurmCluster::StartDaemon(const std::string& name) {
  const std::string b = folder_.string(), munge = b + "/munge";
  SubprocessSpec spec;
  if (name == "munged")
    spec.argv = {"/usr/sbin/munged",
                 "--foreground",
                 "--key-file=" + munge + "/key",
                 "--socket=" + munge + "/sock",
                 "--pid-file=" + munge + "/pid",
                 "--log-file=" + munge + "/log",
                 "--seed-file=" + munge + "/seed"};
  if (name == "slurmctld") spec.argv = {"/usr/sbin/slurmctld", "-D", "-f", b + "/slurm.conf"};
  if (name == "slurmd")
    spec.argv = {"/usr/sbin/slurmd", "-D", "-f", b + "/slurm.conf", "-N", host_};
  spec.environment = environment_;
  spec.out = spec.err = Stdio::kFile;
  spec.log_path = folder_ / "log" / (name + ".out");
  CRUCIBLE_ASSIGN(Subprocess daemon, Subprocess::Start(spec));
  daemons_.insert_or_assign(name, std::move(daemon));
  return {};
}

bool SlurmCluster::IsUp() const {
  return Command({"sinfo", "--noheader", "--format=%T"}).find("idle") == 0;
}

std::string SlurmCluster::Command(std::vector<std::string> words) const {
  SubprocessSpec spec;
  spec.argv = std::move(words);
  spec.argv[0] = "/usr/bin/" + spec.argv[0];
  spec.environment = environment_;
  const auto run = RunCaptured(spec, std::chrono::seconds(20));
  if (!run) return "error: " + run.error().text;
  return run->status.ok() ? run->out : "error: " + run->err;
}

bool SlurmCluster::IsIdle() const { return Command({"squeue", "--noheader"}).empty() && IsUp(); }

bool SlurmCluster::HasSaved(const std::string& job_name) const {
  const auto state = ReadFile(folder_ / "ctld" / "job_state");
  return state && state->find(job_name) != std::string::npos;
}

std::string SlurmCluster::SmiCalls() const { return ReadFile(folder_ / "smi.calls").value_or(""); }

std::string SlurmCluster::Logs() const {
  std::string all;
  for (const char* name : {"munged.out", "slurmctld.out", "slurmd.out", "slurmctld", "slurmd"}) {
    std::string text = ReadFile(folder_ / "log" / name).value_or("");
    if (text.size() > 2000) text = text.substr(text.size() - 2000);
    all += std::string("\n== ") + name + "\n" + text;
  }
  return all;
}

Result<> SlurmCluster::KillAndRestart(const std::string& daemon) {
  const auto found = daemons_.find(daemon);
  CRUCIBLE_CHECK(found != daemons_.end(), "no such daemon");
  ::kill(found->second.pid(), SIGKILL);
  (void)found->second.Wait();
  return StartDaemon(daemon);
}

SlurmCluster::~SlurmCluster() {
  (void)Command({"scancel", "--user=root"});
  for (const char* name : {"slurmctld", "slurmd", "munged"}) {
    const auto daemon = daemons_.find(name);
    if (daemon == daemons_.end()) continue;
    daemon->second.Signal(SIGTERM);
    (void)daemon->second.Wait(std::chrono::seconds(5));
  }
  daemons_.clear();
  (void)KillByEnvironment(kMark, folder_.string(), 5000);
  (void)RemoveTree(folder_);
}

}  // namespace crucible
