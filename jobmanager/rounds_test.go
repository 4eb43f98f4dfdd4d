//go:build !soak

package jobmanager

// damageRounds is the number of random damages of each kind that TestDamagedHistory tries.
const damageRounds = 12
