// Measures the collectives of Gloo over TCP on loopback, among processes that it
// forks itself. Gloo has two sets of collectives: functions over unbound buffers
// ("new" here), whose data always passes a thread that waits in epoll, and classes
// over bound buffers, which can also let the caller block in read or poll.
#include <gloo/allgather.h>
#include <gloo/allgather_ring.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_bcube.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/barrier_all_to_one.h>
#include <gloo/broadcast.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/config.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "harness.h"

namespace {

using peers::Buffers;
using peers::Operation;
using peers::Variant;
using ContextPtr = std::shared_ptr<gloo::Context>;

// Shared is memory that the processes of all ranks map. The ranks synchronise and
// exchange times through it, so that Gloo runs only what is measured.
struct Shared {
  pthread_barrier_t meeting;
  double values[];  // a row of `stride` for each rank
};

class ForkedWorld : public peers::World {
 public:
  ForkedWorld(Shared* shared, int rank, int size, size_t stride)
      : shared_(shared), rank_(rank), size_(size), stride_(stride) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void rendezvous() override { pthread_barrier_wait(&shared_->meeting); }
  void barrier() override { barrier_->run(); }
  void maximum(std::vector<double>& values) override {
    std::copy(values.begin(), values.end(), shared_->values + rank_ * stride_);
    rendezvous();
    for (int r = 0; r < size_; r++)
      for (size_t i = 0; i < values.size(); i++)
        values[i] = std::max(values[i], shared_->values[r * stride_ + i]);
    rendezvous();
  }

  // connected sets the context of Gloo's barrier.
  void connected(const ContextPtr& context) { barrier_ = std::make_unique<gloo::BarrierAllToOne>(context); }

