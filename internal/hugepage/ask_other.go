//go:build !linux

package hugepage

func theSystem() (system, bool) { return system{}, false }
