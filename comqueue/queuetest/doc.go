// Package queuetest runs stages of a queue in tests, over given rows and objects, on any number
// of subtasks and shards. The test does not have to define a job.
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
// After the last superstep, Run calls its second argument on the goroutine of the test, for one
// subtask after the other. The function reads objects as a stage does, and may end the test.
// Everything else is as in a job: stages run on all subtasks at the same time, objects under
// replicated keys are checked to be the same on all subtasks, and errors name subtask and
// shard. To test that stages are independent of parallelism, run them at several parallelisms
// and compare the bits of the results.
package queuetest
