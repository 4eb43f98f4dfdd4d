//go:build soak

package jobmanager

const damageRounds = 400
