//go:build !linux

package hugepage

// ask finds nobody to ask.
func ask(uintptr, uintptr) bool { return false }
