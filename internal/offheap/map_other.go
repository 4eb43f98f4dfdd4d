//go:build !linux || race

package offheap

const canMap = false

func mapMemory(int) ([]byte, error) { panic("offheap: no mappings here") }

func unmapMemory([]byte) {}
