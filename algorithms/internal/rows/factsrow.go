package rows

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/shared"
)

// factsRow is the only row of the dataset of facts. Facts whose size grows with the number of
// features are in vectors, whose memory the subtasks of a process share.
type factsRow struct {
	Facts []byte `column:"facts"` // a factsFile as JSON
	// Mean has the columns that training uses as indices, and the means of these columns as
	// values.
	Mean   batch.SparseVector `column:"mean"`
	Std    []float64          `column:"std"`
	MaxAbs []float64          `column:"max_abs"`
}

// factsFile has the facts that a factsRow holds as JSON.
type factsFile struct {
	Declared     int       `json:"declared"`
	Compact      bool      `json:"compact"` // whether Facts.Columns is not nil
	Rows         int64     `json:"rows"`
	Weighing     int64     `json:"weighing"`
	Weight       float64   `json:"weight"`
	Classes      []string  `json:"classes,omitempty"`
	Keys         [][]byte  `json:"keys,omitempty"`
	ClassWeights []float64 `json:"class_weights,omitempty"`
	LabelType    string    `json:"label_type,omitempty"`
	LabelMean    float64   `json:"label_mean"`
	LabelStd     float64   `json:"label_std"`
	LabelMin     float64   `json:"label_min"`
	LabelMax     float64   `json:"label_max"`
	OffsetMean   float64   `json:"offset_mean,omitempty"`
}

// found is the row that the queue outputs. It is an object of shard 0, which subtask 0 always
// owns. So the row is sent to the process that closes the queue if another process ran the
// queue.
var found = shared.PerShard("facts", shared.Msgpack[factsRow]())

// outputFacts returns the row that the queue outputs.
func outputFacts(ctx *comqueue.ComContext) ([]factsRow, error) {
	return []factsRow{found.Get(ctx, 0)}, nil
}

// keep stores the facts on subtask 0, as the row that the queue outputs. It does nothing on
// other subtasks.
func (f *Facts) keep(ctx *comqueue.ComContext) error {
	if ctx.TaskID() != 0 {
		return nil
	}
	file := factsFile{
		Declared: f.Declared, Compact: f.Columns != nil, Rows: f.Rows, Weighing: f.Weighing, Weight: f.Weight,
		Classes: f.Classes, ClassWeights: f.ClassWeights, LabelType: f.LabelType,
		LabelMean: f.LabelMean, LabelStd: f.LabelStd, LabelMin: f.LabelMin, LabelMax: f.LabelMax, OffsetMean: f.OffsetMean,
	}
	for _, key := range f.keys {
		file.Keys = append(file.Keys, []byte(key))
	}
	text, err := json.Marshal(file)
	if err != nil {
		return err
	}
	columns := f.Columns
	if columns == nil {
		columns = make([]int32, f.Declared)
		for j := range columns {
			columns[j] = int32(j)
		}
	}
	found.Put(ctx, 0, factsRow{
		Facts: text, Mean: batch.SparseVector{Indices: columns, Values: f.Mean}, Std: f.Std, MaxAbs: f.MaxAbs,
	})
	return nil
}

// decodeFacts returns the facts in frame, which has one factsRow. Facts whose size grows with
// the number of features are views of the frame.
func decodeFacts(frame *comqueue.Frame) (*Facts, error) {
	if frame.Rows() != 1 {
		return nil, fmt.Errorf("there are %d rows of facts, want one", frame.Rows())
	}
	record := arrowrows.Record(frame.Batch())
	reader, err := factsCodec.Bind(record.Schema())
	if err != nil {
		return nil, err
	}
	var row factsRow
	if err := errors.Join(reader.Reset(record), reader.Read(0, &row)); err != nil {
		return nil, err
	}
	var file factsFile
	if err := json.Unmarshal(row.Facts, &file); err != nil {
		return nil, fmt.Errorf("facts: %w", err)
	}
	f := &Facts{
		Declared: file.Declared, Rows: file.Rows, Weighing: file.Weighing, Weight: file.Weight,
		Mean: row.Mean.Values, Std: row.Std, MaxAbs: row.MaxAbs,
		Classes: file.Classes, ClassWeights: file.ClassWeights, LabelType: file.LabelType,
		LabelMean: file.LabelMean, LabelStd: file.LabelStd, LabelMin: file.LabelMin, LabelMax: file.LabelMax, OffsetMean: file.OffsetMean,
	}
	if file.Compact {
		f.Columns = row.Mean.Indices
		if f.Columns == nil {
			f.Columns = []int32{}
		}
	}
	for _, key := range file.Keys {
		f.keys = append(f.keys, string(key))
	}
	return f, nil
}

// factsCodec reads rows of facts; it is never modified.
var factsCodec = mustCodec()

func mustCodec() *batch.Codec[factsRow] {
	codec, err := batch.NewCodec[factsRow]()
	if err != nil {
		panic(err)
	}
	return codec
}
