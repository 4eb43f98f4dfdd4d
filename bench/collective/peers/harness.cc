#include "harness.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sstream>

namespace peers {

namespace {

const char usage[] =
    "  --collective LIST   of allreduce, broadcast, allgather, reduce_scatter,\n"
    "                      alltoall, barrier\n"
    "  --bytes LIST        sizes of the larger buffer\n"
    "  --config LIST       algorithms of the library; all by default\n"
    "  --mode NAME         gloo only: async (a thread waits in epoll), sync (the\n"
    "                      caller blocks), busy (the caller polls)\n"
    "  --ranks N           gloo only: processes; mpirun -n decides for Open MPI\n"
    "  --label TEXT        put into the configuration's name\n"
    "  --warmup N          operations before timing, at least\n"
    "  --seconds S         about how long a line is measured\n"
    "  --min-iterations N, --max-iterations N\n"
    "  --limit S           give up a line after so many seconds; 0 for never\n"
    "  --spaced WHEN       auto, always, never: a barrier of the library before each\n"
    "                      timed operation; auto does so but for barriers\n";

[[noreturn]] void refuse(const std::string& why) {
  fprintf(stderr, "%s\n%s", why.c_str(), usage);
  exit(2);
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

double number(const std::string& flag, const std::string& text) {
  char* end = nullptr;
  double v = strtod(text.c_str(), &end);
  if (text.empty() || *end != 0 || !(v >= 0)) refuse(flag + " is " + text + ", want a number of 0 or more");
  return v;
}

// now returns the seconds of a clock that all processes of a machine share.
double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

// Inputs are small integers, so that sums in any order are exact. They repeat
// after `period` elements. This is a prime, so that chunks at wrong offsets give
// wrong results.
constexpr size_t period = 97;
constexpr double poison = -1;  // fills outputs before an operation; no result is negative

double input(int rank, size_t i) { return double((i + 31 * size_t(rank)) % period) + rank; }

double factor(const std::string& collective, int p) {
  double n = p;
  if (collective == "allreduce") return 2 * (n - 1) / n;
  if (collective == "broadcast") return 1;
  return (n - 1) / n;
}

// shape sets in and out to the numbers of elements that a rank contributes and
// receives. The larger of the two has about `bytes` bytes, and at least one
// element for each rank where the collective divides it among ranks.
void shape(const std::string& collective, size_t bytes, int p, size_t& in, size_t& out) {
  size_t whole = std::max<size_t>(1, bytes / sizeof(double));
  size_t part = std::max<size_t>(1, whole / p);
  in = out = whole;
  if (collective == "allgather") in = part, out = part * p;
  if (collective == "reduce_scatter") in = part * p, out = part;
  if (collective == "alltoall") in = out = part * p;
  if (collective == "barrier") in = out = 0;
}

// Expected has the correct results. at returns the correct value of an element of
// the rank's output.
class Expected {
 public:
  Expected(const std::string& collective, const World& world, const Buffers& b)
      : collective_(collective), world_(world), part_(collective == "reduce_scatter" ? b.outCount : b.count) {
    if (collective == "alltoall") part_ = b.count / world.size();
    for (size_t i = 0; i < period; i++) {
      sums_[i] = 0;
      for (int r = 0; r < world.size(); r++) sums_[i] += input(r, i);
    }
  }

  double at(size_t i) const {
    if (collective_ == "allreduce") return sums_[i % period];
    if (collective_ == "broadcast") return input(0, i);
    if (collective_ == "reduce_scatter") return sums_[(world_.rank() * part_ + i) % period];
    if (collective_ == "allgather") return input(int(i / part_), i % part_);
    return input(int(i / part_), world_.rank() * part_ + i % part_);  // alltoall
  }

 private:
  std::string collective_;
  const World& world_;
  size_t part_;
  double sums_[period];
};

// Memory whose pages are there before anything is timed.
struct Release {
  void operator()(double* p) const { free(p); }
};
using Memory = std::unique_ptr<double[], Release>;

Memory allocate(size_t count) {
  void* p = nullptr;
  if (posix_memalign(&p, 4096, std::max<size_t>(count, 1) * sizeof(double)) != 0) throw std::bad_alloc();
  memset(p, 0, std::max<size_t>(count, 1) * sizeof(double));
  return Memory(static_cast<double*>(p));
}

// Run measures one variant at one size.
class Run {
 public:
  Run(World& world, const Options& options, const Variant& variant, size_t bytes)
      : world_(world), options_(options), variant_(variant) {
    shape(variant.collective, bytes, world.size(), buffers_.count, buffers_.outCount);
    in_ = allocate(buffers_.count);
    if (!variant.inPlace) out_ = allocate(buffers_.outCount);
    buffers_.in = in_.get();
    buffers_.out = variant.inPlace ? in_.get() : out_.get();
    operation_ = variant.make(buffers_);
  }

  void measure() {
    world_.rendezvous();
    wrong_ += verify();
    double each = warmUp();
    reset();
    iterations_ = std::clamp(int(options_.seconds / std::max(each, 1e-9)), options_.minIterations, options_.maxIterations);
    world_.rendezvous();
    bool spaced = options_.spaced == "always" || (options_.spaced == "auto" && variant_.collective != "barrier");
    times_.resize(iterations_);
    double first = now();
    for (double& t : times_) {
      if (spaced) world_.barrier();
      double began = now();
      operation_();
      t = now() - began;
    }
    double last = now();
    if (!variant_.inPlace) wrong_ += compare();
    world_.rendezvous();
    wrong_ += verify();
    summarise(first, last);
  }

  size_t wrong() const { return size_t(wrong_); }

  void print(const Library& library) const {
    double n = variant_.collective == "barrier" ? 0 : std::max(buffers_.count, buffers_.outCount) * sizeof(double);
    double algbw = n / p50_ / 1e9;
    std::string config = options_.label + (options_.label.empty() ? "" : " ") + variant_.name;
    printf("{\"library\":\"%s\",\"version\":\"%s\",\"waiting\":\"%s\",\"config\":\"%s\",\"collective\":\"%s\","
           "\"type\":\"float64\",\"op\":\"sum\",\"in_place\":%s,\"ranks\":%d,\"bytes\":%.0f,\"count\":%.0f,"
           "\"iterations\":%d,\"min_us\":%.3f,\"p50_us\":%.3f,\"p99_us\":%.3f,\"mean_us\":%.3f,"
           "\"algbw_gbs\":%.6f,\"busbw_gbs\":%.6f,\"errors\":%zu}\n",
           library.name.c_str(), library.version.c_str(), library.waiting.c_str(), config.c_str(),
           variant_.collective.c_str(), variant_.inPlace ? "true" : "false", world_.size(), n, n / sizeof(double),
           iterations_, 1e6 * min_, 1e6 * p50_, 1e6 * p99_, 1e6 * mean_,
           algbw, algbw * factor(variant_.collective, world_.size()), wrong());
    fflush(stdout);
  }

 private:
  void fill() {
    if (!variant_.inPlace) std::fill_n(buffers_.out, buffers_.outCount, poison);
    for (size_t i = 0; i < buffers_.count; i++) buffers_.in[i] = input(world_.rank(), i);
  }

  // reset sets the inputs of in-place variants to 0, which repeated sums do not
  // change.
  void reset() {
    if (variant_.inPlace) std::fill_n(buffers_.in, buffers_.count, 0.0);
  }

  double compare() const {
    if (variant_.collective == "barrier") return 0;
    Expected want(variant_.collective, world_, buffers_);
    double wrong = 0;
    for (size_t i = 0; i < buffers_.outCount; i++) wrong += buffers_.out[i] != want.at(i);
    return wrong;
  }

  // verify runs the operation once on fresh inputs, and returns the number of
  // wrong elements.
  double verify() {
    fill();
    world_.rendezvous();
    operation_();
    return compare();
  }

  // warmUp returns the seconds of an operation on the slowest rank. It runs for a
  // tenth of the measuring time, in rounds with the same number of operations on
  // all ranks.
  double warmUp() {
    reset();
    double each = 0, began = now();
    int n = std::max(1, options_.warmup);
    do {
      world_.rendezvous();
      double start = now();
      for (int i = 0; i < n; i++) operation_();
      std::vector<double> v{(now() - start) / n, now() - began};
      world_.maximum(v);
      each = v[0];
      if (v[1] > options_.seconds / 10) break;
      n = std::clamp(int(options_.seconds / 10 / std::max(each, 1e-9)), 1, 1000);
    } while (true);
    return each;
  }

  // summarise computes the figures. The time of an operation is the time on its
  // slowest rank.
  void summarise(double first, double last) {
    world_.maximum(times_);
    std::vector<double> ends{-first, last, wrong_};
    world_.maximum(ends);
    mean_ = (ends[0] + ends[1]) / iterations_;
    wrong_ = ends[2];
    std::sort(times_.begin(), times_.end());
    min_ = times_.front();
    p50_ = times_[(times_.size() - 1) / 2];
    p99_ = times_[size_t(std::ceil(0.99 * times_.size())) - 1];
  }

  World& world_;
  const Options& options_;
  const Variant& variant_;
  Buffers buffers_{};
  Memory in_, out_;
  Operation operation_;
  std::vector<double> times_;
  int iterations_ = 0;
  double wrong_ = 0, min_ = 0, p50_ = 0, p99_ = 0, mean_ = 0;
};

// stuck exits the process. The launcher then terminates the other ranks, which
// wait for this one.
void stuck(int) {
  const char text[] = "a line takes too long: the ranks wait for each other, or --limit is too low\n";
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(4);
  _exit(3);
}

bool asked(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; i += 2) {
    std::string flag = argv[i];
    if (flag == "--help") {
      fputs(usage, stdout);
      exit(0);
    }
    if (i + 1 == argc) refuse(flag + " wants a value");
    std::string value = argv[i + 1];
    if (flag == "--collective") o.collectives = split(value);
    else if (flag == "--config") o.configs = split(value);
    else if (flag == "--label") o.label = value;
    else if (flag == "--mode") o.mode = value;
    else if (flag == "--spaced") o.spaced = value;
    else if (flag == "--ranks") o.ranks = int(number(flag, value));
    else if (flag == "--warmup") o.warmup = int(number(flag, value));
    else if (flag == "--seconds") o.seconds = number(flag, value);
    else if (flag == "--min-iterations") o.minIterations = int(number(flag, value));
    else if (flag == "--max-iterations") o.maxIterations = int(number(flag, value));
    else if (flag == "--limit") o.limit = int(number(flag, value));
    else if (flag == "--bytes") {
      o.bytes.clear();
      for (const std::string& s : split(value)) o.bytes.push_back(size_t(number(flag, s)));
    } else refuse("no flag " + flag);
  }
  if (o.ranks < 1 || o.minIterations < 1 || o.maxIterations < o.minIterations)
    refuse("want at least 1 rank and 1 iteration, and no more iterations at least than at most");
  if (!asked({"async", "sync", "busy"}, o.mode)) refuse("--mode is " + o.mode);
  if (!asked({"auto", "always", "never"}, o.spaced)) refuse("--spaced is " + o.spaced);
  for (const std::string& c : o.collectives)
    if (!asked({"allreduce", "broadcast", "allgather", "reduce_scatter", "alltoall", "barrier"}, c))
      refuse("no collective " + c);
  return o;
}

size_t measureAll(World& world, const Options& options, const Library& library,
                  const std::vector<Variant>& variants) {
  signal(SIGALRM, stuck);
  size_t wrong = 0;
  for (const Variant& v : variants) {
    if (!asked(options.collectives, v.collective)) continue;
    if (!options.configs.empty() && !asked(options.configs, v.name)) continue;
    for (size_t bytes : v.collective == "barrier" ? std::vector<size_t>{0} : options.bytes) {
      if (v.ahead * double(bytes) > library.ahead) continue;
      alarm(options.limit);
      Run run(world, options, v, bytes);
      run.measure();
      if (world.rank() == 0) run.print(library);
      wrong += run.wrong();
      world.rendezvous();  // no rank frees what another rank still uses
    }
  }
  alarm(0);
  return wrong;
}

}  // namespace peers
