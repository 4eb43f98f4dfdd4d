package wire

import "google.golang.org/grpc/mem"

// rawCodec sends bytes as they are under our codec's name.
type rawCodec struct{}

func (rawCodec) Name() string { return codec{}.Name() }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.(*raw).data)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	v.(*raw).data = data.Materialize()
	return nil
}
