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
