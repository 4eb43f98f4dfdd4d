package parquet

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// damager is a sink that damages the staged files of another sink before the other sink
// commits.
type damager struct{ damage func() error }

func (d *damager) Begin() error                     { return nil }
func (d *damager) Commit() error                    { return nil }
func (d *damager) Abort() error                     { return nil }
func (d *damager) Join() error                      { return nil }
func (d *damager) Leave() error                     { return nil }
func (d *damager) Written() ([]byte, error)         { return nil, nil }
func (d *damager) Aside() string                    { return "" }
func (d *damager) Complete(engine.Completion) error { return d.damage() }
func (d *damager) Decide() error                    { return nil }
func (d *damager) Place() error                     { return nil }
func (d *damager) TakeBack() error                  { return nil }
func (d *damager) Finish()                          {}
func (d *damager) Settle() error                    { return nil }

var _ engine.JointSink = (*damager)(nil)

// takes is an operator that ignores its rows.
type takes struct{}

func (takes) Open(*engine.Context) error { return nil }
func (takes) Process(*engine.Context, int, int, engine.Batch, engine.Output) error {
	return nil
}
func (takes) EndShard(*engine.Context, int, engine.Output) error { return nil }
func (takes) Finish(*engine.Context, engine.Output) error        { return nil }
func (takes) Close() error                                       { return nil }

// TestDamagedStagedParts requires that, if a bit of one staged file changes, no output of the
// job becomes visible, whether outputs are single files or directories. Without damage all
// outputs must have the bytes of an output that is written alone.
func TestDamagedStagedParts(t *testing.T) {
	for _, perShard := range []bool{false, true} {
		for _, workers := range []int{0, 2} {
			for _, spoil := range []bool{true, false} {
				dir := t.TempDir()
				spoiled := 0
				damage := func() error {
					parts, err := filepath.Glob(filepath.Join(dir, ".superstep-out", "parts-*", "*3*"))
					for _, part := range parts {
						data, err := os.ReadFile(part)
						if err != nil {
							return err
						}
						spoiled++
						data[len(data)*2/3] ^= 16
						if err := os.WriteFile(part, data, 0o600); err != nil {
							return err
						}
					}
					return err
				}
				_, err := run(t, memory.NewGoAllocator(), func(b *engine.Builder) {
					rows := operators.Range(b, 0, 40)
					operators.WriteCSV(rows, filepath.Join(dir, "first"), operators.CSVWriteOptions{})
					Write(rows, filepath.Join(dir, "second"), WriteOptions{PerShard: !perShard})
					if spoil {
						b.Add(engine.Spec{Op: "Damage", Inputs: []engine.Port{{From: rows}}, Operator: func() engine.Operator { return takes{} }, Sink: &damager{damage}})
					}
					Write(rows, filepath.Join(dir, "out"), WriteOptions{PerShard: perShard})
				}, engine.Parallelism(2), engine.Workers(workers))
				left, listed := os.ReadDir(dir)
				require.NoError(t, listed)
				if !spoil {
					require.NoError(t, err)
					require.Len(t, left, 3)
					continue
				}
				require.Equal(t, 1, spoiled)
				require.ErrorContains(t, err, "cannot write output "+filepath.Join(dir, "out")+": shard 3, written aside to ")
				require.ErrorContains(t, err, "is damaged: the CRC-32C of its ")
				require.Empty(t, left)
			}
		}
	}
}
