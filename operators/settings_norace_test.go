//go:build !race || soak

package operators

// asAWhole are all settings of a job that is run as a whole.
func asAWhole() (all []setting) {
	for _, p := range []int{1, 2, 3, 8} {
		for _, rows := range []int{1, 7, 1024} {
			all = append(all, setting{p: p, rows: rows})
		}
	}
	return all
}
