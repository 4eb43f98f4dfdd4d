// Command failures measures and simulates the goodput of jobs whose workers fail: which part of
// the time is useful, against the mean time between failures.
//
//	go run ./bench/failures --simulate
//	go run ./bench/failures --json bench/results/failures.json --out docs/failures.svg
//	go run ./bench/failures --from bench/results/failures.json --out docs/failures.svg
//	go run ./bench/failures --overhead 10
//	go run ./bench/failures --recover 20 --rows 8000000
//
// Goodput is the time that the supersteps would take without failures and checkpoints, divided by
// the time that they take. Both begin with the first superstep of the first attempt.
//
// The first part is a simulation, which is a function of its seed. The workers of a job fail
// independently, each after an exponentially distributed time. Without checkpoints, a job begins
// again at superstep 1. With them, it goes on after the last complete one. All workers are
// restarted in both cases, and may fail while they start. With states in memory, the job goes on after the
// last superstep that was copied, and only the lost worker is new. The variable long and the function
// inMemory have the assumed times. Tests compare the simulation with closed forms.
//
// The second part runs jobs on a cluster on this machine: a job manager, two task managers, and
// a worker process on each. The states of the job are saved in checkpoints, copied to the memory of the
// other worker, or lost with any worker. Workers are killed by SIGKILL after exponentially distributed times,
// which depend only on the seed. The supersteps wait instead of computing, so that other load on
// the machine matters little. First the costs are measured: of a superstep, a checkpoint and a
// restart. Then each run is compared with the simulation of the same job, with these costs and
// with the same failures, and with the expectation for other failures of the same rate. All runs
// must have the same result, bit for bit. It needs Linux.
//
// With --overhead, k-means, logistic regression and boosted trees are trained without failures, in turn with
// nothing, with states in memory and with checkpoints. Compared are the time of the supersteps, and the
// processor time of all processes of the cluster, which other load on the machine changes less.
//
// With --recover, k-means runs with four workers on five task managers. In each round, a worker is killed by
// SIGKILL, a worker is stopped by SIGSTOP, a task manager is drained, and the job is scaled to three workers and
// back. Printed are the seconds until each phase of the recovery has ended, from the signal or, without one,
// from the superstep after which the job was saved.
package main
