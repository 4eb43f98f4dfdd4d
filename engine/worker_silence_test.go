package engine

import (
	"testing"
	"time"

	"github.com/superstep-ml/superstep/internal/transport/middlebox"
	"github.com/superstep-ml/superstep/internal/wire"
)

// valvedPlane is a data plane from which worker 1 reaches worker 0 through a valve.
type valvedPlane struct {
	dataPlane
	worker int
	valves chan<- *middlebox.Valve // gets the valve
}

func (p valvedPlane) Connect(addresses []string) error {
	if p.worker == 1 {
		v, err := middlebox.NewValve(addresses[0])
		if err != nil {
			return err
		}
		p.valves <- v
		addresses = []string{v.Address(), addresses[1]}
	}
	return p.dataPlane.Connect(addresses)
}

// RunValved runs a job on two workers that may be silent for the given time. Worker 1 reaches worker 0 through a
// valve, which valves gets. The rows' connections must have the same time; in this run they have more, so that
// only groups of ranks notice that the valve is held.
func RunValved[A any](t testing.TB, job *Job[A], args A, silence time.Duration, valves chan<- *middlebox.Valve) *OnWorkers {
	t.Helper()
	return runOnWorkers(t, job, args, []int{1, 1}, func(d *wire.Deployment) { d.Silence = silence }, func(c planeConfig) (dataPlane, error) {
		if c.rows.Detection != silence {
			t.Errorf("connections for rows may be silent for %v, not %v", c.rows.Detection, silence)
		}
		c.rows.Detection = time.Hour
		plane, err := openDataPlane(c)
		return valvedPlane{plane, c.rows.Worker, valves}, err
	})
}
