//go:build race && !soak

package operators

// asAWhole are settings with each parallelism and each batch size, but not all combinations.
// Data races do not depend on the combination, and the race detector makes each run slow.
func asAWhole() []setting {
	return []setting{{p: 1, rows: 7}, {p: 2, rows: 1024}, {p: 3, rows: 1}, {p: 8, rows: 7}}
}

// onDisk are a job in memory, and one of several workers with rows on disk.
func onDisk() []diskSetting { return []diskSetting{{p: 2}, {64 << 10, 3, 2}} }

// joinSeeds is the number of pairs of tables that are joined.
const joinSeeds = 30
