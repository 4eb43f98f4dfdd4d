// Package testsize determines how many cases tests run. A normal run takes minutes. Under the
// race detector, which makes programs several times slower, some tests run fewer cases. A soak
// test, which is a build with the tag soak, runs all cases and takes hours.
//
// Only tests import this package. Their own files need no build tags for sizes.
package testsize

// Of returns normal or, in a soak test, soak.
func Of[T any](normal, soak T) T {
	if Soak {
		return soak
	}
	return normal
}

// Few is true under the race detector, except in a soak test.
const Few = Race && !Soak

// Raced returns few where Few is true, and otherwise most.
func Raced[T any](most, few T) T {
	if Few {
		return few
	}
	return most
}

// AsWorkers returns settings of a job with several workers, one of which has more subtasks than
// the others: the parallelism, the number of rows per batch, and the number of workers. In a soak
// test it returns all settings with two or three workers.
func AsWorkers[Setting ~struct{ P, Rows, Workers int }]() (all []Setting) {
	if !Soak {
		return []Setting{{3, 1, 2}, {8, 7, 3}}
	}
	for _, p := range []int{1, 2, 3, 8} {
		for _, rows := range []int{1, 7, 1024} {
			for workers := 2; workers <= min(p, 3); workers++ {
				all = append(all, Setting{p, rows, workers})
			}
		}
	}
	return append(all, Setting{1, 7, 1})
}
