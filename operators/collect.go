package operators

import "github.com/superstep-ml/superstep/engine"

// Collect brings the rows of d to the caller of engine.Run under a name, in
// shard order: engine.Rows gives them as structs, Result.Records as batches.
// They are held in memory, within the run's budget.
func Collect(b *engine.Builder, name string, d *engine.Dataset) {
	needBuilder("Collect", b)
	switch {
	case d == nil:
		b.Errorf("Collect %q: the dataset is nil", name)
	case d.Builder() != b:
		b.Errorf("Collect %q: the dataset belongs to another job or to an earlier build of this one; a job function must not keep datasets between calls", name)
	default:
		engine.Collect(d, name)
	}
}
