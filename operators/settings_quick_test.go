//go:build !soak

package operators

// fewRowsSeeds and manyRowsSeeds count the jobs with few and with many rows by which draws are compared.
const fewRowsSeeds, manyRowsSeeds = 100, 2

// joinSeeds counts the pairs of tables that joins are compared by.
const joinSeeds = 150

// asWorkers are the settings of a quick test with several workers, of which one has more
// subtasks than the others.
func asWorkers() []setting { return []setting{{3, 1, 2}, {8, 7, 3}} }

// secondCuts is that every how many calls of the disk tests cut off what follows a process
// that was cut off.
const secondCuts = 13

// strideOf is that every how many calls of the disk they cut off a process.
func strideOf(quick int) int { return quick }

// killedAt are the calls of the disk, of n, at which they kill a process.
func killedAt(n int) []int { return []int{n / 2, n * 3 / 4, n - 1} }

// damagedBits is how many bits of a damaged file are flipped, one at a time.
const damagedBits = 200
