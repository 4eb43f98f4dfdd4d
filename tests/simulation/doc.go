// Package simulation runs the whole control plane together with the protocol of the workers in virtual
// time: a job manager, task managers, worker processes and clients, over a network and disks that fail.
//
// A schedule is drawn from a seed: the cluster, the jobs, what clients do, and the faults. One goroutine
// carries out one event after the other (clock_test.go), and everything random comes from one generator.
// So a seed always gives the same schedule. TestSchedules runs 1,500 of them, and a soak test
// 100,000:
//
//	go test ./tests/simulation
//	go test -tags soak -timeout 2h ./tests/simulation
//
// If an invariant is violated, the test prints the seed and the last lines of a trace. This runs one
// schedule and prints its whole trace:
//
//	go test ./tests/simulation -run TestSchedules -seed 17
//
// # What is real
//
// Everything that decides is the code of the product:
//
//   - the job manager's core (jobmanager/core) with its continuations, which are encoded on the disk and
//     decoded by the next job manager;
//   - the life of workers in a task manager, its outbox and its lease (taskmanager/core);
//   - the states of a worker process, and whether it is kept (engine/workerlife);
//   - where the subtasks of a queue meet, and the verdict that they agree on (engine/task: Boundary,
//     Verdict), and the pieces of states and who needs which (Saved, Cut, Part);
//   - the copies of states in memory: the store, the choice, and who sends what to whom (engine/copies);
//   - from where the queues of an attempt continue (engine/origin);
//   - checkpoints: the journal, manifests and parts (engine/checkpoint), over a store in memory. Between
//     any two of its operations the process may die.
//
// # What is modelled
//
// The shells around this code are models, which follow the files that they name: the streams between
// job manager and task managers, the recorder, the launch of processes and their pipes, kept processes,
// the goroutines of a worker, the links between workers, the files in which a worker without others leaves states,
// the saver that writes checkpoints behind the supersteps, and sinks that write parts aside and rename them.
//
// The state of a queue is a number for each shard and a replicated one. A superstep mixes them, some
// supersteps over all shards in their order. So the state after each superstep is known, whatever the
// parallelism, and is compared with that of every worker.
//
// # What is left out
//
// Rows: their exchange, what processes keep of them, collected rows and their spool, and which shards
// are read again. The artifacts of jobs, credentials and TLS. Damage of bytes, which the formats detect
// and other tests inject. Attached clients that disconnect. Several queues at once: those of a job run
// one after the other. Savepoints are written and checked, and no job continues from one. Memory and
// processor time: a process that runs is never late.
//
// # What must hold
//
// After each event: the outputs of a job appear at most once, when the job is on record as committing,
// and equal those of the undisturbed run; every state of every worker is that of the undisturbed run;
// all workers of an attempt continue from the same supersteps, which are the newest that are left; an
// attempt is on record before its workers are deployed; no worker of an earlier attempt can disturb one
// that may not overlap; the workers of a task manager fit into its slots; each manifest has its blobs;
// a job manager that starts knows all jobs that were accepted; the cause of a lost attempt is the fault
// that came first, where that is known.
//
// At the end, when the faults are over: every job ends within a time, it fails only for a reason, an
// error of user code is the failure of its job, and nothing is left.
//
// # Files
//
// clock_test.go and process_test.go have the time, processes and code that waits; network_test.go the
// connections; record_test.go and jobmanager_test.go the job manager; taskmanager_test.go and
// tmworker_test.go a task manager; worker_test.go, work_test.go, queue_test.go, group_test.go,
// copies_test.go, files_test.go and saver_test.go a worker; store_test.go and sinks_test.go what it writes to;
// job_test.go and client_test.go jobs and clients; plan_test.go and faults_test.go what is drawn;
// checks_test.go the invariants.
package simulation
