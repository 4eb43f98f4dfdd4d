// Package wholefile reads whole files of bounded size, and replaces files atomically: a reader that
// opens the path at any time gets either the old file or the new one. A write that fails leaves the
// old file and no temporary file.
package wholefile
