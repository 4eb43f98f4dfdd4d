package wire

import (
	"encoding/binary"

	"google.golang.org/grpc/mem"

	"github.com/superstep-ml/superstep/internal/checksum"
)

// rawCodec sends bytes unchanged, with their checksum, under the name of codec.
type rawCodec struct{}

func (rawCodec) Name() string { return codec{}.Name() }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	data := v.(*raw).data
	return mem.BufferSlice{mem.SliceBuffer(binary.LittleEndian.AppendUint32(data[:len(data):len(data)], checksum.CRC32C(0, data)))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	v.(*raw).data = data.Materialize()
	return nil
}
