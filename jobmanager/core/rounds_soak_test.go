//go:build soak

package core

const rounds = 300
