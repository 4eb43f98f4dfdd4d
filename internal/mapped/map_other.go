//go:build !linux

package mapped

import "github.com/superstep-ml/superstep/internal/disk"

func newPart(disk.FS, string, int64) (part, error) { return part{}, ErrUnsupported }

func unmap([]byte) {}
