package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/engine/checkpoint/s3store"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/wire"
)

// checkpointsCommand lists the checkpoints in a store, or those that a job on a cluster has
// written.
type checkpointsCommand struct {
	clusterFlags
	Of     string     `arg:"" name:"job|dir" help:"Job on the cluster: its ID, or the start of it. Or the directory or s3://BUCKET/PREFIX that a run got as --checkpoint-dir. The run may be going on."`
	Verify bool       `help:"Of a directory or store: read all of the checkpoints and compare their checksums."`
	Output outputForm `short:"o" enum:"text,json" default:"text" placeholder:"FORM" help:"text or json."`
}

// Run prints the checkpoints, and fails if one of them cannot be used.
func (c *checkpointsCommand) Run(ctx context.Context, s *Streams) error {
	store, err := c.store(s)
	switch {
	case err != nil:
		return err
	case store != nil:
		return c.list(ctx, s, store)
	case c.Verify:
		return UsageError{fmt.Errorf("--verify is for a directory or s3://BUCKET/PREFIX, and there is no directory %s", c.Of)}
	}
	shown := false
	err = c.with(ctx, s, func(ctx context.Context, jm jobManager) error {
		j, err := jm.Show(ctx, &wire.ShowRequest{Job: wire.JobID(c.Of)})
		if err != nil {
			return err
		}
		if shown = true; j.Checkpoints == nil {
			return fmt.Errorf("job %s has no checkpoints: it was submitted without --checkpoint-dir", j.ID)
		}
		if c.Output == "json" {
			return writeJSON(s.Out, j.Checkpoints)
		}
		return writeCheckpoints(s.Out, j, time.Now())
	})
	if err != nil && !shown {
		return fmt.Errorf("%w (%s is taken for a job, as there is no such directory)", err, c.Of)
	}
	return err
}

// store opens the store that the argument names. It returns nil if the argument names a job: if it
// is neither the place of a store nor an existing directory, and has no separator of paths.
func (c *checkpointsCommand) store(s *Streams) (checkpoint.Store, error) {
	if s3store.Is(c.Of) {
		store, err := s3store.Join(c.Of, s3store.Config{Getenv: func(name string) string {
			value, _ := s.Lookup(name)
			return value
		}})
		if err != nil {
			return nil, err // without the conversion of a nil pointer
		}
		return store, nil
	}
	if strings.Contains(c.Of, "://") {
		return nil, UsageError{fmt.Errorf("%s is no place of checkpoints: want a job, a directory or %sBUCKET/PREFIX", c.Of, s3store.Scheme)}
	}
	info, err := os.Stat(c.Of)
	directory := err == nil && info.IsDir()
	if !directory && !strings.ContainsRune(c.Of, '/') && !strings.ContainsRune(c.Of, os.PathSeparator) {
		return nil, nil
	}
	return checkpoint.ReadDir(disk.OS(), c.Of)
}

// list prints the checkpoints in a store.
func (c *checkpointsCommand) list(ctx context.Context, s *Streams, store checkpoint.Store) (err error) {
	defer func() { err = errors.Join(err, store.Close()) }()
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
		first := []string{number, timeOf(e.Manifest.Written), humanize.Bytes(e.Manifest.Size())}
		for _, q := range e.Manifest.Queues {
			t.row(append(first, q.Name, superstepOf(q.Superstep, q.Ended))...)
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

// timeOf returns when a checkpoint was written, in local time with its zone.
func timeOf(written time.Time) string { return written.Local().Format(time.RFC3339) }

// superstepOf returns the superstep after which the state of a queue was saved.
func superstepOf(superstep int, ended bool) string {
	if ended {
		return strconv.Itoa(superstep) + ", the last"
	}
	return strconv.Itoa(superstep)
}

// writeCheckpoints prints the last checkpoints of a job, the newest first, and what prevents
// further ones.
func writeCheckpoints(w io.Writer, j *wire.JobInfo, now time.Time) error {
	c := j.Checkpoints
	text := fmt.Sprintf("job %s has written %s to %s", j.ID, humanize.Count(c.Written, "checkpoint"), c.Dir)
	if c.Written > 0 {
		text += fmt.Sprintf(", %s in %.1fs", humanize.Bytes(c.Bytes), c.Seconds)
	}
	if j.State == wire.JobFinished && c.Written > 0 {
		text += "; they were removed when it had finished"
	}
	if _, err := fmt.Fprintf(w, "%s\n", plain(text)); err != nil {
		return err
	}
	if len(c.Newest) > 0 {
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		if err := checkpointTable(c.Newest).write(w); err != nil {
			return err
		}
	}
	if f := c.Failing; f != nil {
		last := "the last write"
		if f.Count > 1 {
			last = fmt.Sprintf("the last %d writes", f.Count)
		}
		_, err := fmt.Fprintf(w, "\n%s failed, since %s (%s): %s\n", last, timeOf(f.Since), ago(now, f.Since), plain(f.Error))
		return err
	}
	return nil
}

// checkpointTable returns the table of checkpoints, the newest first, with a row for each queue.
func checkpointTable(oldestFirst []wire.WrittenCheckpoint) *table {
	t := &table{head: []string{"checkpoint", "written", "size", "took", "queue", "superstep"}}
	for i := range oldestFirst {
		w := &oldestFirst[len(oldestFirst)-1-i]
		first := []string{strconv.Itoa(w.Number), timeOf(w.Written), humanize.Bytes(w.Bytes), span(time.Duration(w.Seconds * float64(time.Second)))}
		for _, q := range w.Queues {
			t.row(append(first, q.Name, superstepOf(q.Superstep, q.Ended))...)
			first = []string{"", "", "", ""}
		}
		if w.More > 0 {
			t.row(append(first, fmt.Sprintf("and %d more", w.More), "")...)
		}
	}
	return t
}
