package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"
)

// Reading is how the files that a model was trained on were said to be written, where that is
// not the usual: whoever reads others for the model has to read them alike. The zero value
// says nothing.
type Reading struct {
	// Nulls are the spellings of a missing value, beside the empty cell; none says that they
	// are the usual.
	Nulls []string `json:"nulls,omitempty"`
	// ZeroBased says that indices of LibSVM files count from 0.
	ZeroBased bool `json:"zero_based,omitempty"`
}

// readingMember is the key of the member that a model's file may have.
const readingMember = "reading"

func (r Reading) says() bool { return len(r.Nulls) > 0 || r.ZeroBased }

// Validate refuses what says nothing, or one thing twice.
func (r Reading) Validate() error {
	for i, n := range r.Nulls {
		switch {
		case n == "":
			return errors.New("nulls: one is empty, as which a value is missing without it")
		case slices.Contains(r.Nulls[:i], n):
			return fmt.Errorf("nulls: %q is there twice", n)
		}
	}
	if !r.says() {
		return errors.New("it says nothing")
	}
	return nil
}

// WithReading returns a model's file, as Encode gives it, with what r says put into it. Where r
// says nothing that is the file itself.
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
		return nil, fmt.Errorf("model: it takes more than %d bytes with what is told of reading files, a model's file at most as many", MaxFile)
	}
	text := make([]byte, 0, len(file)+len(value)+len(`,"reading":`))
	text = append(append(text, file[:len(file)-tail]...), `,"reading":`...)
	text = append(append(text, value...), '}')
	sum := checksum(xxh3.Hash(text))
	return append(text[:len(text)-1], `,"checksum":"`+sum+`"}`...), nil
}

// ReadingOf returns what a model's file says of reading files, of whatever kind it is; the
// zero value where it says nothing. It does not check the rest of the file, as Decode does.
func ReadingOf(file []byte) (Reading, error) {
	if !bytes.Contains(file, []byte(readingMember)) && !bytes.Contains(file, []byte(`\u`)) {
		return Reading{}, nil // of a large file nothing else is looked at
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
