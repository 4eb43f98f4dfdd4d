package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

// resultPieces returns all parts of a result that must not depend on the setting: rows,
// accumulators, reports of queues, and counters.
func resultPieces(r *engine.Result) ([]piece, error) {
	var pieces []piece
	for _, name := range r.Names() {
		text, err := rowsText(r, name)
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, piece{"rows " + name, text})
	}
	var sums bytes.Buffer
	for _, a := range r.Report.Accumulators {
		fmt.Fprintf(&sums, "%s %s\n", a.Name, exact(a.Value))
	}
	pieces = append(pieces, piece{"accumulators", sums.Bytes()})
	for _, q := range r.Report.Queues {
		var text bytes.Buffer
		fmt.Fprintf(&text, "supersteps %d, stopped %t\n", q.Supersteps, q.Stopped)
		for _, s := range q.Series {
			for i, v := range s.Values {
				fmt.Fprintf(&text, "%s %d %s\n", s.Name, i+1, exact(v))
			}
		}
		pieces = append(pieces, piece{"queue " + q.Name, text.Bytes()})
	}
	return pieces, nil
}

// rowsText returns collected rows as text, one row per line. Floats with different bits have
// different texts.
func rowsText(r *engine.Result, name string) ([]byte, error) {
	recs, err := arrowbridge.Records(r, name)
	if err != nil {
		return nil, err
	}
	schema, err := r.Schema(name)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	for _, c := range batch.Columns(arrowrows.Arrow(schema)) {
		fmt.Fprintf(&text, "%s | ", c)
	}
	text.WriteByte('\n')
	for _, rec := range recs {
		for row := range int(rec.NumRows()) {
			for c := range int(rec.NumCols()) {
				if col := rec.Column(c); col.IsNull(row) {
					text.WriteString("null | ")
				} else {
					fmt.Fprintf(&text, "%s | ", batch.FormatValue(col, row))
				}
			}
			text.WriteByte('\n')
		}
	}
	return text.Bytes(), nil
}

// exact returns a float as text: in a readable form, followed by its bits.
func exact(v float64) string { return fmt.Sprintf("%v (%016x)", v, math.Float64bits(v)) }

// filePieces returns a piece for each file below a directory, in the order of their paths.
func filePieces(dir string) ([]piece, error) {
	var pieces []piece
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		pieces = append(pieces, piece{"file " + filepath.ToSlash(name), content})
		return err
	})
	return pieces, err
}

// checkAllWorked checks the report of a run. Every vertex must have the requested parallelism,
// unless one subtask owns all its shards, and every subtask must own shards. Every subtask of a
// source must have read rows, and its busy time must not be 0. Every subtask must have called
// every stage of a queue in every superstep. A stage in an inner loop must have been called at
// least once. In a loop with a condition, all subtasks must have called the stage equally
// often, which may be never. The sources of all workloads have rows in every shard, except for
// models that are part of the job (FromSlice).
func checkAllWorked(r *engine.Result, s setting) error {
	hasInput := map[plan.VertexID]bool{}
	for _, e := range r.Plan.Edges {
		hasInput[e.To] = true
	}
	for i, v := range r.Report.Vertices {
		planned := r.Plan.Vertices[i]
		if v.ID != planned.ID || len(v.Subtasks) != planned.Parallelism {
			return fmt.Errorf("vertex %v has %d subtasks in the record, vertex %v has %d in the plan", v.ID, len(v.Subtasks), planned.ID, planned.Parallelism)
		}
		if planned.Parallelism != s.Parallelism && planned.Parallelism != 1 {
			return fmt.Errorf("vertex %q ran with %d subtasks, want %d", v.Name, planned.Parallelism, s.Parallelism)
		}
		reads := !hasInput[v.ID] && r.Plan.Nodes[planned.Chain[0].Node].Op != "FromSlice"
		for t, sub := range v.Subtasks {
			switch {
			case sub.Shards == 0:
				return fmt.Errorf("subtask %d of %q owns no shards", t, v.Name)
			case reads && (sub.RowsOut == 0 || sub.Busy == 0):
				return fmt.Errorf("subtask %d of the source %q read %d rows and was busy for %v", t, v.Name, sub.RowsOut, sub.Busy)
			}
		}
	}
	if s.resumed { // other processes may have run some of the supersteps
		return nil
	}
	repeated, conditional := inLoops(r.Plan.Nodes)
	for _, q := range r.Report.Queues {
		for _, stage := range q.Stages {
			want := s.calls(q.Supersteps)
			switch {
			case repeated[stage.Node] && len(s.cuts) > 0: // after a cut, the number of subtasks may have changed
				if want = max(want, stage.Calls); conditional[stage.Node] {
					want = stage.Calls
				}
			case repeated[stage.Node]:
				even := stage.Calls - stage.Calls%int64(s.Parallelism)
				if want = max(want, even); conditional[stage.Node] {
					want = even
				}
			}
			if stage.Calls != want {
				return fmt.Errorf("stage %s of queue %q was called %d times, want %d", stage.Name, q.Name, stage.Calls, want)
			}
		}
	}
	return nil
}

// inLoops returns the nodes that are inner loops of queues or stages within such loops.
// conditional has those nodes among them that a condition may skip.
func inLoops(nodes []plan.Node) (repeated, conditional map[plan.NodeID]bool) {
	repeated, conditional = map[plan.NodeID]bool{}, map[plan.NodeID]bool{}
	loops := map[string][]bool{} // queue -> for each open loop, whether this loop or a loop around it has a condition
	for _, n := range nodes {
		open := loops[n.Queue]
		in := len(open) > 0
		held := in && open[len(open)-1]
		switch n.Stage {
		case plan.RepeatBegin:
			held = held || slices.ContainsFunc(n.Attrs, func(a plan.Attr) bool { return a.Key == "while" })
			open, in = append(open, held), true
		case plan.RepeatEnd:
			open = open[:len(open)-1]
		}
		loops[n.Queue] = open
		repeated[n.ID], conditional[n.ID] = in, held
	}
	return repeated, conditional
}
