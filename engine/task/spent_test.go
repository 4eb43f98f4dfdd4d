package task

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
)

func TestTimeSpentByKindOfStage(t *testing.T) {
	stage := func(kind plan.StageKind, busy, waiting time.Duration, inner ...*boundStage) *boundStage {
		return &boundStage{link: &link{node: &plan.Node{Stage: kind}}, busy: busy, waiting: waiting, inner: inner}
	}
	g := &gang{resumed: &Cut{Compute: 512, Communicate: 1024}, members: []*member{{stages: []*boundStage{
		stage(plan.Compute, 1, 0),
		stage(plan.Send, 2, 0),
		stage(plan.Sum, 4, 8),
		stage(plan.RepeatBegin, 16, 32, stage(plan.Compute, 64, 0), stage(plan.Communicate, 128, 256)),
	}}}}
	compute, communicate := g.timeSpent()
	require.EqualValues(t, 1+2+16+64+512, compute)
	require.EqualValues(t, 4+8+32+128+256+1024, communicate)
}
