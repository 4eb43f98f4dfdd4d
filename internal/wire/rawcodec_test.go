package wire

import (
	"encoding/binary"
	"hash/crc32"

	"google.golang.org/grpc/mem"
)

// rawCodec sends bytes unchanged, with their checksum, under the name of codec.
type rawCodec struct{}

func (rawCodec) Name() string { return codec{}.Name() }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	data := v.(*raw).data
	return mem.BufferSlice{mem.SliceBuffer(binary.LittleEndian.AppendUint32(data[:len(data):len(data)], crc32.Checksum(data, castagnoli)))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	v.(*raw).data = data.Materialize()
	return nil
}
