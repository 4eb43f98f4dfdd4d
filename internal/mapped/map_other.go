//go:build !linux

package mapped

import "github.com/superstep-ml/superstep/internal/disk"

func mapNew(disk.FS, string, int64, bool) (*mapping, error) { return nil, ErrUnsupported }

func mapOld(disk.FS, string, int64) (*mapping, error) { return nil, ErrUnsupported }

func unmap([]byte) {}
