package operators

import "github.com/superstep-ml/superstep/internal/testsize"

// fewRowsSeeds and manyRowsSeeds are the numbers of jobs with few and with many rows in
// TestDrawsAreIndependent.
var fewRowsSeeds, manyRowsSeeds = testsize.Raced(testsize.Of(100, 1000), 10), testsize.Of(2, 10)

// joinSeeds is the number of pairs of tables that are joined.
var joinSeeds = testsize.Raced(testsize.Of(75, 3000), 30)

// asAWhole returns settings without workers: each parallelism and each batch size. In a soak test
// it returns all combinations. Under the race detector it returns two settings, as more subtasks
// share memory in the same way.
func asAWhole() (all []setting) {
	if !testsize.Soak {
		few := []setting{{P: 2, Rows: 1024}, {P: 3, Rows: 1}}
		return testsize.Raced(append(few, setting{P: 1, Rows: 7}, setting{P: 8, Rows: 7}, setting{P: 1, Rows: 1024}, setting{P: 8, Rows: 1}), few)
	}
	for _, p := range []int{1, 2, 3, 8} {
		for _, rows := range []int{1, 7, 1024} {
			all = append(all, setting{P: p, Rows: rows})
		}
	}
	return all
}

// onDisk has one setting with enough memory for all rows, and settings in which rows are
// written to disk.
var onDisk = testsize.Raced(
	[]diskSetting{{p: 2}, {testsize.Of[int64](96<<10, 256<<10), 1, 0}, {16 << 10, 3, 0}, {64 << 10, 3, 2}},
	[]diskSetting{{p: 2}, {64 << 10, 3, 2}},
)

// A test interrupts a run that follows an interrupted run at every secondCuts-th call of the
// disk.
var secondCuts = testsize.Of(13, 1)

// strideOf returns s: a test interrupts a process at every s-th call of the disk. s is normal,
// or 1 in a soak test.
func strideOf(normal int) int { return testsize.Of(normal, 1) }

// killedAt returns those of n calls of the disk at which tests kill a process. In a soak test
// these are all calls.
func killedAt(n int) []int {
	if !testsize.Soak {
		return []int{n / 2, n * 3 / 4, n - 1}
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

// damagedBits is the number of bits of a file that a test flips, one at a time. damagedWords is how
// many words of four bytes lie between two places where it zeroes words. Under the race detector
// both damage less, as one goroutine reads the files.
var (
	damagedBits  = testsize.Raced(testsize.Of(200, 10_000), 40)
	damagedWords = testsize.Raced(testsize.Of(8, 1), 40)
)

// manyShardSettings are the settings of TestGroupByOfManyShards.
var manyShardSettings = testsize.Raced([]setting{{1, 1024, 0}, {3, 1, 0}, {8, 7, 0}, {8, 7, 3}}, []setting{{8, 7, 3}})
