// Package collective contains only tests. They apply test cases of other libraries of
// collectives to the public interface of this module's package collective.
//
//   - allreduce_test.go, rooted_test.go, exchange_test.go, barrier_test.go, direct_test.go: the
//     parameters of Gloo's test suites, with every algorithm, through shared memory, with
//     messages in memory, and over TCP.
//   - order_test.go: MPICH's sums of terms that cancel each other, and products that do not
//     commute.
//   - sockets_test.go: XGBoost's test for deadlocks, with socket buffers of 4 KiB.
//   - kill_test.go, stop_test.go: processes that die, or are stopped, during operations.
//   - hostile_test.go, tls_test.go: processes that are not members of a group and connect to
//     it.
//   - placement_test.go: results must have the same bits however ranks are distributed over
//     processes.
//   - many_test.go: very many ranks.
//
// For most inputs the result is exact in every order of summation and known in closed form.
// Tests of the order of summation use inputs for which different orders give different bits.
// With the build tag soak all cases are tested, without it about a tenth of the cases.
package collective
