//go:build soak

package gbdt_test

const (
	sameBitsEvery          = 1
	learnRows, learnRounds = 600, 30
	orders                 = 4
	monotoneRows           = 40
)
