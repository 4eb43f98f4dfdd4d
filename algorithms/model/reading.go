package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"
)

// Reading says how the training files of a model were read, if they were not read by default.
// Other data files for the model must be read in the same way. The zero value means the
// default.
type Reading struct {
	// Nulls are the texts that mean a missing value, in addition to the empty cell; nil means
	// the default texts.
	Nulls []string `json:"nulls,omitempty"`
	// ZeroBased is set if indices of LibSVM files count from 0.
	ZeroBased bool `json:"zero_based,omitempty"`
}

// readingMember is the key of the Reading in a model's file.
const readingMember = "reading"

func (r Reading) says() bool { return len(r.Nulls) > 0 || r.ZeroBased }

// Validate returns an error if r is the zero value, or if Nulls has an empty text or the same
// text twice.
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

// WithReading returns a model's file with r as the member reading. file must be a result of
// Encode. If r is the zero value, WithReading returns file itself.
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

// ReadingOf returns the Reading in the file of a model of any kind, or the zero value if the
// file has no Reading. Unlike Decode, it does not check the rest of the file.
func ReadingOf(file []byte) (Reading, error) {
	if !bytes.Contains(file, []byte(readingMember)) && !bytes.Contains(file, []byte(`\u`)) {
		return Reading{}, nil // avoids parsing a large file that lacks the member
	}
	o, err := split(file)
	if err != nil {
		return Reading{}, err
	}
	return o.reading()
}

// reading returns the decoded member reading, or the zero value if there is none.
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
