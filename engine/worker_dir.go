package engine

import (
	"fmt"
	"os"
)

// enterDir makes the working directory that of the client, so that relative paths of
// a job, those within user code too, mean what they meant there. Where this machine
// does not have it, relative paths are to fail rather than to name something else: the
// process then stands in a directory, made within scratch, that is removed, in which
// the system finds and makes nothing. missing is why the client's was not entered.
func enterDir(dir, scratch string) (missing, err error) {
	if missing = os.Chdir(dir); missing == nil {
		return nil, nil
	}
	nowhere, err := os.MkdirTemp(scratch, "nowhere-")
	if err != nil {
		return missing, fmt.Errorf("make a directory: %w", err)
	}
	if err := os.Chdir(nowhere); err != nil {
		return missing, fmt.Errorf("enter a directory: %w", err)
	}
	if err := os.Remove(nowhere); err != nil {
		return missing, fmt.Errorf("leave no directory: %w", err)
	}
	return missing, nil
}
