//go:build soak

package operators

// fewRowsSeeds and manyRowsSeeds count the jobs with few and with many rows by which draws are compared.
const fewRowsSeeds, manyRowsSeeds = 1000, 10

// joinSeeds counts the pairs of tables that joins are compared by.
const joinSeeds = 3000

// asWorkers are all settings with two or three workers that there can be.
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

// secondCuts is that every how many calls of the disk tests cut off what follows a process
// that was cut off.
const secondCuts = 1

// strideOf is that every how many calls of the disk they cut off a process.
func strideOf(int) int { return 1 }

// killedAt are the calls of the disk, of n, at which they kill a process: all of them.
func killedAt(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

// damagedBits is how many bits of a damaged file are flipped, one at a time.
const damagedBits = 10_000
