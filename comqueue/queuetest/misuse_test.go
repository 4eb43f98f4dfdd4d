package queuetest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/comqueue/queuetest"
	"github.com/superstep-ml/superstep/shared"
)

// TestNothingIsInspected requires that the argument inspect of Run may be nil.
func TestNothingIsInspected(t *testing.T) {
	for _, subtasks := range []int{1, 2, 3} {
		report, err := queuetest.Run(setup(subtasks, 0, 2), nil)
		require.NoError(t, err)
		require.Equal(t, 2, report.Supersteps)
	}
	_, err := queuetest.Run(queuetest.Setup{}, nil)
	require.NoError(t, err)
}

// TestSetupsThatCannotRun requires errors that name what is wrong with a Setup.
func TestSetupsThatCannotRun(t *testing.T) {
	scratch, ofShard := shared.Scratch[int]("scratch"), shared.PerShard("of shards", shared.Msgpack[int]())
	for want, s := range map[string]queuetest.Setup{
		"number 1 of Given is the zero value":       {Given: []queuetest.Given{queuetest.Object(scratch, func(int) int { return 1 }), {}}},
		`Object "scratch": the function is nil`:     {Given: []queuetest.Given{queuetest.Object(scratch, nil)}},
		`ShardObject "of shards": the function is `: {Given: []queuetest.Given{queuetest.ShardObject(ofShard, nil)}},
		"parallelism": {Subtasks: 1<<62 + 1},
	} {
		_, err := queuetest.Run(s, func(*comqueue.ComContext) { t.Error("inspect must not be called if the Setup cannot run") })
		require.ErrorContains(t, err, want)
	}
}
