//go:build race

package testsize

const Race = true
