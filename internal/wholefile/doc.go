// Package wholefile reads whole files of bounded size, and puts files in place whole: whoever
// opens the path, at whatever moment, reads the old file or the new one, and what fails leaves
// no trace.
package wholefile
