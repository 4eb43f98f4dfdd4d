// What the peers' benchmark programs share: options, input values whose results
// are exact, timing, the check, and the line of JSON that is printed.
//
// Sizes follow nccl-tests: `bytes` is the larger of a rank's two buffers, so that
// an all-gather of p ranks contributes bytes/p from each. algbw is bytes per
// second of an operation, busbw the same times the share of it that crosses a
// link: 2(p-1)/p for allreduce, (p-1)/p for allgather, reduce_scatter and
// alltoall, 1 for broadcast.
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
  int warmup = 3;                    // operations before timing, at least
  int minIterations = 5;
  int maxIterations = 20000;
  double seconds = 1;  // about how long one line is measured
  int limit = 60;      // seconds after which a line is given up as stuck; 0 for never
};

// parse reads flags of the form --name value. It prints the usage and exits with
// 2 where they are wrong, with 0 after --help.
Options parse(int argc, char** argv);

// World is what the harness needs of a set of ranks. It is not what is measured.
class World {
 public:
  virtual ~World() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // rendezvous returns on no rank before all have called it.
  virtual void rendezvous() = 0;
  // barrier is the library's own. Ranks leave it together as well as it can.
  virtual void barrier() = 0;
  // maximum replaces each value by the greatest of all ranks.
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

// Variant is a way of a library to carry out a collective.
struct Variant {
  std::string collective;
  std::string name;  // of the algorithm and its set-up
  bool inPlace;
  // What a rank sends before it receives anything, as a share of the larger
  // buffer. See Library::ahead.
  double ahead;
  std::function<Operation(const Buffers&)> make;
};

// Library names what is measured.
struct Library {
  std::string name;
  std::string version;
  std::string waiting;  // how a rank waits for others
  // The most bytes that a rank may send before it receives. Where sending blocks the
  // caller, all ranks would wait for ever with more bytes than the sockets hold.
  // Sizes beyond that are left out.
  double ahead = 1e18;
};

// measureAll measures every variant asked for at every size; rank 0 prints a line
// each. It returns the number of wrong elements found on any rank.
size_t measureAll(World& world, const Options& options, const Library& library,
                  const std::vector<Variant>& variants);

}  // namespace peers
