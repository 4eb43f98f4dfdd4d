// Package queuetest runs stages of a queue in tests, without a job around them: over given rows
// and objects, on any number of subtasks and shards.
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
// When the last superstep is done, the function is called on the goroutine of the test, for one
// subtask after the other. It reads objects as a stage does, and may end the test. Everything
// else is as in a job: stages run on all subtasks at the same time, kept objects are checked to
// be what their keys say, and errors name subtask and shard. A test that gets the same bits
// from the same stages at several parallelisms has shown that they are independent of
// parallelism.
package queuetest
