package engine

import (
	"bytes"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
)

// encodeArgs encodes a job's arguments for workers, as msgpack. Structs are encoded as maps of
// their exported fields by name.
func encodeArgs(args any) ([]byte, error) {
	data, err := msgpack.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("the arguments of type %T cannot travel to workers: %w", args, err)
	}
	return data, nil
}

// decodeArgs is the inverse of encodeArgs. It refuses fields that the type does not have, as
// only another build of the program can have encoded them.
func decodeArgs(data []byte, into any) error {
	d := msgpack.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields(true)
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("the arguments do not decode into %T: %w", into, err)
	}
	return nil
}
