// The common code of the peers' benchmark programs: options, input values whose
// results are exact, timing, the check of results, and the output as lines of
// JSON.
//
// Sizes follow nccl-tests: `bytes` is the larger of a rank's two buffers, so that
// an all-gather of p ranks contributes bytes/p from each. algbw is `bytes`
// divided by the time of an operation. busbw is algbw times the share of the
// bytes that crosses a link: 2(p-1)/p for allreduce, (p-1)/p for allgather,
// reduce_scatter and alltoall, 1 for broadcast.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace peers {

// Options are the flags that both programs take. See `usage`.
struct Options {
  std::vector<std::string> collectives{"allreduce"};
  std::vector<size_t> bytes{8, 1024, 32768, 1 << 20, 64 << 20};
  std::vector<std::string> configs;  // algorithms of the library; empty: all
  std::string label;                 // put before the configuration's name
  std::string mode = "async";        // how Gloo waits: async, sync or busy
  std::string spaced = "auto";       // a barrier before each operation: auto, always or never
  int ranks = 2;                     // processes that gloo_bench forks
  int warmup = 3;                    // minimum number of operations before timing
  int minIterations = 5;
  int maxIterations = 20000;
  double seconds = 1;  // approximate time for which one line is measured
  int limit = 60;      // seconds after which a line counts as stuck and the program exits; 0 for never
};

// parse reads flags of the form --name value. It prints the usage and exits with
// 2 if a flag is wrong, and with 0 for --help.
Options parse(int argc, char** argv);

// World has the functions that the harness needs from a set of ranks. They are
// not measured.
class World {
 public:
  virtual ~World() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // rendezvous returns on no rank before all have called it.
  virtual void rendezvous() = 0;
  // barrier runs the library's own barrier, which ranks leave at nearly the same
  // time.
  virtual void barrier() = 0;
  // maximum replaces each value by its maximum over all ranks.
  virtual void maximum(std::vector<double>& values) = 0;
};

// Buffers of one rank: `count` elements contributed, `outCount` received. In place
// means that both are the same memory.
struct Buffers {
  double* in;
  double* out;
  size_t count;
  size_t outCount;
};

// Operation is one collective, set up for buffers, that can run many times.
using Operation = std::function<void()>;

// Variant is an implementation of a collective in the library.
struct Variant {
  std::string collective;
  std::string name;  // of the algorithm and its set-up
  bool inPlace;
  // The bytes that a rank sends before it receives any, as a share of the larger
  // buffer. See Library::ahead.
  double ahead;
  std::function<Operation(const Buffers&)> make;
};

// Library describes the library that is measured.
struct Library {
  std::string name;
  std::string version;
  std::string waiting;  // how a rank waits for others
  // The most bytes that a rank may send before it receives. Larger sizes are left
  // out: if sending blocks the caller, and all ranks send more bytes than their
  // sockets can buffer, they wait for ever.
  double ahead = 1e18;
};

// measureAll measures every variant that options select at every size. Rank 0
// prints a line for each. It returns the number of wrong elements, which is 0
// only if the results on all ranks are right.
size_t measureAll(World& world, const Options& options, const Library& library,
                  const std::vector<Variant>& variants);

}  // namespace peers
