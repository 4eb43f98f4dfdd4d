package batch

// SetSplit lets a test split batches at a small size.
func (s *StreamWriter) SetSplit(size int64) { s.split = size }
