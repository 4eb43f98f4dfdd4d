package comqueue

import "fmt"

// WithoutZeros makes an AllReduce, or a ReduceScatter of a buffer that ForEachShard fills,
// leave out zeros if that takes fewer bytes. It is for large buffers (16,384 elements or more)
// that are mostly +0, such as a gradient over very many features: only elements other than +0
// are sent, with their indices. In every superstep all subtasks make the same decision, based
// on all buffers. The receiver restores the buffer, so no bit depends on the decision. Subtasks
// of one process read each other's buffers directly, and report the number of bytes that
// messages would take. The option pays if elements other than +0 are so rare, and the network
// is so slow, that the bytes saved outweigh the scan of all elements.
func WithoutZeros() ReduceOption { return withoutZeros{} }

type withoutZeros struct{}

func (withoutZeros) applyReduce(c *reduceConfig) { c.sparse = true }

// misuseOfZeros returns what is wrong with the option WithoutZeros.
func misuseOfZeros(c reduceConfig) error {
	if c.sparse && c.algorithm != nil {
		return fmt.Errorf("WithoutZeros and an Algorithm, %s, are given: the messages of algorithms by name are whole", c.algorithm.name)
	}
	return nil
}
