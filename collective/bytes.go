package collective

import "unsafe"

// bytesOf views elements as the bytes that they are in memory.
func bytesOf[T Number](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
}
