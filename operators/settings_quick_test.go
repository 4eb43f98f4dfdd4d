//go:build !soak

package operators

// fewRowsSeeds and manyRowsSeeds are the numbers of jobs with few and with many rows in
// TestDrawsAreIndependent.
const fewRowsSeeds, manyRowsSeeds = 100, 2

// asWorkers returns the settings of a quick test with several workers. In each, one worker has
// more subtasks than the others.
func asWorkers() []setting { return []setting{{3, 1, 2}, {8, 7, 3}} }

// secondCuts is the distance, in calls of the disk, of the interruptions of a run that follows
// an interrupted run.
const secondCuts = 13

// strideOf returns the distance, in calls of the disk, of the interruptions of a process. quick
// is the distance in a quick test.
func strideOf(quick int) int { return quick }

// killedAt returns at which of n calls of the disk tests kill a process.
func killedAt(n int) []int { return []int{n / 2, n * 3 / 4, n - 1} }

// damagedBits is the number of bits of a file that a test flips, one at a time.
const damagedBits = 200
