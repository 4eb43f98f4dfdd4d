package tune

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/bits"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
)

// SizeClass is a range of sizes for which one decision is made: all sizes above a power of two,
// up to and including the next power of two. Class 0 contains only size 0.
type SizeClass int

// ClassOf returns the class of a size in bytes.
func ClassOf(bytes int) SizeClass {
	if bytes == 0 {
		return 0
	}
	return SizeClass(bits.Len(uint(bytes-1)) + 1)
}

// Bytes returns the size for which the decision of the class is made: the middle of the range
// of the class.
func (c SizeClass) Bytes() int {
	if c == 0 {
		return 0
	}
	return max(1, 3<<(c-1)>>2)
}

// MessageBytes is the length in bytes of the message in which rank 0 sends its choice to the
// other ranks.
const MessageBytes = 512

// Encode writes the choice to message, which must contain only zeros.
func (c Choice) Encode(message *[MessageBytes]byte) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if len(text) > len(message) {
		return fmt.Errorf("the choice of %s takes more than %d bytes to tell", c, len(message))
	}
	copy(message[:], text)
	return nil
}

// DecodeChoice returns the choice in message, which is for the collective coll, and the
// algorithm that the choice names.
func DecodeChoice(message *[MessageBytes]byte, coll program.Collective) (Choice, *algorithm.Algorithm, error) {
	var c Choice
	if err := json.Unmarshal(bytes.TrimRight(message[:], "\x00"), &c); err != nil {
		return c, nil, fmt.Errorf("what rank 0 chose cannot be read: %w", err)
	}
	a, err := algorithm.Find(coll, c.Algorithm)
	if err != nil {
		return c, nil, fmt.Errorf("what rank 0 chose: %w", err)
	}
	return c, a, nil
}
