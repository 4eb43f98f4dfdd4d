//go:build !race

package collective_test

// raced says that the race detector runs, which makes everything several times slower and
// finds what it finds in fewer cases as well.
const raced = false
