package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"
)

// Reading tells how the training files of a model were read, where that was not the default.
// Other files for the model have to be read alike. The zero value means the default.
type Reading struct {
	// Nulls are the spellings of a missing value besides the empty cell; nil means the usual
	// ones.
	Nulls []string `json:"nulls,omitempty"`
	// ZeroBased says that indices of LibSVM files count from 0.
	ZeroBased bool `json:"zero_based,omitempty"`
}

// readingMember is the key of the Reading in a model's file.
const readingMember = "reading"

func (r Reading) says() bool { return len(r.Nulls) > 0 || r.ZeroBased }

// Validate refuses a Reading that says nothing, or that has a spelling twice.
func (r Reading) Validate() error {
	for i, n := range r.Nulls {
		switch {
		case n == "":
			return errors.New("nulls: one is empty, and an empty cell is a missing value anyway")
		case slices.Contains(r.Nulls[:i], n):
			return fmt.Errorf("nulls: %q occurs twice", n)
		}
	}
	if !r.says() {
		return errors.New("it is empty")
	}
	return nil
}

// WithReading puts r into a model's file, which Encode returned, and returns the new file. If r
// is the zero value, that is the file itself.
func WithReading(file []byte, r Reading) ([]byte, error) {
	if !r.says() {
		return file, nil
	}
	if err := r.Validate(); err != nil {
		return nil, fmt.Errorf("model: %s: %w", readingMember, err)
	}
	value, err := json.Marshal(r)
	if err == nil {
		err = checkUTF8(value, true)
	}
	if err != nil {
		return nil, fmt.Errorf("model: %s: %w", readingMember, err)
	}
	tail := len(`,"checksum":"` + checksum(0) + `"}`)
	if at := len(file) - tail; at < 0 || !bytes.HasPrefix(file[at:], []byte(`,"checksum":"`)) {
		return nil, errors.New("model: the file is not as Encode writes it")
	}
	if len(file)+len(value)+len(`,"reading":`) > MaxFile {
		return nil, fmt.Errorf("model: with the member that tells how to read files it takes more than %d bytes, the limit of a model's file", MaxFile)
	}
	text := make([]byte, 0, len(file)+len(value)+len(`,"reading":`))
	text = append(append(text, file[:len(file)-tail]...), `,"reading":`...)
	text = append(append(text, value...), '}')
	sum := checksum(xxh3.Hash(text))
	return append(text[:len(text)-1], `,"checksum":"`+sum+`"}`...), nil
}

// ReadingOf returns the Reading in a model's file of any kind; the zero value where there is
// none. Unlike Decode it does not check the rest of the file.
func ReadingOf(file []byte) (Reading, error) {
	if !bytes.Contains(file, []byte(readingMember)) && !bytes.Contains(file, []byte(`\u`)) {
		return Reading{}, nil // a large file without the member is not parsed
	}
	o, err := split(file)
	if err != nil {
		return Reading{}, err
	}
	return o.reading()
}

// reading reads the member, which need not be there.
func (o object) reading() (r Reading, err error) {
	value, ok := o[readingMember]
	if !ok {
		return r, nil
	}
	if err = Unmarshal(value, &r); err == nil {
		err = r.Validate()
	}
	if err != nil {
		return Reading{}, fmt.Errorf("model is damaged: %s: %w", readingMember, err)
	}
	return r, nil
}
