package engine

import (
	"testing"
	"time"

	"github.com/superstep-ml/superstep/internal/transport/middlebox"
	"github.com/superstep-ml/superstep/internal/wire"
)

// boxedPlane is a data plane that reaches the other workers through a middlebox.
type boxedPlane struct {
	dataPlane
	worker int
	box    *middlebox.Box
}

func (p boxedPlane) Connect(addresses []string) error {
	boxed := make([]string, len(addresses))
	for i, a := range addresses {
		if i == p.worker {
			continue
		}
		var err error
		if boxed[i], err = p.box.Before(a); err != nil {
			return err
		}
	}
	return p.dataPlane.Connect(boxed)
}

// RunThrough is like RunOnWorkers, with a middlebox between the workers.
func RunThrough[A any](t testing.TB, box *middlebox.Box, job *Job[A], args A, slots []int, opts ...Option) *OnWorkers {
	t.Helper()
	return runOnWorkers(t, job, args, slots, func(*wire.Deployment) {}, func(c planeConfig) (dataPlane, error) {
		c.rows.Detection = time.Second // after this time, heartbeats reveal messages that were lost before them
		plane, err := openDataPlane(c)
		return boxedPlane{plane, c.rows.Worker, box}, err
	}, opts...)
}
