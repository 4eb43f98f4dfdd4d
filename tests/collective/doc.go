// Package collective has only tests. They apply the test cases of other libraries of
// collectives, as tables, to the public interface of this module's package collective.
//
//   - allreduce_test.go, rooted_test.go, exchange_test.go, barrier_test.go,
//     direct_test.go: the parameters of Gloo's test suites, with every algorithm, in shared
//     memory, by messages in memory and over TCP.
//   - order_test.go: MPICH's sums of terms that cancel, and products that do not commute.
//   - sockets_test.go: XGBoost's test for deadlocks, with socket buffers of 4 KiB.
//   - kill_test.go, stop_test.go: processes that die, or are stopped, during operations.
//   - hostile_test.go, tls_test.go: connections to a group by processes that are not members.
//   - placement_test.go: results have the same bits however ranks are distributed over processes.
//   - many_test.go: very many ranks.
//
// Most inputs have a result that is exact in every order of summation and is known in closed
// form. Tests of the order of summation use inputs for which every order gives other bits. With
// the build tag soak all cases are tested, and otherwise about a tenth of them.
package collective
