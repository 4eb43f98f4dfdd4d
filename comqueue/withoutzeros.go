package comqueue

import "fmt"

// WithoutZeros has an AllReduce, or a ReduceScatter of a buffer that ForEachShard fills,
// leave zeros away where that takes fewer bytes: of a large buffer (16,384 elements or
// more) most of which is +0, as a gradient over very many features is, the elements that
// are not travel with their places. All subtasks decide alike, in every superstep, by
// what all of them bring; what arrives is what was sent, so that no bit depends on it.
// Subtasks of one process read each other's buffers where they are, and count for their
// bytes what messages would take. Elements other than 0 should be rare enough, and the
// network slow enough, to make up for a look at each element.
func WithoutZeros() ReduceOption { return withoutZeros{} }

type withoutZeros struct{}

func (withoutZeros) applyReduce(c *reduceConfig) { c.sparse = true }

// misuseOfZeros says what is wrong with the option of this file.
func misuseOfZeros(c reduceConfig) error {
	if c.sparse && c.by != nil {
		return fmt.Errorf("WithoutZeros and an Algorithm, %s, are given: the messages of algorithms by name are whole", c.by.name)
	}
	return nil
}
