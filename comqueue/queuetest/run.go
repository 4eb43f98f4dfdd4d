package queuetest

import (
	"context"
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Setup describes a run of stages.
type Setup struct {
	// Subtasks is the number of subtasks; 0 means 1.
	Subtasks int
	// Shards is the number of shards, a power of two that is not less than Subtasks. 0 means 8,
	// or the next power of two if there are more subtasks.
	Shards int
	// Supersteps is the number of supersteps; 0 means 1.
	Supersteps int
	// Seed is the seed of ComContext.Rand.
	Seed uint64
	// Given has the rows and objects that stages find under their keys.
	Given []Given
	// Stages run in order, superstep after superstep.
	Stages []comqueue.Stage
	// Options are further options of the run, such as engine.CheckState.
	Options []engine.Option
}

// Run runs the stages, and calls inspect, unless it is nil, for each subtask in the order of
// their numbers. It returns the queue's report, with the values reported in each superstep and
// the counts of each stage, or the error that ended the run. The objects are released when it
// returns.
func Run(s Setup, inspect func(ctx *comqueue.ComContext)) (*task.QueueReport, error) {
	s = s.withDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{Setup: s, arrived: make(chan *comqueue.ComContext), leave: make(chan struct{}), ended: make(chan struct{})}
	var result *engine.Result
	var err error
	go func() {
		defer close(r.ended)
		result, err = engine.Run(ctx, engine.Define("queuetest", r.build), struct{}{}, s.options()...)
	}()
	defer func() { // also if inspect ends the test
		cancel()
		<-r.ended
	}()
	r.inspect(inspect)
	<-r.ended
	if err != nil {
		return nil, err
	}
	defer result.Release()
	return result.Queue(queueName), nil
}

// queueName is the name of the queue in plans and errors.
const queueName = "stages"

func (s Setup) withDefaults() Setup {
	s.Subtasks, s.Supersteps = max(s.Subtasks, 1), max(s.Supersteps, 1)
	if s.Shards == 0 {
		for s.Shards = 8; s.Shards < min(s.Subtasks, sharding.MaxShards); s.Shards *= 2 {
		}
	}
	return s
}

func (s Setup) options() []engine.Option {
	return append([]engine.Option{
		engine.Parallelism(s.Subtasks), engine.Shards(s.Shards), engine.Seed(s.Seed), engine.CheckBroadcasts(true),
	}, s.Options...)
}

// run is a Setup that is running.
type run struct {
	Setup
	arrived chan *comqueue.ComContext // subtasks that have done their last superstep
	leave   chan struct{}             // closed when all subtasks have been inspected
	ended   chan struct{}             // closed when the run has ended
}

// inspect waits until all subtasks have done their last superstep and then calls f for each. If
// the run fails before that, it does not call f.
func (r *run) inspect(f func(ctx *comqueue.ComContext)) {
	var all []*comqueue.ComContext
	for range r.Subtasks {
		select {
		case ctx := <-r.arrived:
			all = append(all, ctx)
		case <-r.ended:
			return
		}
	}
	slices.SortFunc(all, func(a, b *comqueue.ComContext) int { return a.TaskID() - b.TaskID() })
	for _, ctx := range all {
		if f != nil {
			f(ctx)
		}
	}
	close(r.leave)
}

// build is the job's function.
func (r *run) build(b *engine.Builder, _ struct{}) error {
	q := comqueue.New(b, queueName)
	for i, g := range r.Given {
		if g.addTo == nil {
			return fmt.Errorf("number %d of Given is the zero value: make it by Rows, ShardRows, BroadcastRows, Object or ShardObject", i)
		}
		if err := g.addTo(b, q); err != nil {
			return err
		}
	}
	for _, s := range r.Stages {
		q.Add(s)
	}
	q.Do(r.arrive)
	done := q.SetMaxIter(r.Supersteps).CloseOnNode0(comqueue.Output(func(*comqueue.ComContext) ([]int64, error) { return nil, nil })).Exec()
	engine.Collect(done, "nothing")
	return nil
}

// arrive makes a subtask wait in its last superstep until all subtasks have been inspected.
func (r *run) arrive(ctx *comqueue.ComContext) error {
	if ctx.StepNo() < r.Supersteps {
		return nil
	}
	select {
	case r.arrived <- ctx:
	case <-ctx.Context().Done():
		return fmt.Errorf("the test has ended: %w", context.Cause(ctx.Context()))
	}
	select {
	case <-r.leave:
		return nil
	case <-ctx.Context().Done():
		return fmt.Errorf("the test has ended: %w", context.Cause(ctx.Context()))
	}
}
