// Package queuetest runs stages of a queue by themselves, for tests: over given rows and
// objects, on as many subtasks and shards as the test wants, without a job around them.
//
//	_, err := queuetest.Run(queuetest.Setup{
//		Subtasks: 3,
//		Given: []queuetest.Given{
//			queuetest.Rows(points, []Point{{1}, {2}, {6}}),
//			queuetest.Object(sums, func(int) []float64 { return make([]float64, 1) }),
//		},
//		Stages: []comqueue.Stage{comqueue.ForEachShard(sums, addUp), comqueue.AllReduce(sums)},
//	}, func(ctx *comqueue.ComContext) {
//		require.Equal(t, []float64{9}, sums.Get(ctx))
//	})
//	require.NoError(t, err)
//
// The function behind is called on the goroutine of the test, for one subtask after the other,
// when the last superstep is done: it reads objects as a stage does, and may end the test.
// Everything else is as in a job, so that what holds here holds there: stages run on all
// subtasks at a time, objects that are kept are checked to be what their keys say, errors
// name subtask and shard. A test that runs the same stages with other numbers of subtasks and
// finds the same bits has shown what the engine promises of them.
package queuetest
