//go:build !soak

package jobmanager

// damageRounds is the number of attempts for each kind of damage.
const damageRounds = 12
