//go:build !soak

package parquet

// asWorkers are the settings of a quick test with several workers: each number of
// workers and each number of rows once, evenly and unevenly divided.
func asWorkers() []setting { return []setting{{2, 7, 2}, {3, 1024, 3}, {8, 1, 3}} }
