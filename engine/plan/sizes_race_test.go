//go:build race

package plan

const many = 1000
