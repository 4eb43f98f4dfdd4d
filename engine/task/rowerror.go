package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/engine/plan"
)

// RowError says what is wrong with a row that an operator or a queue was given. If a run fails
// with a RowError, the message says where the row is in the files that were read. If that is
// not known (see Locator), the message gives the number of the row.
type RowError struct {
	// Row is the number of the row, from 0, among the rows of its shard.
	Row int64
	// Of says which rows Row counts. nil stands for the current shard of the only input.
	Of *RowsOf
	// Err says what is wrong, and names the column.
	Err error
	// Cure says what could be done about such rows.
	Cure Cure
	// Advice says how to apply the cure in terms of the package that refuses the row, such as
	// "set Skip to train without such rows". A program can replace it; see Env.Advise.
	Advice string
}

// RowsOf identifies the rows of one shard of one input by the numbers of the shard and input.
type RowsOf struct {
	Shard int
	Input int // number of the input, from 0, not counting side inputs
}

// Cure says what could be done about rows that are refused.
type Cure uint8

const (
	// NoCure says that no setting makes such rows usable.
	NoCure Cure = iota
	// LeaveOut says that such rows can be left out.
	LeaveOut
	// FillOrLeaveOut says that a value is missing: it can be filled in, or the row can be left
	// out.
	FillOrLeaveOut
)

// Error returns the message, which gives the row's number.
func (e *RowError) Error() string { return e.message("") }

// Unwrap returns what is wrong.
func (e *RowError) Unwrap() error { return e.Err }

// message returns the message about the row. place says where the row is in its file, or is "" if
// that is unknown.
func (e *RowError) message(place string) string {
	switch {
	case place != "":
	case e.Of != nil:
		place = fmt.Sprintf("row %d of shard %d", e.Row, e.Of.Shard)
	default:
		place = fmt.Sprintf("row %d of the shard", e.Row)
	}
	text := fmt.Sprintf("%s: %v", place, e.Err)
	if e.Advice != "" {
		text += "; " + e.Advice
	}
	return text
}

// Locator is a Source that can say where a row is in the files that it reads.
type Locator interface {
	// Locate returns the position of a row, such as "rows.csv:12", or "" if unknown. row is the
	// row's number in the shard, from 0. Locate is called after the run has failed, on a source
	// that was not opened and is not used for anything else. It releases everything that it
	// acquires.
	Locate(c *Context, shard int, row int64) (string, error)
}

// locateWithin limits the time of Locate. The report of a failure waits for Locate, and users
// and other processes may be waiting for the report.
const locateWithin = 5 * time.Second

// explain adds the program's advice and the position of the row to a failure that is about a
// row. It is called when all subtasks have ended.
func (r *run) explain(ctx context.Context, err error) {
	var te *TaskError
	var row *RowError
	if !errors.As(err, &te) || te.row != nil || !errors.As(te.Err, &row) || FollowsPeer(te.Err) {
		return
	}
	said := *row
	if r.env.Advise != nil {
		said.Advice = r.env.Advise(row)
	}
	unknown := guard(func() (err error) {
		te.place, err = r.locate(ctx, te, row)
		return err
	})
	if unknown != nil {
		r.env.Logger.Debug("the place of a row is not known", "shard", te.Shard, "row", row.Row, "error", unknown)
	}
	if te.place != "" || said.Advice != row.Advice {
		te.row = &said
	}
}

// locate asks the source of a refused row for the position of the row. The position is known
// only if no operator between the source and the failed operator moves rows or changes their
// number.
func (r *run) locate(ctx context.Context, te *TaskError, row *RowError) (string, error) {
	shard, input := te.Shard, -1
	if row.Of != nil {
		shard, input = row.Of.Shard, row.Of.Input
	}
	if shard < 0 || te.Node < 0 {
		return "", nil
	}
	node, ok := r.origin(te.Node, input)
	if !ok {
		return "", nil
	}
	source, ok := r.bind.Sources[node]().(Locator)
	if !ok {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, locateWithin)
	defer cancel()
	c := &Context{
		Context: ctx, Node: r.plan.Nodes[node], Parallelism: 1, Shards: r.plan.Shards, Seed: r.plan.Seed,
		BatchRows: r.env.BatchRows, Allocator: r.env.Allocator, RowAllocator: r.env.RowAllocator, Logger: r.env.Logger, Memory: r.budget, SpillDir: r.scratch.dir, Disk: r.env.Disk,
	}
	return source.Locate(c, shard, row.Row)
}

// origin returns the source whose rows reach an input of a node one by one and in order, if
// there is one. input is the number of the input, −1 for the only one.
func (r *run) origin(node plan.NodeID, input int) (plan.NodeID, bool) {
	if queue := r.plan.Nodes[node].Queue; queue != "" { // a queue's rows come in at its first node
		for i := range r.plan.Nodes {
			if n := &r.plan.Nodes[i]; n.Queue == queue && n.Stage == plan.QueueInit {
				node = n.ID
			}
		}
	}
	for ; ; input = -1 {
		var rows []plan.Input
		for _, in := range r.plan.Nodes[node].Inputs {
			if in.Role == plan.Data {
				rows = append(rows, in)
			}
		}
		if input < 0 && len(rows) == 1 {
			input = 0
		}
		if input < 0 || input >= len(rows) || rows[input].Partitioner != plan.Forward {
			return 0, false
		}
		node = rows[input].From
		if r.bind.Sources[node] != nil {
			return node, true
		}
		if !r.bind.RowByRow[node] {
			return 0, false
		}
	}
}
