//go:build !soak

package operators

// fewRowsSeeds and manyRowsSeeds are the numbers of jobs with few and with many rows whose
// draws are compared.
const fewRowsSeeds, manyRowsSeeds = 100, 2

// asWorkers are the settings of a quick test with several workers; one worker has more subtasks
// than the others.
func asWorkers() []setting { return []setting{{3, 1, 2}, {8, 7, 3}} }

// secondCuts is the distance, in calls of the disk, of interruptions of a run that follows an
// interrupted one.
const secondCuts = 13

// strideOf returns the distance, in calls of the disk, of interruptions of a process.
func strideOf(quick int) int { return quick }

// killedAt returns the calls of the disk, of n, at which tests kill a process.
func killedAt(n int) []int { return []int{n / 2, n * 3 / 4, n - 1} }

// damagedBits is how many bits of a damaged file are flipped, one at a time.
const damagedBits = 200
