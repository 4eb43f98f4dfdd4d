//go:build race

package collective_test

const raced = true
