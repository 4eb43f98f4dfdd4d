package tune

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/bits"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
)

// SizeClass is a range of sizes for which one decision is made: from above a power of two up
// to the next, which belongs to it as it does to the bounds of rules. Class 0 is size 0 alone.
type SizeClass int

// ClassOf returns the class of a size in bytes.
func ClassOf(bytes int) SizeClass {
	if bytes == 0 {
		return 0
	}
	return SizeClass(bits.Len(uint(bytes-1)) + 1)
}

// Bytes is the size for which the class is decided, the middle of its range.
func (c SizeClass) Bytes() int {
	if c == 0 {
		return 0
	}
	return max(1, 3<<(c-1)>>2)
}

// MessageBytes is the length of the message by which rank 0 tells the others its choice.
const MessageBytes = 512

// Encode writes the choice to a message of zeros.
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

// DecodeChoice reads a choice for a collective, and finds its algorithm.
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
