//go:build !unix

package wholefile

// SyncDir does nothing, as these systems cannot synchronise directories.
func SyncDir(string) error { return nil }