 private:
  std::unique_ptr<gloo::Barrier> barrier_;
  Shared* shared_;
  int rank_, size_;
  size_t stride_;
};

// bound returns an operation that runs an algorithm over bound buffers.
template <typename Algorithm>
Operation bound(std::shared_ptr<Algorithm> algorithm) {
  return [algorithm] { algorithm->run(); };
}

template <typename Algorithm>
Variant boundAllreduce(const ContextPtr& context, const std::string& name, double ahead) {
  return {"allreduce", name, true, ahead, [context](const Buffers& b) {
            return bound(std::make_shared<Algorithm>(context, std::vector<double*>{b.out}, int(b.count)));
          }};
}

Variant newAllreduce(const ContextPtr& context, const std::string& name, bool inPlace,
                     gloo::AllreduceOptions::Algorithm algorithm) {
  return {"allreduce", name, inPlace, 0, [=](const Buffers& b) -> Operation {
            auto o = std::make_shared<gloo::AllreduceOptions>(context);
            o->setAlgorithm(algorithm);
            if (!inPlace) o->setInput(b.in, b.count);
            o->setOutput(b.out, b.count);
            o->setReduceFunction([](void* c, const void* x, const void* y, size_t n) { gloo::sum<double>(c, x, y, n); });
            return [o] { gloo::allreduce(*o); };
          }};
}

// newVariants returns the variants over unbound buffers.
std::vector<Variant> newVariants(const ContextPtr& context) {
  using Algorithm = gloo::AllreduceOptions::Algorithm;
  return {
      newAllreduce(context, "new-ring", false, Algorithm::RING),
      newAllreduce(context, "new-ring-in-place", true, Algorithm::RING),
      newAllreduce(context, "new-bcube", false, Algorithm::BCUBE),
      newAllreduce(context, "new-bcube-in-place", true, Algorithm::BCUBE),
      {"broadcast", "new", false, 0,
       [context](const Buffers& b) -> Operation {
         auto o = std::make_shared<gloo::BroadcastOptions>(context);
         if (context->rank == 0) o->setInput(b.in, b.count);
         o->setOutput(b.out, b.count);
         o->setRoot(0);
         return [o] { gloo::broadcast(*o); };
       }},
      {"allgather", "new", false, 0,
       [context](const Buffers& b) -> Operation {
         auto o = std::make_shared<gloo::AllgatherOptions>(context);
         o->setInput(b.in, b.count);
         o->setOutput(b.out, b.outCount);
         return [o] { gloo::allgather(*o); };
       }},
      {"alltoall", "new", false, 0,
       [context](const Buffers& b) -> Operation {
         auto o = std::make_shared<gloo::AlltoallOptions>(context);
         o->setInput(b.in, b.count);
         o->setOutput(b.out, b.outCount);
         return [o] { gloo::alltoall(*o); };
       }},
      {"barrier", "new", false, 0,
       [context](const Buffers&) -> Operation {
         auto o = std::make_shared<gloo::BarrierOptions>(context);
         return [o] { gloo::barrier(*o); };
       }},
  };
}

// boundVariants returns the variants over bound buffers.
std::vector<Variant> boundVariants(const ContextPtr& context) {
  std::vector<Variant> all = {
      boundAllreduce<gloo::AllreduceRing<double>>(context, "ring", 1),
      boundAllreduce<gloo::AllreduceRingChunked<double>>(context, "ring-chunked", 1.0 / context->size),
      boundAllreduce<gloo::AllreduceHalvingDoubling<double>>(context, "halving-doubling", 0.5),
      {"broadcast", "one-to-all", true, 0,
       [context](const Buffers& b) {
         return bound(std::make_shared<gloo::BroadcastOneToAll<double>>(context, std::vector<double*>{b.out}, int(b.count)));
       }},
      {"allgather", "ring", false, 1.0 / context->size,
       [context](const Buffers& b) {
         return bound(std::make_shared<gloo::AllgatherRing<double>>(context, std::vector<const double*>{b.in}, b.out, int(b.count)));
       }},
      {"reduce_scatter", "halving-doubling", true, 0.5,
       [context](const Buffers& b) {
         std::vector<int> counts(context->size, int(b.outCount));
         return bound(std::make_shared<gloo::ReduceScatterHalvingDoubling<double>>(
             context, std::vector<double*>{b.out}, int(b.count), counts));
       }},
      {"barrier", "all-to-all", false, 0,
       [context](const Buffers&) { return bound(std::make_shared<gloo::BarrierAllToAll>(context)); }},
      {"barrier", "all-to-one", false, 0,
       [context](const Buffers&) { return bound(std::make_shared<gloo::BarrierAllToOne>(context)); }},
  };
  // Bcube works in groups of two ranks. Its sums are wrong unless the number of
  // ranks is a power of two.
  if ((context->size & (context->size - 1)) == 0)
    all.push_back(boundAllreduce<gloo::AllreduceBcube<double>>(context, "bcube", 0.5));
  return all;
}

// connect builds a full mesh among the ranks.
ContextPtr connect(const std::string& dir, int rank, int size, const std::string& mode) {
  gloo::transport::tcp::attr attributes("127.0.0.1");
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(dir);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->setTimeout(std::chrono::minutes(2));
  context->connectFullMesh(store, device);
  for (int r = 0; r < size; r++)
    if (r != rank && mode != "async") context->getPair(r)->setSync(true, mode == "busy");
  return context;
}

int runRank(const peers::Options& options, ForkedWorld& world, const std::string& dir) {
  ContextPtr context = connect(dir, world.rank(), world.size(), options.mode);
  world.connected(context);
  world.rendezvous();
  if (world.rank() == 0) std::filesystem::remove_all(dir);  // all ranks are connected
  char version[32];
  snprintf(version, sizeof version, "Gloo %d.%d.%d", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH);
  peers::Library library{"gloo", version, options.mode};
  if (options.mode != "async") library.ahead = 4 << 20;  // about what two sockets' buffers hold
  std::vector<Variant> variants = boundVariants(context);
  if (options.mode == "async")  // the only mode that supports unbound buffers
    for (Variant& v : newVariants(context)) variants.push_back(v);
  size_t wrong = peers::measureAll(world, options, library, variants);
  world.rendezvous();
  return wrong == 0 ? 0 : 1;
}

// await waits for the processes of all ranks, and returns 0 if all succeed, else
// 1. When a rank fails, the other ranks get SIGTERM, since they would wait for
// it.
int await(std::vector<pid_t> ranks) {
  int worst = 0;
  while (!ranks.empty()) {
    int status = 0;
    pid_t pid = wait(&status);
    if (pid < 0) return 1;
    ranks.erase(std::remove(ranks.begin(), ranks.end(), pid), ranks.end());
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    worst = 1;
    for (pid_t other : ranks) kill(other, SIGTERM);
  }
  return worst;
}

}  // namespace

int main(int argc, char** argv) {
  peers::Options options = peers::parse(argc, argv);
  size_t stride = std::max(options.maxIterations, 16);
  size_t bytes = sizeof(Shared) + options.ranks * stride * sizeof(double);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    perror("gloo_bench: mmap");
    return 1;
  }
  auto* shared = static_cast<Shared*>(memory);
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->meeting, &attributes, options.ranks);

  std::string dir = std::filesystem::temp_directory_path() / "gloo_bench_XXXXXX";
  if (mkdtemp(dir.data()) == nullptr) {
    perror("gloo_bench: mkdtemp");
    return 1;
  }
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < options.ranks; rank++) {
    pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      int code = 1;
      try {
        ForkedWorld world(shared, rank, options.ranks, stride);
        code = runRank(options, world, dir);
      } catch (const std::exception& e) {
        fprintf(stderr, "gloo_bench: rank %d: %s\n", rank, e.what());
      }
      fflush(stdout);
      _exit(code);  // Gloo's threads need no orderly end
    }
    if (pid < 0) {
      perror("gloo_bench: fork");
      for (pid_t other : ranks) kill(other, SIGTERM);
      break;
    }
    ranks.push_back(pid);
  }
  int code = int(ranks.size()) == options.ranks ? 0 : 1;
  code |= await(ranks);
  std::error_code ignored;
  std::filesystem::remove_all(dir, ignored);  // it remains if the ranks did not connect
  return code;
}
