//go:build !race && !soak

package operators

// joinSeeds is the number of pairs of tables that are joined.
const joinSeeds = 150
