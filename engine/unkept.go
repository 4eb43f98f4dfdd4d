package engine

import (
	"fmt"

	"github.com/superstep-ml/superstep/engine/plan"
)

// checkUnkept returns an error if every queue of the graph must be able to continue from a saved state,
// and the graph shows that one cannot.
func (c *config) checkUnkept(g *plan.Graph) error {
	if !c.checkpoints.require {
		return nil
	}
	if err := plan.Unkept(g.Nodes); err != nil {
		return &optionError{fmt.Sprintf("--checkpoint require: %v", err)}
	}
	return nil
}

// warnUnkept logs a warning if the states of queues are saved, and that of one of them cannot be. With
// --checkpoint require that is an error later.
func (b *Builder) warnUnkept() {
	c := b.config
	if c.checkpoints.require || c.checkpoints.dir == "" && c.cluster.address == "" {
		return
	}
	if err := plan.Unkept(b.graph.Nodes); err != nil {
		b.config.logger.Warn(fmt.Sprintf("after a loss, %v", err))
	}
}

// unsaved returns the error with which a run fails if the state of a queue cannot be saved and must be.
func (c *checkpointConfig) unsaved(queue string, err error) error {
	if !c.require {
		return err
	}
	return fmt.Errorf("--checkpoint require: %w. Mend the codec, or keep the object per shard or as scratch, or give --checkpoint allow and no --checkpoint-dir, so that queue %q begins at superstep 1 again after a loss", err, queue)
}
