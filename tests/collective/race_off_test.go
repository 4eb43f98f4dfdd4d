//go:build !race

package collective_test

// raced says that the race detector is on. It makes everything several times slower, and fewer
// cases are enough for it.
const raced = false
