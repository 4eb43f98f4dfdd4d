package engine

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

type heldFlags struct{ Rounds int }

type heldArgs struct {
	Input string
	Own   any `embed:""`
}

// TestArgumentsThatAFunctionMakes requires that flags which an argument struct holds in an
// interface are parsed and encoded like its own fields.
func TestArgumentsThatAFunctionMakes(t *testing.T) {
	job := Define("held", func(*Builder, heldArgs) error { return nil }).From(func() heldArgs { return heldArgs{Own: &heldFlags{}} })
	args := job.Arguments()
	_, err := parseArgs("held", "", &args, []string{"--input", "a", "--rounds", "7"}, io.Discard, io.Discard)
	require.NoError(t, err)
	require.Equal(t, heldArgs{"a", &heldFlags{7}}, args)
	require.Equal(t, heldArgs{Own: &heldFlags{}}, job.Arguments(), "each call must return new arguments")

	data, err := encodeArgs(args)
	require.NoError(t, err)
	arrived := job.Arguments()
	require.NoError(t, decodeArgs(data, &arrived))
	require.Equal(t, args, arrived)
	require.True(t, survivesEncoding(job, args))
	require.Zero(t, Define("plain", func(*Builder, heldArgs) error { return nil }).Arguments())
}
