// Package testsize says how much tests do. There are three counts: the normal one, a smaller one
// under the race detector, which makes everything several times slower, and the full one
// under the build tag soak, which takes hours.
//
// Tests alone import this package. It keeps the tags out of their own files, so that a test
// compiles in the same form in every build.
package testsize

// Of returns what a test does normally or, under the build tag soak, in full.
func Of[T any](normal, soak T) T {
	if Soak {
		return soak
	}
	return normal
}

// Few is true under the race detector, except in full tests.
const Few = Race && !Soak

// Raced returns few where Few is true, and otherwise most.
func Raced[T any](most, few T) T {
	if Few {
		return few
	}
	return most
}
