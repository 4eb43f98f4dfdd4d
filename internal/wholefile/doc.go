// Package wholefile reads whole files of bounded size, and replaces files atomically. A reader
// that opens the path at any moment gets the old file or the new one. A write that fails leaves
// no trace.
package wholefile
