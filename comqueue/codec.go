package comqueue

import (
	"bytes"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/internal/batch"
)

// frameCodec encodes a frame as an Arrow IPC stream.
type frameCodec struct{}

// Append implements shared.Codec.
func (frameCodec) Append(dst []byte, f *Frame) ([]byte, error) {
	buffer := bytes.NewBuffer(dst)
	w := batch.NewStreamWriter(buffer, f.record.Schema(), memory.DefaultAllocator)
	if err := w.Write(f.record); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// Decode implements shared.Codec.
func (frameCodec) Decode(src []byte) (*Frame, error) {
	r, err := batch.NewStreamReader(bytes.NewReader(src), memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	rows, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("frame: %w", err)
	}
	defer rows.Release()
	return newFrame(memory.DefaultAllocator, rows.Schema(), []arrow.Record{rows})
}

// fingerprint returns a hash of the frame's rows, by which a modified frame is detected.
func (f *Frame) fingerprint() (uint64, error) {
	encoded, err := frameCodec{}.Append(nil, f)
	if err != nil {
		return 0, err
	}
	return xxh3.Hash(encoded), nil
}
