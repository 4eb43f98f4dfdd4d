package commands

import (
	"context"
	"fmt"
	"strconv"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/humanize"
)

// checkpointsCommand lists the checkpoints in a directory.
type checkpointsCommand struct {
	Dir    string     `arg:"" help:"Directory that a run got as --checkpoint-dir. The run may be going on."`
	Verify bool       `help:"Read all of the checkpoints and compare their checksums."`
	Output outputForm `short:"o" enum:"text,json" default:"text" placeholder:"FORM" help:"text or json."`
}

// Run prints the checkpoints, and fails if one of them cannot be used.
func (c *checkpointsCommand) Run(ctx context.Context, s *Streams) error {
	store, err := checkpoint.ReadDir(disk.OS(), c.Dir)
	if err != nil {
		return err
	}
	entries, err := checkpoint.List(ctx, store, c.Verify)
	if err != nil {
		return err
	}
	var unusable error
	manifests := []*checkpoint.Manifest{}
	t := table{head: []string{"checkpoint", "written", "size", "queue", "superstep"}}
	for _, e := range entries {
		number := strconv.Itoa(e.Number)
		if e.Err != nil {
			if unusable == nil {
				unusable = fmt.Errorf("checkpoint %d in %s cannot be used: %w", e.Number, store, e.Err)
			}
			t.row(number, "", "", "", "cannot be used")
			continue
		}
		manifests = append(manifests, e.Manifest)
		first := []string{number, e.Manifest.Written.Local().Format("2006-01-02 15:04:05"), humanize.Bytes(e.Manifest.Size())}
		for _, q := range e.Manifest.Queues {
			superstep := strconv.Itoa(q.Superstep)
			if q.Ended {
				superstep += ", the last"
			}
			t.row(append(first, q.Name, superstep)...)
			first = []string{"", "", ""}
		}
	}
	if c.Output == "json" {
		err = writeJSON(s.Out, manifests)
	} else if len(t.rows) == 0 {
		_, err = fmt.Fprintf(s.Out, "there are no checkpoints in %s\n", store)
	} else {
		err = t.write(s.Out)
	}
	if err != nil {
		return err
	}
	return unusable
}
