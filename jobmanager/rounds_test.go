//go:build !soak

package jobmanager

// damageRounds is how often each kind of damage is tried.
const damageRounds = 12
