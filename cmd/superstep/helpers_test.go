package main

import (
	"testing"

	"github.com/superstep-ml/superstep/collective"
)

// nopComm returns the only rank of a group of one rank.
func nopComm(t *testing.T) *collective.Comm {
	c := collective.NewLocalGroup(1).Rank(0)
	t.Cleanup(func() { c.Close(nil) })
	return c
}
