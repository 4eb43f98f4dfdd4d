package prepare_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/prepare"
)

// FuzzPayload requires that a file with a valid checksum is either refused or read without an
// error. A model that was read must transform rows of any kind without a panic, and must encode
// to the same file again.
func FuzzPayload(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.json")
	require.NoError(f, err)
	require.NotEmpty(f, paths)
	for _, path := range paths {
		file, err := model.ReadFile(path)
		require.NoError(f, err)
		kind, err := model.KindOf(file)
		require.NoError(f, err)
		read, err := model.Decode(file, kind, 1)
		require.NoError(f, err)
		inputs, err := json.Marshal(read.Inputs)
		require.NoError(f, err)
		f.Add(kind, string(inputs), string(read.Payload))
	}
	f.Fuzz(func(t *testing.T, kind, inputs, payload string) {
		var columns []model.Input
		if json.Unmarshal([]byte(inputs), &columns) != nil || !json.Valid([]byte(payload)) {
			return
		}
		file, err := model.Encode(kind, 1, columns, map[string]int{"rows": 3}, json.RawMessage(payload))
		if err != nil {
			return
		}
		m, err := prepare.Decode(file)
		if err != nil {
			return
		}
		again, err := m.Encode()
		require.NoError(t, err)
		same, err := prepare.Decode(again)
		require.NoError(t, err)
		require.Equal(t, m, same)
		layout := model.NewLayout()
		for _, name := range []string{"age", "rooms", "same", "city", "good", "vector", "ragged", "sparse"} {
			layout.Add(name)
		}
		step, err := m.Bind(layout)
		if err != nil {
			return
		}
		row := layout.NewRow()
		for _, set := range []func(c *model.Cell){
			func(c *model.Cell) { c.SetNull() },
			func(c *model.Cell) { c.SetBool(true) },
			func(c *model.Cell) { c.SetInt(3) },
			func(c *model.Cell) { c.SetFloat(zero / zero) },
			func(c *model.Cell) { c.SetText("Oslo") },
			func(c *model.Cell) { c.SetDense([]float64{1, 2, 3}) },
			func(c *model.Cell) { c.SetDense(nil) },
			func(c *model.Cell) { c.SetSparse(0, []int32{1, 1 << 30}, []float64{1, 2}) },
		} {
			for i := range 8 {
				set(&row[i])
			}
			_ = step(row)
		}
	})
}
