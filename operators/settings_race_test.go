//go:build race && !soak

package operators

// asAWhole returns settings of a job without workers, with each parallelism and each batch
// size, but not all combinations. Data races do not depend on the combination, and the race
// detector makes each run slow.
func asAWhole() []setting {
	return []setting{{p: 1, rows: 7}, {p: 2, rows: 1024}, {p: 3, rows: 1}, {p: 8, rows: 7}}
}

// onDisk returns a setting with rows in memory, and a setting with several workers and rows on
// disk.
func onDisk() []diskSetting { return []diskSetting{{p: 2}, {64 << 10, 3, 2}} }

// joinSeeds is the number of pairs of tables that are joined.
const joinSeeds = 30
