// Measures the collectives of an MPI library. Start it with mpirun. The flags
// --mca of mpirun set how ranks communicate and wait; --label can name these
// settings in the output.
#include <mpi.h>

#include <cstdio>
#include <cstring>

#include "harness.h"

namespace {

// count returns n as an int, which the C bindings take. It aborts if n is too
// large.
int count(size_t n) {
  if (n > size_t(1) << 30) {
    fprintf(stderr, "mpi_bench: %zu elements are more than an int counts\n", n);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  return int(n);
}

class MPIWorld : public peers::World {
 public:
  MPIWorld() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void rendezvous() override { MPI_Barrier(MPI_COMM_WORLD); }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  void maximum(std::vector<double>& values) override {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), count(values.size()), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }

 private:
  int rank_ = 0, size_ = 1;
};

// Return values are not checked, since MPI's default error handler aborts the
// job.
std::vector<peers::Variant> variants(const peers::World& world) {
  using peers::Buffers;
  using peers::Operation;
  int rank = world.rank(), size = world.size();
  return {
      {"allreduce", "default", false, 0,
       [](const Buffers& b) -> Operation {
         return [b] { MPI_Allreduce(b.in, b.out, count(b.count), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); };
       }},
      {"allreduce", "in-place", true, 0,
       [](const Buffers& b) -> Operation {
         return [b] { MPI_Allreduce(MPI_IN_PLACE, b.out, count(b.count), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); };
       }},
      // Broadcast copies the root's input to the outputs of all ranks, as in the
      // other libraries.
      {"broadcast", "default", false, 0,
       [rank](const Buffers& b) -> Operation {
         return [b, rank] {
           MPI_Bcast(rank == 0 ? b.in : b.out, count(b.count), MPI_DOUBLE, 0, MPI_COMM_WORLD);
           if (rank == 0) memcpy(b.out, b.in, b.count * sizeof(double));
         };
       }},
      {"allgather", "default", false, 0,
       [](const Buffers& b) -> Operation {
         return [b] {
           MPI_Allgather(b.in, count(b.count), MPI_DOUBLE, b.out, count(b.count), MPI_DOUBLE, MPI_COMM_WORLD);
         };
       }},
      {"reduce_scatter", "default", false, 0,
       [](const Buffers& b) -> Operation {
         return [b] {
           MPI_Reduce_scatter_block(b.in, b.out, count(b.outCount), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
         };
       }},
      {"alltoall", "default", false, 0,
       [size](const Buffers& b) -> Operation {
         int part = count(b.count / size);
         return [b, part] { MPI_Alltoall(b.in, part, MPI_DOUBLE, b.out, part, MPI_DOUBLE, MPI_COMM_WORLD); };
       }},
      {"barrier", "default", false, 0,
       [](const Buffers&) -> Operation { return [] { MPI_Barrier(MPI_COMM_WORLD); }; }},
  };
}

// version returns the library's name and version, which end at a comma or a
// newline.
std::string version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int n = 0;
  MPI_Get_library_version(text, &n);
  std::string all(text, n);
  return all.substr(0, all.find_first_of(",\n"));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  peers::Options options = peers::parse(argc, argv);
  size_t wrong = 0;
  {
    MPIWorld world;
    peers::Library library{"openmpi", version(), "spin"};
    wrong = peers::measureAll(world, options, library, variants(world));
  }
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
