package pipeline

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// The dataset of a pipeline's model has one row. Its column model.Column has the model's file.
// It also has the further columns of the datasets of the stages' models, such as the column
// that carries the type of a classifier's labels. Column c of stage i is named "i.c".

// besides returns the name that a further column of a stage's dataset has in the pipeline's
// dataset.
func besides(stage int, column string) string { return strconv.Itoa(stage) + "." + column }

// join adds the operator that builds the model of a pipeline from the models of its stages.
func join(b *engine.Builder, models []*engine.Dataset) *engine.Dataset {
	fields := []arrow.Field{{Name: model.Column, Type: arrow.BinaryTypes.String}}
	var ports []engine.Port
	for i, m := range models {
		if m.Poisoned() {
			return m
		}
		for _, f := range arrowrows.Arrow(m.Schema()).Fields() {
			if f.Name != model.Column {
				f.Name = besides(i, f.Name)
				fields = append(fields, f)
			}
		}
		port := engine.Port{From: m}
		if i > 0 {
			port = engine.Port{From: m, Partitioner: engine.Broadcast, Side: true}
		}
		ports = append(ports, port)
	}
	schema := arrow.NewSchema(fields, nil)
	return b.Add(engine.Spec{
		Op: "Pipeline", Schema: arrowrows.Schema(schema), Inputs: ports,
		Operator: func() engine.Operator { return &joiner{schema: schema, stages: len(models)} },
	})
}

// joiner is the operator that join adds. Its main input is the model of the first stage. The
// models of the other stages are side inputs, which are broadcast.
type joiner struct {
	engine.BaseOperator
	schema *arrow.Schema
	stages int
	sides  []arrow.Record
}

// Open reads the models that were broadcast.
func (j *joiner) Open(c *engine.Context) error {
	for i := 1; i < j.stages; i++ {
		var one arrow.Record
		for _, rows := range c.Side(i) {
			if rows.Len() == 0 {
				continue
			}
			if one != nil || rows.Len() > 1 {
				return fmt.Errorf("the model of stage %d has more than one row", i)
			}
			one = arrowrows.Record(rows)
		}
		if one == nil {
			return fmt.Errorf("the model of stage %d has no row", i)
		}
		j.sides = append(j.sides, one)
	}
	return nil
}

// Process emits the row of the pipeline's model.
func (j *joiner) Process(c *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	if rows.NumRows() == 0 {
		return nil
	}
	if rows.NumRows() > 1 {
		return fmt.Errorf("the model of stage 0 has more than one row")
	}
	files, columns := make([][]byte, 0, j.stages), []arrow.Array{nil}
	for i, rec := range append([]arrow.Record{rows}, j.sides...) {
		for k, f := range rec.Schema().Fields() {
			if f.Name != model.Column {
				columns = append(columns, rec.Column(k))
				continue
			}
			text, ok := rec.Column(k).(*array.String)
			if !ok || text.NullN() > 0 {
				return fmt.Errorf("the model of stage %d is not text", i)
			}
			files = append(files, []byte(text.Value(0)))
		}
	}
	m, err := newModel(files, 0)
	if err != nil {
		return err
	}
	file, err := m.Encode()
	if err != nil {
		return err
	}
	return emitText(c, shard, j.schema, string(file), columns, out)
}

// emitText emits a row that has text as its first column, followed by columns[1:].
func emitText(c *engine.Context, shard int, schema *arrow.Schema, text string, columns []arrow.Array, out engine.Output) error {
	b := array.NewStringBuilder(c.Allocator)
	defer b.Release()
	b.Append(text)
	columns[0] = b.NewArray()
	defer columns[0].Release()
	made := array.NewRecord(schema, columns, 1)
	defer made.Release()
	return out.Emit(shard, arrowrows.Batch(made))
}

// part adds the operator that extracts the model of a stage from the model of a pipeline.
func part(trained *engine.Dataset, stage, stages int) *engine.Dataset {
	fields := []arrow.Field{{Name: model.Column, Type: arrow.BinaryTypes.String}}
	at := []int{0}
	for k, f := range arrowrows.Arrow(trained.Schema()).Fields() {
		if name, ok := strings.CutPrefix(f.Name, besides(stage, "")); ok {
			f.Name = name
			fields, at = append(fields, f), append(at, k)
		}
	}
	schema := arrow.NewSchema(fields, nil)
	return trained.Builder().Add(engine.Spec{
		Op: "PipelineStage", Attrs: []engine.Attr{{Key: "stage", Value: strconv.Itoa(stage)}},
		Schema: arrowrows.Schema(schema), Inputs: []engine.Port{{From: trained}},
		Operator: func() engine.Operator { return &parter{schema: schema, at: at, stage: stage, stages: stages} },
	})
}

// parter is the operator that part adds.
type parter struct {
	engine.BaseOperator
	schema        *arrow.Schema
	at            []int // at[i] is the index in the input of column i of schema; at[0] is not used
	stage, stages int
}

// Process emits the stage's model for the row of the pipeline's model.
func (p *parter) Process(c *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	k, err := batch.FindColumn(rows.Schema(), model.Column)
	if err != nil {
		return err
	}
	text, ok := rows.Column(k).(*array.String)
	if !ok || text.NullN() > 0 {
		return fmt.Errorf("the model is not text")
	}
	for row := range text.Len() {
		files, err := stageFiles([]byte(text.Value(row)))
		if err != nil {
			return err
		}
		if len(files) != p.stages {
			return fmt.Errorf("the model has %d stages, the pipeline %d", len(files), p.stages)
		}
		columns := make([]arrow.Array, 0, len(p.at))
		for _, at := range p.at {
			columns = append(columns, array.NewSlice(rows.Column(at), int64(row), int64(row+1)))
		}
		kept := append([]arrow.Array(nil), columns...)
		err = emitText(c, shard, p.schema, string(files[p.stage]), columns, out)
		for _, column := range kept {
			column.Release()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
