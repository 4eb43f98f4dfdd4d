// Package wholefile reads whole files of bounded size, and replaces files atomically: a reader
// that opens the path at any time gets either the old file or the complete new file. If a write
// fails, the old file remains and the temporary file is removed.
package wholefile
