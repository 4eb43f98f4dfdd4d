//go:build soak

package operators

// fewRowsSeeds and manyRowsSeeds are the numbers of jobs with few and with many rows in
// TestDrawsAreIndependent.
const fewRowsSeeds, manyRowsSeeds = 1000, 10

// joinSeeds is the number of pairs of tables that are joined.
const joinSeeds = 3000

// asWorkers returns all settings with two or three workers.
func asWorkers() (all []setting) {
	for _, p := range []int{1, 2, 3, 8} {
		for _, rows := range []int{1, 7, 1024} {
			for workers := 2; workers <= min(p, 3); workers++ {
				all = append(all, setting{p, rows, workers})
			}
		}
	}
	return append(all, setting{1, 7, 1})
}

// secondCuts is the distance, in calls of the disk, of the interruptions of a run that follows
// an interrupted run.
const secondCuts = 1

// strideOf returns the distance, in calls of the disk, of the interruptions of a process.
func strideOf(int) int { return 1 }

// killedAt returns at which of n calls of the disk tests kill a process: at all of them.
func killedAt(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

// damagedBits is the number of bits of a file that a test flips, one at a time.
const damagedBits = 10_000
