//go:build !race || soak

package operators

// asAWhole returns all settings of a job that runs without workers.
func asAWhole() (all []setting) {
	for _, p := range []int{1, 2, 3, 8} {
		for _, rows := range []int{1, 7, 1024} {
			all = append(all, setting{p: p, rows: rows})
		}
	}
	return all
}

// onDisk returns a setting with rows in memory, and some settings with rows on disk.
func onDisk() []diskSetting {
	return []diskSetting{{p: 2}, {256 << 10, 1, 0}, {16 << 10, 3, 0}, {64 << 10, 3, 2}}
}
