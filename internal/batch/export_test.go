package batch

// SetSplit sets the size in bytes above which Write splits a batch.
func (s *StreamWriter) SetSplit(size int64) { s.split = size }
