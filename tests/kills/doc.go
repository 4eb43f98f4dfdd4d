// Package kills kills, stops and disconnects the real processes of clusters while jobs run, and
// requires that the jobs finish with the output of an undisturbed run.
//
// TestKills draws everything from a seed: the job, the cluster, the settings and the faults. Runs
// with the same seed have the same faults at the same phases of the job, although they are not
// the same to the millisecond. A soak test runs 200 seeds:
//
//	go test -tags soak -timeout 3h ./tests/kills
//
// If a run fails, the test prints the seed, what was drawn from it, and a timeline. This runs one
// seed:
//
//	go test -tags soak ./tests/kills -run 'TestKills/runs/^seed_17$'
//
// TestZombies lets parts of a lost attempt go on while the next ones run. The tests in
// elastic_test.go repeat failures that other systems are known for.
//
// Faults of the checkpoint store need root, and a machine that lets root mount file systems.
// Otherwise the store is taken away instead of full.
package kills
